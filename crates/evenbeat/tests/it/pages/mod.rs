//! The pages, as a browser asks for them.

mod fleet;
mod live;
mod person;
mod schedule;
mod timeline;
mod welcome;
mod whatif;

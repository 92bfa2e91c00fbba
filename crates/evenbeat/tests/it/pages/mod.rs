//! The pages, as a browser asks for them.

mod live;
mod person;
mod schedule;
mod welcome;

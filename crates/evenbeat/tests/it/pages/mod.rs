//! The pages, as a browser asks for them.

mod fleet;
mod live;
mod timeline;
mod whatif;

//! The pages, as a browser asks for them.

mod live;
mod run;
mod runs;

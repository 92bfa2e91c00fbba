//! The program around [`evenbeat_core`]: command line and files, and the one clock.
//!
//! A library only so that tests can reach its rooms; the product is the binary `evenbeat`.

pub mod api;
pub mod cli;
pub mod clock;
pub mod config;
pub mod crontab;
pub mod demo;
pub mod fleet;
pub mod intake;
pub mod jobfile;
mod mint;
mod point;
pub mod printable;
pub mod runtime;
pub mod serve;
pub mod socket_path;
pub mod statefile;
pub mod store;
pub mod target;

//! The program around [`evenbeat_core`]: stores, processes, HTTP, files and the command line.
//!
//! The modules are layers, in this order: each uses only those above it, and a test keeps it so. A library only so that
//! tests can reach the parts; the product is the binary `evenbeat`.

pub mod clock;
mod mint;
mod point;
pub mod printable;
pub mod socket_path;
pub mod value_json;
pub mod jobfile;
pub mod crontab;
pub mod statefile;
pub mod config;
pub mod store;
pub mod target;
pub mod exec;
pub mod node;
pub mod fleet;
pub mod intake;
pub mod app;
pub mod views;
pub mod api;
pub mod serve;
pub mod demo;
pub mod cli;

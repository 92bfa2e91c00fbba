//! The program around [`evenbeat_core`]: stores, processes, HTTP, files and the command line.
//!
//! The modules are layers, in this order: each uses only those above it, and a test keeps it so. A library only so that
//! tests can reach some parts, through `testing`; the product is the binary `evenbeat`.

#![expect(
    unreachable_pub,
    reason = "`pub` says what a module offers to the others; the crate itself offers only what is at its end"
)]

mod clock;
mod mint;
mod point;
mod printable;
mod single_flight;
mod socket_path;
mod trace_context;
mod value_json;
mod jobfile;
mod crontab;
mod statefile;
mod config;
mod store;
mod outbound;
mod target;
mod exec;
mod node;
mod fleet;
mod intake;
mod auth;
mod alerts;
mod app;
mod views;
mod api;
mod dashboard;
mod serve;
mod demo;
mod cli;
#[doc(hidden)]
pub mod testing;

pub use cli::main;
pub use target::command::shim_main;

//! Every integration test of the program, in one binary: linking it once is cheaper than linking twenty.

mod analyze;
mod any_file;
mod api;
mod bad_files;
mod chaos;
mod check;
mod cli;
mod command_target;
mod config;
mod db;
mod docs;
mod examples;
mod fuzz;
mod live_cli;
mod node;
mod postgres_store;
mod serve;
mod simulate;
mod sqlite_store;
mod supply_chain;
mod support;
mod tidy;
mod written_jobs;

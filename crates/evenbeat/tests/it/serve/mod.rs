//! The real program with real processes: a node that serves, dies, comes back, and is asked by the command line.

mod abuse;
mod demo;
mod doors;
mod downtime;
mod drain;
mod elsewhere;
mod lives;
mod monitoring;
mod log_lines;
pub(crate) mod node;
mod quotas;
mod reasons;
mod refused;
mod reload;
mod retries;
mod store;
mod tls;
mod traces;
mod shared_file;

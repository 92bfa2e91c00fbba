//! The real program with real processes: a node that serves, dies, comes back, and is asked by the command line.

#[path = "support/folder.rs"]
mod folder;
#[path = "serve/demo.rs"]
mod demo;
#[path = "serve/downtime.rs"]
mod downtime;
#[path = "serve/lives.rs"]
mod lives;
#[path = "serve/node.rs"]
mod node;
#[path = "serve/quotas.rs"]
mod quotas;
#[path = "serve/refused.rs"]
mod refused;

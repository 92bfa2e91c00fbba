//! The real program with real processes: a node that serves, dies, comes back, and is asked by the command line.

#[path = "support/folder.rs"]
mod folder;
#[path = "support/wait.rs"]
#[expect(dead_code, reason = "shared with tests that wait for other things")]
mod wait;
#[path = "serve/abuse.rs"]
mod abuse;
#[path = "chaos/database.rs"]
#[expect(dead_code, reason = "shared with tests that set its clock")]
mod database;
#[path = "serve/demo.rs"]
mod demo;
#[path = "serve/downtime.rs"]
mod downtime;
#[path = "serve/drain.rs"]
mod drain;
#[path = "serve/lives.rs"]
mod lives;
#[path = "serve/log_lines.rs"]
mod log_lines;
#[path = "serve/node.rs"]
mod node;
#[path = "serve/quotas.rs"]
mod quotas;
#[path = "serve/reasons.rs"]
mod reasons;
#[path = "serve/refused.rs"]
mod refused;
#[path = "serve/reload.rs"]
mod reload;
#[path = "serve/retries.rs"]
mod retries;
#[path = "serve/store.rs"]
mod store;
#[path = "serve/shared_file.rs"]
mod shared_file;

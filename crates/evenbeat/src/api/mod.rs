//! The HTTP API (G1 to G5): routes under `/api/v1`, and the two that tell whether the process is well.
//!
//! ```text
//!  connection -> limits -> Host, Origin -> route -> who asks, which role -> handler -> intake, store, node
//!   (serve)      (router)     (guard)     (router)       (caller)         (handlers)
//! ```
//!
//! Whatever goes wrong on the way is a `Problem`, never a bare status. Handlers read from the store and write
//! through the intake; they decide nothing.

mod caller;
mod extract;
mod fields;
mod guard;
mod handlers;
mod json;
mod log_book;
mod problem;
mod router;
mod serve;
mod socket;
mod stream;

pub use caller::Peer;
pub use log_book::{LogBook, LogPart, NoLogs};
pub use router::{ApiOptions, router};
pub use serve::{ConnectionLimits, Listeners, serve, serve_within};
pub use socket::{Socket, SocketError};

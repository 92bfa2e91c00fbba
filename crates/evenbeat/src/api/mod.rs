//! The HTTP API (G1 to G5): routes under `/api/v1`, and the two that tell whether the process is well.
//!
//! ```text
//!  connection -> Host, Origin -> route -> who asks  -> body, turn -> which role -> handler -> intake, store, node
//!    (serve)        (guard)    (router) (authenticate)   (router)      (caller)  (handlers)
//! ```
//!
//! Whatever goes wrong on the way is a `Problem`, never a bare status. Handlers read from the store and write
//! through the intake; they decide nothing.

mod answer;
mod authenticate;
mod caller;
mod cookie;
mod crowd;
mod event_stream;
mod extract;
mod fields;
mod guard;
mod handlers;
mod held_body;
mod idle;
mod json;
mod log_book;
mod openapi;
mod openapi_3_0;
mod operation;
mod params;
mod problem;
mod proxy;
mod reference;
mod router;
mod routes;
mod serve;
mod socket;
mod stream;
mod table;
mod tls;

pub use caller::Peer;
pub use cookie::{SessionScheme, clear_cookie, session_cookie, set_cookie};
pub(crate) use extract::id_range;
pub use log_book::{LogBook, LogPart, NoLogs};
pub use openapi::openapi;
pub use proxy::{client_address, scheme_of};
pub use router::{ApiOptions, RouterParts, metrics_router, router};
pub use serve::{ConnectionLimits, Listeners, ServerStop, serve, serve_within};
pub use socket::{Socket, SocketError};
pub use tls::{ServerTls, TlsFileError};

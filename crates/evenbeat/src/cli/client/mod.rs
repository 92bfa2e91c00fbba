//! The API client of the command line: one request and one answer, over TCP, encrypted or not, or a Unix socket.

mod address;
mod error;
mod http;
mod request;
mod tls;

pub(crate) use address::{HttpScheme, ServerAddress};
pub(crate) use error::CommandError;
pub(crate) use http::{ApiResponse, Client, Credentials};
pub(crate) use request::ApiRequest;

//! The API client of the command line: one request and one answer, over TCP or a Unix socket.

mod address;
mod error;
mod http;
mod request;

pub(crate) use address::ServerAddress;
pub(crate) use error::CommandError;
pub(crate) use http::{ApiResponse, Client};
pub(crate) use request::ApiRequest;

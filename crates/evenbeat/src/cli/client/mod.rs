//! The API client of the command line: one request and one answer, over TCP or a Unix socket.

mod ask;
mod http;
mod place;
mod trouble;

pub(crate) use ask::Ask;
pub(crate) use http::{Answer, Client};
pub(crate) use place::Place;
pub(crate) use trouble::Trouble;

//! A client of the API, for the command line: one question, one answer, over TCP or a Unix socket.

mod ask;
mod http;
mod place;
mod trouble;

pub(crate) use ask::Ask;
pub(crate) use http::{Answer, Client};
pub(crate) use place::Place;
pub(crate) use trouble::Trouble;

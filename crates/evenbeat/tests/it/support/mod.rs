//! What the tests share: folders, nodes, servers, programs, and the one way to wait.

pub(crate) mod contract;
pub(crate) mod database;
pub(crate) mod event_client;
pub(crate) mod folder;
pub(crate) mod postgres;
pub(crate) mod programs;
pub(crate) mod served;
pub(crate) mod spans;
pub(crate) mod stories;
pub(crate) mod test_tools;
pub(crate) mod wait;

//! What the tests share: folders, nodes, servers, programs, and the one way to wait.

pub(crate) mod database;
pub(crate) mod folder;
pub(crate) mod postgres;
pub(crate) mod programs;
pub(crate) mod served;
pub(crate) mod stories;
pub(crate) mod wait;

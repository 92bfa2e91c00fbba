//! What tests need of the servers that `scripts/with-servers` starts, and how long they go on.

pub(crate) mod postgres;
pub(crate) mod stories;
#[expect(dead_code, reason = "shared with tests that wait for other things")]
pub(crate) mod wait;

//! The API of a server that runs inside the test: every route, good and bad, byte by byte.

mod doors;
mod fleet;
mod jobs;
mod limits;
mod paths;
mod problems;
mod rebalance;
mod routes;
mod runs;

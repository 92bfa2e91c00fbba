//! The API of a server that runs inside the test: every route, good and bad, byte by byte.

mod access;
mod document;
mod audit;
mod bulk;
mod doors;
mod events;
mod attainment;
mod fleet;
mod jobs;
mod limits;
mod login;
mod log_follow;
mod metrics;
mod patch;
mod paths;
mod problems;
mod rebalance;
mod routes;
mod runs;
mod sharing;

//! The pages, as a browser asks for them.

mod alerts;
mod audit;
mod client;
mod fleet;
mod job;
mod live;
mod nodes;
mod nowhere;
mod person;
mod run;
mod runs;
mod schedule;
mod sites;
mod timeline;
mod tokens;
mod welcome;
mod whatif;

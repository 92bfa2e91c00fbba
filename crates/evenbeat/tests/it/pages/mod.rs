//! The pages, as a browser asks for them.

mod alerts;
mod audit;
mod client;
mod live;
mod nodes;
mod nowhere;
mod sites;
mod tokens;

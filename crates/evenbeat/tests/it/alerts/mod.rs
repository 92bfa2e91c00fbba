//! Alerts: incidents of a real server, and what its receivers get.

mod api;
mod cluster;
mod delivery;
mod receivers;
mod stores;

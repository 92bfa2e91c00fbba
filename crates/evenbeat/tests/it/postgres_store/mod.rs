//! The PostgreSQL store keeps the contract, directly and behind PgBouncer, and keeps it where only a real server can
//! go wrong.

mod alike;
mod alone;
mod cluster;
mod deadlines;
mod failover;
mod feed;
mod fencing;
mod fleet;
mod history;
mod hygiene;
mod listing;
mod marks;
mod plans;
mod proxy;
mod requests;
mod schema;
mod races;
mod servers;
mod spans;
mod tls;
mod walks;
mod waits;
mod ways;

use crate::support::postgres::{Postgres, Way};

evenbeat_sim::conformance!(postgres, Postgres::by(Way::Direct));
evenbeat_sim::failover_conformance!(postgres_failover, Postgres::by(Way::Direct));
evenbeat_sim::conformance!(pgbouncer, Postgres::by(Way::PgBouncer));
evenbeat_sim::failover_conformance!(pgbouncer_failover, Postgres::by(Way::PgBouncer));

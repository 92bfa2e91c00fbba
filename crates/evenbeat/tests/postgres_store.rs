//! The PostgreSQL store keeps the contract, directly and behind PgBouncer, and keeps it where only a real server can
//! go wrong.

mod support;

#[path = "postgres_store/alike.rs"]
mod alike;
#[path = "postgres_store/alone.rs"]
mod alone;
#[path = "postgres_store/cluster.rs"]
mod cluster;
#[path = "postgres_store/deadlines.rs"]
mod deadlines;
#[path = "postgres_store/failover.rs"]
mod failover;
#[path = "postgres_store/feed.rs"]
mod feed;
#[path = "postgres_store/fencing.rs"]
mod fencing;
#[path = "postgres_store/fleet.rs"]
mod fleet;
#[path = "postgres_store/history.rs"]
mod history;
#[path = "postgres_store/hygiene.rs"]
mod hygiene;
#[path = "postgres_store/listing.rs"]
mod listing;
#[path = "postgres_store/marks.rs"]
mod marks;
#[path = "postgres_store/plans.rs"]
mod plans;
#[path = "postgres_store/proxy.rs"]
mod proxy;
#[path = "chaos/programs.rs"]
#[expect(dead_code, reason = "one of the programs is enough here")]
mod programs;
#[path = "postgres_store/requests.rs"]
mod requests;
#[path = "postgres_store/schema.rs"]
mod schema;
#[path = "postgres_store/races.rs"]
mod races;
#[path = "postgres_store/servers.rs"]
mod servers;
#[path = "postgres_store/tls.rs"]
mod tls;
#[path = "postgres_store/walks.rs"]
mod walks;
#[path = "postgres_store/waits.rs"]
mod waits;
#[path = "postgres_store/ways.rs"]
mod ways;

use support::postgres::{Postgres, Way};

evenbeat_sim::conformance!(postgres, Postgres::by(Way::Direct));
evenbeat_sim::failover_conformance!(postgres_failover, Postgres::by(Way::Direct));
evenbeat_sim::conformance!(pgbouncer, Postgres::by(Way::PgBouncer));
evenbeat_sim::failover_conformance!(pgbouncer_failover, Postgres::by(Way::PgBouncer));

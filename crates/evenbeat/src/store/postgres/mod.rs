//! The store of a cluster: a PostgreSQL server, 15 or later.
//!
//! Each duty is one transaction with a fixed number of statements, however large its batch: one round trip that locks
//! and reads, decisions in plain code as in the reference store, and one that writes and commits. Locks are taken in
//! one order everywhere: counters by kind and key, jobs by key, runs by id, start messages. So nobody waits in a
//! circle, and a compare-and-set that was decided under its lock cannot fail. Runs with nothing out of the ordinary
//! about them are opened and ended on a shorter way, by one statement.
//!
//! Every call has a deadline. A connection on which it passed is dropped, and the server gives the statement up by
//! itself. Nothing is kept on a connection from one transaction to the next except statements, and those only where
//! connections are ours: it works behind PgBouncer in transaction mode.

mod ahead;
mod batch;
mod blocking;
mod check;
mod config;
mod connect;
mod desk;
mod epoch;
mod fail;
mod feed;
mod housekeeping;
mod listing;
mod memory;
mod migrate;
mod partitions;
mod plans;
mod requests;
mod rows;
mod sessions;
mod tls;
mod tx;
mod views;
mod warm;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenbeat_core::store::StoreDown;

pub use batch::Ways;
pub use blocking::BlockingStore;
pub use config::{PgConfig, PgConfigError};
pub use tls::TlsError;

use batch::{JobCache, WaysCounted};
use connect::Connections;
use fail::Fail;
use feed::Readers;
use rows::Reader;

/// A handle to the store; copies share its connections.
#[derive(Clone, Debug)]
pub struct PgStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: PgConfig,
    connections: Connections,
    /// How a transaction begins.
    begin: Arc<str>,
    /// The same for runs.
    begin_runs: Arc<str>,
    reader: Reader,
    job_cache: JobCache,
    ways: WaysCounted,
    readers: Mutex<Readers>,
}

impl PgStore {
    /// A handle; nothing is asked of the server yet.
    pub fn new(config: PgConfig) -> Result<PgStore, StoreDown> {
        let connections = Connections::new(&config).map_err(|fail| fail.down())?;
        let (begin, begin_runs) = (config.begin().into(), config.begin_runs().into());
        let inner = Inner {
            config,
            connections,
            begin,
            begin_runs,
            reader: Reader::default(),
            job_cache: JobCache::default(),
            ways: WaysCounted::default(),
            readers: Mutex::default(),
        };
        Ok(PgStore { inner: Arc::new(inner) })
    }

    async fn within<T>(
        &self,
        deadline: Duration,
        work: impl Future<Output = Result<T, Fail>>,
    ) -> Result<T, StoreDown> {
        match tokio::time::timeout(deadline, work).await {
            Ok(answer) => answer.map_err(|fail| fail.down()),
            Err(_) => Err(StoreDown(format!("no answer from PostgreSQL within {} ms", deadline.as_millis()))),
        }
    }
}

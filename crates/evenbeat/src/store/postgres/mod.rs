//! The store of a cluster: a PostgreSQL server, 15 or later.
//!
//! Each duty is one transaction with a fixed number of statements, however large its batch: one round trip that locks
//! and reads, decisions in plain code as in the reference store, and one that writes and commits. Locks are always
//! taken in the same order: counters by kind and key, jobs by key, runs by id, start messages. So there are no
//! deadlocks, and a compare-and-set that was decided under its lock cannot fail. Ordinary runs are claimed and ended
//! by a single statement, on the short path.
//!
//! Every call has a deadline. If it passes, the connection is dropped, and the server cancels the statement by its own
//! timeout. Connections keep nothing between transactions except prepared statements, and those only without a pooler
//! in between: the store works behind PgBouncer in transaction mode.

mod access;
mod audit;
mod alerts;
mod batch;
mod blocking;
mod check;
mod config;
mod connect;
mod connect_retry;
mod ended;
mod epoch;
mod error;
mod feed;
mod housekeeping;
mod listing;
mod memory;
mod migrate;
mod partitions;
mod pause_end;
mod plans;
mod prefetch;
mod requests;
mod rows;
mod run_ops;
mod run_times;
mod sessions;
mod sharing;
mod spans;
mod tls;
mod transaction;
mod views;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenbeat_core::store::StoreDown;

pub use blocking::BlockingStore;
pub use config::PgConfig;

use batch::{JobCache, PathCounters};
use connect::Connections;
use error::PgError;
use feed::FeedReaders;
use rows::RowReader;

/// A handle to the store. Clones share its connections.
#[derive(Clone, Debug)]
pub struct PgStore {
    inner: Arc<PgStoreInner>,
}

#[derive(Debug)]
struct PgStoreInner {
    config: PgConfig,
    connections: Connections,
    /// The statement that begins a transaction.
    begin: Arc<str>,
    /// The statement that begins a transaction on the short path.
    begin_runs: Arc<str>,
    reader: RowReader,
    job_cache: JobCache,
    path_counters: PathCounters,
    readers: Mutex<FeedReaders>,
}

impl PgStore {
    /// Creates a handle. Does not connect yet.
    pub fn new(config: PgConfig) -> Result<PgStore, StoreDown> {
        let connections = Connections::new(&config).map_err(|fail| fail.down())?;
        let (begin, begin_runs) = (config.begin().into(), config.begin_runs().into());
        let inner = PgStoreInner {
            config,
            connections,
            begin,
            begin_runs,
            reader: RowReader::default(),
            job_cache: JobCache::default(),
            path_counters: PathCounters::default(),
            readers: Mutex::default(),
        };
        Ok(PgStore { inner: Arc::new(inner) })
    }

    async fn within<T>(
        &self,
        deadline: Duration,
        work: impl Future<Output = Result<T, PgError>>,
    ) -> Result<T, StoreDown> {
        match tokio::time::timeout(deadline, work).await {
            Ok(answer) => answer.map_err(|fail| fail.down()),
            Err(_) => Err(StoreDown(format!("no answer from PostgreSQL within {} ms", deadline.as_millis()))),
        }
    }
}

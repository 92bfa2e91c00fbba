//! Connections: one pool for runs, one for other writes, one for reads, and two reserved connections, for heartbeats
//! and for the watch over other nodes, so that nothing else can delay those.
//!
//! A connection is reused only if its transaction has ended. Otherwise, for example when a deadline has passed, it is
//! dropped, because answers may still be on their way.
//!
//! A server may take longer to connect than a caller can wait: see [`super::connect_retry`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod,
};
use tokio_postgres::{Config, SimpleQueryMessage};

use super::config::PgConfig;
use super::connect_retry::ConnectRetry;
use super::epoch::REMEMBER;
use super::error::{PgError, READ_ONLY};

/// The oldest supported version of PostgreSQL.
const VERSION_MIN: u32 = 15;
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionUse {
    /// Claims and ends of runs, on the short path.
    Runs,
    /// All other writes, and the feed.
    Write,
    /// Reads. A slow page must not delay claims.
    Read,
    /// Heartbeats.
    Beat,
    /// The watch over other nodes.
    Watch,
}

/// A connection with a single use, opened when it is first needed.
#[derive(Debug, Default)]
struct ReservedConnection {
    client: Arc<tokio::sync::Mutex<Option<ClientWrapper>>>,
    retry: ConnectRetry,
}

#[derive(Debug)]
struct ConnectionPool {
    pool: Pool,
    retry: ConnectRetry,
}

#[derive(Debug)]
pub(super) struct Connections {
    config: PgConfig,
    runs: ConnectionPool,
    writes: ConnectionPool,
    reads: ConnectionPool,
    beat: ReservedConnection,
    watch: ReservedConnection,
    backoff: Mutex<Backoff>,
}

impl Connections {
    pub(super) fn new(config: &PgConfig) -> Result<Connections, PgError> {
        Ok(Connections {
            config: config.clone(),
            runs: pool(config, config.connection_for_runs(), config.n_connections)?,
            writes: pool(config, config.connection(), config.n_connections)?,
            reads: pool(config, config.connection(), config.n_connections.div_ceil(2))?,
            beat: ReservedConnection::default(),
            watch: ReservedConnection::default(),
            backoff: Mutex::default(),
        })
    }

    pub(super) async fn get(&self, use_for: ConnectionUse) -> Result<TxConnection, PgError> {
        match use_for {
            ConnectionUse::Runs => self.pooled(&self.runs).await,
            ConnectionUse::Write => self.pooled(&self.writes).await,
            ConnectionUse::Read => self.pooled(&self.reads).await,
            ConnectionUse::Beat => self.reserved(&self.beat).await,
            ConnectionUse::Watch => self.reserved(&self.watch).await,
        }
    }

    async fn pooled(&self, ConnectionPool { pool, retry }: &ConnectionPool) -> Result<TxConnection, PgError> {
        if let Some(text) = self.backoff.lock().unwrap_or_else(PoisonError::into_inner).refusal() {
            return Err(PgError::Text(text));
        }
        // A connection that is opened later goes to the pool, for the next caller. Boxed, because the future is large
        // and part of all others.
        let later = pool.clone();
        let got = retry.connect(self.config.deadline, Box::pin(pool.get()), move || async move {
            drop(later.get().await);
        });
        match got.await {
            Ok(object) => {
                *self.backoff.lock().unwrap_or_else(PoisonError::into_inner) = Backoff::default();
                Ok(TxConnection(Some(ConnectionSource::Pooled(Box::new(object)))))
            }
            Err(error) => {
                let fail = PgError::from(error);
                self.backoff.lock().unwrap_or_else(PoisonError::into_inner).failed(&fail);
                Err(fail)
            }
        }
    }

    async fn reserved(
        &self,
        ReservedConnection { client, retry }: &ReservedConnection,
    ) -> Result<TxConnection, PgError> {
        let mut reserved = Arc::clone(client).lock_owned().await;
        if reserved.as_ref().is_none_or(|client| client.is_closed()) {
            *reserved = None;
            let (config, later) = (self.config.clone(), Arc::clone(client));
            let made =
                retry.connect(self.config.deadline, Box::pin(single(&self.config)), move || async move {
                    let Ok(client) = single(&config).await else { return };
                    let mut reserved = later.lock().await;
                    if reserved.as_ref().is_none_or(|it| it.is_closed()) {
                        *reserved = Some(client);
                    }
                });
            *reserved = Some(made.await?);
        }
        Ok(TxConnection(Some(ConnectionSource::Reserved(reserved))))
    }
}

/// Opens a connection outside of the pools.
async fn single(config: &PgConfig) -> Result<ClientWrapper, PgError> {
    let (client, connection) = config.connection().connect(config.tls.connector()).await?;
    let task = tokio::spawn(async move {
        // The client sees how the connection ended.
        drop(connection.await);
    });
    let client = ClientWrapper::new(client, task);
    match check_server(&client, config.is_pooled).await {
        Ok(()) => Ok(client),
        Err(HookError::Message(text)) => Err(PgError::Text(text.into_owned())),
        Err(HookError::Backend(error)) => Err(error.into()),
    }
}

fn pool(config: &PgConfig, connection: Config, n_connections: usize) -> Result<ConnectionPool, PgError> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(connection, config.tls.connector(), recycling);
    let is_pooled = config.is_pooled;
    let pool = Pool::builder(manager)
        .max_size(n_connections)
        .post_create(Hook::async_fn(move |client, _| Box::pin(check_server(client, is_pooled))))
        .build()
        .map_err(|error| PgError::Text(error.to_string()))?;
    Ok(ConnectionPool { pool, retry: ConnectRetry::default() })
}

/// Refuses servers that are too old or read-only.
async fn check_server(client: &ClientWrapper, is_pooled: bool) -> Result<(), HookError> {
    // As plain text, which works with and without a pooler.
    let question = "SELECT current_setting('server_version_num')::int / 10000, \
                    pg_is_in_recovery() OR current_setting('transaction_read_only')::bool";
    let answers = client.simple_query(question).await.map_err(HookError::Backend)?;
    let row = answers.iter().find_map(|it| match it {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let version: u32 = row.and_then(|row| row.get(0)).and_then(|it| it.parse().ok()).unwrap_or(0);
    let is_read_only = row.and_then(|row| row.get(1)) != Some("f");
    if let Some(text) = refusal(version, is_read_only) {
        return Err(HookError::Message(text.into()));
    }
    if !is_pooled {
        client.batch_execute(REMEMBER).await.map_err(HookError::Backend)?;
    }
    Ok(())
}

fn refusal(version: u32, is_read_only: bool) -> Option<String> {
    if version < VERSION_MIN {
        return Some(format!("PostgreSQL {version} is too old (use {VERSION_MIN} or later)"));
    }
    is_read_only.then(|| READ_ONLY.to_owned())
}

/// Limits attempts to connect to a server that cannot be reached.
#[derive(Debug, Default)]
struct Backoff {
    n_failures: u32,
    until: Option<Instant>,
    why: String,
}

impl Backoff {
    fn failed(&mut self, fail: &PgError) {
        let delay = BACKOFF_MIN.saturating_mul(1 << self.n_failures.min(10)).min(BACKOFF_MAX);
        self.n_failures = self.n_failures.saturating_add(1);
        self.until = Some(Instant::now() + delay);
        self.why = fail.to_string();
    }

    fn refusal(&self) -> Option<String> {
        let left = self.until?.checked_duration_since(Instant::now())?;
        Some(format!("{} (asked {} times, again in {} ms)", self.why, self.n_failures, left.as_millis()))
    }
}

/// A connection for the time of a transaction.
#[derive(Debug)]
pub(super) struct TxConnection(Option<ConnectionSource>);

#[derive(Debug)]
enum ConnectionSource {
    Pooled(Box<Object>),
    Reserved(tokio::sync::OwnedMutexGuard<Option<ClientWrapper>>),
}

impl TxConnection {
    pub(super) fn client(&self) -> Result<&ClientWrapper, PgError> {
        let client = match &self.0 {
            Some(ConnectionSource::Pooled(object)) => Some(&***object),
            Some(ConnectionSource::Reserved(reserved)) => reserved.as_ref(),
            None => None,
        };
        client.ok_or_else(|| PgError::Text("the connection was given back already".to_owned()))
    }

    /// Returns the connection for reuse. All of its statements must have been answered.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for TxConnection {
    fn drop(&mut self) {
        match self.0.take() {
            Some(ConnectionSource::Pooled(object)) => drop(Object::take(*object)),
            Some(ConnectionSource::Reserved(mut reserved)) => *reserved = None,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_be_used_is_refused() {
        assert_eq!(refusal(14, false).unwrap(), "PostgreSQL 14 is too old (use 15 or later)");
        assert!(refusal(15, true).unwrap().contains("only lets us read"));
        assert_eq!(refusal(15, false), None);
    }

    #[test]
    fn attempts_to_reach_a_dead_server_get_rare() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.refusal(), None);
        let mut last = Instant::now();
        for _ in 0..20 {
            backoff.failed(&PgError::Text("no route".to_owned()));
            let until = backoff.until.unwrap();
            assert!(last < until, "each time later");
            assert!(until <= Instant::now() + BACKOFF_MAX);
            last = until;
        }
        assert!(backoff.refusal().unwrap().starts_with("no route (asked 20 times, again in "));
    }
}

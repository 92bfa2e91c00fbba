//! Connections: one pool for runs, one for what else is written and one for what is only looked at, and beside them one
//! that only the beat uses and one for the watch over others, so that nothing else can keep them waiting.
//!
//! A connection goes back to where it came from only when its transaction came to its end. In every other case, a
//! deadline above all, it is dropped: whatever is still to come on it concerns nobody any more.
//!
//! A server may take longer to greet than whoever asks can wait. Then the next one who asks must not begin from the
//! start, or nobody would ever be served: see [`super::warm`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod,
};
use tokio_postgres::{Config, SimpleQueryMessage};

use super::config::PgConfig;
use super::epoch::REMEMBER;
use super::fail::{Fail, READ_ONLY};
use super::warm::Warmer;

/// The oldest server that is understood.
const VERSION_MIN: u32 = 15;
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Whoever opens and ends runs.
    Runs,
    /// Whoever else writes, and whoever must hear of it.
    Pool,
    /// Whoever only looks: a page that takes long keeps no claim waiting.
    Read,
    /// The beat alone.
    Beat,
    /// Who lives, and who is silent.
    Watch,
}

/// A connection with one purpose, made when it is first needed.
#[derive(Debug, Default)]
struct Slot {
    client: Arc<tokio::sync::Mutex<Option<ClientWrapper>>>,
    warmer: Warmer,
}

#[derive(Debug)]
struct Shared {
    pool: Pool,
    warmer: Warmer,
}

#[derive(Debug)]
pub(super) struct Connections {
    config: PgConfig,
    runs: Shared,
    pool: Shared,
    reads: Shared,
    beat: Slot,
    watch: Slot,
    backoff: Mutex<Backoff>,
}

impl Connections {
    pub(super) fn new(config: &PgConfig) -> Result<Connections, Fail> {
        Ok(Connections {
            config: config.clone(),
            runs: pool(config, config.connection_for_runs(), config.n_connections)?,
            pool: pool(config, config.connection(), config.n_connections)?,
            reads: pool(config, config.connection(), config.n_connections.div_ceil(2))?,
            beat: Slot::default(),
            watch: Slot::default(),
            backoff: Mutex::default(),
        })
    }

    pub(super) async fn lease(&self, lane: Lane) -> Result<Lease, Fail> {
        match lane {
            Lane::Runs => self.pooled(&self.runs).await,
            Lane::Pool => self.pooled(&self.pool).await,
            Lane::Read => self.pooled(&self.reads).await,
            Lane::Beat => self.reserved(&self.beat).await,
            Lane::Watch => self.reserved(&self.watch).await,
        }
    }

    async fn pooled(&self, Shared { pool, warmer }: &Shared) -> Result<Lease, Fail> {
        if let Some(text) = self.backoff.lock().unwrap_or_else(PoisonError::into_inner).refusal() {
            return Err(Fail::Told(text));
        }
        // What was made comes back to the pool, and is there for the next one. In a box, because to connect is a large
        // future, and this is a part of all others.
        let later = pool.clone();
        let got = warmer
            .make(self.config.deadline, Box::pin(pool.get()), move || async move { drop(later.get().await) });
        match got.await {
            Ok(object) => {
                *self.backoff.lock().unwrap_or_else(PoisonError::into_inner) = Backoff::default();
                Ok(Lease(Some(Held::Pooled(Box::new(object)))))
            }
            Err(error) => {
                let fail = Fail::from(error);
                self.backoff.lock().unwrap_or_else(PoisonError::into_inner).failed(&fail);
                Err(fail)
            }
        }
    }

    async fn reserved(&self, Slot { client, warmer }: &Slot) -> Result<Lease, Fail> {
        let mut slot = Arc::clone(client).lock_owned().await;
        if slot.as_ref().is_none_or(|client| client.is_closed()) {
            *slot = None;
            let (config, later) = (self.config.clone(), Arc::clone(client));
            let made =
                warmer.make(self.config.deadline, Box::pin(single(&self.config)), move || async move {
                    let Ok(client) = single(&config).await else { return };
                    let mut slot = later.lock().await;
                    if slot.as_ref().is_none_or(|it| it.is_closed()) {
                        *slot = Some(client);
                    }
                });
            *slot = Some(made.await?);
        }
        Ok(Lease(Some(Held::Reserved(slot))))
    }
}

/// A connection that is in no pool.
async fn single(config: &PgConfig) -> Result<ClientWrapper, Fail> {
    let (client, connection) = config.connection().connect(config.tls.connector()).await?;
    let task = tokio::spawn(async move {
        // How it ended, its client hears.
        drop(connection.await);
    });
    let client = ClientWrapper::new(client, task);
    match check_server(&client, config.is_pooled).await {
        Ok(()) => Ok(client),
        Err(HookError::Message(text)) => Err(Fail::Told(text.into_owned())),
        Err(HookError::Backend(error)) => Err(error.into()),
    }
}

fn pool(config: &PgConfig, connection: Config, n_connections: usize) -> Result<Shared, Fail> {
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(connection, config.tls.connector(), recycling);
    let is_pooled = config.is_pooled;
    let pool = Pool::builder(manager)
        .max_size(n_connections)
        .post_create(Hook::async_fn(move |client, _| Box::pin(check_server(client, is_pooled))))
        .build()
        .map_err(|error| Fail::Told(error.to_string()))?;
    Ok(Shared { pool, warmer: Warmer::default() })
}

/// A server that cannot be used is refused before anything is asked of it.
async fn check_server(client: &ClientWrapper, is_pooled: bool) -> Result<(), HookError> {
    // As plain text: the same with and without anything in between.
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

/// Whoever cannot be reached is not asked all the time.
#[derive(Debug, Default)]
struct Backoff {
    n_failures: u32,
    until: Option<Instant>,
    why: String,
}

impl Backoff {
    fn failed(&mut self, fail: &Fail) {
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
pub(super) struct Lease(Option<Held>);

#[derive(Debug)]
enum Held {
    Pooled(Box<Object>),
    Reserved(tokio::sync::OwnedMutexGuard<Option<ClientWrapper>>),
}

impl Lease {
    pub(super) fn client(&self) -> Result<&ClientWrapper, Fail> {
        let client = match &self.0 {
            Some(Held::Pooled(object)) => Some(&***object),
            Some(Held::Reserved(slot)) => slot.as_ref(),
            None => None,
        };
        client.ok_or_else(|| Fail::Told("the connection was given back already".to_owned()))
    }

    /// All that was asked was answered: others may use it.
    pub(super) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Held::Pooled(object)) => drop(Object::take(*object)),
            Some(Held::Reserved(mut slot)) => *slot = None,
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
    fn whoever_cannot_be_reached_is_asked_less_and_less() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.refusal(), None);
        let mut last = Instant::now();
        for _ in 0..20 {
            backoff.failed(&Fail::Told("no route".to_owned()));
            let until = backoff.until.unwrap();
            assert!(last < until, "each time later");
            assert!(until <= Instant::now() + BACKOFF_MAX);
            last = until;
        }
        assert!(backoff.refusal().unwrap().starts_with("no route (asked 20 times, again in "));
    }
}

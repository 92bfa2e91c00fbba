//! One transaction: its statements, sent one behind the other without waiting for answers in between where they do
//! not depend on each other.
//!
//! On a connection of our own, statements are prepared once and kept. Where another connection may serve the next
//! transaction, they are sent whole each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, SimpleQueryMessage};

use super::PgStore;
use super::connect::{Lane, Lease};
use super::fail::Fail;

/// A statement and the types of its parameters.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) sql: &'static str,
    pub(super) types: &'static [Type],
}

pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

#[derive(Debug)]
pub(super) struct Tx {
    lease: Lease,
    is_pooled: bool,
    begin: Arc<str>,
    was_committing: AtomicBool,
}

/// How often a transaction is begun anew before it is given up.
pub(super) const N_TRIES: u32 = 5;

impl Tx {
    pub(super) async fn new(store: &PgStore, lane: Lane) -> Result<Tx, Fail> {
        let config = &store.inner.config;
        let lease = store.inner.connections.lease(lane).await?;
        let begin = Arc::clone(if lane == Lane::Runs { &store.inner.begin_runs } else { &store.inner.begin });
        Ok(Tx { lease, is_pooled: config.is_pooled, begin, was_committing: AtomicBool::new(false) })
    }

    /// Gets statements ready. What is sent in one go must be ready before: else a statement that has to be prepared
    /// first would overtake none, and be overtaken.
    pub(super) async fn ready(&self, queries: &[&Query]) -> Result<(), Fail> {
        if !self.is_pooled {
            for query in queries {
                self.lease.client()?.prepare_typed_cached(query.sql, query.types).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn begin(&self) -> Result<(), Fail> {
        Ok(self.lease.client()?.batch_execute(&self.begin).await?)
    }

    pub(super) async fn commit(&self) -> Result<(), Fail> {
        self.was_committing.store(true, Ordering::Relaxed);
        Ok(self.lease.client()?.batch_execute("COMMIT").await?)
    }

    pub(super) async fn rollback(&self) -> Result<(), Fail> {
        Ok(self.lease.client()?.batch_execute("ROLLBACK").await?)
    }

    pub(super) async fn query<const N: usize>(
        &self,
        query: &Query,
        params: [Param<'_>; N],
    ) -> Result<Vec<Row>, Fail> {
        self.query_all(query, &params).await
    }

    /// One statement that is the whole transaction: committed when its answer is here.
    pub(super) async fn query_alone(&self, query: &Query, params: &[Param<'_>]) -> Result<Vec<Row>, Fail> {
        if self.is_pooled {
            let ((), rows, ()) =
                tokio::try_join!(biased; self.begin(), self.query_all(query, params), self.commit())?;
            return Ok(rows);
        }
        let client = self.lease.client()?;
        let statement = client.prepare_typed_cached(query.sql, query.types).await?;
        self.was_committing.store(true, Ordering::Relaxed);
        Ok(client.query(&statement, params).await?)
    }

    /// Like [`Tx::query`], unless there is nothing to do.
    pub(super) async fn query_if<const N: usize>(
        &self,
        is_asked: bool,
        query: &Query,
        params: [Param<'_>; N],
    ) -> Result<Vec<Row>, Fail> {
        if is_asked { self.query_all(query, &params).await } else { Ok(Vec::new()) }
    }

    /// Text as it is, outside of what is asked often.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), Fail> {
        Ok(self.lease.client()?.batch_execute(sql).await?)
    }

    /// A statement that was put together for this one time.
    pub(super) async fn query_once(&self, sql: &str, params: &[(Param<'_>, Type)]) -> Result<Vec<Row>, Fail> {
        Ok(self.lease.client()?.query_typed(sql, params).await?)
    }

    /// The one number that a text asks for.
    pub(super) async fn count(&self, sql: &str) -> Result<i64, Fail> {
        for message in self.lease.client()?.simple_query(sql).await? {
            if let SimpleQueryMessage::Row(row) = message {
                let n = row.get(0).and_then(|it| it.parse().ok());
                return n.ok_or_else(|| Fail::Told(format!("`{sql}` did not count")));
            }
        }
        Err(Fail::Told(format!("`{sql}` had no answer")))
    }

    /// With parameters that are too many to be written down one by one.
    pub(super) async fn query_all(&self, query: &Query, params: &[Param<'_>]) -> Result<Vec<Row>, Fail> {
        let client = self.lease.client()?;
        let rows: Result<Vec<Row>, Error> = if self.is_pooled {
            let typed: Vec<_> = params.iter().copied().zip(query.types.iter().cloned()).collect();
            client.query_typed(query.sql, &typed).await
        } else {
            let statement = client.prepare_typed_cached(query.sql, query.types).await?;
            client.query(&statement, params).await
        };
        Ok(rows?)
    }

    pub(super) fn was_committing(&self) -> bool {
        self.was_committing.load(Ordering::Relaxed)
    }

    pub(super) fn give_back(self) {
        self.lease.give_back();
    }
}

/// Runs one transaction within the deadline. It is begun anew where nothing can have been written.
macro_rules! transact {
    ($store:expr, $lane:expr, |$tx:ident| $body:expr) => {
        $store
            .within($store.inner.config.deadline, async {
                let mut n_tries = 0;
                loop {
                    n_tries += 1;
                    let $tx = $crate::store::postgres::tx::Tx::new($store, $lane).await?;
                    let answer: Result<_, $crate::store::postgres::fail::Fail> = $body.await;
                    match answer {
                        Ok(answer) => {
                            $tx.give_back();
                            return Ok(answer);
                        }
                        Err(fail) => {
                            let is_undone = fail.is_undone($tx.was_committing());
                            drop($tx);
                            if !is_undone || $crate::store::postgres::tx::N_TRIES <= n_tries {
                                return Err(fail);
                            }
                            if matches!(fail, $crate::store::postgres::fail::Fail::NoEpoch) {
                                $store.make_epoch().await?;
                            }
                        }
                    }
                }
            })
            .await
    };
}
pub(super) use transact;

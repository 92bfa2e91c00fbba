//! One transaction. Statements that don't depend on each other are pipelined.
//!
//! Statements are prepared once per connection. Behind a pooler, where each transaction may use another connection,
//! they are sent in full each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, SimpleQueryMessage};

use super::PgStore;
use super::connect::{ConnectionUse, TxConnection};
use super::error::PgError;

/// A statement and the types of its parameters.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) sql: &'static str,
    pub(super) types: &'static [Type],
}

pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

#[derive(Debug)]
pub(super) struct Transaction {
    connection: TxConnection,
    is_pooled: bool,
    begin: Arc<str>,
    was_committing: AtomicBool,
}

/// How often a transaction is tried.
pub(super) const N_TRIES: u32 = 5;

impl Transaction {
    pub(super) async fn new(store: &PgStore, use_for: ConnectionUse) -> Result<Transaction, PgError> {
        let config = &store.inner.config;
        let connection = store.inner.connections.get(use_for).await?;
        let begin = Arc::clone(if use_for == ConnectionUse::Runs {
            &store.inner.begin_runs
        } else {
            &store.inner.begin
        });
        Ok(Transaction {
            connection,
            is_pooled: config.is_pooled,
            begin,
            was_committing: AtomicBool::new(false),
        })
    }

    /// Prepares statements. Pipelined statements must be prepared before, or they would not be sent in order.
    pub(super) async fn ready(&self, queries: &[&Statement]) -> Result<(), PgError> {
        if !self.is_pooled {
            for query in queries {
                self.connection.client()?.prepare_typed_cached(query.sql, query.types).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn begin(&self) -> Result<(), PgError> {
        Ok(self.connection.client()?.batch_execute(&self.begin).await?)
    }

    pub(super) async fn commit(&self) -> Result<(), PgError> {
        self.was_committing.store(true, Ordering::Relaxed);
        Ok(self.connection.client()?.batch_execute("COMMIT").await?)
    }

    pub(super) async fn rollback(&self) -> Result<(), PgError> {
        Ok(self.connection.client()?.batch_execute("ROLLBACK").await?)
    }

    pub(super) async fn query<const N: usize>(
        &self,
        query: &Statement,
        params: [Param<'_>; N],
    ) -> Result<Vec<Row>, PgError> {
        self.query_all(query, &params).await
    }

    /// Runs one statement as the whole transaction. It is committed when this returns.
    pub(super) async fn query_alone(
        &self,
        query: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, PgError> {
        if self.is_pooled {
            let ((), rows, ()) =
                tokio::try_join!(biased; self.begin(), self.query_all(query, params), self.commit())?;
            return Ok(rows);
        }
        let client = self.connection.client()?;
        let statement = client.prepare_typed_cached(query.sql, query.types).await?;
        self.was_committing.store(true, Ordering::Relaxed);
        Ok(client.query(&statement, params).await?)
    }

    /// Like [`Transaction::query`], or nothing.
    pub(super) async fn query_if<const N: usize>(
        &self,
        is_asked: bool,
        query: &Statement,
        params: [Param<'_>; N],
    ) -> Result<Vec<Row>, PgError> {
        if is_asked { self.query_all(query, &params).await } else { Ok(Vec::new()) }
    }

    /// Runs statements without parameters, unprepared.
    pub(super) async fn execute(&self, sql: &str) -> Result<(), PgError> {
        Ok(self.connection.client()?.batch_execute(sql).await?)
    }

    /// Runs a statement that was built for this call, unprepared.
    pub(super) async fn query_once(
        &self,
        sql: &str,
        params: &[(Param<'_>, Type)],
    ) -> Result<Vec<Row>, PgError> {
        Ok(self.connection.client()?.query_typed(sql, params).await?)
    }

    /// Runs a query for one number.
    pub(super) async fn count(&self, sql: &str) -> Result<i64, PgError> {
        for message in self.connection.client()?.simple_query(sql).await? {
            if let SimpleQueryMessage::Row(row) = message {
                let n = row.get(0).and_then(|it| it.parse().ok());
                return n.ok_or_else(|| PgError::Text(format!("`{sql}` did not count")));
            }
        }
        Err(PgError::Text(format!("`{sql}` had no answer")))
    }

    /// Like [`Transaction::query`], with any number of parameters.
    pub(super) async fn query_all(
        &self,
        query: &Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, PgError> {
        let client = self.connection.client()?;
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
        self.connection.give_back();
    }
}

/// Runs one transaction within the deadline. It is retried if nothing can have been written.
macro_rules! transact {
    ($store:expr, $use_for:expr, |$tx:ident| $body:expr) => {
        $store
            .within($store.inner.config.deadline, async {
                let mut n_tries = 0;
                loop {
                    n_tries += 1;
                    let $tx =
                        $crate::store::postgres::transaction::Transaction::new($store, $use_for).await?;
                    let answer: Result<_, $crate::store::postgres::error::PgError> = $body.await;
                    match answer {
                        Ok(answer) => {
                            $tx.give_back();
                            return Ok(answer);
                        }
                        Err(fail) => {
                            let is_undone = fail.is_undone($tx.was_committing());
                            drop($tx);
                            if !is_undone || $crate::store::postgres::transaction::N_TRIES <= n_tries {
                                return Err(fail);
                            }
                            if matches!(fail, $crate::store::postgres::error::PgError::NoEpoch) {
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

//! The feed: how nodes learn what others wrote.
//!
//! Each transaction that changes a job writes its own number to `change`. Numbers are assigned when transactions
//! start to write, but they become visible in the order of commits. So a reader does not remember a number, but a
//! snapshot: new is what the previous snapshot could not see and the current one can. A slow transaction is seen when
//! it commits, and nothing is seen twice.
//!
//! A load of all jobs reads ahead ([`Prefetch`]).
//!
//! Snapshots are too long for a cursor. The handle keeps them, and a cursor is a token for one.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Changes, Cursor, JobNews, StoreDown};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::epoch::{CURRENT_EPOCH, read_epoch};
use super::error::PgError;
use super::prefetch::{Prefetch, PrefetchedPage};
use super::rows::{RowReader, select_news};
use super::transaction::{Statement, Transaction, transact};

/// Most cursors that are remembered.
const TOKENS_MAX: usize = 64;
/// Changes are kept for an hour. Older cursors start over.
const TOKEN_AGE_MAX: Duration = Duration::from_mins(50);

/// Jobs by id. Both tables need the lower bound, or each page would read the table `memory` from its start.
static LOAD: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_news!(),
        " FROM job j JOIN memory m ON m.job_id = j.id WHERE j.id > $1 AND m.job_id > $1 \
         ORDER BY j.id LIMIT $2"
    ),
    types: &[Type::INT8, Type::INT8],
};
static SNAPSHOT: Statement = Statement { sql: "SELECT pg_current_snapshot()::text", types: &[] };

/// Changes that the second snapshot sees and the first does not, each job at its latest change. Nothing below the
/// horizon of the first can be new, so that part of the index is not read.
static NEWS: Statement = Statement {
    sql: concat!(
        "WITH fresh AS (\
           SELECT c.job_id, max(c.position) AS position FROM change c \
           WHERE c.position >= pg_snapshot_xmin($1::text::pg_snapshot)::text::xid8 \
             AND NOT pg_visible_in_snapshot(c.position, $1::text::pg_snapshot) \
             AND pg_visible_in_snapshot(c.position, $2::text::pg_snapshot) \
           GROUP BY c.job_id) \
         SELECT ",
        select_news!(),
        ", fresh.position::text FROM fresh JOIN job j ON j.id = fresh.job_id JOIN memory m ON m.job_id = j.id \
         WHERE (fresh.position, fresh.job_id) > ($3::text::xid8, $4) ORDER BY fresh.position, fresh.job_id LIMIT $5"
    ),
    types: &[Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8, Type::INT8],
};
const POSITION_COLUMN: usize = 34;

/// Whether changes after a snapshot were trimmed. Must be checked after they were read.
static IS_TRIMMED: Statement = Statement {
    sql: "SELECT 1 FROM setting WHERE name = 'changes_trimmed_to' \
            AND pg_snapshot_xmin($1::text::pg_snapshot)::text::xid8 <= value::xid8",
    types: &[Type::TEXT],
};

/// The position of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReaderPosition {
    /// It loads all jobs and has read up to this id. The feed continues from the snapshot in which the load began.
    Loading { began: String, after: i64 },
    /// It has read everything that this snapshot sees.
    Following { seen: String },
    /// It reads the changes between two snapshots, and has read up to this one.
    Paging { seen: String, target: String, after: (String, i64) },
}

/// The readers of a handle.
#[derive(Debug, Default)]
pub(super) struct FeedReaders {
    tokens: BTreeMap<u64, CursorToken>,
    n_tokens: u64,
    /// The load of the reader that started last.
    prefetch: Option<Prefetch>,
}

#[derive(Debug)]
struct CursorToken {
    position: ReaderPosition,
    epoch: Epoch,
    since: Instant,
}

impl FeedReaders {
    fn position(&self, cursor: Cursor) -> Option<ReaderPosition> {
        let token = self.tokens.get(&cursor.position)?;
        let is_known = token.epoch == cursor.epoch && token.since.elapsed() < TOKEN_AGE_MAX;
        is_known.then(|| token.position.clone())
    }

    fn give(&mut self, position: ReaderPosition, epoch: Epoch, since: Instant) -> Cursor {
        self.n_tokens += 1;
        self.tokens.insert(self.n_tokens, CursorToken { position, epoch, since });
        while TOKENS_MAX < self.tokens.len() {
            self.tokens.pop_first();
        }
        Cursor { epoch, position: self.n_tokens }
    }

    /// Moves a cursor to a later snapshot, because nothing was new.
    fn renew(&mut self, cursor: Cursor, position: ReaderPosition, since: Instant) {
        if let Some(token) = self.tokens.get_mut(&cursor.position) {
            (token.position, token.since) = (position, since);
        }
    }
}

/// A page, and the position after it.
struct FeedPage {
    epoch: Epoch,
    rows: Vec<JobNews>,
    next: ReaderPosition,
    is_last: bool,
    /// Whether changes are missing, so that the reader must start over.
    is_broken: bool,
}

impl PgStore {
    /// The jobs that changed since a cursor, oldest change first, each once. All jobs without a cursor.
    pub async fn changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        let readers = || self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let position = match since.map(|cursor| readers().position(cursor)) {
            None => None,
            Some(Some(position)) => Some(position),
            Some(None) => return Ok(Changes::Reset),
        };
        // Taken before the query: a token must not seem younger than its snapshot.
        let asked_at = Instant::now();
        let page = match self.prefetched_page(position.as_ref(), most).await? {
            Some(page) => page,
            None => {
                let page = transact!(self, ConnectionUse::Write, |tx| page(
                    &tx,
                    &self.inner.reader,
                    position.as_ref(),
                    most
                ))?;
                if let ReaderPosition::Loading { after, .. } = page.next {
                    readers().prefetch = Some(Prefetch::start(self, after, most));
                }
                page
            }
        };
        if page.is_broken || since.is_some_and(|it| it.epoch != page.epoch) {
            return Ok(Changes::Reset);
        }
        let FeedPage { epoch, rows, next, is_last, .. } = page;
        let is_quiet = rows.is_empty() && matches!(next, ReaderPosition::Following { .. });
        let next = match since {
            Some(cursor) if is_quiet => {
                readers().renew(cursor, next, asked_at);
                cursor
            }
            _ => readers().give(next, epoch, asked_at),
        };
        Ok(Changes::Rows { rows, next, is_last })
    }

    /// The next page, if it was read in advance. The epoch is the current one all the same.
    async fn prefetched_page(
        &self,
        position: Option<&ReaderPosition>,
        most: usize,
    ) -> Result<Option<FeedPage>, StoreDown> {
        let readers = || self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ReaderPosition::Loading { began, after }) = position else { return Ok(None) };
        let taken = readers().prefetch.take();
        let Some(mut prefetch) = taken.filter(|it| it.is_at(*after, most)) else { return Ok(None) };
        let read = self.within(self.inner.config.deadline, async { Ok(prefetch.next().await) });
        let (epoch, loaded) =
            tokio::join!(async { transact!(self, ConnectionUse::Write, |tx| epoch(&tx)) }, read);
        let (epoch, Some(PrefetchedPage { rows, after })) = (epoch?, loaded?) else { return Ok(None) };
        let next = match after {
            Some(after) => ReaderPosition::Loading { began: began.clone(), after },
            None => ReaderPosition::Following { seen: began.clone() },
        };
        let is_last = after.is_none();
        readers().prefetch = Some(prefetch).filter(|_| !is_last);
        Ok(Some(FeedPage { epoch, rows, next, is_last, is_broken: false }))
    }
}

async fn epoch(tx: &Transaction) -> Result<Epoch, PgError> {
    tx.ready(&[&CURRENT_EPOCH]).await?;
    let ((), epoch_rows, ()) =
        tokio::try_join!(biased; tx.begin(), tx.query(&CURRENT_EPOCH, []), tx.commit())?;
    Ok(read_epoch(&epoch_rows)?.epoch)
}

async fn page(
    tx: &Transaction,
    reader: &RowReader,
    position: Option<&ReaderPosition>,
    most: usize,
) -> Result<FeedPage, PgError> {
    tx.ready(&[&CURRENT_EPOCH, &SNAPSHOT, &LOAD, &NEWS, &IS_TRIMMED]).await?;
    let ((), epoch_rows, snapshot) =
        tokio::try_join!(biased; tx.begin(), tx.query(&CURRENT_EPOCH, []), tx.query(&SNAPSHOT, []))?;
    let epoch = read_epoch(&epoch_rows)?.epoch;
    let now: String = snapshot.first().ok_or(PgError::Retry)?.try_get(0)?;
    let (rows, next, is_last) = match position {
        None => load(tx, reader, now, 0, most).await?,
        Some(ReaderPosition::Loading { began, after }) => {
            load(tx, reader, began.clone(), *after, most).await?
        }
        Some(ReaderPosition::Following { seen }) => {
            news(tx, reader, seen.clone(), now, ("0".to_owned(), 0), most).await?
        }
        Some(ReaderPosition::Paging { seen, target, after }) => {
            news(tx, reader, seen.clone(), target.clone(), after.clone(), most).await?
        }
    };
    let is_broken = match position {
        Some(ReaderPosition::Following { seen } | ReaderPosition::Paging { seen, .. }) => {
            !tx.query(&IS_TRIMMED, [seen]).await?.is_empty()
        }
        Some(ReaderPosition::Loading { .. }) | None => false,
    };
    tx.commit().await?;
    Ok(FeedPage { epoch, rows, next, is_last, is_broken })
}

/// One row more than needed shows whether there are more.
pub(super) fn one_more(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX - 1).saturating_add(1)
}

async fn load(
    tx: &Transaction,
    reader: &RowReader,
    began: String,
    after: i64,
    most: usize,
) -> Result<(Vec<JobNews>, ReaderPosition, bool), PgError> {
    let found = tx.query(&LOAD, [&after, &one_more(most)]).await?;
    let page = found.get(..most).unwrap_or(&found);
    let rows = read(reader, page)?;
    let is_last = page.len() == found.len();
    let next = match page.last() {
        Some(last) if !is_last => ReaderPosition::Loading { began, after: last.try_get(0)? },
        _ => ReaderPosition::Following { seen: began },
    };
    Ok((rows, next, is_last))
}

async fn news(
    tx: &Transaction,
    reader: &RowReader,
    seen: String,
    target: String,
    after: (String, i64),
    most: usize,
) -> Result<(Vec<JobNews>, ReaderPosition, bool), PgError> {
    let found = tx.query(&NEWS, [&seen, &target, &after.0, &after.1, &one_more(most)]).await?;
    let page = found.get(..most).unwrap_or(&found);
    let rows = read(reader, page)?;
    let is_last = page.len() == found.len();
    let next = match page.last() {
        Some(last) if !is_last => {
            let after = (last.try_get(POSITION_COLUMN)?, last.try_get(0)?);
            ReaderPosition::Paging { seen, target, after }
        }
        _ => ReaderPosition::Following { seen: target },
    };
    Ok((rows, next, is_last))
}

fn read(reader: &RowReader, rows: &[Row]) -> Result<Vec<JobNews>, PgError> {
    rows.iter().map(|row| reader.news(row)).collect()
}

//! The feed: how nodes hear of what others wrote.
//!
//! Each transaction that changes a job leaves its own number in `change`. Numbers are given out when transactions
//! begin to write and become visible when they commit, in another order. So a reader does not remember how far it has
//! come, but which transactions it could see: what is new is what was not visible in the snapshot of before and is in
//! the one of now. A slow transaction is seen when it commits, and nothing is seen twice.
//!
//! A load of all jobs reads ahead ([`Ahead`]).
//!
//! Snapshots are too long for a cursor: the handle keeps them, and a cursor is a token for one.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Changes, Cursor, JobNews, StoreDown};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::ahead::{Ahead, Loaded};
use super::connect::Lane;
use super::epoch::{REIGN, reign};
use super::fail::Fail;
use super::rows::{Reader, select_news};
use super::tx::{Query, Tx, transact};

/// So many readers, or steps of them, are remembered.
const TOKENS_MAX: usize = 64;
/// Changes are kept for an hour; who has not asked for nearly as long begins anew.
const TOKEN_AGE_MAX: Duration = Duration::from_mins(50);

/// All jobs by id, and which transactions can be seen. Both tables are told where to begin: else each page reads the
/// memories from the first one on.
static LOAD: Query = Query {
    sql: concat!(
        "SELECT ",
        select_news!(),
        " FROM job j JOIN memory m ON m.job_id = j.id WHERE j.id > $1 AND m.job_id > $1 \
         ORDER BY j.id LIMIT $2"
    ),
    types: &[Type::INT8, Type::INT8],
};
static SNAPSHOT: Query = Query { sql: "SELECT pg_current_snapshot()::text", types: &[] };

/// What is visible in the second snapshot and was not in the first, each job at its latest change. Nothing below the
/// first one's horizon can be new: so much of the index is not looked at.
static NEWS: Query = Query {
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

/// Whether changes that could not be seen in a snapshot are not kept any more. To be asked after they were looked for.
static IS_TRIMMED: Query = Query {
    sql: "SELECT 1 FROM setting WHERE name = 'changes_trimmed_to' \
            AND pg_snapshot_xmin($1::text::pg_snapshot)::text::xid8 <= value::xid8",
    types: &[Type::TEXT],
};

/// Where a reader stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stand {
    /// It reads all jobs, and has come to this id. The feed goes on from what was visible when it began.
    Loading { began: String, after: i64 },
    /// It has read all that is visible here.
    Following { seen: String },
    /// It reads what is new between two snapshots, and has come to this change.
    Paging { seen: String, target: String, after: (String, i64) },
}

/// The readers of a handle.
#[derive(Debug, Default)]
pub(super) struct Readers {
    tokens: BTreeMap<u64, Token>,
    n_tokens: u64,
    /// Of the reader that loaded last.
    ahead: Option<Ahead>,
}

#[derive(Debug)]
struct Token {
    stand: Stand,
    epoch: Epoch,
    since: Instant,
}

impl Readers {
    fn stand(&self, cursor: Cursor) -> Option<Stand> {
        let token = self.tokens.get(&cursor.position)?;
        let is_known = token.epoch == cursor.epoch && token.since.elapsed() < TOKEN_AGE_MAX;
        is_known.then(|| token.stand.clone())
    }

    fn give(&mut self, stand: Stand, epoch: Epoch, since: Instant) -> Cursor {
        self.n_tokens += 1;
        self.tokens.insert(self.n_tokens, Token { stand, epoch, since });
        while TOKENS_MAX < self.tokens.len() {
            self.tokens.pop_first();
        }
        Cursor { epoch, position: self.n_tokens }
    }

    /// Nothing was new: the same cursor stands at a later snapshot now.
    fn renew(&mut self, cursor: Cursor, stand: Stand, since: Instant) {
        if let Some(token) = self.tokens.get_mut(&cursor.position) {
            (token.stand, token.since) = (stand, since);
        }
    }
}

/// A page, and where its reader stands after it.
struct Page {
    epoch: Epoch,
    rows: Vec<JobNews>,
    next: Stand,
    is_last: bool,
    /// Whether something is missing, so that the reader must begin anew.
    is_broken: bool,
}

impl PgStore {
    /// The jobs that changed since a cursor, oldest change first, each once; all of them if there is no cursor.
    pub async fn changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        let readers = || self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let stand = match since.map(|cursor| readers().stand(cursor)) {
            None => None,
            Some(Some(stand)) => Some(stand),
            Some(None) => return Ok(Changes::Reset),
        };
        // Counted from before the question: a token must not seem younger than its snapshot.
        let asked_at = Instant::now();
        let page = match self.page_ahead(stand.as_ref(), most).await? {
            Some(page) => page,
            None => {
                let page =
                    transact!(self, Lane::Pool, |tx| page(&tx, &self.inner.reader, stand.as_ref(), most))?;
                if let Stand::Loading { after, .. } = page.next {
                    readers().ahead = Some(Ahead::start(self, after, most));
                }
                page
            }
        };
        if page.is_broken || since.is_some_and(|it| it.epoch != page.epoch) {
            return Ok(Changes::Reset);
        }
        let Page { epoch, rows, next, is_last, .. } = page;
        let is_quiet = rows.is_empty() && matches!(next, Stand::Following { .. });
        let next = match since {
            Some(cursor) if is_quiet => {
                readers().renew(cursor, next, asked_at);
                cursor
            }
            _ => readers().give(next, epoch, asked_at),
        };
        Ok(Changes::Rows { rows, next, is_last })
    }

    /// The page that is asked for, if it was read ahead. The epoch is that of now all the same.
    async fn page_ahead(&self, stand: Option<&Stand>, most: usize) -> Result<Option<Page>, StoreDown> {
        let readers = || self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Stand::Loading { began, after }) = stand else { return Ok(None) };
        let taken = readers().ahead.take();
        let Some(mut ahead) = taken.filter(|it| it.is_at(*after, most)) else { return Ok(None) };
        let read = self.within(self.inner.config.deadline, async { Ok(ahead.next().await) });
        let (epoch, loaded) = tokio::join!(async { transact!(self, Lane::Pool, |tx| epoch(&tx)) }, read);
        let (epoch, Some(Loaded { rows, after })) = (epoch?, loaded?) else { return Ok(None) };
        let next = match after {
            Some(after) => Stand::Loading { began: began.clone(), after },
            None => Stand::Following { seen: began.clone() },
        };
        let is_last = after.is_none();
        readers().ahead = Some(ahead).filter(|_| !is_last);
        Ok(Some(Page { epoch, rows, next, is_last, is_broken: false }))
    }
}

async fn epoch(tx: &Tx) -> Result<Epoch, Fail> {
    tx.ready(&[&REIGN]).await?;
    let ((), reigning, ()) = tokio::try_join!(biased; tx.begin(), tx.query(&REIGN, []), tx.commit())?;
    Ok(reign(&reigning)?.epoch)
}

async fn page(tx: &Tx, reader: &Reader, stand: Option<&Stand>, most: usize) -> Result<Page, Fail> {
    tx.ready(&[&REIGN, &SNAPSHOT, &LOAD, &NEWS, &IS_TRIMMED]).await?;
    let ((), reigning, snapshot) =
        tokio::try_join!(biased; tx.begin(), tx.query(&REIGN, []), tx.query(&SNAPSHOT, []))?;
    let epoch = reign(&reigning)?.epoch;
    let now: String = snapshot.first().ok_or(Fail::Again)?.try_get(0)?;
    let (rows, next, is_last) = match stand {
        None => load(tx, reader, now, 0, most).await?,
        Some(Stand::Loading { began, after }) => load(tx, reader, began.clone(), *after, most).await?,
        Some(Stand::Following { seen }) => {
            news(tx, reader, seen.clone(), now, ("0".to_owned(), 0), most).await?
        }
        Some(Stand::Paging { seen, target, after }) => {
            news(tx, reader, seen.clone(), target.clone(), after.clone(), most).await?
        }
    };
    let is_broken = match stand {
        Some(Stand::Following { seen } | Stand::Paging { seen, .. }) => {
            !tx.query(&IS_TRIMMED, [seen]).await?.is_empty()
        }
        Some(Stand::Loading { .. }) | None => false,
    };
    tx.commit().await?;
    Ok(Page { epoch, rows, next, is_last, is_broken })
}

/// One row more than asked for tells whether that was all.
pub(super) fn one_more(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX - 1).saturating_add(1)
}

async fn load(
    tx: &Tx,
    reader: &Reader,
    began: String,
    after: i64,
    most: usize,
) -> Result<(Vec<JobNews>, Stand, bool), Fail> {
    let found = tx.query(&LOAD, [&after, &one_more(most)]).await?;
    let page = found.get(..most).unwrap_or(&found);
    let rows = read(reader, page)?;
    let is_last = page.len() == found.len();
    let next = match page.last() {
        Some(last) if !is_last => Stand::Loading { began, after: last.try_get(0)? },
        _ => Stand::Following { seen: began },
    };
    Ok((rows, next, is_last))
}

async fn news(
    tx: &Tx,
    reader: &Reader,
    seen: String,
    target: String,
    after: (String, i64),
    most: usize,
) -> Result<(Vec<JobNews>, Stand, bool), Fail> {
    let found = tx.query(&NEWS, [&seen, &target, &after.0, &after.1, &one_more(most)]).await?;
    let page = found.get(..most).unwrap_or(&found);
    let rows = read(reader, page)?;
    let is_last = page.len() == found.len();
    let next = match page.last() {
        Some(last) if !is_last => {
            let after = (last.try_get(POSITION_COLUMN)?, last.try_get(0)?);
            Stand::Paging { seen, target, after }
        }
        _ => Stand::Following { seen: target },
    };
    Ok((rows, next, is_last))
}

fn read(reader: &Reader, rows: &[Row]) -> Result<Vec<JobNews>, Fail> {
    rows.iter().map(|row| reader.news(row)).collect()
}

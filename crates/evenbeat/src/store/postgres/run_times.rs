//! When runs ran: what a time line is drawn from. Bounded by time and by number.

use std::cell::RefCell;

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::listing::WALK;
use super::rows::job_key;
use super::transaction::{Param, Statement, Transaction, transact};
use super::views::{limit, read};
use crate::store::keyword::Keyword;
use crate::store::run_times::{Member, MemberBy, RunOrder, RunTimes, SharedTexts};

macro_rules! ended {
    ($order:literal) => {
        Statement {
            sql: concat!(
                "SELECT r.id, j.key, j.pool, j.site, coalesce(r.started_at, r.claimed_at), r.outcome, r.ended_at, \
                   NULL::float8 \
                 FROM run r JOIN job j ON j.id = r.job_id WHERE $1 <= r.ended_at AND r.ended_at < $2 \
                 ORDER BY r.ended_at ",
                $order,
                ", r.id ",
                $order,
                " LIMIT $3"
            ),
            types: &[Type::INT8, Type::INT8, Type::INT8],
        }
    };
}

static LATEST_FIRST: Statement = ended!("DESC");
static EARLIEST_FIRST: Statement = ended!("ASC");
static OPEN: Statement = Statement {
    sql: "SELECT r.id, j.key, j.pool, j.site, coalesce(r.started_at, r.claimed_at), NULL::text, NULL::int8, \
            m.estimate_mean \
          FROM open_run r JOIN job j ON j.id = r.job_id JOIN memory m ON m.job_id = r.job_id ORDER BY r.id LIMIT $1",
    types: &[Type::INT8],
};
static OF_SITES: Statement = Statement {
    sql: "SELECT key, site FROM job WHERE site IS NOT NULL AND NOT is_deleted ORDER BY site, key LIMIT $1",
    types: &[Type::INT8],
};
static OF_LABEL: Statement = Statement {
    sql: "SELECT key, value FROM label WHERE name = $2 ORDER BY value, key LIMIT $1",
    types: &[Type::INT8, Type::TEXT],
};
static LABEL_NAMES: Statement = Statement {
    // One step on the index for each name, however many jobs have it.
    sql: "WITH RECURSIVE found AS ((SELECT name FROM label ORDER BY name LIMIT 1) UNION ALL \
          SELECT (SELECT l.name FROM label l WHERE found.name < l.name ORDER BY l.name LIMIT 1) FROM found \
          WHERE found.name IS NOT NULL) SELECT name FROM found WHERE name IS NOT NULL LIMIT $1",
    types: &[Type::INT8],
};

impl PgStore {
    /// Runs that ended in a window, up to `most` of them.
    pub async fn ended_run_times(
        &self,
        window: TimeWindow,
        order: RunOrder,
        most: usize,
    ) -> Result<Vec<RunTimes>, StoreDown> {
        let query = match order {
            RunOrder::LatestEndFirst => &LATEST_FIRST,
            RunOrder::EarliestEndFirst => &EARLIEST_FIRST,
        };
        let (start, end) = (window.start().as_millis(), window.end().as_millis());
        let rows = transact!(self, ConnectionUse::Read, |tx| walk(&tx, query, [&start, &end, &limit(most)]))?;
        times_of(&rows)
    }

    /// Runs that go on, up to `most` of them.
    pub async fn open_run_times(&self, most: usize) -> Result<Vec<RunTimes>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| walk(&tx, &OPEN, [&limit(most)]))?;
        times_of(&rows)
    }

    /// Jobs with their group, group after group, up to `most` of them.
    pub async fn members(&self, by: &MemberBy, most: usize) -> Result<Vec<Member>, StoreDown> {
        let rows = match by {
            MemberBy::Site => {
                transact!(self, ConnectionUse::Read, |tx| walk(&tx, &OF_SITES, [&limit(most)]))?
            }
            MemberBy::Label(name) => {
                transact!(self, ConnectionUse::Read, |tx| walk(&tx, &OF_LABEL, [&limit(most), name]))?
            }
        };
        let texts = RefCell::<SharedTexts>::default();
        read(&rows, |row| Ok((job_key(row.try_get(0)?)?, texts.borrow_mut().get(row.try_get(1)?))))
    }

    /// The names of labels that jobs have, up to `most` of them.
    pub async fn label_names(&self, most: usize) -> Result<Vec<String>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| walk(&tx, &LABEL_NAMES, [&limit(most)]))?;
        read(&rows, |row| Ok(row.try_get(0)?))
    }
}

/// Asks for rows that an index has in their order already.
async fn walk<const N: usize>(
    tx: &Transaction,
    query: &Statement,
    params: [Param<'_>; N],
) -> Result<Vec<Row>, PgError> {
    tx.ready(&[query]).await?;
    let ((), (), rows, ()) =
        tokio::try_join!(biased; tx.begin(), tx.execute(WALK), tx.query(query, params), tx.commit())?;
    Ok(rows)
}

fn times_of(rows: &[Row]) -> Result<Vec<RunTimes>, StoreDown> {
    let texts = RefCell::<SharedTexts>::default();
    read(rows, |row| {
        let mut texts = texts.borrow_mut();
        let (id, ended_at): (Uuid, Option<i64>) = (row.try_get(0)?, row.try_get(6)?);
        let outcome: Option<&str> = row.try_get(5)?;
        // A word of a later version is some end that was not good.
        let outcome = outcome.and_then(Outcome::from_keyword).unwrap_or(Outcome::Unknown);
        let (site, mean): (Option<&str>, Option<f64>) = (row.try_get(3)?, row.try_get(7)?);
        Ok(RunTimes {
            run: RunId(id.as_u128()),
            key: job_key(row.try_get(1)?)?,
            pool: texts.get(row.try_get(2)?),
            site: site.map(|it| texts.get(it)),
            started_at: Timestamp::from_millis(row.try_get(4)?),
            end: ended_at.map(|at| (outcome, Timestamp::from_millis(at))),
            expected: mean.map(Duration::from_millis_f64),
        })
    })
}

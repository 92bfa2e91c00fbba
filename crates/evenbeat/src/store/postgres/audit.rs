//! Audit entries: written with a change, chained a moment later, listed for people, trimmed from the beginning (S17).

use evenbeat_core::store::{AuditEntry, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::transaction::{Statement, Transaction, transact};
use super::views::{ask, limit, read};
use crate::store::audit_chain::{ANCHOR_SETTING, CHAIN_BATCH, ChainLink, links, trimmed_to};
use crate::store::columns::{number, stored_number};
use crate::store::query::{
    AUDIT_ROWS_MAX, ActorKind, AuditChainPage, AuditFilter, AuditPage, AuditRow, PAGE_MAX,
};

macro_rules! select_audit {
    ($rest:literal) => {
        concat!(
            "SELECT no, at, actor, action, subject, detail, before_json, after_json, chain_no, chain_hash FROM audit ",
            $rest
        )
    };
}

/// Entries are chained and trimmed by one node at a time. Nobody who writes an entry waits for this lock.
const LOCK_CHAIN: &str = "SELECT pg_advisory_xact_lock(7310597164892487)";

static APPEND: Statement = Statement {
    sql: "INSERT INTO audit (at, actor, action, subject, detail, before_json, after_json) \
          VALUES (now_ms(), $1, $2, $3, $4, $5, $6)",
    types: &[Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT, Type::TEXT],
};
static UNCHAINED: Statement =
    Statement { sql: select_audit!("WHERE chain_no IS NULL ORDER BY no LIMIT $1"), types: &[Type::INT8] };
static LAST_LINK: Statement = Statement {
    sql: "SELECT chain_no, chain_hash FROM audit WHERE chain_no IS NOT NULL ORDER BY chain_no DESC LIMIT 1",
    types: &[],
};
static ANCHOR: Statement =
    Statement { sql: "SELECT value FROM setting WHERE name = $1", types: &[Type::TEXT] };
static LINK: Statement = Statement {
    sql: "UPDATE audit a SET chain_no = u.chain_no, chain_hash = u.chain_hash \
          FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS u(no, chain_no, chain_hash) \
          WHERE a.no = u.no AND a.chain_no IS NULL",
    types: &[Type::INT8_ARRAY, Type::INT8_ARRAY, Type::BYTEA_ARRAY],
};
static FIRST_LINKS: Statement = Statement {
    sql: "SELECT chain_no, chain_hash, at FROM audit WHERE chain_no IS NOT NULL ORDER BY chain_no LIMIT $1",
    types: &[Type::INT8],
};
static SET_ANCHOR: Statement = Statement {
    sql: "INSERT INTO setting (name, value) VALUES ($1, $2) \
          ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    types: &[Type::TEXT, Type::TEXT],
};
static TRIM: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM audit WHERE chain_no <= $1 RETURNING 1) SELECT count(*) FROM gone",
    types: &[Type::INT8],
};
/// Entries are looked through one by one, up to a limit.
static HORIZON: Statement = Statement {
    sql: "SELECT no FROM audit WHERE no < $1 ORDER BY no DESC LIMIT 1 OFFSET $2",
    types: &[Type::INT8, Type::INT8],
};
static LIST: Statement = Statement {
    sql: select_audit!(
        "WHERE $4::text IS NULL AND no < $1 AND $2 < no AND ($5::text IS NULL OR actor = $5) \
         AND ($6::text IS NULL OR action = $6) AND ($7::bigint IS NULL OR $7 <= at) AND ($8::bigint IS NULL OR at < $8) \
         AND ($9::text IS NULL OR $9 = CASE WHEN actor LIKE 'token %' THEN 'token' \
           WHEN actor LIKE 'uid %' OR actor = 'loopback' THEN 'person' ELSE 'system' END) \
         AND ($10::text IS NULL OR 0 < strpos(lower(concat_ws(' ', actor, action, subject, detail)), $10)) \
         ORDER BY no DESC LIMIT $3"
    ),
    types: LIST_TYPES,
};
static LIST_BY_SUBJECT: Statement = Statement {
    sql: select_audit!(
        "WHERE subject = $4 AND no < $1 AND $2 < no AND ($5::text IS NULL OR actor = $5) \
         AND ($6::text IS NULL OR action = $6) AND ($7::bigint IS NULL OR $7 <= at) AND ($8::bigint IS NULL OR at < $8) \
         AND ($9::text IS NULL OR $9 = CASE WHEN actor LIKE 'token %' THEN 'token' \
           WHEN actor LIKE 'uid %' OR actor = 'loopback' THEN 'person' ELSE 'system' END) \
         AND ($10::text IS NULL OR 0 < strpos(lower(concat_ws(' ', actor, action, subject, detail)), $10)) \
         ORDER BY no DESC LIMIT $3"
    ),
    types: LIST_TYPES,
};
const LIST_TYPES: &[Type] = &[
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
];
/// In one statement, so that an anchor and the links after it belong together. Without links there is one row of the
/// anchor alone.
static CHAIN: Statement = Statement {
    sql: "WITH anchor AS (SELECT value FROM setting WHERE name = $1), \
            start AS (SELECT greatest($2, coalesce((SELECT split_part(value, ':', 1)::bigint FROM anchor), 0)) AS no) \
          SELECT a.no, a.at, a.actor, a.action, a.subject, a.detail, a.before_json, a.after_json, a.chain_no, a.chain_hash, \
            (SELECT value FROM anchor), (SELECT count(*) FROM audit WHERE chain_no IS NULL) \
          FROM start LEFT JOIN LATERAL (\
            SELECT * FROM audit WHERE start.no < chain_no ORDER BY chain_no LIMIT $3) a ON true ORDER BY a.chain_no",
    types: &[Type::TEXT, Type::INT8, Type::INT8],
};

impl PgStore {
    /// Adds an audit entry that is not about a job.
    pub async fn append_audit(&self, entry: &AuditEntry) -> Result<(), StoreDown> {
        let AuditEntry { actor, action, subject, detail, before, after } = entry;
        transact!(self, ConnectionUse::Write, |tx| ask(
            &tx,
            &APPEND,
            [actor, action, subject, detail, before, after]
        ))?;
        Ok(())
    }

    /// Chains entries that are not chained yet, some at a time. Returns how many.
    pub async fn chain_audit(&self) -> Result<usize, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| chain_audit(&tx))
    }

    /// Entries that match a filter, before one of them, the latest first.
    pub async fn list_audit(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        most: usize,
    ) -> Result<AuditPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let (rows, horizon) =
            transact!(self, ConnectionUse::Read, |tx| audit_page(&tx, filter, before, most))?;
        Ok(AuditPage::of(read(&rows, audit_row)?, most, horizon.map(|it| number(it) + 1)))
    }

    /// The chain after one of its links, and its anchor.
    pub async fn audit_chain(&self, after: u64, most: usize) -> Result<AuditChainPage, StoreDown> {
        let (after, most) = (stored_number(after), limit(most.min(PAGE_MAX)));
        let rows =
            transact!(self, ConnectionUse::Read, |tx| ask(&tx, &CHAIN, [&ANCHOR_SETTING, &after, &most]))?;
        let of_all = |row: &Row| -> Result<(ChainLink, u64), PgError> {
            Ok((ChainLink::from_text(row.try_get(10)?), number(row.try_get(11)?)))
        };
        let (anchor, n_unchained) =
            rows.first().map(of_all).transpose().map_err(|fail| fail.down())?.unwrap_or_default();
        let linked: Vec<&Row> =
            rows.iter().filter(|row| row.try_get::<_, Option<i64>>(8).ok().flatten().is_some()).collect();
        let rows = linked.into_iter().map(audit_row).collect::<Result<_, _>>().map_err(|fail| fail.down())?;
        Ok(AuditChainPage { anchor, rows, n_unchained })
    }
}

async fn chain_audit(tx: &Transaction) -> Result<usize, PgError> {
    tx.begin().await?;
    tx.execute(LOCK_CHAIN).await?;
    let n_chained = chain_batch(tx).await?;
    tx.commit().await?;
    Ok(n_chained)
}

/// Chains the next entries. The caller has the lock.
async fn chain_batch(tx: &Transaction) -> Result<usize, PgError> {
    let rows = tx.query(&UNCHAINED, [&limit(CHAIN_BATCH)]).await?;
    let rows: Vec<AuditRow> = rows.iter().map(audit_row).collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Ok(0);
    }
    let last = tx.query(&LAST_LINK, []).await?;
    let last = match last.first() {
        Some(row) => ChainLink::of_columns(row.try_get(0)?, row.try_get(1)?).unwrap_or_default(),
        None => {
            let anchor = tx.query(&ANCHOR, [&ANCHOR_SETTING]).await?;
            ChainLink::from_text(anchor.first().map(|row| row.try_get(0)).transpose()?)
        }
    };
    let linked = links(last, rows.into_iter().map(|row| (stored_number(row.no), row.at, row.entry)));
    let no: Vec<i64> = linked.iter().map(|(no, _)| *no).collect();
    let chain_no: Vec<i64> = linked.iter().map(|(_, link)| stored_number(link.no)).collect();
    let hash: Vec<&[u8]> = linked.iter().map(|(_, link)| link.hash.as_slice()).collect();
    tx.query(&LINK, [&no, &chain_no, &hash]).await?;
    Ok(linked.len())
}

/// Removes entries older than an instant from the beginning of the chain. A transaction of its own, because of the lock.
pub(super) async fn trim_audit(tx: &Transaction, before: Timestamp, most: usize) -> Result<usize, PgError> {
    tx.begin().await?;
    tx.execute("SET LOCAL statement_timeout = 60000").await?;
    tx.execute(LOCK_CHAIN).await?;
    while chain_batch(tx).await? == CHAIN_BATCH {}
    let mut last = first_links(tx, before, 1).await?;
    if last.is_some() {
        last = first_links(tx, before, most).await?;
    }
    let mut n_gone = 0;
    if let Some(last) = last {
        tx.query(&SET_ANCHOR, [&ANCHOR_SETTING, &last.to_text()]).await?;
        let rows = tx.query(&TRIM, [&stored_number(last.no)]).await?;
        n_gone = number(rows.first().ok_or(PgError::Retry)?.try_get(0)?);
    }
    tx.commit().await?;
    Ok(usize::try_from(n_gone).unwrap_or(usize::MAX))
}

async fn first_links(tx: &Transaction, before: Timestamp, most: usize) -> Result<Option<ChainLink>, PgError> {
    let mut first = Vec::new();
    for row in tx.query(&FIRST_LINKS, [&limit(most)]).await? {
        let link = ChainLink::of_columns(row.try_get(0)?, row.try_get(1)?).unwrap_or_default();
        first.push((link, Timestamp::from_millis(row.try_get(2)?)));
    }
    Ok(trimmed_to(first, before))
}

async fn audit_page(
    tx: &Transaction,
    filter: &AuditFilter,
    before: Option<u64>,
    most: usize,
) -> Result<(Vec<Row>, Option<i64>), PgError> {
    let AuditFilter { actor, action, subject, actor_kind, text, since, until } = filter;
    let (kind, text) = (actor_kind.map(ActorKind::as_str), text.as_ref().map(|it| it.to_lowercase()));
    let before = before.map_or(i64::MAX, stored_number);
    let (since, until) = (since.map(Timestamp::as_millis), until.map(Timestamp::as_millis));
    tx.begin().await?;
    let (list, horizon) = if subject.is_some() {
        (&LIST_BY_SUBJECT, None)
    } else {
        let rows = tx.query(&HORIZON, [&before, &limit(AUDIT_ROWS_MAX)]).await?;
        (&LIST, rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?)
    };
    let (after, limit) = (horizon.unwrap_or(-1), limit(most + 1));
    let rows = tx
        .query(list, [&before, &after, &limit, subject, actor, action, &since, &until, &kind, &text])
        .await?;
    tx.commit().await?;
    Ok((rows, horizon))
}

fn audit_row(row: &Row) -> Result<AuditRow, PgError> {
    Ok(AuditRow {
        no: number(row.try_get(0)?),
        at: Timestamp::from_millis(row.try_get(1)?),
        entry: AuditEntry {
            actor: row.try_get(2)?,
            action: row.try_get(3)?,
            subject: row.try_get(4)?,
            detail: row.try_get(5)?,
            before: row.try_get(6)?,
            after: row.try_get(7)?,
        },
        link: ChainLink::of_columns(row.try_get(8)?, row.try_get(9)?),
    })
}

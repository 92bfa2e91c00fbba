//! Checks all tables. It changes nothing; a recount repairs counters.

use std::time::Duration;

use evenbeat_core::store::StoreDown;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::rows::counter_row;
use super::transaction::Transaction;
use crate::store::check::{CheckReport, FINDINGS_MAX, wrong_counters};
use crate::store::columns::takes_from_text;
use crate::store::definition;

/// Checking a large store takes longer than a normal call.
const DEADLINE: Duration = Duration::from_mins(30);

/// Queries for rows that must not exist. Each returns a text per row.
const MUST_BE_EMPTY: [(&str, &str); 9] = [
    (
        "job has no memory",
        "SELECT j.key FROM job j WHERE NOT EXISTS (SELECT FROM memory m WHERE m.job_id = j.id)",
    ),
    (
        "memory of no job",
        "SELECT m.job_id::text FROM memory m WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = m.job_id)",
    ),
    (
        "job counts other runs than are open",
        "SELECT j.key || ': ' || m.n_open || ' counted, ' || count(r.id) || ' open'
         FROM job j JOIN memory m ON m.job_id = j.id LEFT JOIN open_run r ON r.job_id = j.id
         GROUP BY j.key, m.n_open HAVING m.n_open <> count(r.id)",
    ),
    (
        "open run of no job",
        "SELECT r.id::text FROM open_run r WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = r.job_id)",
    ),
    (
        "open run of no session",
        "SELECT r.id::text FROM open_run r WHERE NOT EXISTS (SELECT FROM session s WHERE s.id = r.session_id)",
    ),
    ("run is both open and over", "SELECT o.id::text FROM open_run o JOIN run r ON r.id = o.id"),
    (
        "run of no job",
        "SELECT r.id::text FROM run r WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = r.job_id)",
    ),
    (
        "record of no job",
        "SELECT r.id::text FROM record r WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = r.job_id)",
    ),
    (
        "message of a run that is not open",
        "SELECT o.run_id::text FROM outbox o WHERE NOT EXISTS (SELECT FROM open_run r WHERE r.id = o.run_id)",
    ),
];

impl PgStore {
    /// Checks a snapshot of everything while others use the store.
    pub async fn check(&self) -> Result<CheckReport, StoreDown> {
        self.within(DEADLINE, async {
            let tx = Transaction::new(self, ConnectionUse::Read).await?;
            let report = check(&tx).await?;
            tx.give_back();
            Ok(report)
        })
        .await
    }
}

async fn check(tx: &Transaction) -> Result<CheckReport, PgError> {
    tx.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0").await?;
    let mut findings = Vec::new();
    for (what, sql) in MUST_BE_EMPTY {
        for row in tx.query_once(&format!("{sql} LIMIT {FINDINGS_MAX}"), &[]).await? {
            findings.push(format!("{what}: {}", row.try_get::<_, String>(0)?));
        }
    }
    let counters = tx.query_once("SELECT kind, key, n_open, last_claim_at FROM counter", &[]).await?;
    let counters = counters.iter().map(counter_row).collect::<Result<_, _>>()?;
    let mut held = Vec::new();
    for row in tx.query_once("SELECT takes FROM open_run WHERE takes IS NOT NULL", &[]).await? {
        held.extend(takes_from_text(row.try_get(0)?));
    }
    findings.extend(wrong_counters(counters, held));
    findings.extend(unreadable(tx).await?);
    let count = async |sql| tx.count(sql).await.map(|n| u64::try_from(n).unwrap_or(0));
    let n_jobs = count("SELECT count(*) FROM job WHERE NOT is_deleted").await?;
    let n_open_runs = count("SELECT count(*) FROM open_run").await?;
    tx.commit().await?;
    Ok(CheckReport { findings, n_jobs, n_open_runs })
}

/// Jobs whose definition cannot be read, page by page.
async fn unreadable(tx: &Transaction) -> Result<Vec<String>, PgError> {
    let (mut findings, mut after) = (Vec::new(), 0_i64);
    loop {
        let sql = format!(
            "SELECT id, key, definition FROM job WHERE NOT is_deleted AND {after} < id ORDER BY id LIMIT 10000"
        );
        let rows = tx.query_once(&sql, &[]).await?;
        let Some(last) = rows.last() else { return Ok(findings) };
        after = last.try_get(0)?;
        for row in &rows {
            if let Err(unreadable) = definition::job(row.try_get(2)?)
                && findings.len() < FINDINGS_MAX
            {
                let key: &str = row.try_get(1)?;
                findings.push(format!("job {key} cannot be read ({}); edit it", unreadable.why));
            }
        }
    }
}

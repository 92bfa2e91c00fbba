//! Checks a whole store. It changes nothing; [`Store::recount`] repairs counters.
//!
//! [`Store::recount`]: evenbeat_core::store::Store::recount

use evenbeat_core::store::StoreDown;
use rusqlite::{Result, Row};

use super::SqliteStore;
use super::read_tx::ReadTx;
use crate::store::check::{CheckReport, FINDINGS_MAX, wrong_counters};

/// Queries for rows that must not exist. Each returns a text per row.
const MUST_BE_EMPTY: [(&str, &str); 9] = [
    (
        "job has no memory",
        "SELECT j.key FROM job j WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.job_id = j.id)",
    ),
    (
        "memory of no job",
        "SELECT m.job_id FROM memory m WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = m.job_id)",
    ),
    (
        "job counts other runs than are open",
        "SELECT j.key || ': ' || m.n_open || ' counted, ' || count(r.id) || ' open'
         FROM job j JOIN memory m ON m.job_id = j.id LEFT JOIN open_run r ON r.job_id = j.id
         GROUP BY j.id HAVING m.n_open <> count(r.id)",
    ),
    (
        "open run of no session",
        "SELECT hex(r.id) FROM open_run r WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.id = r.session_id)",
    ),
    ("run is both open and over", "SELECT hex(o.id) FROM open_run o JOIN run r ON r.id = o.id"),
    (
        "run of no job",
        "SELECT hex(r.id) FROM run r WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = r.job_id)",
    ),
    (
        "record of no job",
        "SELECT r.id FROM record r WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = r.job_id)",
    ),
    (
        "message of a run that is not open",
        "SELECT hex(o.run_id) FROM outbox o WHERE NOT EXISTS (SELECT 1 FROM open_run r WHERE r.id = o.run_id)",
    ),
    (
        "claim of no counter",
        "SELECT c.kind || ' ' || c.key FROM counter_claim c
         WHERE NOT EXISTS (SELECT 1 FROM counter t WHERE t.kind = c.kind AND t.key = c.key)",
    ),
];

impl SqliteStore {
    /// Checks a snapshot of the whole file while others use it.
    pub fn check(&self) -> Result<CheckReport, StoreDown> {
        self.look(whole)
    }
}

/// Checks everything in a snapshot.
pub(super) fn whole(tx: &ReadTx<'_>) -> Result<CheckReport, StoreDown> {
    tx.or_down(tx.do_check())
}

impl ReadTx<'_> {
    fn do_check(&self) -> Result<CheckReport> {
        let mut findings = Vec::new();
        let faults: Vec<String> = self.many("PRAGMA integrity_check(20)", [], |row| row.get(0))?;
        findings.extend(
            faults.into_iter().filter(|it| it != "ok").map(|it| format!("the file is damaged: {it}")),
        );
        findings.extend(self.many("PRAGMA foreign_key_check", [], |row| {
            let (table, of): (String, String) = (row.get(0)?, row.get(2)?);
            Ok(format!("a row of `{table}` names a row of `{of}` that is not there"))
        })?);
        for (what, sql) in MUST_BE_EMPTY {
            findings.extend(self.wrong_rows(what, sql)?);
        }
        findings.extend(wrong_counters(self.find_counters()?, self.held_counters()?));
        findings.extend(self.unreadable_jobs()?);
        let count = |sql: &str| self.one(sql, [], |row| row.get::<_, u32>(0)).map(u64::from);
        Ok(CheckReport {
            findings,
            n_jobs: count("SELECT count(*) FROM job WHERE NOT is_deleted")?,
            n_open_runs: count("SELECT count(*) FROM open_run")?,
        })
    }

    fn wrong_rows(&self, what: &str, sql: &str) -> Result<Vec<String>> {
        let as_text = |row: &Row<'_>| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => other.as_str().unwrap_or("?").to_owned(),
            })
        };
        let rows = self.many(&format!("{sql} LIMIT {FINDINGS_MAX}"), [], as_text)?;
        Ok(rows.into_iter().map(|it| format!("{what}: {it}")).collect())
    }

    fn unreadable_jobs(&self) -> Result<Vec<String>> {
        let mut statement =
            self.prepared("SELECT key, definition FROM job WHERE is_deleted = 0 ORDER BY id")?;
        let mut rows = statement.query([])?;
        let mut findings = Vec::new();
        while let Some(row) = rows.next()?
            && findings.len() < FINDINGS_MAX
        {
            if let Err(unreadable) = crate::store::definition::job(row.get_ref(1)?.as_str()?) {
                let key: String = row.get(0)?;
                findings.push(format!("job {key} cannot be read ({}); edit it", unreadable.why));
            }
        }
        Ok(findings)
    }
}

//! Audit entries: written with a change, chained a moment later, listed for people, trimmed from the beginning (S17).

use evenbeat_core::store::{AuditEntry, StoreDown};
use evenbeat_core::time::Timestamp;
use rusqlite::{OptionalExtension, Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::write_tx::WriteTx;
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

impl WriteTx<'_> {
    /// Adds an audit entry that is not about a job.
    pub fn append_audit(&mut self, entry: &AuditEntry) -> Result<(), StoreDown> {
        let written = self.write_audit(entry);
        self.or_down(written)
    }

    pub(super) fn write_audit(&self, entry: &AuditEntry) -> Result<()> {
        let AuditEntry { actor, action, subject, detail, before, after } = entry;
        self.run(
            "INSERT INTO audit (at, actor, action, subject, detail, before_json, after_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![self.now.as_millis(), actor, action, subject, detail, before, after],
        )?;
        Ok(())
    }

    /// Chains entries that are not chained yet, some at a time. Returns how many.
    pub fn chain_audit(&mut self) -> Result<usize, StoreDown> {
        let chained = self.do_chain_audit();
        self.or_down(chained)
    }

    fn do_chain_audit(&self) -> Result<usize> {
        let sql = select_audit!("WHERE chain_no IS NULL ORDER BY no LIMIT ?1");
        let rows = self.read.many(sql, [limit(CHAIN_BATCH)], audit_row)?;
        if rows.is_empty() {
            return Ok(0);
        }
        let last = "SELECT chain_no, chain_hash FROM audit WHERE chain_no IS NOT NULL ORDER BY chain_no DESC LIMIT 1";
        let last = self.read.one(last, [], |row| Ok(ChainLink::of_columns(row.get(0)?, row.get(1)?)));
        let last = match last.optional()?.flatten() {
            Some(last) => last,
            None => self.read.audit_anchor()?,
        };
        let entries = rows.into_iter().map(|row| (stored_number(row.no), row.at, row.entry));
        let linked = links(last, entries);
        for (no, link) in &linked {
            self.run(
                "UPDATE audit SET chain_no = ?2, chain_hash = ?3 WHERE no = ?1 AND chain_no IS NULL",
                params![no, stored_number(link.no), link.hash],
            )?;
        }
        Ok(linked.len())
    }

    /// Removes entries older than an instant from the beginning of the chain.
    pub(super) fn trim_audit(&self, before: Timestamp, most: usize) -> Result<usize> {
        while self.do_chain_audit()? == CHAIN_BATCH {}
        let first = |most: usize| {
            let sql = "SELECT chain_no, chain_hash, at FROM audit WHERE chain_no IS NOT NULL ORDER BY chain_no LIMIT ?1";
            let rows = self.read.many(sql, [limit(most)], |row| {
                let link = ChainLink::of_columns(row.get(0)?, row.get(1)?).unwrap_or_default();
                Ok((link, Timestamp::from_millis(row.get(2)?)))
            });
            rows.map(|rows| trimmed_to(rows, before))
        };
        if first(1)?.is_none() {
            return Ok(0);
        }
        let Some(last) = first(most)? else { return Ok(0) };
        self.run(
            "INSERT INTO setting (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            params![ANCHOR_SETTING, last.to_text()],
        )?;
        self.run("DELETE FROM audit WHERE chain_no <= ?1", [stored_number(last.no)])
    }
}

impl ReadTx<'_> {
    fn audit_anchor(&self) -> Result<ChainLink> {
        let sql = "SELECT value FROM setting WHERE name = ?1";
        let text: Option<String> = self.one(sql, [ANCHOR_SETTING], |row| row.get(0)).optional()?;
        Ok(ChainLink::from_text(text.as_deref()))
    }

    /// Entries that match a filter, before one of them, the latest first.
    pub fn list_audit(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        most: usize,
    ) -> Result<AuditPage, StoreDown> {
        self.or_down(self.find_audit_page(filter, before, most.min(PAGE_MAX)))
    }

    fn find_audit_page(&self, filter: &AuditFilter, before: Option<u64>, most: usize) -> Result<AuditPage> {
        let before = before.map_or(i64::MAX, stored_number);
        let AuditFilter { actor, action, subject, actor_kind, text, since, until } = filter;
        let (kind, text) = (actor_kind.map(ActorKind::as_str), text.as_ref().map(|it| it.to_lowercase()));
        let (since, until) = (since.map(Timestamp::as_millis), until.map(Timestamp::as_millis));
        // The index on the subject finds its entries; everything else is looked for entry by entry, up to a limit.
        let (sql, horizon) = if subject.is_some() {
            (select_audit!(
                "WHERE subject = ?4 AND no < ?1 AND ?2 < no AND (?5 IS NULL OR actor = ?5) AND (?6 IS NULL OR action = ?6)
                 AND (?7 IS NULL OR ?7 <= at) AND (?8 IS NULL OR at < ?8) AND (?9 IS NULL OR ?9 = CASE
                   WHEN actor LIKE 'token %' THEN 'token' WHEN actor LIKE 'uid %' OR actor = 'loopback' THEN 'person' ELSE 'system' END)
                 AND (?10 IS NULL OR 0 < instr(lower(actor || ' ' || action || ' ' || subject || ' ' || detail), ?10))
                 ORDER BY no DESC LIMIT ?3"
            ), None)
        } else {
            let horizon = "SELECT no FROM audit WHERE no < ?1 ORDER BY no DESC LIMIT 1 OFFSET ?2";
            let horizon: Option<i64> =
                self.one(horizon, params![before, limit(AUDIT_ROWS_MAX)], |row| row.get(0)).optional()?;
            (select_audit!(
                "WHERE ?4 IS NULL AND no < ?1 AND ?2 < no AND (?5 IS NULL OR actor = ?5) AND (?6 IS NULL OR action = ?6)
                 AND (?7 IS NULL OR ?7 <= at) AND (?8 IS NULL OR at < ?8) AND (?9 IS NULL OR ?9 = CASE
                   WHEN actor LIKE 'token %' THEN 'token' WHEN actor LIKE 'uid %' OR actor = 'loopback' THEN 'person' ELSE 'system' END)
                 AND (?10 IS NULL OR 0 < instr(lower(actor || ' ' || action || ' ' || subject || ' ' || detail), ?10))
                 ORDER BY no DESC LIMIT ?3"
            ), horizon)
        };
        let args = params![
            before,
            horizon.unwrap_or(-1),
            limit(most + 1),
            subject,
            actor,
            action,
            since,
            until,
            kind,
            text
        ];
        let rows = self.many(sql, args, audit_row)?;
        Ok(AuditPage::of(rows, most, horizon.map(|it| number(it) + 1)))
    }

    /// The chain after one of its links, and its anchor.
    pub fn audit_chain(&self, after: u64, most: usize) -> Result<AuditChainPage, StoreDown> {
        self.or_down(self.find_audit_chain(after, most.min(PAGE_MAX)))
    }

    fn find_audit_chain(&self, after: u64, most: usize) -> Result<AuditChainPage> {
        let anchor = self.audit_anchor()?;
        let after = stored_number(after.max(anchor.no));
        let sql = select_audit!("WHERE ?1 < chain_no ORDER BY chain_no LIMIT ?2");
        let rows = self.many(sql, params![after, limit(most)], audit_row)?;
        let n_unchained = "SELECT count(*) FROM audit WHERE chain_no IS NULL";
        let n_unchained = self.one(n_unchained, [], |row| Ok(number(row.get(0)?)))?;
        Ok(AuditChainPage { anchor, rows, n_unchained })
    }
}

fn audit_row(row: &Row<'_>) -> Result<AuditRow> {
    Ok(AuditRow {
        no: number(row.get(0)?),
        at: Timestamp::from_millis(row.get(1)?),
        entry: AuditEntry {
            actor: row.get(2)?,
            action: row.get(3)?,
            subject: row.get(4)?,
            detail: row.get(5)?,
            before: row.get(6)?,
            after: row.get(7)?,
        },
        link: ChainLink::of_columns(row.get(8)?, row.get(9)?),
    })
}

//! How jobs are written: edits by people, and changes by time alone.

use evenbeat_core::ids::{SessionId, Site, Tenant};
use evenbeat_core::job::Job;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{JobRow, PutAnswer, PutJob, Revision, Seen, Settle, SettleAnswer};
use rusqlite::{Result, params};

use super::read_tx::StoredJob;
use super::write_tx::{MemoryWrite, WriteTx};
use crate::store::columns::stored_number;
use crate::store::definition::{self, DefinitionText};

impl WriteTx<'_> {
    pub(super) fn do_put_job(&mut self, put: &PutJob) -> Result<PutAnswer> {
        if let Some(earlier) = self.earlier_request(put)? {
            return Ok(PutAnswer::Repeated(earlier));
        }
        let before = self.read.find_job(&put.job.key)?;
        match (&before, put.seen) {
            (None, Seen::Version(_)) => return Ok(PutAnswer::Gone),
            (Some(job), Seen::Version(seen)) if job.row.version != seen => {
                return Ok(PutAnswer::Stale(job.row.clone()));
            }
            (Some(job), Seen::Nothing) if !job.row.is_deleted => {
                return Ok(PutAnswer::Stale(job.row.clone()));
            }
            _ => {}
        }
        if let Some(audit) = &put.audit {
            self.write_audit(audit)?;
        }
        if let (Some(request), Some(job)) = (&put.request, &before) {
            self.keep_request(job.id, request)?;
        }
        match before {
            None => self.create(put),
            Some(before) => self.edit(put, before),
        }
        .map(PutAnswer::Put)
    }

    fn create(&mut self, put: &PutJob) -> Result<JobRow> {
        let floor = self.read.floor()?;
        let mut row = JobRow {
            job: put.job.clone(),
            state: put.state.clone(),
            revision: Revision(1),
            version: floor.version,
            fence: floor.fence,
            n_open: 0,
            is_deleted: put.is_deleted,
        };
        row.state.owner = None;
        let stored = definition::to_text(&put.job);
        let terms = &put.job.terms;
        let id = self
            .read
            .prepared(
                "INSERT INTO job (key, definition, terms, target, pool, site, tenant, is_enabled, is_deleted, revision)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .insert(params![
                put.job.key.as_str(),
                stored.definition,
                stored.terms,
                put.job.target.kind(),
                terms.place.pool.as_str(),
                terms.site.as_ref().map(Site::as_str),
                terms.tenant.as_ref().map(Tenant::as_str),
                terms.enabled,
                put.is_deleted,
                stored_number(row.revision.0),
            ])?;
        if !put.is_deleted {
            self.add_labels(id, &put.job)?;
        }
        self.read.context.definitions.remember(id, &stored.definition, &put.job);
        self.write(id, &mut row, &put.records, MemoryWrite::Insert)?;
        Ok(row)
    }

    fn edit(&mut self, put: &PutJob, before: StoredJob) -> Result<JobRow> {
        let StoredJob { id, mut row } = before;
        let is_born = row.is_deleted;
        let was = (row.revision, row.is_deleted);
        row.revision.0 += u64::from(put.is_revision || is_born);
        row.is_deleted = put.is_deleted;
        let stored = definition::to_text(&put.job);
        let sql = "SELECT definition != ?2 FROM job WHERE id = ?1";
        let is_redefined: bool = self.read.one(sql, params![id, stored.definition], |row| row.get(0))?;
        if is_redefined {
            self.redefine(id, put, &stored)?;
        }
        self.read.context.definitions.remember(id, &stored.definition, &put.job);
        if was != (row.revision, row.is_deleted) {
            let sql = "UPDATE job SET revision = ?2, is_deleted = ?3 WHERE id = ?1";
            self.run(sql, params![id, stored_number(row.revision.0), row.is_deleted])?;
        }
        if is_redefined || was.1 != row.is_deleted {
            self.relabel(id, put)?;
        }
        row.job = put.job.clone();
        // Runs decide who owns the job, not edits.
        let owner = row.state.owner.take().filter(|_| 0 < row.n_open);
        row.state = put.state.clone();
        row.state.owner = owner;
        self.write(id, &mut row, &put.records, MemoryWrite::Update)?;
        Ok(row)
    }

    fn redefine(&mut self, id: i64, put: &PutJob, stored: &DefinitionText) -> Result<()> {
        let terms = &put.job.terms;
        self.run(
            "UPDATE job SET definition = ?2, terms = ?3, target = ?4, pool = ?5, site = ?6, tenant = ?7, is_enabled = ?8
             WHERE id = ?1",
            params![
                id,
                stored.definition,
                stored.terms,
                put.job.target.kind(),
                terms.place.pool.as_str(),
                terms.site.as_ref().map(Site::as_str),
                terms.tenant.as_ref().map(Tenant::as_str),
                terms.enabled,
            ],
        )?;
        Ok(())
    }

    /// Removed jobs have no labels, so that lists don't find them.
    fn relabel(&mut self, id: i64, put: &PutJob) -> Result<()> {
        self.run("DELETE FROM label WHERE job_id = ?1", [id])?;
        if put.is_deleted { Ok(()) } else { self.add_labels(id, &put.job) }
    }

    fn add_labels(&mut self, id: i64, job: &Job) -> Result<()> {
        for (name, value) in &job.labels {
            let sql = "INSERT INTO label (name, value, key, job_id) VALUES (?1, ?2, ?3, ?4)";
            self.run(sql, params![name, value, job.key.as_str(), id])?;
        }
        Ok(())
    }

    pub(super) fn do_settle(
        &mut self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>> {
        if !self.is_current_and_open(epoch)? || !self.is_living(me)? {
            return Ok(vec![SettleAnswer::Refused; settles.len()]);
        }
        settles.iter().map(|settle| self.settle_one(settle)).collect()
    }

    fn settle_one(&mut self, settle: &Settle) -> Result<SettleAnswer> {
        let Some(StoredJob { id, mut row, .. }) = self.read.find_job(&settle.key)? else {
            return Ok(SettleAnswer::Gone);
        };
        if row.is_deleted || row.version != settle.seen {
            return Ok(SettleAnswer::Stale(row));
        }
        let owner = row.state.owner.take();
        row.state = settle.state.clone();
        row.state.owner = owner;
        self.write(id, &mut row, &settle.records, MemoryWrite::Update)?;
        Ok(SettleAnswer::Settled(row))
    }
}

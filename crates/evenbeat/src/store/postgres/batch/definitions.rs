//! The definitions that a batch of edits writes.

use evenbeat_core::ids::{JobKey, Site, Tenant};
use evenbeat_core::store::AuditEntry;
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{ChangedJobs, LockedJob};
use crate::store::columns::{MemoryColumns, stored_number};
use crate::store::definition;
use crate::store::postgres::error::PgError;
use crate::store::postgres::memory::{memory_names, memory_types};
use crate::store::postgres::transaction::{Param, Statement, Transaction};

/// Creates jobs with their states. Fails if another transaction has created one of them.
pub(super) static ADD_JOBS: Statement = Statement {
    sql: concat!(
        "WITH u AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], \
            $7::text[], $8::bool[], $9::bool[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], \
            $14::bigint[], $15::bigint[], $16::bigint[], $17::bytea[], $18::bigint[], $19::bigint[], $20::bigint[], \
            $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[], \
            $28::text[], $29::text[], $30::bigint[], $31::float8[], $32::float8[], $33::bigint[], $34::text[], \
            $35::text[], $36::text[], $37::uuid[], $38::text[], $39::text[], $40::bigint[]) \
            AS u(key, definition, terms, target, pool, site, tenant, is_enabled, is_deleted, revision, version, fence, \
            n_open, ",
        memory_names!(),
        ")), \
          born AS (\
            INSERT INTO job (key, definition, terms, target, pool, site, tenant, is_enabled, is_deleted, revision) \
            SELECT key, definition, terms, target, pool, site, tenant, is_enabled, is_deleted, revision FROM u \
            ORDER BY key COLLATE \"C\" ON CONFLICT DO NOTHING RETURNING id, key), \
          remembered AS (\
            INSERT INTO memory (job_id, version, fence, n_open, ",
        memory_names!(),
        ") SELECT born.id, u.version, u.fence, u.n_open, ",
        memory_names!(),
        " FROM born JOIN u ON u.key = born.key), \
          told AS (\
            INSERT INTO change (position, job_id, changed_at) SELECT pg_current_xact_id(), id, now_ms() FROM born) \
          SELECT 1 / (count(*) = cardinality($1::text[]))::int FROM born"
    ),
    types: memory_types!(
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::BOOL_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY
    ),
};

pub(super) static WRITE_DEFINITIONS: Statement = Statement {
    sql: "UPDATE job j SET definition = u.definition, terms = u.terms, target = u.target, pool = u.pool, \
            site = u.site, tenant = u.tenant, is_enabled = u.is_enabled, is_deleted = u.is_deleted, \
            revision = u.revision \
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bool[], \
            $9::bool[], $10::bigint[]) \
            AS u(key, definition, terms, target, pool, site, tenant, is_enabled, is_deleted, revision) \
          WHERE j.key = u.key COLLATE \"C\"",
    types: &[
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::BOOL_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8_ARRAY,
    ],
};

pub(super) static CLEAR_LABELS: Statement = Statement {
    sql: "DELETE FROM label USING job j WHERE label.job_id = j.id AND j.key = ANY($1)",
    types: &[Type::TEXT_ARRAY],
};

pub(super) static ADD_LABELS: Statement = Statement {
    sql: "INSERT INTO label (name, value, key, job_id) SELECT u.name, u.value, j.key, j.id \
          FROM unnest($1::text[], $2::text[], $3::text[]) AS u(key, name, value) \
          JOIN job j ON j.key = u.key COLLATE \"C\"",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY],
};

pub(super) static AUDIT: Statement = Statement {
    sql: "INSERT INTO audit (at, actor, action, subject, detail, before_json, after_json) \
          SELECT $7, u.actor, u.action, u.subject, u.detail, u.before_json, u.after_json \
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) \
            WITH ORDINALITY AS u(actor, action, subject, detail, before_json, after_json, idx) \
          ORDER BY u.idx",
    types: &[
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8,
    ],
};

/// Definitions, column by column.
#[derive(Debug, Default)]
struct DefinitionColumns<'a> {
    key: Vec<&'a str>,
    definition: Vec<String>,
    terms: Vec<String>,
    target: Vec<&'a str>,
    pool: Vec<&'a str>,
    site: Vec<Option<&'a str>>,
    tenant: Vec<Option<&'a str>>,
    is_enabled: Vec<bool>,
    is_deleted: Vec<bool>,
    revision: Vec<i64>,
}

impl<'a> DefinitionColumns<'a> {
    fn push(&mut self, key: &'a JobKey, LockedJob { row, .. }: &'a LockedJob) {
        let stored = definition::to_text(&row.job);
        self.key.push(key.as_str());
        self.definition.push(stored.definition);
        self.terms.push(stored.terms);
        self.target.push(row.job.target.kind());
        self.pool.push(row.job.place.pool.as_str());
        self.site.push(row.job.site.as_ref().map(Site::as_str));
        self.tenant.push(row.job.tenant.as_ref().map(Tenant::as_str));
        self.is_enabled.push(row.job.enabled);
        self.is_deleted.push(row.is_deleted);
        self.revision.push(stored_number(row.revision.0));
    }

    fn params(&self) -> [Param<'_>; 10] {
        [
            &self.key,
            &self.definition,
            &self.terms,
            &self.target,
            &self.pool,
            &self.site,
            &self.tenant,
            &self.is_enabled,
            &self.is_deleted,
            &self.revision,
        ]
    }
}

/// The definitions to write.
#[derive(Debug, Default)]
pub(super) struct DefinitionWrites<'a> {
    new: DefinitionColumns<'a>,
    new_memory: ChangedJobs,
    old: DefinitionColumns<'a>,
    /// By key, name and value.
    labels: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
}

impl<'a> DefinitionWrites<'a> {
    pub(super) fn of(jobs: impl Iterator<Item = (&'a JobKey, &'a LockedJob)>) -> DefinitionWrites<'a> {
        let mut written = DefinitionWrites::default();
        for (key, held) in jobs {
            match held.id {
                Some(_) => written.old.push(key, held),
                None => {
                    written.new.push(key, held);
                    written.new_memory.version.push(stored_number(held.row.version.0));
                    written.new_memory.fence.push(stored_number(held.row.fence.0));
                    written.new_memory.n_open.push(held.row.n_open.into());
                    written.new_memory.memory.push(MemoryColumns::of(&held.row.state));
                }
            }
            for (name, value) in held.row.job.labels.iter().filter(|_| !held.row.is_deleted) {
                written.labels.0.push(key.as_str());
                written.labels.1.push(name);
                written.labels.2.push(value);
            }
        }
        written
    }

    pub(super) async fn write(&self, tx: &Transaction) -> Result<(), PgError> {
        let mut add: Vec<Param<'_>> = Vec::from(self.new.params());
        let memory = &self.new_memory;
        add.extend([&memory.version as Param<'_>, &memory.fence, &memory.n_open]);
        add.extend(memory.memory.params());
        let (keys, names, values) = &self.labels;
        let is_edit = !self.old.key.is_empty();
        tokio::try_join!(
            biased;
            add_jobs(tx, self.new.key.is_empty(), &add),
            tx.query_if(is_edit, &WRITE_DEFINITIONS, self.old.params()),
            tx.query_if(is_edit, &CLEAR_LABELS, [&self.old.key]),
            tx.query_if(!keys.is_empty(), &ADD_LABELS, [keys, names, values]),
        )?;
        Ok(())
    }
}

async fn add_jobs(tx: &Transaction, are_none: bool, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
    if are_none { Ok(Vec::new()) } else { tx.query_all(&ADD_JOBS, params).await }
}

pub(super) async fn audit(tx: &Transaction, entries: &[AuditEntry], at: Timestamp) -> Result<(), PgError> {
    fn texts<'a>(entries: &'a [AuditEntry], of: impl Fn(&'a AuditEntry) -> &'a str) -> Vec<&'a str> {
        entries.iter().map(of).collect()
    }
    let (actor, action) = (texts(entries, |it| &it.actor), texts(entries, |it| &it.action));
    let (subject, detail) = (texts(entries, |it| &it.subject), texts(entries, |it| &it.detail));
    let before: Vec<Option<&str>> = entries.iter().map(|it| it.before.as_deref()).collect();
    let after: Vec<Option<&str>> = entries.iter().map(|it| it.after.as_deref()).collect();
    let at = at.as_millis();
    let columns = [&actor as Param<'_>, &action, &subject, &detail, &before, &after, &at];
    tx.query_if(!entries.is_empty(), &AUDIT, columns).await?;
    Ok(())
}

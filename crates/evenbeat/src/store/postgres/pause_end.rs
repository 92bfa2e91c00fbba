//! When pauses end automatically.

use std::collections::BTreeMap;

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{Revision, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::rows::job_key;
use super::transaction::{Statement, transact};
use super::views::{ask, limit, read};
use crate::store::columns::stored_number;

static SET: Statement = Statement {
    sql: "INSERT INTO pause_end (key, ends_at) \
          SELECT key, $3 FROM job WHERE key = $1 AND revision = $2 AND NOT is_deleted \
          ON CONFLICT (key) DO UPDATE SET ends_at = excluded.ends_at RETURNING key",
    types: &[Type::TEXT, Type::INT8, Type::INT8],
};
static CLEAR: Statement = Statement {
    sql: "DELETE FROM pause_end WHERE key = $1 AND ends_at <= $2",
    types: &[Type::TEXT, Type::INT8],
};
static ENDED: Statement = Statement {
    sql: "SELECT key FROM pause_end WHERE ends_at <= now_ms() ORDER BY ends_at, key LIMIT $1",
    types: &[Type::INT8],
};
static ENDS: Statement =
    Statement { sql: "SELECT key, ends_at FROM pause_end WHERE key = ANY($1)", types: &[Type::TEXT_ARRAY] };

impl PgStore {
    /// Sets when the pause of a job ends, if the job is still the one with this revision.
    pub async fn set_pause_end(
        &self,
        key: &JobKey,
        revision: Revision,
        ends_at: Timestamp,
    ) -> Result<bool, StoreDown> {
        let (key, revision, ends_at) = (key.as_str(), stored_number(revision.0), ends_at.as_millis());
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &SET, [&key, &revision, &ends_at]))?;
        Ok(!rows.is_empty())
    }

    /// Forgets when the pause of a job ends, if it ends then or earlier.
    pub async fn clear_pause_end(&self, key: &JobKey, up_to: Timestamp) -> Result<(), StoreDown> {
        let (key, up_to) = (key.as_str(), up_to.as_millis());
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &CLEAR, [&key, &up_to]))?;
        Ok(())
    }

    /// Jobs whose pause has ended, the earliest first.
    pub async fn ended_pauses(&self, most: usize) -> Result<Vec<JobKey>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &ENDED, [&limit(most)]))?;
        read(&rows, |row| job_key(row.try_get(0)?))
    }

    /// When the pauses of these jobs end, where they do.
    pub async fn pause_ends(&self, keys: &[JobKey]) -> Result<BTreeMap<JobKey, Timestamp>, StoreDown> {
        let keys: Vec<&str> = keys.iter().map(JobKey::as_str).collect();
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &ENDS, [&keys]))?;
        let ends =
            read(&rows, |row| Ok((job_key(row.try_get(0)?)?, Timestamp::from_millis(row.try_get(1)?))));
        ends.map(|it| it.into_iter().collect())
    }
}

//! What jobs share: sites, tenants and pools, and how much of them is in use. For people; no decision reads it.

use std::collections::BTreeMap;

use evenbeat_core::ids::SessionId;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use rusqlite::{OptionalExtension, Result, params};

use super::read_tx::ReadTx;
use super::rows;
use crate::store::columns::number;
use crate::store::query::{CounterUse, SharedKind};

impl ReadTx<'_> {
    /// The sites, tenants or pools that jobs name, in the order of the database, at most `most`.
    pub fn shared_names(&self, kind: SharedKind, most: usize) -> Result<Vec<String>, StoreDown> {
        self.or_down(self.find_shared_names(kind, most))
    }

    fn find_shared_names(&self, kind: SharedKind, most: usize) -> Result<Vec<String>> {
        // One step on the index for each name, however many jobs have it.
        let sql = match kind {
            SharedKind::Site => {
                "SELECT min(site) FROM job WHERE site IS NOT NULL AND NOT is_deleted AND ?1 < site"
            }
            SharedKind::Tenant => {
                "SELECT min(tenant) FROM job WHERE tenant IS NOT NULL AND NOT is_deleted AND ?1 < tenant"
            }
            SharedKind::Pool => "SELECT min(pool) FROM job WHERE NOT is_deleted AND ?1 < pool",
        };
        let mut names: Vec<String> = Vec::new();
        while names.len() < most {
            let last = names.last().map_or("", String::as_str);
            match self.one(sql, [last], |row| row.get(0)).optional()?.flatten() {
                Some(name) => names.push(name),
                None => break,
            }
        }
        Ok(names)
    }

    /// The number of open runs by site, tenant or pool.
    pub fn open_runs_by(&self, kind: SharedKind) -> Result<BTreeMap<String, u64>, StoreDown> {
        let sql = match kind {
            SharedKind::Site => {
                "SELECT j.site, count(*) FROM open_run o JOIN job j ON j.id = o.job_id
                 WHERE j.site IS NOT NULL GROUP BY j.site"
            }
            SharedKind::Tenant => {
                "SELECT j.tenant, count(*) FROM open_run o JOIN job j ON j.id = o.job_id
                 WHERE j.tenant IS NOT NULL GROUP BY j.tenant"
            }
            SharedKind::Pool => {
                "SELECT j.pool, count(*) FROM open_run o JOIN job j ON j.id = o.job_id GROUP BY j.pool"
            }
        };
        let counted = self.many(sql, [], |row| Ok((row.get(0)?, number(row.get(1)?))));
        self.or_down(counted.map(|it| it.into_iter().collect()))
    }

    /// How much counters were used. Only sites and tenants with limits have them.
    pub fn counter_uses(
        &self,
        kind: SharedKind,
        names: &[String],
    ) -> Result<BTreeMap<String, CounterUse>, StoreDown> {
        self.or_down(self.find_counter_uses(kind, names))
    }

    fn find_counter_uses(&self, kind: SharedKind, names: &[String]) -> Result<BTreeMap<String, CounterUse>> {
        let since = (self.context.now() - Duration::from_hours(1)).as_millis();
        let sql = "SELECT last_claim_at,
                     (SELECT count(*) FROM counter_claim q WHERE q.kind = c.kind AND q.key = c.key AND ?3 < q.claimed_at)
                   FROM counter c WHERE kind = ?1 AND key = ?2";
        let mut uses = BTreeMap::new();
        for name in names {
            let used = self.one(sql, params![kind.as_str(), name, since], |row| {
                let last_start_at: Option<i64> = row.get(0)?;
                let last_start_at = last_start_at.map(Timestamp::from_millis);
                Ok(CounterUse { last_start_at, starts_last_hour: number(row.get(1)?) })
            });
            uses.extend(used.optional()?.map(|it| (name.clone(), it)));
        }
        Ok(uses)
    }

    /// When the store last heard of each session.
    pub fn sessions_seen(&self) -> Result<BTreeMap<SessionId, Timestamp>, StoreDown> {
        let seen = self.many("SELECT id, beaten_at FROM session", [], |row| {
            Ok((SessionId(rows::id(row, 0)?), Timestamp::from_millis(row.get(1)?)))
        });
        self.or_down(seen.map(|it| it.into_iter().collect()))
    }
}

//! What jobs share: sites, tenants and pools, and how much of them is in use. For people; no decision reads it.

use std::collections::BTreeMap;

use evenbeat_core::ids::SessionId;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::transaction::{Statement, transact};
use super::views::{ask, limit, read};
use crate::store::columns::number;
use crate::store::query::{CounterUse, SharedKind};

/// One step on the index for each name, however many jobs have it.
macro_rules! names_of {
    ($column:literal, $has_one:literal) => {
        Statement {
            sql: concat!(
                "WITH RECURSIVE found AS ((SELECT ",
                $column,
                " AS name FROM job WHERE NOT is_deleted",
                $has_one,
                " ORDER BY ",
                $column,
                " LIMIT 1) UNION ALL SELECT (SELECT ",
                $column,
                " FROM job WHERE NOT is_deleted",
                $has_one,
                " AND found.name < ",
                $column,
                " ORDER BY ",
                $column,
                " LIMIT 1) FROM found WHERE found.name IS NOT NULL) \
                 SELECT name FROM found WHERE name IS NOT NULL LIMIT $1"
            ),
            types: &[Type::INT8],
        }
    };
}
static SITES: Statement = names_of!("site", " AND site IS NOT NULL");
static TENANTS: Statement = names_of!("tenant", " AND tenant IS NOT NULL");
static POOLS: Statement = names_of!("pool", "");

macro_rules! open_by {
    ($column:literal) => {
        Statement {
            sql: concat!(
                "SELECT j.",
                $column,
                ", count(*) FROM open_run o JOIN job j ON j.id = o.job_id WHERE j.",
                $column,
                " IS NOT NULL GROUP BY 1"
            ),
            types: &[],
        }
    };
}
static OPEN_BY_SITE: Statement = open_by!("site");
static OPEN_BY_TENANT: Statement = open_by!("tenant");
static OPEN_BY_POOL: Statement = open_by!("pool");

static COUNTER_USES: Statement = Statement {
    sql: "SELECT c.key, c.last_claim_at, \
            (SELECT count(*) FROM counter_claim q \
             WHERE q.kind = c.kind AND q.key = c.key AND now_ms() - $3 < q.claimed_at) \
          FROM counter c WHERE c.kind = $1 AND c.key = ANY($2)",
    types: &[Type::TEXT, Type::TEXT_ARRAY, Type::INT8],
};
static SEEN: Statement = Statement { sql: "SELECT id, beaten_at FROM session", types: &[] };

impl PgStore {
    /// The sites, tenants or pools that jobs name, in the order of the database, at most `most`.
    pub async fn shared_names(&self, kind: SharedKind, most: usize) -> Result<Vec<String>, StoreDown> {
        let names = match kind {
            SharedKind::Site => &SITES,
            SharedKind::Tenant => &TENANTS,
            SharedKind::Pool => &POOLS,
        };
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, names, [&limit(most)]))?;
        read(&rows, |row| Ok(row.try_get(0)?))
    }

    /// The number of open runs by site, tenant or pool.
    pub async fn open_runs_by(&self, kind: SharedKind) -> Result<BTreeMap<String, u64>, StoreDown> {
        let open = match kind {
            SharedKind::Site => &OPEN_BY_SITE,
            SharedKind::Tenant => &OPEN_BY_TENANT,
            SharedKind::Pool => &OPEN_BY_POOL,
        };
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, open, []))?;
        read(&rows, |row| Ok((row.try_get(0)?, number(row.try_get(1)?)))).map(|it| it.into_iter().collect())
    }

    /// How much counters were used. Only sites and tenants with limits have them.
    pub async fn counter_uses(
        &self,
        kind: SharedKind,
        names: &[String],
    ) -> Result<BTreeMap<String, CounterUse>, StoreDown> {
        let hour = Duration::from_hours(1).as_millis();
        let kind = kind.as_str();
        let rows =
            transact!(self, ConnectionUse::Read, |tx| ask(&tx, &COUNTER_USES, [&kind, &names, &hour]))?;
        let used = read(&rows, |row| {
            let last_start_at = row.try_get::<_, Option<i64>>(1)?.map(Timestamp::from_millis);
            Ok((row.try_get(0)?, CounterUse { last_start_at, starts_last_hour: number(row.try_get(2)?) }))
        });
        used.map(|it| it.into_iter().collect())
    }

    /// When the store last heard of each session.
    pub async fn sessions_seen(&self) -> Result<BTreeMap<SessionId, Timestamp>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &SEEN, []))?;
        let seen = read(&rows, |row| {
            let id: Uuid = row.try_get(0)?;
            Ok((SessionId(id.as_u128()), Timestamp::from_millis(row.try_get(1)?)))
        });
        seen.map(|it| it.into_iter().collect())
    }
}

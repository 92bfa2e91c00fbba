//! Rebalance plans, kept for a while for all nodes. `batch/put.rs` applies them.

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{
    NewPlan, PLAN_LIFE, PLANS_MAX, PLANS_PER_CALLER, PlanId, PlanRow, Revision, StoreDown,
};
use evenbeat_core::time::Timestamp;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::rows::select_news;
use super::transaction::{Statement, Transaction, transact};
use super::views::{ask, limit, read};
use crate::store::columns::number;
use crate::store::query::PlacedRow;

/// Removes plans that are too old to be applied, and the one that is replaced.
static FORGET: Statement = Statement {
    sql: "DELETE FROM rebalance_plan WHERE id = $1 OR made_at <= now_ms() - $2",
    types: &[Type::UUID, Type::INT8],
};
static ADD: Statement = Statement {
    sql: "INSERT INTO rebalance_plan (id, caller, made_at, plan) VALUES ($1, $2, now_ms(), $3)",
    types: &[Type::UUID, Type::TEXT, Type::TEXT],
};
static KEEP_OF_CALLER: Statement = Statement {
    sql: "DELETE FROM rebalance_plan WHERE no IN (\
            SELECT no FROM rebalance_plan WHERE caller = $1 ORDER BY no DESC OFFSET $2)",
    types: &[Type::TEXT, Type::INT8],
};
static KEEP: Statement = Statement {
    sql: "DELETE FROM rebalance_plan WHERE no IN (SELECT no FROM rebalance_plan ORDER BY no DESC OFFSET $1)",
    types: &[Type::INT8],
};
static PLAN: Statement = Statement {
    sql: "SELECT caller, made_at, plan FROM rebalance_plan WHERE id = $1 AND now_ms() - $2 < made_at",
    types: &[Type::UUID, Type::INT8],
};
/// Removes a plan that can still be applied, so that it is applied only once.
pub(super) static TAKE: Statement = Statement {
    sql: "DELETE FROM rebalance_plan WHERE id = $1 AND now_ms() - $2 < made_at RETURNING no",
    types: &[Type::UUID, Type::INT8],
};

static PLACED: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_news!(),
        ", j.revision, CASE WHEN strpos(j.definition, '_hours\"') > 0 THEN j.definition END \
         FROM job j JOIN memory m ON m.job_id = j.id \
         WHERE $1 < j.key AND NOT j.is_deleted ORDER BY j.key LIMIT $2"
    ),
    types: &[Type::TEXT, Type::INT8],
};

impl PgStore {
    /// What a rebalance needs of jobs, by key, after one of them; removed ones left out.
    pub async fn placed_jobs(
        &self,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<Vec<PlacedRow>, StoreDown> {
        let after = after.map_or("", JobKey::as_str);
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &PLACED, [&after, &limit(most)]))?;
        read(&rows, |row| {
            let revision = Revision(number(row.try_get(34)?));
            Ok(PlacedRow::of(self.inner.reader.news(row)?, revision, row.try_get(35)?))
        })
    }

    /// Keeps a plan for a while. Only the last ones of a caller, and of all callers, are kept.
    pub async fn put_plan(&self, plan: &NewPlan) -> Result<(), StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| put_plan(&tx, plan))
    }

    /// A plan that can still be applied.
    pub async fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        transact!(self, ConnectionUse::Read, |tx| plan(&tx, id))
    }
}

async fn put_plan(tx: &Transaction, plan: &NewPlan) -> Result<(), PgError> {
    let (id, life) = (Uuid::from_u128(plan.id.0), PLAN_LIFE.as_millis());
    let (text, of_caller, of_all): (&str, _, _) = (&plan.text, limit(PLANS_PER_CALLER), limit(PLANS_MAX));
    tx.ready(&[&FORGET, &ADD, &KEEP_OF_CALLER, &KEEP]).await?;
    tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&FORGET, [&id, &life]),
        tx.query(&ADD, [&id, &plan.caller, &text]),
        tx.query(&KEEP_OF_CALLER, [&plan.caller, &of_caller]),
        tx.query(&KEEP, [&of_all]),
        tx.commit(),
    )?;
    Ok(())
}

async fn plan(tx: &Transaction, id: PlanId) -> Result<Option<PlanRow>, PgError> {
    let (uuid, life) = (Uuid::from_u128(id.0), PLAN_LIFE.as_millis());
    tx.ready(&[&PLAN]).await?;
    let ((), rows, ()) = tokio::try_join!(biased; tx.begin(), tx.query(&PLAN, [&uuid, &life]), tx.commit())?;
    let Some(row) = rows.first() else { return Ok(None) };
    let made_at = Timestamp::from_millis(row.try_get(1)?);
    let text: &str = row.try_get(2)?;
    Ok(Some(PlanRow { id, caller: row.try_get(0)?, made_at, text: text.into() }))
}

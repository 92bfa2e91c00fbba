//! Rebalance plans: kept for a while, and applied completely or not at all.

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{
    ApplyPlan, NewPlan, PLAN_LIFE, PLANS_MAX, PLANS_PER_CALLER, PlanAnswer, PlanId, PlanRow, PutAnswer,
    Revision, StoreDown,
};
use evenbeat_core::time::Timestamp;
use rusqlite::{OptionalExtension, Result, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows::Id;
use super::sql::memory_columns;
use super::write_tx::WriteTx;
use crate::store::columns::number;
use crate::store::query::PlacedRow;

impl WriteTx<'_> {
    pub(super) fn do_put_plan(&mut self, plan: &NewPlan) -> Result<()> {
        self.forget_plans()?;
        self.run("DELETE FROM rebalance_plan WHERE id = ?1", [Id::of(plan.id.0)])?;
        self.run(
            "INSERT INTO rebalance_plan (no, id, caller, made_at, plan)
             VALUES ((SELECT coalesce(max(no), 0) + 1 FROM rebalance_plan), ?1, ?2, ?3, ?4)",
            params![Id::of(plan.id.0), plan.caller, self.now.as_millis(), &*plan.text],
        )?;
        self.run(
            "DELETE FROM rebalance_plan WHERE no IN
             (SELECT no FROM rebalance_plan WHERE caller = ?1 ORDER BY no DESC LIMIT -1 OFFSET ?2)",
            params![plan.caller, limit(PLANS_PER_CALLER)],
        )?;
        self.run(
            "DELETE FROM rebalance_plan WHERE no IN
             (SELECT no FROM rebalance_plan ORDER BY no DESC LIMIT -1 OFFSET ?1)",
            [limit(PLANS_MAX)],
        )?;
        Ok(())
    }

    /// Removes plans that are too old to be applied.
    pub(super) fn forget_plans(&mut self) -> Result<()> {
        let before = (self.now - PLAN_LIFE).as_millis();
        self.run("DELETE FROM rebalance_plan WHERE made_at <= ?1", [before])?;
        Ok(())
    }

    pub(super) fn do_apply_plan(&mut self, plan: &ApplyPlan) -> Result<PlanAnswer> {
        if self.read.find_plan(plan.id, self.now)?.is_none() {
            return Ok(PlanAnswer::Gone);
        }
        self.run("SAVEPOINT rebalance", [])?;
        let (mut written, mut stale, mut is_whole) = (Vec::new(), Vec::new(), true);
        for put in &plan.puts {
            match self.do_put_job(put)? {
                PutAnswer::Put(row) => written.push(row),
                PutAnswer::Stale(row) => stale.push(row),
                PutAnswer::Gone | PutAnswer::Repeated(_) => is_whole = false,
            }
        }
        is_whole &= stale.is_empty();
        if is_whole {
            self.run("DELETE FROM rebalance_plan WHERE id = ?1", [Id::of(plan.id.0)])?;
        } else {
            self.run("ROLLBACK TO rebalance", [])?;
        }
        self.run("RELEASE rebalance", [])?;
        Ok(if is_whole { PlanAnswer::Applied(written) } else { PlanAnswer::Stale(stale) })
    }
}

impl ReadTx<'_> {
    /// What a rebalance needs of jobs, by key, after one of them; removed ones left out.
    pub fn placed_jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<PlacedRow>, StoreDown> {
        let sql = concat!(
            "SELECT j.id, j.key, j.terms, j.target, j.is_deleted, m.version, m.n_open, ",
            memory_columns!(),
            ", j.revision, CASE WHEN instr(j.definition, '_hours\"') THEN j.definition END
             FROM job j INDEXED BY job_by_key CROSS JOIN memory m ON m.job_id = j.id
             WHERE ?1 < j.key AND NOT j.is_deleted ORDER BY j.key LIMIT ?2"
        );
        let after = after.map_or("", JobKey::as_str);
        self.or_down(self.many(sql, params![after, limit(most)], |row| {
            let revision = Revision(number(row.get(34)?));
            let definition: Option<String> = row.get(35)?;
            Ok(PlacedRow::of(self.news(row)?, revision, definition.as_deref()))
        }))
    }

    /// A plan that can still be applied at this instant.
    pub(super) fn find_plan(&self, id: PlanId, now: Timestamp) -> Result<Option<PlanRow>> {
        let sql = "SELECT caller, made_at, plan FROM rebalance_plan WHERE id = ?1 AND ?2 < made_at";
        let since = (now - PLAN_LIFE).as_millis();
        self.one(sql, params![Id::of(id.0), since], |row| {
            let (caller, made_at, text): (_, _, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(PlanRow { id, caller, made_at: Timestamp::from_millis(made_at), text: text.into() })
        })
        .optional()
    }
}

//! Rebalance plans: made on one node, shown to a person, applied by any node (A8).

use std::fmt;
use std::sync::Arc;

use super::{JobRow, PutJob};
use crate::time::{Duration, Timestamp};

/// How long a plan can be applied, by the store's clock.
pub const PLAN_LIFE: Duration = Duration::from_hours(1);

/// How many plans are kept.
pub const PLANS_MAX: usize = 50;

/// How many plans are kept of one caller, so that no caller can push out the plans of others.
pub const PLANS_PER_CALLER: usize = 5;

/// The id of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanId(pub u128);

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
        write!(f, "{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
    }
}

/// A plan that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPlan {
    /// Its id.
    pub id: PlanId,
    /// Who requested it.
    pub caller: String,
    /// The plan, as its maker wrote it. The store does not read it.
    pub text: Arc<str>,
}

/// A plan as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRow {
    /// Its id.
    pub id: PlanId,
    /// Who requested it.
    pub caller: String,
    /// When it was stored, by the store's clock.
    pub made_at: Timestamp,
    /// The plan.
    pub text: Arc<str>,
}

/// A plan that is to be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyPlan {
    pub id: PlanId,
    /// The jobs as they are to be, each worked out from a version of its row.
    pub puts: Vec<PutJob>,
}

/// The answer to it.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanAnswer {
    /// All of its jobs were written, and the plan is gone. One row for each, in order.
    Applied(Vec<JobRow>),
    /// These jobs have changed since, or are gone and left out. Nothing was written, and the plan is kept.
    Stale(Vec<JobRow>),
    /// There is no such plan, or no longer.
    Gone,
}

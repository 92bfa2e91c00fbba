//! Jobs counted by condition, reason and status, all together and by pool.

use std::collections::BTreeMap;

use super::cause::AttentionCause;
use crate::condition::{Condition, Reason};
use crate::ids::Pool;
use crate::job::Status;

const N_CONDITIONS: usize = Condition::Error as usize + 1;
const N_REASONS: usize = Reason::ALL.len();
const N_CAUSES: usize = AttentionCause::ALL.len();
const N_STATUSES: usize = Status::Done as usize + 1;

/// How many jobs stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    conditions: [u32; N_CONDITIONS],
    reasons: [u32; N_REASONS],
    statuses: [u32; N_STATUSES],
    /// By cause: those that are late, and those at risk.
    late: [u32; N_CAUSES],
    at_risk: [u32; N_CAUSES],
}

/// What a job is counted by.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedBy {
    pub(super) status: Status,
    pub(super) reason: Option<Reason>,
    pub(super) cause: Option<AttentionCause>,
}

impl Counts {
    /// Tracked jobs in this condition.
    pub fn in_condition(&self, condition: Condition) -> u32 {
        count(&self.conditions, condition as usize)
    }

    /// Tracked jobs whose weightiest reason is this.
    pub fn with_reason(&self, reason: Reason) -> u32 {
        count(&self.reasons, reason as usize)
    }

    /// Jobs that do this.
    pub fn in_status(&self, status: Status) -> u32 {
        count(&self.statuses, status as usize)
    }

    /// Jobs that are late for this cause.
    pub fn late(&self, cause: AttentionCause) -> u32 {
        count(&self.late, cause as usize)
    }

    /// Jobs that are at risk for this cause.
    pub fn at_risk(&self, cause: AttentionCause) -> u32 {
        count(&self.at_risk, cause as usize)
    }

    /// Jobs whose condition counts.
    pub fn n_tracked(&self) -> u32 {
        self.conditions.iter().sum()
    }

    /// Jobs, tracked or not.
    pub fn n_jobs(&self) -> u32 {
        self.statuses.iter().sum()
    }

    fn change(&mut self, by: CountedBy, change: fn(&mut u32)) {
        let CountedBy { status, reason, cause } = by;
        let by_cause = match reason.map(Reason::condition) {
            Some(Condition::Error) => Some(&mut self.late),
            Some(Condition::Warning) => Some(&mut self.at_risk),
            _ => None,
        };
        by_cause.zip(cause).and_then(|(counts, cause)| counts.get_mut(cause as usize)).map(change);
        let condition = reason.and_then(|it| self.conditions.get_mut(it.condition() as usize));
        condition.map(change);
        reason.and_then(|it| self.reasons.get_mut(it as usize)).map(change);
        self.statuses.get_mut(status as usize).map(change);
    }
}

fn count(counts: &[u32], idx: usize) -> u32 {
    counts.get(idx).copied().unwrap_or(0)
}

/// The number of a pool in a tally: a quarter of what its name would take in each of a million jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolIdx(u32);

/// All counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    all: Counts,
    idx_by_pool: BTreeMap<Pool, PoolIdx>,
    /// By number; none where it is free.
    pools: Vec<Option<(Pool, Counts)>>,
    free: Vec<PoolIdx>,
}

impl Tally {
    pub(super) fn all(&self) -> &Counts {
        &self.all
    }

    pub(super) fn by_pool(&self) -> impl Iterator<Item = (&Pool, &Counts)> {
        let numbered = self.idx_by_pool.values().filter_map(|idx| self.pools.get(idx.0 as usize)?.as_ref());
        numbered.map(|(pool, counts)| (pool, counts))
    }

    /// The counts of a pool.
    pub(super) fn of_pool(&self, pool: &Pool) -> Option<&Counts> {
        let idx = self.idx_by_pool.get(pool)?;
        self.pools.get(idx.0 as usize)?.as_ref().map(|(_, counts)| counts)
    }

    /// The number of a pool.
    pub(super) fn idx_of(&self, pool: &Pool) -> Option<PoolIdx> {
        self.idx_by_pool.get(pool).copied()
    }

    /// Counts a job, and returns the number of its pool.
    pub(super) fn add(&mut self, pool: &Pool, by: CountedBy) -> PoolIdx {
        let idx = self.idx_by_pool.get(pool).copied().unwrap_or_else(|| self.number(pool));
        self.change(idx, by, |count| *count += 1);
        idx
    }

    /// Stops counting a job. A pool without jobs is forgotten.
    pub(super) fn remove(&mut self, idx: PoolIdx, by: CountedBy) {
        self.change(idx, by, |count| *count = count.saturating_sub(1));
        let Some(slot) = self.pools.get_mut(idx.0 as usize) else { return };
        if let Some((pool, _)) = slot.take_if(|(_, counts)| *counts == Counts::default()) {
            self.idx_by_pool.remove(&pool);
            self.free.push(idx);
        }
    }

    fn number(&mut self, pool: &Pool) -> PoolIdx {
        let idx = self.free.pop().unwrap_or_else(|| {
            self.pools.push(None);
            // There are no more pools than jobs, and jobs are counted in as many bits.
            PoolIdx(u32::try_from(self.pools.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(slot) = self.pools.get_mut(idx.0 as usize) {
            *slot = Some((pool.clone(), Counts::default()));
        }
        self.idx_by_pool.insert(pool.clone(), idx);
        idx
    }

    fn change(&mut self, idx: PoolIdx, by: CountedBy, change: fn(&mut u32)) {
        self.all.change(by, change);
        if let Some(Some((_, counts))) = self.pools.get_mut(idx.0 as usize) {
            counts.change(by, change);
        }
    }
}

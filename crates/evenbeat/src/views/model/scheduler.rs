//! How even the fleet is, and its rebalance: the scheduler's own endpoints (G2).

use std::collections::BTreeMap;

use evenbeat_core::distribution::Distribution;
use evenbeat_core::placement::{Kept, Move};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::KeptReasonWord;
use super::{Instant, Text, rounded};
use crate::intake::{RebalanceResult, StoredPlan};

/// Most jobs that an answer about a rebalance lists. Their number is always given.
const LISTED_MAX: usize = 10_000;

/// How the starts of the next hours are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Distribution)]
pub struct DistributionView {
    /// Length of the window in hours. It begins with the current slot.
    pub window_hours: u32,
    /// Width of a slot in minutes.
    pub slot_minutes: u16,
    /// Jobs with a start in the window.
    pub total_jobs: usize,
    /// Starts in the window.
    pub total_runs: u64,
    /// Starts by hour.
    pub hourly_distribution: Vec<HourCount>,
    /// How even the starts are, from 0 to 1.
    pub distribution_score: f64,
    /// The busiest hour; the earliest of several.
    pub peak_hour: usize,
    /// Starts in the busiest hour.
    pub peak_count: u32,
    /// What to do about it.
    #[schema(value_type = String)]
    pub suggestion: Text,
    /// When the window begins.
    pub start: Instant,
    /// Starts by slot.
    pub slots: Vec<SlotCount>,
    /// Starts in the busiest slot.
    pub peak_slot_count: u32,
    /// Starts in the busiest minute.
    pub peak_minute_count: u32,
    /// Jobs whose next occurrence has passed.
    pub overdue: usize,
    /// Jobs whose next occurrence is after the window.
    pub beyond: usize,
}

/// The starts of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HourCount {
    /// The hour, counted from now.
    pub hour: usize,
    /// Number of starts.
    pub job_count: u32,
    /// When it begins.
    pub start: Instant,
}

/// The starts of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotCount {
    /// When it begins.
    pub start: Instant,
    /// Number of starts.
    pub count: u32,
}

impl DistributionView {
    /// The length of the window in hours.
    pub fn of(it: &Distribution, window_hours: u32) -> DistributionView {
        let (peak_hour, peak_count) = it.peak_hour();
        let hour = |(hour, job_count): (usize, &u32)| HourCount {
            hour,
            job_count: *job_count,
            start: it.hour_start(hour).into(),
        };
        let slot =
            |(idx, count): (usize, &u32)| SlotCount { start: it.slot_start(idx).into(), count: *count };
        DistributionView {
            window_hours,
            slot_minutes: it.width.as_mins(),
            total_jobs: it.n_jobs,
            total_runs: it.n_runs,
            hourly_distribution: it.hours.iter().enumerate().map(hour).collect(),
            distribution_score: rounded(it.score()),
            peak_hour,
            peak_count,
            suggestion: it.suggestion().into(),
            start: it.window.start().into(),
            slots: it.slots.iter().enumerate().map(slot).collect(),
            peak_slot_count: it.peak_slot().1,
            peak_minute_count: it.peak_minute(),
            overdue: it.n_overdue,
            beyond: it.n_beyond,
        }
    }
}

/// What a rebalance would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalancePreview {
    /// The id of the plan. Send it to apply exactly this plan.
    pub plan_id: String,
    /// Jobs that would move.
    pub would_move: usize,
    /// Jobs that may not be moved.
    pub would_skip: usize,
    /// Jobs that stay where they are.
    pub unchanged: usize,
    /// Whether no further move would help. If false, the plan reached a limit of time or size: apply it, then make
    /// another.
    pub is_complete: bool,
    /// How even the next 24 hours are, from 0 to 1.
    pub current_score: f64,
    /// How even they would be.
    pub projected_score: f64,
    /// The moves, the first 10,000 of them by key.
    pub preview: Vec<PreviewMove>,
    /// Jobs that would not be moved, and why: the first 10,000 of them by key.
    pub skipped: Vec<SkippedJob>,
    /// How many jobs would not be moved, by reason.
    pub skipped_by_reason: BTreeMap<String, usize>,
    /// Starts in the busiest slot of the next 24 hours.
    pub current_peak: u32,
    /// What that would be.
    pub projected_peak: u32,
}

/// A proposed move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreviewMove {
    /// The key of the job.
    pub job_id: String,
    /// Its next occurrence.
    pub current_time: Instant,
    /// Its next occurrence after the move.
    pub proposed_time: Instant,
    /// Seconds from its last start to that occurrence.
    pub gap_seconds: f64,
}

/// A job that is not moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedJob {
    /// The key of the job.
    pub job_id: String,
    /// Why it is not moved.
    #[schema(value_type = KeptReasonWord)]
    pub reason: Text,
}

impl From<&Kept> for SkippedJob {
    fn from(kept: &Kept) -> SkippedJob {
        SkippedJob { job_id: kept.key.to_string(), reason: kept.reason.as_str().into() }
    }
}

impl From<&Move> for PreviewMove {
    fn from(it: &Move) -> PreviewMove {
        PreviewMove {
            job_id: it.key.to_string(),
            current_time: it.old_time.into(),
            proposed_time: it.new_time.into(),
            gap_seconds: super::seconds(it.gap),
        }
    }
}

impl From<&StoredPlan> for RebalancePreview {
    fn from(StoredPlan { id, plan }: &StoredPlan) -> RebalancePreview {
        let mut skipped_by_reason = BTreeMap::new();
        for kept in &plan.kept {
            *skipped_by_reason.entry(kept.reason.as_str().to_owned()).or_default() += 1;
        }
        RebalancePreview {
            plan_id: id.to_string(),
            would_move: plan.moves.len(),
            would_skip: plan.kept.len(),
            unchanged: plan.n_unchanged,
            is_complete: plan.is_complete,
            current_score: rounded(plan.before.score()),
            projected_score: rounded(plan.after.score()),
            preview: plan.moves.iter().take(LISTED_MAX).map(Into::into).collect(),
            skipped: plan.kept.iter().take(LISTED_MAX).map(Into::into).collect(),
            skipped_by_reason,
            current_peak: plan.before.peak_slot().1,
            projected_peak: plan.after.peak_slot().1,
        }
    }
}

/// How to preview a rebalance: there is nothing to choose yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {}

/// Which plan to apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RebalanceRequest {
    /// The plan of a preview. Without it, a plan is made and applied in one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
}

/// What a rebalance did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RebalanceResult)]
pub struct RebalanceAnswer {
    /// Number of jobs that were moved.
    pub moved_count: usize,
    /// Number of jobs that were not moved.
    pub skipped_count: usize,
    /// The moves, the first 10,000 of them by key.
    pub moved: Vec<MovedJob>,
    /// Jobs that were not moved, and why: the first 10,000 of them.
    pub skipped: Vec<SkippedJob>,
    /// How even the next 24 hours are now, from 0 to 1.
    pub new_distribution_score: f64,
    /// How even they were.
    pub old_distribution_score: f64,
}

/// A move that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MovedJob {
    /// The key of the job.
    pub job_id: String,
    /// Its next occurrence before the move; null if it had none.
    #[schema(required = true)]
    pub old_time: Option<Instant>,
    /// Its next occurrence now.
    pub new_time: Instant,
}

impl From<&RebalanceResult> for RebalanceAnswer {
    fn from(it: &RebalanceResult) -> RebalanceAnswer {
        let moved = |it: &Move| MovedJob {
            job_id: it.key.to_string(),
            old_time: Some(it.old_time.into()),
            new_time: it.new_time.into(),
        };
        RebalanceAnswer {
            moved_count: it.moved.len(),
            skipped_count: it.skipped.len(),
            moved: it.moved.iter().take(LISTED_MAX).map(moved).collect(),
            skipped: it.skipped.iter().take(LISTED_MAX).map(Into::into).collect(),
            new_distribution_score: rounded(it.new_score),
            old_distribution_score: rounded(it.old_score),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenbeat_core::placement::{Balance, KeptReason, plan_rebalance};
    use evenbeat_core::store::PlanId;

    use super::*;

    #[test]
    fn long_lists_are_cut_and_still_counted() {
        let now = "2026-02-04T10:00:00Z".parse().unwrap();
        let mut plan = plan_rebalance(Balance::default(), now, &[]);
        let kept = |no: usize| Kept {
            key: format!("job-{no}").parse().unwrap(),
            reason: if no.is_multiple_of(10) { KeptReason::Paused } else { KeptReason::JobRunning },
        };
        plan.kept = (0..=LISTED_MAX).map(kept).collect();
        let preview = RebalancePreview::from(&StoredPlan { id: PlanId(1), plan: Arc::new(plan) });
        assert_eq!((preview.would_skip, preview.skipped.len()), (10_001, 10_000));
        let by_reason: Vec<(&str, usize)> =
            preview.skipped_by_reason.iter().map(|(reason, n)| (reason.as_str(), *n)).collect();
        assert_eq!(by_reason, [("job_running", 9_000), ("paused", 1_001)]);
    }
}

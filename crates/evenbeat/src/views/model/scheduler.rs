//! How even the fleet is, and its rebalance: the scheduler's own endpoints (G2).

use evenbeat_core::distribution::Distribution;
use evenbeat_core::placement::{Kept, Move};
use serde::{Deserialize, Serialize};

use super::{Instant, Text, rounded};
use crate::intake::{RebalanceResult, StoredPlan};

/// How the starts of the next hours are spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionView {
    /// How many hours are looked at, from the slot that now lies in.
    pub window_hours: u32,
    /// How wide a slot is.
    pub slot_minutes: u16,
    /// Jobs with a start in the window.
    pub total_jobs: usize,
    /// Starts in the window.
    pub total_runs: u64,
    /// Starts by hour from now.
    pub hourly_distribution: Vec<HourCount>,
    /// How even it is, from 0 to 1.
    pub distribution_score: f64,
    /// The busiest hour; the earliest of several.
    pub peak_hour: usize,
    /// Its starts.
    pub peak_count: u32,
    /// What to do about it.
    pub suggestion: Text,
    /// When the window begins.
    pub start: Instant,
    /// Starts by slot.
    pub slots: Vec<SlotCount>,
    /// The starts of the busiest slot.
    pub peak_slot_count: u32,
    /// The starts of the busiest minute.
    pub peak_minute_count: u32,
    /// Jobs whose next occurrence has passed.
    pub overdue: usize,
    /// Jobs whose next occurrence lies after the window.
    pub beyond: usize,
}

/// The starts of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HourCount {
    /// Which, from now.
    pub hour: usize,
    /// How many starts.
    pub job_count: u32,
    /// When it begins.
    pub start: Instant,
}

/// The starts of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotCount {
    /// When it begins.
    pub start: Instant,
    /// How many starts.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebalancePreview {
    /// The plan, to be applied as it is.
    pub plan_id: String,
    /// Jobs that would move.
    pub would_move: usize,
    /// Jobs that may not be moved.
    pub would_skip: usize,
    /// Jobs that are well where they are.
    pub unchanged: usize,
    /// How even the next day is.
    pub current_score: f64,
    /// How even it would be.
    pub projected_score: f64,
    /// The moves.
    pub preview: Vec<PreviewMove>,
    /// Who would not be moved, and why.
    pub skipped: Vec<SkippedJob>,
    /// The starts of the busiest slot of the next day.
    pub current_peak: u32,
    /// What they would be.
    pub projected_peak: u32,
}

/// A move that is proposed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviewMove {
    /// Which job.
    pub job_id: String,
    /// Its next occurrence.
    pub current_time: Instant,
    /// What that would be.
    pub proposed_time: Instant,
    /// How long it would be from its last start to that.
    pub gap_seconds: f64,
}

/// A job that is not moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedJob {
    /// Which.
    pub job_id: String,
    /// `job_running`, `protection_window`, `placement_cooldown`, `pinned_schedule`, `paused` or `waiting`.
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
        RebalancePreview {
            plan_id: id.to_string(),
            would_move: plan.moves.len(),
            would_skip: plan.kept.len(),
            unchanged: plan.n_unchanged,
            current_score: rounded(plan.before.score()),
            projected_score: rounded(plan.after.score()),
            preview: plan.moves.iter().map(Into::into).collect(),
            skipped: plan.kept.iter().map(Into::into).collect(),
            current_peak: plan.before.peak_slot().1,
            projected_peak: plan.after.peak_slot().1,
        }
    }
}

/// Which plan is to be applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RebalanceRequest {
    /// Exactly this one, or a conflict; without it one is made and applied in one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
}

/// What a rebalance did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebalanceAnswer {
    /// The moves.
    pub moved: Vec<MovedJob>,
    /// Who was not moved, and why.
    pub skipped: Vec<SkippedJob>,
    /// How even the next day is now.
    pub new_distribution_score: f64,
    /// How even it was.
    pub old_distribution_score: f64,
}

/// A move that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedJob {
    /// Which job.
    pub job_id: String,
    /// What its next occurrence was.
    pub old_time: Option<Instant>,
    /// What it is.
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
            moved: it.moved.iter().map(moved).collect(),
            skipped: it.skipped.iter().map(Into::into).collect(),
            new_distribution_score: rounded(it.new_score),
            old_distribution_score: rounded(it.old_score),
        }
    }
}

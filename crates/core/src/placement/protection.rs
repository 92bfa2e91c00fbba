//! Jobs that a rebalance leaves alone, and why (A9).

use std::fmt;

use crate::ids::JobKey;
use crate::job::{JobState, Terms};
use crate::schedule::Schedule;
use crate::time::{Duration, Timestamp};
use crate::urgency;

/// A job this near to its next occurrence is not moved, however long its interval.
pub const PROTECTION_MAX: Duration = Duration::from_mins(30);

/// A job that was placed or moved less than this ago is not moved again.
pub const MOVE_COOLDOWN: Duration = Duration::from_hours(1);

/// Why a job stays where it is. The first reason that holds is reported, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptReason {
    /// A run is going on.
    JobRunning,
    /// It is due within a quarter of its interval, at most [`PROTECTION_MAX`]; or overdue.
    ProtectionWindow,
    /// It was placed or moved less than [`MOVE_COOLDOWN`] ago.
    PlacementCooldown,
    /// Its time was chosen by its author, or follows from its last run.
    PinnedSchedule,
    /// It carries no load while it is paused.
    Paused,
    /// A retry or a blackout decides its start.
    Waiting,
}

impl KeptReason {
    /// All of them, in the order in which they are asked.
    pub const ALL: [KeptReason; 6] = [
        KeptReason::JobRunning,
        KeptReason::ProtectionWindow,
        KeptReason::PlacementCooldown,
        KeptReason::PinnedSchedule,
        KeptReason::Paused,
        KeptReason::Waiting,
    ];

    /// The code on the wire and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            KeptReason::JobRunning => "job_running",
            KeptReason::ProtectionWindow => "protection_window",
            KeptReason::PlacementCooldown => "placement_cooldown",
            KeptReason::PinnedSchedule => "pinned_schedule",
            KeptReason::Paused => "paused",
            KeptReason::Waiting => "waiting",
        }
    }

    /// Why a placed job with a pending occurrence must not be moved now; none if it may.
    pub(crate) fn of(
        key: &JobKey,
        terms: &Terms,
        state: &JobState,
        next_run_at: Timestamp,
        now: Timestamp,
    ) -> Option<KeptReason> {
        if state.owner.is_some() {
            return Some(KeptReason::JobRunning);
        }
        let protected_for = match &terms.schedule {
            Schedule::Every { interval, .. } => {
                Duration::from_millis(interval.as_millis() / 4).min(PROTECTION_MAX)
            }
            _ => PROTECTION_MAX,
        };
        if next_run_at <= now + protected_for {
            return Some(KeptReason::ProtectionWindow);
        }
        if state.placement.as_ref().is_some_and(|placement| now < placement.placed_at + MOVE_COOLDOWN) {
            return Some(KeptReason::PlacementCooldown);
        }
        if !terms.schedule.is_movable() {
            return Some(KeptReason::PinnedSchedule);
        }
        if state.pause.is_some() || !terms.enabled {
            return Some(KeptReason::Paused);
        }
        // What will not start at its occurrence is decided elsewhere.
        (urgency::can_start_by(key, terms, state, now) != Some(next_run_at)).then_some(KeptReason::Waiting)
    }
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

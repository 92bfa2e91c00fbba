//! What happened, as values: the core logs nothing, it returns notices.
//!
//! Whoever receives one turns it into a log line, a metric or an event. The sentences and the names
//! are fixed here, so that they can be searched for, counted and alerted on, and mean the same
//! everywhere (A14).

use std::fmt;

use crate::ids::{JobKey, RunId, SessionId};
use crate::placement::{KeptReason, RebalancePlan, Spot};
use crate::repair::Fault;
use crate::slot::Slot;
use crate::time::Timestamp;

/// The names of the metrics about placement and balance.
pub mod metric {
    /// Gauge: evenness of the next day, from 0 to 1.
    pub const DISTRIBUTION_SCORE: &str = "scheduler_distribution_score";
    /// Gauge by `hour`, counted from now: starts in that hour.
    pub const SLOT_JOB_COUNT: &str = "scheduler_slot_job_count";
    /// Gauge: starts in the busiest hour.
    pub const PEAK_HOUR_JOB_COUNT: &str = "scheduler_peak_hour_job_count";
    /// Gauge: jobs that the last rebalance moved.
    pub const REBALANCE_JOBS_MOVED: &str = "scheduler_rebalance_jobs_moved";
    /// Gauge: jobs that the last rebalance left alone for a reason.
    pub const REBALANCE_JOBS_SKIPPED: &str = "scheduler_rebalance_jobs_skipped";
    /// Counter by `type` ([`super::PlacementKind`]): placements.
    pub const PLACEMENTS_TOTAL: &str = "scheduler_placements_total";
    /// Counter: rebalances.
    pub const REBALANCE_TOTAL: &str = "scheduler_rebalance_total";
    /// Histogram: what one placement takes.
    pub const PLACEMENT_DURATION_SECONDS: &str = "scheduler_placement_duration_seconds";
}

/// Why a job was placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementKind {
    /// It is new, was resumed, or has another interval.
    New,
    /// Its next occurrence was set, in its rhythm.
    Reschedule,
    /// An operator levelled the fleet.
    Rebalance,
}

impl PlacementKind {
    /// The label of the metric.
    pub fn as_str(self) -> &'static str {
        match self {
            PlacementKind::New => "new",
            PlacementKind::Reschedule => "reschedule",
            PlacementKind::Rebalance => "rebalance",
        }
    }
}

/// How much attention a notice deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the record.
    Info,
    /// Worth a look.
    Warn,
    /// Something went wrong.
    Error,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The load of the fleet was worked out anew.
    LedgerRebuilt {
        /// Jobs in it.
        n_jobs: usize,
        /// Evenness of the next day.
        score: f64,
    },
    /// A job got its place.
    Placed {
        /// Which.
        key: JobKey,
        /// Where its first occurrence lies.
        slot: Slot,
        /// What that slot carried before.
        load: u32,
    },
    /// A job's next occurrence was set, in its rhythm.
    Rescheduled {
        /// Which.
        key: JobKey,
        /// Where the last one lay.
        old_slot: Slot,
        /// Where the next one lies.
        new_slot: Slot,
    },
    /// A rebalance was applied.
    Rebalanced {
        /// Jobs that moved.
        n_moved: usize,
        /// Jobs that were left alone for a reason.
        n_skipped: usize,
        /// Evenness before.
        old_score: f64,
        /// Evenness after.
        new_score: f64,
    },
    /// This node's session was fenced off; its runs are being killed.
    SessionLost {
        /// How many of them.
        n_runs: usize,
    },
    /// This node fenced a silent session off.
    SessionFenced {
        /// Which.
        session: SessionId,
    },
    /// A run was found inside a blackout, and is being ended.
    EndedByBlackout {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
    },
    /// A run took longer than it may, and is being ended.
    TookTooLong {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
    },
    /// A run takes longer than expected.
    Overrunning {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
    },
    /// No worker has started a run that was published, and it is given up.
    NotTakenUp {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
    },
    /// An occurrence came due while the job runs.
    SkippedByOverlap {
        /// Of which job.
        key: JobKey,
        /// When.
        due_at: Timestamp,
    },
    /// A job will not run until somebody resumes it.
    PausedBySystem {
        /// Which.
        key: JobKey,
        /// Why.
        reason: String,
    },
    /// What was stored as a job's next run could not be.
    Mended {
        /// Which.
        key: JobKey,
        /// What was wrong.
        fault: Fault,
        /// Its next run now.
        next: Option<Timestamp>,
    },
    /// A clock was ahead and has been set right: jobs it had stamped go on from now.
    ClockWasAhead {
        /// How many.
        n_jobs: usize,
        /// The latest instant that was stored as past.
        latest: Option<Timestamp>,
        /// One of them.
        example: JobKey,
    },
    /// What is stored as the next run cannot be, in so many jobs that nothing is done about it.
    TooManyFaults {
        /// How many jobs.
        n_faults: usize,
        /// Of how many.
        n_jobs: usize,
        /// One of them.
        example: JobKey,
    },
    /// A rebalance left a job alone.
    SkippedByRebalance {
        /// Which.
        key: JobKey,
        /// Why.
        reason: KeptReason,
    },
}

impl Notice {
    /// That a job got its place.
    pub fn placed(key: &JobKey, spot: &Spot) -> Notice {
        Notice::Placed { key: key.clone(), slot: spot.slot, load: spot.load }
    }

    /// What the application of a plan tells: the whole, and each job that was left alone.
    pub fn rebalanced(plan: &RebalancePlan) -> Vec<Notice> {
        let skipped = plan
            .kept
            .iter()
            .map(|kept| Notice::SkippedByRebalance { key: kept.key.clone(), reason: kept.reason });
        let done = Notice::Rebalanced {
            n_moved: plan.moves.len(),
            n_skipped: plan.kept.len(),
            old_score: plan.before.score(),
            new_score: plan.after.score(),
        };
        skipped.chain([done]).collect()
    }

    /// The sentence, which never varies; the facts are [fields](Notice::fields).
    pub fn sentence(&self) -> &'static str {
        match self {
            Notice::LedgerRebuilt { .. } => "bucket map rebuilt",
            Notice::Placed { .. } => "placed new job",
            Notice::Rescheduled { .. } => "rescheduled job (rhythm preserved)",
            Notice::Rebalanced { .. } => "full rebalance completed",
            Notice::SkippedByRebalance { .. } => "job skipped during rebalance",
            Notice::SessionLost { .. } => "session lost, killing its runs",
            Notice::SessionFenced { .. } => "silent session fenced off",
            Notice::EndedByBlackout { .. } => "run ended by a blackout",
            Notice::TookTooLong { .. } => "run took longer than allowed",
            Notice::Overrunning { .. } => "run takes longer than expected",
            Notice::NotTakenUp { .. } => "no worker has started the run",
            Notice::SkippedByOverlap { .. } => "occurrence skipped, the job is running",
            Notice::PausedBySystem { .. } => "job paused by the system",
            Notice::Mended { .. } => "stored next run was wrong, job placed afresh",
            Notice::ClockWasAhead { .. } => "clock was ahead, jobs placed again",
            Notice::TooManyFaults { .. } => {
                "stored next runs are wrong in many jobs: look at the clock and the store, then `evenbeat job resume`"
            }
        }
    }

    /// How much attention it deserves.
    pub fn level(&self) -> Level {
        match self {
            Notice::SkippedByRebalance { .. }
            | Notice::SessionFenced { .. }
            | Notice::SkippedByOverlap { .. }
            | Notice::Mended { .. }
            | Notice::ClockWasAhead { .. }
            | Notice::PausedBySystem { .. } => Level::Warn,
            Notice::SessionLost { .. }
            | Notice::TooManyFaults { .. }
            | Notice::EndedByBlackout { .. }
            | Notice::TookTooLong { .. }
            | Notice::NotTakenUp { .. }
            | Notice::Overrunning { .. } => Level::Error,
            Notice::LedgerRebuilt { .. }
            | Notice::Placed { .. }
            | Notice::Rescheduled { .. }
            | Notice::Rebalanced { .. } => Level::Info,
        }
    }

    /// The facts, by the names that logs and events use.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let slot = |it: &Slot| it.key().to_string();
        match self {
            Notice::LedgerRebuilt { n_jobs, score } => {
                vec![("job_count", n_jobs.to_string()), ("distribution_score", format!("{score:.3}"))]
            }
            Notice::Placed { key, slot: at, load } => {
                vec![("job_id", key.to_string()), ("slot", slot(at)), ("load", load.to_string())]
            }
            Notice::Rescheduled { key, old_slot, new_slot } => {
                vec![("job_id", key.to_string()), ("old_slot", slot(old_slot)), ("new_slot", slot(new_slot))]
            }
            Notice::Rebalanced { n_moved, n_skipped, old_score, new_score } => vec![
                ("moved", n_moved.to_string()),
                ("skipped", n_skipped.to_string()),
                ("old_score", format!("{old_score:.3}")),
                ("new_score", format!("{new_score:.3}")),
            ],
            Notice::SkippedByRebalance { key, reason } => {
                vec![("job_id", key.to_string()), ("reason", reason.to_string())]
            }
            Notice::SessionLost { n_runs } => vec![("runs", n_runs.to_string())],
            Notice::SessionFenced { session } => vec![("session", session.to_string())],
            Notice::EndedByBlackout { key, run }
            | Notice::TookTooLong { key, run }
            | Notice::NotTakenUp { key, run }
            | Notice::Overrunning { key, run } => {
                vec![("job_id", key.to_string()), ("run", run.to_string())]
            }
            Notice::SkippedByOverlap { key, due_at } => {
                vec![("job_id", key.to_string()), ("due_at", due_at.to_string())]
            }
            Notice::PausedBySystem { key, reason } => {
                vec![("job_id", key.to_string()), ("reason", reason.clone())]
            }
            Notice::Mended { key, fault, next } => vec![
                ("job_id", key.to_string()),
                ("fault", fault.to_string()),
                ("next_run_at", next.map_or_else(|| "none".to_owned(), |at| at.to_string())),
            ],
            Notice::ClockWasAhead { n_jobs, latest, example } => vec![
                ("job_count", n_jobs.to_string()),
                ("latest", latest.map_or_else(|| "none".to_owned(), |at| at.to_string())),
                ("job_id", example.to_string()),
            ],
            Notice::TooManyFaults { n_faults, n_jobs, example } => vec![
                ("faults", n_faults.to_string()),
                ("job_count", n_jobs.to_string()),
                ("job_id", example.to_string()),
            ],
        }
    }
}

/// As one line, for people: the sentence and its facts.
impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())?;
        self.fields().iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sample::{instant, job, placed};
    use crate::placement::{Balance, Ledger, plan_rebalance};
    use crate::slot::SlotWidth;

    #[test]
    fn sentences_are_fixed_and_facts_are_fields() {
        let job = job("every 6h");
        let ledger = Ledger::new(Balance::default(), instant("10:00"));
        let state = placed(&job, "12:00");
        let (_, spot) = ledger.place(&job, &state, instant("10:00")).unwrap();
        let slot = Slot::of(spot.at, SlotWidth::DEFAULT).key();
        assert_eq!(
            Notice::placed(&job.key, &spot).to_string(),
            format!("placed new job job_id=sample slot={slot} load=0")
        );
        assert_eq!(
            Notice::LedgerRebuilt { n_jobs: 3, score: 0.9871 }.to_string(),
            "bucket map rebuilt job_count=3 distribution_score=0.987"
        );
        let slot = |time| Slot::of(instant(time), SlotWidth::DEFAULT);
        let rescheduled =
            Notice::Rescheduled { key: job.key.clone(), old_slot: slot("10:00"), new_slot: slot("16:00") };
        assert_eq!(
            rescheduled.to_string(),
            "rescheduled job (rhythm preserved) job_id=sample old_slot=1966888 new_slot=1966912"
        );
    }

    #[test]
    fn a_rebalance_tells_who_was_left_alone_and_why() {
        let job = job("cron 0 * * * *");
        let state = placed(&job, "00:00");
        let plan = plan_rebalance(Balance::default(), instant("02:00"), &[(&job, &state)]);
        let told: Vec<(Level, String)> =
            Notice::rebalanced(&plan).iter().map(|it| (it.level(), it.to_string())).collect();
        assert_eq!(
            told,
            [
                (
                    Level::Warn,
                    "job skipped during rebalance job_id=sample reason=protection_window".to_owned()
                ),
                (
                    Level::Info,
                    format!(
                        "full rebalance completed moved=0 skipped=1 old_score={0:.3} new_score={0:.3}",
                        plan.before.score()
                    )
                ),
            ]
        );
        assert_eq!(PlacementKind::Reschedule.as_str(), "reschedule");
    }
}

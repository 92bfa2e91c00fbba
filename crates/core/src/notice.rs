//! What happened, as values: the core logs nothing, it returns notices.
//!
//! Whoever receives one turns it into a log line, a metric or an event. The sentences and the names
//! are fixed here, so that they can be searched for, counted and alerted on, and mean the same
//! everywhere (A14).

use std::fmt;

use crate::ids::{JobKey, NodeName, RunId, SessionId};
use crate::job::RunEnd;
use crate::occurrence::{Record, RecordKind};
use crate::placement::{KeptReason, RebalancePlan, Spot};
use crate::repair::Fault;
use crate::run::{Outcome, RunReport};
use crate::slot::SlotWidth;
use crate::time::{Duration, Timestamp};

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
    /// For whoever looks for the details: another notice tells what came of it.
    Debug,
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
        /// The start of the slot in which its first occurrence lies.
        slot: Timestamp,
        /// What that slot carried before.
        load: u32,
    },
    /// A job's next occurrence was set, in its rhythm.
    Rescheduled {
        /// Which.
        key: JobKey,
        /// The start of the slot in which the last one lay.
        old_slot: Timestamp,
        /// The start of the slot in which the next one lies.
        new_slot: Timestamp,
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
    /// This node fenced a silent session off, so that its runs can be taken over.
    SessionFenced {
        /// Which.
        session: SessionId,
        /// Of which node, as far as this one knows.
        node: Option<NodeName>,
    },
    /// This process took over runs that an earlier one had left.
    RunsAdopted {
        /// How many.
        n_runs: usize,
    },
    /// A node was told to take no new runs, or to take them again.
    DrainChanged {
        /// Which.
        node: NodeName,
        /// Whether it takes nothing new from now on.
        is_draining: bool,
        /// Who said so.
        actor: String,
    },
    /// A run is over and did not succeed. Runs that a person cancelled are not told of here.
    RunFailed {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// What its process returned, if it ended by itself.
        exit_code: Option<i32>,
        /// From its start to its end.
        took: Duration,
        /// What it said about it.
        error: Option<String>,
    },
    /// Occurrences got no run of their own.
    NotRun {
        /// Of which job.
        key: JobKey,
        /// Which occurrences, and why.
        record: Record,
    },
    /// What is stored of a job cannot be read: it does not run until somebody edits it.
    Disabled {
        /// Which.
        key: JobKey,
        /// Why.
        reason: String,
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
    pub fn placed(key: &JobKey, spot: &Spot, width: SlotWidth) -> Notice {
        Notice::Placed { key: key.clone(), slot: spot.slot.start(width), load: spot.load }
    }

    /// That a run is over and did not succeed; none if it did, or if a person ended it.
    pub fn of_end(key: &JobKey, end: &RunEnd, report: Option<&RunReport>) -> Option<Notice> {
        let is_told = match end.outcome {
            Outcome::Failed | Outcome::TimedOut | Outcome::Blackout | Outcome::Lost | Outcome::Unknown => {
                true
            }
            Outcome::Succeeded | Outcome::Cancelled | Outcome::Superseded => false,
        };
        is_told.then(|| Notice::RunFailed {
            key: key.clone(),
            run: end.run,
            outcome: end.outcome,
            exit_code: end.exit_code,
            took: (end.ended_at - end.started_at).max(Duration::ZERO),
            error: report.and_then(|report| report.error.clone()),
        })
    }

    /// What goes on record about occurrences without a run.
    pub fn of_records(key: &JobKey, records: &[Record]) -> Vec<Notice> {
        records.iter().map(|record| Notice::NotRun { key: key.clone(), record: *record }).collect()
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
            Notice::SessionFenced { .. } => "silent node fenced off, taking over its runs",
            Notice::RunsAdopted { .. } => "runs adopted",
            Notice::DrainChanged { is_draining: true, .. } => "node draining",
            Notice::DrainChanged { is_draining: false, .. } => "node no longer draining",
            Notice::RunFailed { .. } => "run failed",
            Notice::NotRun { record, .. } => match record.what {
                RecordKind::SkippedOverlap => "occurrences skipped",
                RecordKind::MissedLate
                | RecordKind::MissedBackoff
                | RecordKind::MissedPaused
                | RecordKind::MissedReplaced => "occurrences missed",
            },
            Notice::Disabled { .. } => "job disabled, its definition cannot be read",
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
            // The run's failure and the record of its occurrences tell the same once it is over.
            Notice::EndedByBlackout { .. }
            | Notice::TookTooLong { .. }
            | Notice::NotTakenUp { .. }
            | Notice::SkippedByOverlap { .. } => Level::Debug,
            Notice::SkippedByRebalance { .. }
            | Notice::SessionFenced { .. }
            | Notice::RunFailed { .. }
            | Notice::Overrunning { .. }
            | Notice::Mended { .. }
            | Notice::ClockWasAhead { .. }
            | Notice::PausedBySystem { .. } => Level::Warn,
            Notice::NotRun { record, .. } => match record.what {
                RecordKind::SkippedOverlap | RecordKind::MissedLate | RecordKind::MissedBackoff => {
                    Level::Warn
                }
                // Somebody paused or edited the job, and knows.
                RecordKind::MissedPaused | RecordKind::MissedReplaced => Level::Info,
            },
            Notice::SessionLost { .. } | Notice::TooManyFaults { .. } | Notice::Disabled { .. } => {
                Level::Error
            }
            Notice::LedgerRebuilt { .. }
            | Notice::Placed { .. }
            | Notice::Rescheduled { .. }
            | Notice::Rebalanced { .. }
            | Notice::RunsAdopted { .. }
            | Notice::DrainChanged { .. } => Level::Info,
        }
    }

    /// Whether it tells of placement and balance (A14), which have a log target of their own.
    pub fn is_of_placement(&self) -> bool {
        matches!(
            self,
            Notice::LedgerRebuilt { .. }
                | Notice::Placed { .. }
                | Notice::Rescheduled { .. }
                | Notice::Rebalanced { .. }
                | Notice::SkippedByRebalance { .. }
        )
    }

    /// The facts, by the names that logs and events use.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Notice::LedgerRebuilt { n_jobs, score } => {
                vec![("job_count", n_jobs.to_string()), ("distribution_score", format!("{score:.3}"))]
            }
            Notice::Placed { key, slot: at, load } => {
                vec![("job_id", key.to_string()), ("slot", at.to_string()), ("load", load.to_string())]
            }
            Notice::Rescheduled { key, old_slot, new_slot } => {
                vec![
                    ("job_id", key.to_string()),
                    ("old_slot", old_slot.to_string()),
                    ("new_slot", new_slot.to_string()),
                ]
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
            Notice::SessionFenced { session, node } => {
                let node = node.as_ref().map(|node| ("node", node.to_string()));
                node.into_iter().chain([("session", session.to_string())]).collect()
            }
            Notice::RunsAdopted { n_runs } => vec![("count", n_runs.to_string())],
            Notice::DrainChanged { node, actor, .. } => {
                vec![("node", node.to_string()), ("actor", actor.clone())]
            }
            Notice::RunFailed { key, run, outcome, exit_code, took, error } => {
                let mut fields = vec![
                    ("job", key.to_string()),
                    ("run", run.to_string()),
                    ("outcome", outcome.to_string()),
                    ("took", rounded(*took)),
                ];
                fields.extend(exit_code.map(|code| ("exit_code", code.to_string())));
                fields.extend(error.as_ref().map(|error| ("error", error.clone())));
                fields
            }
            Notice::NotRun { key, record } => vec![
                ("job", key.to_string()),
                ("reason", record.what.reason().to_owned()),
                ("count", record.range.count.to_string()),
                ("first", record.range.first.to_string()),
                ("last", record.range.last.to_string()),
            ],
            Notice::EndedByBlackout { key, run }
            | Notice::TookTooLong { key, run }
            | Notice::NotTakenUp { key, run }
            | Notice::Overrunning { key, run } => {
                vec![("job", key.to_string()), ("run", run.to_string())]
            }
            Notice::SkippedByOverlap { key, due_at } => {
                vec![("job", key.to_string()), ("due_at", due_at.to_string())]
            }
            Notice::Disabled { key, reason } | Notice::PausedBySystem { key, reason } => {
                vec![("job", key.to_string()), ("reason", reason.clone())]
            }
            Notice::Mended { key, fault, next } => vec![
                ("job", key.to_string()),
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
                ("job", example.to_string()),
            ],
        }
    }
}

/// A length as people read it in a log: `1.2s`, or `3m20s` where tenths do not matter any more.
pub fn rounded(length: Duration) -> String {
    let millis = length.as_millis();
    if millis < 60_000 {
        format!("{}.{}s", millis / 1_000, millis % 1_000 / 100)
    } else {
        Duration::from_secs(millis / 1_000).to_string()
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
    use crate::missed::RecordRange;
    use crate::placement::{Balance, Ledger, plan_rebalance};
    use crate::slot::Slot;

    #[test]
    fn sentences_are_fixed_and_facts_are_fields() {
        let job = job("every 6h");
        let ledger = Ledger::new(Balance::default(), instant("10:00"));
        let state = placed(&job, "12:00");
        let (_, spot) = ledger.place(&job, &state, instant("10:00")).unwrap();
        let slot = Slot::of(spot.at, SlotWidth::DEFAULT).start(SlotWidth::DEFAULT);
        assert_eq!(
            Notice::placed(&job.key, &spot, SlotWidth::DEFAULT).to_string(),
            format!("placed new job job_id=sample slot={slot} load=0")
        );
        assert_eq!(
            Notice::LedgerRebuilt { n_jobs: 3, score: 0.9871 }.to_string(),
            "bucket map rebuilt job_count=3 distribution_score=0.987"
        );
        let rescheduled = Notice::Rescheduled {
            key: job.key.clone(),
            old_slot: instant("10:00"),
            new_slot: instant("16:00"),
        };
        assert_eq!(
            rescheduled.to_string(),
            "rescheduled job (rhythm preserved) job_id=sample old_slot=2026-02-04T10:00:00Z new_slot=2026-02-04T16:00:00Z"
        );
    }

    #[track_caller]
    fn check(notice: &Notice, level: Level, line: &str) {
        assert_eq!((notice.level(), notice.to_string().as_str()), (level, line));
        assert!(!notice.is_of_placement());
    }

    #[test]
    fn a_failed_run_is_told_in_one_line_and_a_good_one_in_none() {
        let key: JobKey = "shop".parse().unwrap();
        let end = |outcome, exit_code, millis| RunEnd {
            run: RunId(1),
            started_at: instant("10:00"),
            ended_at: instant("10:00") + Duration::from_millis(millis),
            outcome,
            exit_code,
            frozen_for: Duration::ZERO,
        };
        let failed = Notice::of_end(&key, &end(Outcome::Failed, Some(3), 1_234), None).unwrap();
        let run = RunId(1);
        check(
            &failed,
            Level::Warn,
            &format!("run failed job=shop run={run} outcome=failed took=1.2s exit_code=3"),
        );
        let report = RunReport { error: Some("no disk".to_owned()), ..RunReport::default() };
        let late = Notice::of_end(&key, &end(Outcome::TimedOut, None, 200_900), Some(&report)).unwrap();
        let line = format!("run failed job=shop run={run} outcome=timed_out took=3m20s error=no disk");
        check(&late, Level::Warn, &line);
        // Clocks of a lost run may disagree; a length is never negative.
        let lost = Notice::of_end(&key, &end(Outcome::Lost, None, -5), None).unwrap();
        check(&lost, Level::Warn, &format!("run failed job=shop run={run} outcome=lost took=0.0s"));
        for outcome in [Outcome::Succeeded, Outcome::Cancelled, Outcome::Superseded] {
            assert_eq!(Notice::of_end(&key, &end(outcome, Some(0), 5), None), None, "{outcome}");
        }
    }

    #[test]
    fn occurrences_without_a_run_are_told_by_the_range() {
        let key: JobKey = "shop".parse().unwrap();
        let range = RecordRange { first: instant("10:00"), last: instant("16:00"), count: 7 };
        let told = |what| Notice::of_records(&key, &[Record { range, what }]).remove(0);
        let line = |said: &str, reason: &str| {
            let (first, last) = (range.first, range.last);
            format!("{said} job=shop reason={reason} count=7 first={first} last={last}")
        };
        check(&told(RecordKind::MissedLate), Level::Warn, &line("occurrences missed", "late"));
        check(&told(RecordKind::MissedPaused), Level::Info, &line("occurrences missed", "paused"));
        check(&told(RecordKind::SkippedOverlap), Level::Warn, &line("occurrences skipped", "overlap"));
    }

    #[test]
    fn nodes_and_jobs_that_stop_working_are_told_by_name() {
        let (node, session): (NodeName, _) = ("box1".parse().unwrap(), SessionId(7));
        check(
            &Notice::SessionFenced { session, node: Some(node.clone()) },
            Level::Warn,
            &format!("silent node fenced off, taking over its runs node=box1 session={session}"),
        );
        check(&Notice::RunsAdopted { n_runs: 2 }, Level::Info, "runs adopted count=2");
        let drain =
            |is_draining| Notice::DrainChanged { node: node.clone(), is_draining, actor: "anna".to_owned() };
        check(&drain(true), Level::Info, "node draining node=box1 actor=anna");
        check(&drain(false), Level::Info, "node no longer draining node=box1 actor=anna");
        let key: JobKey = "shop".parse().unwrap();
        check(
            &Notice::Disabled { key: key.clone(), reason: "no such zone".to_owned() },
            Level::Error,
            "job disabled, its definition cannot be read job=shop reason=no such zone",
        );
        check(
            &Notice::PausedBySystem { key, reason: "5 failures in a row".to_owned() },
            Level::Warn,
            "job paused by the system job=shop reason=5 failures in a row",
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

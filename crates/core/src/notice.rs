//! What happened, as values: the core logs nothing, it returns notices.
//!
//! The program turns each into a log line, a metric and an event, in one `match`. Sentences and kinds are fixed here, so
//! that they can be searched for, counted and alerted on, and mean the same everywhere (A14).

use crate::condition::Reason;
use crate::ids::{JobKey, NodeName, RunId, SessionId};
use crate::job::RunEnd;
use crate::occurrence::{Record, RecordKind};
use crate::placement::{KeptReason, Spot};
use crate::repair::Fault;
use crate::run::{Outcome, RunReport};
use crate::slot::SlotWidth;
use crate::time::{Duration, Timestamp};

/// What a node needs from its store, as far as it is told apart when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreDuty {
    /// Beats, claims, ends: whatever must be kept.
    Write,
    /// Which nodes are alive. Without it nothing is taken over.
    Watch,
    /// Fencing off a silent node.
    Fence,
    /// The change feed.
    Changes,
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
    /// A run has taken far longer than runs of its job usually do. Told once for each run, and only of jobs without
    /// `max_expected_duration`.
    RunSlow {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
        /// How long it has taken by now.
        slow: Duration,
        /// How long runs of the job usually take.
        usual: Duration,
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
    /// A job's condition changed.
    ConditionChanged {
        /// Of which job.
        key: JobKey,
        /// When.
        at: Timestamp,
        /// The reason before; none if the job was not tracked.
        from: Option<Reason>,
        /// The reason now; none if the job is no longer tracked.
        to: Option<Reason>,
    },
    /// A run could not be started. It is tried again.
    RunNotStarted {
        /// Which.
        run: RunId,
        /// Why.
        why: String,
    },
    /// The lease of a run is over, and nothing of it executes until it is extended.
    RunFrozen {
        /// Which.
        run: RunId,
    },
    /// A frozen run goes on.
    RunThawed {
        /// Which.
        run: RunId,
    },
    /// A run was killed and is still there, in the kernel's hands.
    RunUnkillable {
        /// Which.
        run: RunId,
    },
    /// The result of a run that had been given up was kept as superseded.
    LateResultKept {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
    },
    /// A person cancelled a run.
    CancelRequested {
        /// Which.
        run: RunId,
        /// Who.
        actor: String,
    },
    /// The store did not let a session begin.
    StoreUnreachable {
        /// What it said.
        why: String,
        /// When it is tried again.
        again_in: Duration,
    },
    /// The store does not do one of its duties. Told once until it does it again.
    StoreFailing {
        /// Which.
        duty: StoreDuty,
        /// What it said.
        why: String,
    },
    /// The store does a duty again.
    StoreRecovered {
        /// Which.
        duty: StoreDuty,
    },
    /// The wall clock was set.
    ClockStepped {
        /// By how much.
        by: Duration,
        /// How far time is ahead of it now; time runs at half speed until the clock has caught up.
        ahead: Duration,
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

    /// The log line, which never varies; the facts are fields beside it.
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
            Notice::RunSlow { .. } => "run takes far longer than usual",
            Notice::NotTakenUp { .. } => "no worker has started the run",
            Notice::SkippedByOverlap { .. } => "occurrence skipped, the job is running",
            Notice::PausedBySystem { .. } => "job paused by the system",
            Notice::Mended { .. } => "stored next run was wrong, job placed afresh",
            Notice::ClockWasAhead { .. } => "clock was ahead, jobs placed again",
            Notice::TooManyFaults { .. } => {
                "stored next runs are wrong in many jobs: look at the clock and the store, then `evenbeat job resume`"
            }
            Notice::ConditionChanged { .. } => "condition changed",
            Notice::RunNotStarted { .. } => "run not started",
            Notice::RunFrozen { .. } => "run frozen, its lease is over",
            Notice::RunThawed { .. } => "run thawed",
            Notice::RunUnkillable { .. } => "run cannot be killed, its job waits until it is gone",
            Notice::LateResultKept { .. } => "late result kept",
            Notice::CancelRequested { .. } => "cancel requested",
            Notice::StoreUnreachable { .. } => "store not reachable, trying again",
            Notice::StoreFailing { duty, .. } => match duty {
                StoreDuty::Write => "store writes failing; runs go on, writes are tried again",
                StoreDuty::Watch => "peer watch failing; takeovers are suspended until it recovers",
                StoreDuty::Fence => "fencing a silent node failed, trying again",
                StoreDuty::Changes => "change feed failing, trying again",
            },
            Notice::StoreRecovered { duty } => match duty {
                StoreDuty::Write => "store writes recovered",
                StoreDuty::Watch => "peer watch recovered",
                StoreDuty::Fence => "fencing recovered",
                StoreDuty::Changes => "change feed recovered",
            },
            Notice::ClockStepped { ahead, .. } if Duration::ZERO < *ahead => {
                "wall clock set back a little; time runs at half speed until it has caught up"
            }
            Notice::ClockStepped { .. } => "wall clock set",
        }
    }

    /// The kind, as metrics and events name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Notice::LedgerRebuilt { .. } => "ledger_rebuilt",
            Notice::Placed { .. } => "job_placed",
            Notice::Rescheduled { .. } => "job_rescheduled",
            Notice::Rebalanced { .. } => "rebalanced",
            Notice::SkippedByRebalance { .. } => "rebalance_skipped_job",
            Notice::SessionLost { .. } => "session_lost",
            Notice::SessionFenced { .. } => "node_fenced",
            Notice::RunsAdopted { .. } => "runs_adopted",
            Notice::DrainChanged { .. } => "drain_changed",
            Notice::RunFailed { .. } => "run_failed",
            Notice::NotRun { record, .. } => match record.what {
                RecordKind::SkippedOverlap => "occurrences_skipped",
                RecordKind::MissedLate
                | RecordKind::MissedBackoff
                | RecordKind::MissedPaused
                | RecordKind::MissedReplaced => "occurrences_missed",
            },
            Notice::Disabled { .. } => "job_disabled",
            Notice::EndedByBlackout { .. } => "run_ended_by_blackout",
            Notice::TookTooLong { .. } => "run_timed_out",
            Notice::Overrunning { .. } => "run_overrunning",
            Notice::RunSlow { .. } => "run_slow",
            Notice::NotTakenUp { .. } => "run_not_taken_up",
            Notice::SkippedByOverlap { .. } => "occurrence_overlaps",
            Notice::PausedBySystem { .. } => "job_paused_by_system",
            Notice::Mended { .. } => "job_repaired",
            Notice::ClockWasAhead { .. } => "clock_was_ahead",
            Notice::TooManyFaults { .. } => "too_many_faults",
            Notice::ConditionChanged { .. } => "condition_changed",
            Notice::RunNotStarted { .. } => "run_not_started",
            Notice::RunFrozen { .. } => "run_frozen",
            Notice::RunThawed { .. } => "run_thawed",
            Notice::RunUnkillable { .. } => "run_unkillable",
            Notice::LateResultKept { .. } => "late_result_kept",
            Notice::CancelRequested { .. } => "cancel_requested",
            Notice::StoreUnreachable { .. } => "store_unreachable",
            Notice::StoreFailing { .. } => "store_failing",
            Notice::StoreRecovered { .. } => "store_recovered",
            Notice::ClockStepped { .. } => "clock_stepped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sample::{instant, job, placed};
    use crate::missed::RecordRange;
    use crate::placement::{Balance, Ledger};
    use crate::slot::Slot;

    #[test]
    fn a_placed_job_is_told_with_the_start_of_its_slot() {
        let job = job("every 6h");
        let ledger = Ledger::new(Balance::default(), instant("10:00"));
        let (_, spot) = ledger.place(&job, &placed(&job, "12:00"), instant("10:00")).unwrap();
        let slot = Slot::of(spot.at, SlotWidth::DEFAULT).start(SlotWidth::DEFAULT);
        let notice = Notice::placed(&job.key, &spot, SlotWidth::DEFAULT);
        assert_eq!(notice, Notice::Placed { key: job.key.clone(), slot, load: 0 });
        assert_eq!((notice.sentence(), notice.kind()), ("placed new job", "job_placed"));
    }

    #[test]
    fn a_failed_run_is_told_once_and_a_good_one_never() {
        let key: JobKey = "shop".parse().unwrap();
        let end = |outcome, exit_code, millis| RunEnd {
            run: RunId(1),
            started_at: instant("10:00"),
            ended_at: instant("10:00") + Duration::from_millis(millis),
            outcome,
            exit_code,
            frozen_for: Duration::ZERO,
        };
        let failed = |outcome, exit_code, millis, error: Option<&str>| {
            let (key, error) = (key.clone(), error.map(str::to_owned));
            let took = Duration::from_millis(millis);
            Some(Notice::RunFailed { key, run: RunId(1), outcome, exit_code, took, error })
        };
        assert_eq!(
            Notice::of_end(&key, &end(Outcome::Failed, Some(3), 1_234), None),
            failed(Outcome::Failed, Some(3), 1_234, None)
        );
        let report = RunReport { error: Some("no disk".to_owned()), ..RunReport::default() };
        assert_eq!(
            Notice::of_end(&key, &end(Outcome::TimedOut, None, 200_900), Some(&report)),
            failed(Outcome::TimedOut, None, 200_900, Some("no disk"))
        );
        // Clocks of a lost run may disagree; a length is never negative.
        assert_eq!(
            Notice::of_end(&key, &end(Outcome::Lost, None, -5), None),
            failed(Outcome::Lost, None, 0, None)
        );
        for outcome in [Outcome::Succeeded, Outcome::Cancelled, Outcome::Superseded] {
            assert_eq!(Notice::of_end(&key, &end(outcome, Some(0), 5), None), None, "{outcome}");
        }
    }

    #[test]
    fn occurrences_without_a_run_are_told_by_the_range() {
        let key: JobKey = "shop".parse().unwrap();
        let range = RecordRange { first: instant("10:00"), last: instant("16:00"), count: 7 };
        let told = |what| {
            let record = Record { range, what };
            let notices = Notice::of_records(&key, &[record]);
            assert_eq!(notices, [Notice::NotRun { key: key.clone(), record }]);
            (notices[0].sentence(), notices[0].kind())
        };
        assert_eq!(told(RecordKind::MissedLate), ("occurrences missed", "occurrences_missed"));
        assert_eq!(told(RecordKind::MissedPaused), ("occurrences missed", "occurrences_missed"));
        assert_eq!(told(RecordKind::SkippedOverlap), ("occurrences skipped", "occurrences_skipped"));
    }
}

//! What is remembered of a job between runs (J4).

use super::{Extra, Extras, Terms};
use crate::estimate::Estimate;
use crate::ids::{NodeName, RunId};
use crate::retry::Failures;
use crate::run::Outcome;
use crate::schedule::{Placement, Schedule};
use crate::time::{Duration, Timestamp};

/// A job's memory. Everything else that is shown of it follows from this, the job and the time.
#[derive(Clone, Debug, PartialEq)]
pub struct JobState {
    /// When the job was first known.
    pub created_at: Timestamp,
    /// Where its schedule was set down; none before it is placed.
    pub placement: Option<Placement>,
    /// The pending occurrence: the one that the next run will serve. None if nothing is due ever
    /// again, or not yet placed.
    pub next_run_at: Option<Timestamp>,
    /// Up to here every occurrence but the pending one has ended or is on record. None where that is
    /// no later than the pending one.
    pub settled_until: Option<Timestamp>,
    /// When the last run started; none before the first.
    pub last_start_at: Option<Timestamp>,
    /// When the last run ended.
    pub last_end_at: Option<Timestamp>,
    /// When the last good run started: as of then the data is known.
    pub last_good_start_at: Option<Timestamp>,
    /// When the last good run ended.
    pub last_good_end_at: Option<Timestamp>,
    /// The exit code of the last run, where there was one.
    pub last_exit_code: Option<i32>,
    /// Failures in a row; 0 if it never ran and after every success.
    pub failure_count: u32,
    /// How many of them were runs that a blackout ended: those do not count towards
    /// `pause_after_failures`.
    pub blackout_failures: u16,
    /// How many runs the pending occurrence has had. While one of them goes on, it is counted.
    pub attempt: u32,
    /// How many of them in a row were lost with their node.
    pub losses: u32,
    /// How the last of them ended. The job's last run may be of another occurrence, such as a requested one.
    pub attempt_outcome: Option<Outcome>,
    /// How the last run ended.
    pub last_outcome: Option<Outcome>,
    /// How many occurrences of the schedule were served by a run, for `max_runs`. Those beside which others
    /// may run count from its start, others from its end.
    pub n_served: u64,
    /// How long a run takes; none before the first good one.
    pub estimate: Option<Estimate>,
    /// What it owes besides the pending occurrence: manual runs, pieces of a backfill, and occurrences
    /// that are worth another run though the schedule has moved on.
    pub extras: Extras,
    /// Who paused it, and why.
    pub pause: Option<Box<Pause>>,
    /// Who runs it now.
    pub owner: Option<Box<Owner>>,
}

/// Why a job does not run until someone resumes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// A person or the system.
    pub by: PausedBy,
    /// For people to read.
    pub reason: Option<String>,
}

/// Who paused a job: each has a way out of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PausedBy {
    /// A person; a person resumes it.
    Operator,
    /// A quota; resumed by a person or by a raised limit.
    Quota,
    /// Too many failures in a row; resumed by a person.
    Failures,
    /// Its stored schedule can no longer be read; mended by an edit.
    Invalid,
}

impl PausedBy {
    /// `operator` or `system`, as the API shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            PausedBy::Operator => "operator",
            PausedBy::Quota | PausedBy::Failures | PausedBy::Invalid => "system",
        }
    }
}

/// The lease under which a job runs now (L2).
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The server.
    pub node: NodeName,
    /// The instance on it.
    pub name: String,
    /// The run.
    pub tag: RunId,
    /// When the run started.
    pub started_at: Timestamp,
}

/// What a job is doing, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not yet placed.
    Pending,
    /// Its next occurrence is known.
    Scheduled,
    /// A run is going on.
    Running,
    /// Someone must resume it.
    Paused,
    /// Stored, and not to be run.
    Disabled,
    /// Nothing will ever be due again.
    Done,
}

impl Status {
    /// Every one.
    pub const ALL: [Status; 6] =
        [Status::Pending, Status::Scheduled, Status::Running, Status::Paused, Status::Disabled, Status::Done];

    /// The word on the wire and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Scheduled => "scheduled",
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Disabled => "disabled",
            Status::Done => "done",
        }
    }

    /// Whether the job is meant to run. Nothing is promised for a job that is paused, disabled or done, though its data
    /// grows old like any other.
    fn is_active(self) -> bool {
        matches!(self, Status::Pending | Status::Scheduled | Status::Running)
    }
}

/// How a run ended, as far as its job must remember it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunEnd {
    /// Which it was.
    pub run: RunId,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    pub outcome: Outcome,
    /// With which code, where there is one.
    pub exit_code: Option<i32>,
    /// How long it stood frozen; that is not time it took.
    pub frozen_for: Duration,
}

impl JobState {
    /// The state of a new job.
    pub fn new(created_at: Timestamp) -> JobState {
        JobState {
            created_at,
            placement: None,
            next_run_at: None,
            settled_until: None,
            last_start_at: None,
            last_end_at: None,
            last_good_start_at: None,
            last_good_end_at: None,
            last_exit_code: None,
            failure_count: 0,
            blackout_failures: 0,
            attempt: 0,
            losses: 0,
            attempt_outcome: None,
            last_outcome: None,
            n_served: 0,
            estimate: None,
            extras: Extras::default(),
            pause: None,
            owner: None,
        }
    }

    /// What the job is doing.
    pub fn status(&self, terms: &Terms) -> Status {
        if self.owner.is_some() {
            return Status::Running;
        }
        if !terms.enabled {
            return Status::Disabled;
        }
        if self.pause.is_some() {
            return Status::Paused;
        }
        match (&self.placement, self.next_run_at) {
            (Some(_), None) if !matches!(terms.schedule, Schedule::Manual) && self.extras.is_empty() => {
                Status::Done
            }
            (None, _) if !matches!(terms.schedule, Schedule::Manual) => Status::Pending,
            _ => Status::Scheduled,
        }
    }

    /// Whether the job's condition counts. A job that a person paused or disabled owes nothing; one that the system
    /// paused does, until a person acts (B4).
    pub fn is_tracked(&self, terms: &Terms) -> bool {
        let is_given_up = match self.pause.as_ref().map(|pause| pause.by) {
            Some(PausedBy::Quota | PausedBy::Failures) => terms.enabled,
            // What cannot be read is disabled by that very fact.
            Some(PausedBy::Invalid) => true,
            Some(PausedBy::Operator) | None => false,
        };
        is_given_up || self.status(terms).is_active()
    }

    /// The failures behind the job since its last good run, if there are any.
    pub fn failures(&self) -> Option<Failures> {
        let ended_at = self.last_end_at.filter(|_| 0 < self.failure_count)?;
        Some(Failures {
            in_a_row: self.failure_count,
            by_blackout: self.blackout_failures.into(),
            ended_at,
            took: ended_at - self.last_start_at.unwrap_or(ended_at),
            exit_code: self.last_exit_code,
            is_last_by_blackout: self.last_outcome == Some(Outcome::Blackout),
            usual: self.estimate.as_ref().map(Estimate::mean),
        })
    }

    /// The failures no longer say anything about the job: their count starts again, and retries are due now.
    pub fn forget_failures(&mut self, now: Timestamp) {
        self.failure_count = 0;
        self.blackout_failures = 0;
        self.extras.start_by(now);
    }

    /// The latest instant at which something happened to the job, as far as it is remembered.
    pub fn latest_past(&self) -> Timestamp {
        // A requested run waits from its request on; a failed one, until it is tried again.
        let is_untried = |extra: &&Extra| extra.is_asked_for() && extra.attempt == 0;
        let asked = self.extras.iter().filter(is_untried).map(|extra| extra.not_before);
        let past = [
            self.placement.as_ref().map(|placement| placement.placed_at),
            self.last_start_at,
            self.last_end_at,
            self.last_good_start_at,
            self.last_good_end_at,
        ];
        past.into_iter().flatten().chain(asked).fold(self.created_at, Timestamp::max)
    }

    /// Whether `max_runs` is used up.
    pub fn is_exhausted(&self, terms: &Terms) -> bool {
        terms.bounds.max_runs.is_some_and(|most| most <= self.n_served)
    }

    /// Sets the job down on the time line: its first occurrence is the pending one.
    pub fn place(&mut self, terms: &Terms, placement: Placement) {
        self.next_run_at = terms.schedule.rhythm(&placement, terms.bounds, &terms.zone).first();
        self.settled_until = None;
        self.attempt = 0;
        self.losses = 0;
        self.attempt_outcome = None;
        self.placement = Some(placement);
    }

    /// A run no longer has the job's lease; another one may.
    pub fn release(&mut self, run: RunId) {
        if self.owner.as_ref().is_some_and(|owner| owner.tag == run) {
            self.owner = None;
        }
    }

    /// Takes note of a run's end: what was last, failures in a row, the estimate. What becomes of its
    /// occurrence is decided in [`crate::occurrence`].
    pub fn record_end(&mut self, end: &RunEnd, weight_of_last: f64) {
        self.release(end.run);
        self.last_start_at = Some(end.started_at);
        self.last_end_at = Some(end.ended_at);
        self.last_exit_code = end.exit_code;
        self.last_outcome = Some(end.outcome);
        if end.outcome.counts_as_failure() {
            self.failure_count = self.failure_count.saturating_add(1);
        }
        if end.outcome == Outcome::Blackout {
            self.blackout_failures = self.blackout_failures.saturating_add(1);
        }
        if end.outcome == Outcome::Succeeded {
            self.failure_count = 0;
            self.blackout_failures = 0;
            self.last_good_start_at = Some(end.started_at);
            self.last_good_end_at = Some(end.ended_at);
            let took = (end.ended_at - end.started_at - end.frozen_for).max(Duration::ZERO);
            self.estimate = Some(Estimate::learn(self.estimate, took, weight_of_last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ExtraId;
    use crate::job::sample::instant;

    #[test]
    fn the_end_of_one_run_leaves_the_lease_of_another() {
        let owner = Owner {
            node: "n1".parse().unwrap(),
            name: "n1-1".to_owned(),
            tag: RunId(2),
            started_at: instant("10:00"),
        };
        let mut state = JobState { owner: Some(Box::new(owner)), ..JobState::new(instant("09:00")) };
        let mut end_of = |run| {
            let (started_at, ended_at) = (instant("10:00"), instant("10:10"));
            let outcome = Outcome::Succeeded;
            let end =
                RunEnd { run, started_at, ended_at, outcome, exit_code: Some(0), frozen_for: Duration::ZERO };
            state.record_end(&end, 0.37);
            state.owner.is_some()
        };
        assert!(end_of(RunId(1)));
        assert!(!end_of(RunId(2)));
    }

    #[test]
    fn a_request_that_waits_for_its_retry_is_no_sign_of_a_clock_that_was_ahead() {
        let mut state = JobState::new(instant("09:00"));
        let asked = Extra::manual(ExtraId(1), instant("10:00"));
        state.extras.push(Extra { attempt: 1, not_before: instant("14:00"), ..asked.clone() });
        assert_eq!(state.latest_past(), instant("09:00"));
        state.extras.push(Extra { id: ExtraId(2), ..asked });
        assert_eq!(state.latest_past(), instant("10:00"));
    }

    #[test]
    fn a_million_jobs_are_remembered_in_a_few_hundred_megabytes() {
        // A node remembers every job. With 300 bytes for each, key and index entries included, a
        // million of them fit where a small machine has room; the memory must leave half of that.
        assert!(size_of::<JobState>() <= 160, "a job's memory takes {} bytes", size_of::<JobState>());
    }
}

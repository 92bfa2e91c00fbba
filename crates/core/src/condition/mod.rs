//! How a job stands against its promise: `ok`, `warning` or `error`, always with a reason (B4).

mod reason;
mod waiting;

use std::fmt;

pub use reason::Reason;
pub use waiting::{Wait, waits};

use crate::ids::JobKey;
use crate::job::{JobState, PausedBy, Terms};
use crate::run::Outcome;
use crate::time::{Duration, Timestamp};
use crate::unsatisfiable::{Unsatisfiable, unsatisfiable};
use crate::urgency::{self, Outlook};

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The promise is kept and will be, as far as anyone can tell.
    Ok,
    /// It is about to be broken, or something is wrong that may break it.
    Warning,
    /// It is broken: the deadline has passed, or the system gave up and waits for a person.
    Error,
}

impl Condition {
    /// Every one, the best first.
    pub const ALL: [Condition; 3] = [Condition::Ok, Condition::Warning, Condition::Error];

    /// The word on the wire and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Ok => "ok",
            Condition::Warning => "warning",
            Condition::Error => "error",
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Everything that is known about how a job stands at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// The instant.
    pub now: Timestamp,
    /// All that hold, the weightiest first; never empty.
    pub reasons: Vec<Reason>,
    /// The length of a run that this counts with.
    pub expected_length: Duration,
    /// When it may start.
    pub can_start_by: Option<Timestamp>,
    /// When it must start.
    pub should_start_by: Option<Timestamp>,
    /// When it must be complete.
    pub deadline: Option<Timestamp>,
    /// When it will start, if it is not running.
    pub planned_start: Option<Timestamp>,
    /// When the run that goes on will end, or the next one would.
    pub expected_end: Option<Timestamp>,
    /// When the run that goes on started.
    pub running_since: Option<Timestamp>,
    /// Failures in a row.
    pub failure_count: u32,
    /// What the system said when it paused the job, if it did.
    pub pause_reason: Option<String>,
    /// Why its promise cannot be kept, if so.
    pub unsatisfiable: Vec<Unsatisfiable>,
}

/// Computes the condition of a job. It counts only while the job is tracked ([`JobState::is_tracked`]); the age
/// of its data is known in any case.
pub fn assess(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    now: Timestamp,
    outlook: &Outlook,
) -> Assessment {
    let expected_length = urgency::expected_length(terms, state, outlook);
    let deadline = urgency::deadline(terms, state);
    let running_since = state.owner.as_ref().map(|owner| owner.started_at);
    let planned_start = match running_since {
        Some(_) => None,
        None => urgency::planned_start(key, terms, state, now, outlook),
    };
    let end_after = |length: Duration| match running_since {
        // A run that outlasts its estimate ends now at the earliest.
        Some(started_at) => Some((started_at + length).max(now)),
        None => planned_start.map(|start| start + length),
    };
    let expected_end = end_after(expected_length);
    let should_start_by = deadline.map(|deadline| deadline - expected_length);
    let mut unsatisfiable = unsatisfiable(terms, expected_length);
    if !unsatisfiable.contains(&Unsatisfiable::NoNode) {
        unsatisfiable.extend(outlook.fit.unsatisfiable(terms));
    }

    let mut reasons = Vec::new();
    reasons.extend(system_pause(state));
    if let Some(deadline) = deadline {
        // The planned start is never before now, so for a waiting job this is "now + estimate" too;
        // with no start in sight, every deadline is missed.
        let sure_end = end_after(urgency::measured_length(terms, state));
        let will_miss = sure_end.is_none_or(|end| deadline < end);
        match (deadline <= now, will_miss, running_since) {
            (true, _, _) => reasons.push(Reason::DeadlinePassed),
            (false, true, Some(_)) => reasons.push(Reason::WillMissRunning),
            (false, true, None) => reasons.push(Reason::WillMissWaiting),
            (false, false, _) => {}
        }
    }
    // A memory that was taken over from elsewhere may know the count alone.
    if state.last_outcome.map_or(0 < state.failure_count, Outcome::counts_as_failure) {
        reasons.push(Reason::LastRunFailed);
    }
    if running_since.is_some_and(|started_at| terms.limits.is_overrunning(started_at, now)) {
        reasons.push(Reason::Overrunning);
    }
    if !unsatisfiable.is_empty() {
        reasons.push(Reason::Unsatisfiable);
    }
    if state.last_good_start_at.is_none() {
        reasons.push(Reason::NeverSucceeded);
    }
    if reasons.is_empty() {
        reasons.push(Reason::Ok);
    }
    Assessment {
        now,
        reasons,
        expected_length,
        can_start_by: urgency::can_start_by(key, terms, state, now),
        should_start_by,
        deadline,
        planned_start,
        expected_end,
        running_since,
        failure_count: state.failure_count,
        pause_reason: state.pause.as_ref().and_then(|pause| pause.reason.clone()),
        unsatisfiable,
    }
}

/// A pause by the system: it stands until a person acts, so it is an error and not the end of one (B4).
fn system_pause(state: &JobState) -> Option<Reason> {
    match state.pause.as_ref()?.by {
        PausedBy::Operator => None,
        PausedBy::Quota => Some(Reason::PausedQuota),
        PausedBy::Failures => Some(Reason::PausedFailures),
        PausedBy::Invalid => Some(Reason::DisabledInvalid),
    }
}

/// The next instant at which the clock alone can change a job's condition, so that it need not be
/// computed in between. An event (a run starts or ends, an edit) may change it earlier.
pub fn next_change_at(
    terms: &Terms,
    state: &JobState,
    now: Timestamp,
    outlook: &Outlook,
) -> Option<Timestamp> {
    const TICK: Duration = Duration::from_millis(1);
    if system_pause(state).is_some() {
        return None;
    }
    let deadline = urgency::deadline(terms, state);
    let expected_length = urgency::expected_length(terms, state, outlook);
    let measured_length = urgency::measured_length(terms, state);
    let candidates = match state.owner.as_ref() {
        Some(owner) => {
            let overrun_at = terms.limits.max_expected.map(|longest| owner.started_at + longest + TICK);
            [deadline, overrun_at, None]
        }
        None => {
            // A job that is late, or can no longer be in time, does not get later by waiting.
            let deadline = deadline.filter(|deadline| now < *deadline);
            let latest =
                deadline.map(|deadline| deadline - measured_length + TICK).filter(|latest| now < *latest);
            // Entering a blackout, or coming so near to one that the run no longer fits before it,
            // can push the planned start behind the latest one.
            [deadline, latest, latest.and_then(|_| next_hold_up(terms, now, expected_length))]
        }
    };
    candidates.into_iter().flatten().filter(|at| now < *at).min()
}

/// When a blackout next begins, or ceases, to push back a run of this length that could start at
/// any time.
pub(crate) fn next_hold_up(terms: &Terms, now: Timestamp, expected_length: Duration) -> Option<Timestamp> {
    let window_at = terms.blackouts.next_start(&terms.zone, now)?;
    if window_at <= now {
        // Inside, the next start is at the window's end or later, wherever in it we are.
        return terms.blackouts.exit(&terms.zone, now);
    }
    // A run that takes no time fits until the very window, but not into it.
    let no_longer_fits_at = window_at - expected_length + Duration::from_millis(1);
    Some(if now < no_longer_fits_at { no_longer_fits_at.min(window_at) } else { window_at })
}

impl Assessment {
    /// The condition.
    pub fn condition(&self) -> Condition {
        self.reason().condition()
    }

    /// The reason that weighs most.
    pub fn reason(&self) -> Reason {
        self.reasons.first().copied().unwrap_or(Reason::Ok)
    }

    /// The reason as a sentence for people, with its figures.
    pub fn sentence(&self) -> String {
        let late_by = |at: Option<Timestamp>| {
            self.deadline.zip(at).map_or(Duration::ZERO, |(deadline, at)| at - deadline).rounded()
        };
        match self.reason() {
            Reason::DeadlinePassed => format!("The deadline passed {} ago.", late_by(Some(self.now))),
            Reason::WillMissRunning => {
                format!("The run is expected to end {} after the deadline.", late_by(self.expected_end))
            }
            Reason::WillMissWaiting => match self.expected_end {
                Some(_) => {
                    format!("The next run would end {} after the deadline.", late_by(self.expected_end))
                }
                None => "No start is expected before the deadline.".to_owned(),
            },
            Reason::LastRunFailed if 1 < self.failure_count => {
                format!("The last {} runs failed.", self.failure_count)
            }
            Reason::Overrunning => {
                let running_for = self.running_since.map_or(Duration::ZERO, |since| self.now - since);
                format!("It has been running for {}, longer than expected.", running_for.rounded())
            }
            Reason::Unsatisfiable => {
                let why: Vec<String> = self.unsatisfiable.iter().map(ToString::to_string).collect();
                format!("The job cannot be satisfied: {}.", why.join("; "))
            }
            Reason::PausedFailures if 1 < self.failure_count => {
                let n_failures = self.failure_count;
                format!("It was paused after {n_failures} failures in a row; fix it, then resume it.")
            }
            reason @ (Reason::PausedQuota | Reason::DisabledInvalid) => match &self.pause_reason {
                Some(why) => format!("{} ({why})", reason.sentence()),
                None => reason.sentence().to_owned(),
            },
            Reason::Ok => "Fresh, and expected to stay fresh.".to_owned(),
            reason => reason.sentence().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;

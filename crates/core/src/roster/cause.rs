//! Why jobs are late or at risk, in the few groups that people ask about. A job is in one group at a time.

use super::JobRef;
use crate::condition::{Assessment, Condition, Reason, next_hold_up, waits};
use crate::time::Timestamp;
use crate::urgency::Outlook;

/// What keeps a job from being fresh, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its last run failed.
    Failed,
    /// Its run takes too long, or began too late.
    Running,
    /// It may start and waits: for room in its pool, for a limit, or for its turn.
    Waiting,
    /// No node can take it.
    NoNode,
    /// A blackout holds it up.
    Blackout,
    /// Its next start lies ahead, and is too late.
    StartsLate,
    /// Its definition cannot be satisfied.
    Unsatisfiable,
    /// The system paused or disabled it, and waits for a person.
    GivenUp,
}

impl Cause {
    /// Every one, in the order in which they are shown.
    pub const ALL: [Cause; 8] = [
        Cause::Failed,
        Cause::Running,
        Cause::Waiting,
        Cause::NoNode,
        Cause::Blackout,
        Cause::StartsLate,
        Cause::Unsatisfiable,
        Cause::GivenUp,
    ];

    /// The word in addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Failed => "failed",
            Cause::Running => "running",
            Cause::Waiting => "waiting",
            Cause::NoNode => "no_node",
            Cause::Blackout => "blackout",
            Cause::StartsLate => "starts_late",
            Cause::Unsatisfiable => "unsatisfiable",
            Cause::GivenUp => "given_up",
        }
    }
}

/// The cause, and when the clock may turn it into another. None for a job that is well.
pub(super) fn cause(
    known: &JobRef<'_>,
    it: &Assessment,
    outlook: &Outlook,
) -> Option<(Cause, Option<Timestamp>)> {
    if it.condition() == Condition::Ok {
        return None;
    }
    if matches!(it.reason(), Reason::DisabledInvalid | Reason::PausedFailures | Reason::PausedQuota) {
        return Some((Cause::GivenUp, None));
    }
    let has_failed = it.reasons.contains(&Reason::LastRunFailed);
    let cause = if it.running_since.is_some() && !has_failed {
        Cause::Running
    } else if outlook.fit.unsatisfiable(known.terms).is_some() {
        Cause::NoNode
    } else if has_failed {
        Cause::Failed
    } else if !it.unsatisfiable.is_empty() {
        Cause::Unsatisfiable
    } else {
        let wait = waits(known.key, known.terms, known.state, it.now, outlook).into_iter().next();
        let until = wait.and_then(|wait| wait.until);
        return Some(match wait.map(|wait| wait.reason) {
            None => (Cause::Waiting, next_hold_up(known.terms, it.now, it.expected_length)),
            Some(Reason::Blackout | Reason::BlackoutAhead) => (Cause::Blackout, until),
            Some(_) => (Cause::StartsLate, until),
        });
    };
    Some((cause, None))
}

//! Why jobs are late or at risk, in the few groups that people ask about. A job is in one group at a time.

use super::JobRef;
use crate::condition::{Assessment, Condition, Reason, next_hold_up, waits};
use crate::time::Timestamp;
use crate::urgency::Outlook;

/// What keeps a job from being fresh, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttentionCause {
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

impl AttentionCause {
    /// Every one, in the order in which they are shown.
    pub const ALL: [AttentionCause; 8] = [
        AttentionCause::Failed,
        AttentionCause::Running,
        AttentionCause::Waiting,
        AttentionCause::NoNode,
        AttentionCause::Blackout,
        AttentionCause::StartsLate,
        AttentionCause::Unsatisfiable,
        AttentionCause::GivenUp,
    ];

    /// The word in addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            AttentionCause::Failed => "failed",
            AttentionCause::Running => "running",
            AttentionCause::Waiting => "waiting",
            AttentionCause::NoNode => "no_node",
            AttentionCause::Blackout => "blackout",
            AttentionCause::StartsLate => "starts_late",
            AttentionCause::Unsatisfiable => "unsatisfiable",
            AttentionCause::GivenUp => "given_up",
        }
    }
}

/// The cause, and when the clock may turn it into another. None for a job that is well.
pub(super) fn cause(
    known: &JobRef<'_>,
    it: &Assessment,
    outlook: &Outlook,
) -> Option<(AttentionCause, Option<Timestamp>)> {
    if it.condition() == Condition::Ok {
        return None;
    }
    if matches!(it.reason(), Reason::DisabledInvalid | Reason::PausedFailures | Reason::PausedQuota) {
        return Some((AttentionCause::GivenUp, None));
    }
    let has_failed = it.reasons.contains(&Reason::LastRunFailed);
    let cause = if it.running_since.is_some() && !has_failed {
        AttentionCause::Running
    } else if outlook.fit.unsatisfiable(known.terms).is_some() {
        AttentionCause::NoNode
    } else if has_failed {
        AttentionCause::Failed
    } else if !it.unsatisfiable.is_empty() {
        AttentionCause::Unsatisfiable
    } else {
        let wait = waits(known.key, known.terms, known.state, it.now, outlook).into_iter().next();
        let until = wait.and_then(|wait| wait.until);
        return Some(match wait.map(|wait| wait.reason) {
            None => (AttentionCause::Waiting, next_hold_up(known.terms, it.now, it.expected_length)),
            Some(Reason::Blackout | Reason::BlackoutAhead) => (AttentionCause::Blackout, until),
            Some(_) => (AttentionCause::StartsLate, until),
        });
    };
    Some((cause, None))
}

//! The verdict about one job.

use super::JobRef;
use super::cause::{AttentionCause, cause};
use super::lists::RosterEntry;
use crate::condition::{Reason, assess, next_change_at};
use crate::job::Status;
use crate::time::{Duration, Timestamp};
use crate::urgency::Outlook;

/// How a job stands at an instant, and until when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judgement {
    pub(super) status: Status,
    /// None while it is not tracked.
    pub(super) reason: Option<Reason>,
    /// When the clock may turn it next; strictly later.
    pub(super) next_at: Option<Timestamp>,
    /// Why it is late or at risk; none while it is neither.
    pub(super) cause: Option<AttentionCause>,
    /// When a good run must be complete.
    pub(super) deadline: Option<Timestamp>,
    /// Since when the reason holds, where that follows from the job itself: the same on every node, and after
    /// every restart.
    holds_since: Option<Timestamp>,
}

/// Judges a job.
pub(super) fn judge(known: &JobRef<'_>, outlook: &Outlook, at: Timestamp) -> Judgement {
    let JobRef { key, terms, state } = known;
    let status = state.status(terms);
    if !state.is_tracked(terms) {
        return Judgement {
            status,
            reason: None,
            next_at: None,
            cause: None,
            deadline: None,
            holds_since: None,
        };
    }
    let assessment = assess(key, terms, state, at, outlook);
    let reason = assessment.reason();
    let holds_since = match reason {
        Reason::DeadlinePassed => assessment.deadline,
        Reason::Overrunning => {
            let longest = assessment.running_since.zip(terms.limits.max_expected);
            longest.map(|(started_at, longest)| started_at + longest + Duration::from_millis(1))
        }
        _ => None,
    };
    let cause = cause(known, &assessment, outlook);
    let turns_at = cause.and_then(|(_, turns_at)| turns_at).filter(|turns_at| at < *turns_at);
    let next_at = [next_change_at(terms, state, at, outlook), turns_at].into_iter().flatten().min();
    Judgement {
        status,
        reason: Some(reason),
        next_at,
        cause: cause.map(|(cause, _)| cause),
        deadline: assessment.deadline,
        holds_since,
    }
}

impl Judgement {
    /// Since when this verdict holds, after an old one with its own beginning.
    pub(super) fn since(&self, old: Option<&RosterEntry>, at: Timestamp) -> Timestamp {
        let kept = old.filter(|entry| entry.reason == self.reason).map(|entry| entry.since);
        self.holds_since.or(kept).unwrap_or(at)
    }
}

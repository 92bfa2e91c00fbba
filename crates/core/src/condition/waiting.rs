//! Why a job does not run right now.

use std::fmt;

use crate::ids::JobKey;
use crate::job::{JobState, PausedBy, Terms};
use crate::schedule::Schedule;
use crate::time::Timestamp;
use crate::urgency;

/// Why a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// It does not wait: it runs.
    Running,
    /// Its occurrence lies ahead.
    NotDue,
    /// It rests after a good run.
    Cooldown,
    /// It failed, and is not tried again yet.
    Backoff,
    /// It must not run now.
    Blackout,
    /// Its pool is full.
    NoSlot,
    /// No living node may take it.
    NoNode,
    /// Its owner fell silent and has not been fenced off yet.
    OwnerLost,
    /// Its site is at its limit or backs off.
    Site,
    /// Its tenant runs as many jobs as it may.
    QuotaConcurrency,
    /// A person paused it.
    PausedOperator,
    /// A quota paused it.
    PausedQuota,
    /// Too many failures in a row paused it.
    PausedFailures,
    /// Its stored schedule cannot be read.
    DisabledInvalid,
    /// It is not enabled.
    Disabled,
    /// It has never run, and its first occurrence lies ahead.
    NeverRun,
    /// It runs only when triggered.
    Manual,
}

impl WaitReason {
    /// The code on the wire and in filters.
    pub fn as_str(self) -> &'static str {
        match self {
            WaitReason::Running => "running",
            WaitReason::NotDue => "not_due",
            WaitReason::Cooldown => "cooldown",
            WaitReason::Backoff => "backoff",
            WaitReason::Blackout => "blackout",
            WaitReason::NoSlot => "no_slot",
            WaitReason::NoNode => "no_node",
            WaitReason::OwnerLost => "owner_lost",
            WaitReason::Site => "site",
            WaitReason::QuotaConcurrency => "quota_concurrency",
            WaitReason::PausedOperator => "paused_operator",
            WaitReason::PausedQuota => "paused_quota",
            WaitReason::PausedFailures => "paused_failures",
            WaitReason::DisabledInvalid => "disabled_invalid",
            WaitReason::Disabled => "disabled",
            WaitReason::NeverRun => "never_run",
            WaitReason::Manual => "manual",
        }
    }

    /// A sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            WaitReason::Running => "It is running.",
            WaitReason::NotDue => "It is not due yet.",
            WaitReason::Cooldown => "It rests after its last good run.",
            WaitReason::Backoff => "It failed and is not tried again yet.",
            WaitReason::Blackout => "A blackout keeps it from running.",
            WaitReason::NoSlot => "Its pool has no room.",
            WaitReason::NoNode => "No living node may take it.",
            WaitReason::OwnerLost => {
                "Its node fell silent; it is taken over when that node is sure to be out."
            }
            WaitReason::Site => "Its site takes no more runs now.",
            WaitReason::QuotaConcurrency => "Its tenant runs as many jobs at once as it may.",
            WaitReason::PausedOperator => "It was paused; resume it to let it run.",
            WaitReason::PausedQuota => "A quota paused it; raise the limit or resume it.",
            WaitReason::PausedFailures => {
                "It failed too often in a row and was paused; mend it, then resume it."
            }
            WaitReason::DisabledInvalid => "Its stored schedule cannot be read; save it anew.",
            WaitReason::Disabled => "It is not enabled.",
            WaitReason::NeverRun => "It has never run; its first run lies ahead.",
            WaitReason::Manual => "It runs only when triggered.",
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing that a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What.
    pub reason: WaitReason,
    /// Until when; none if that is not a matter of time.
    pub until: Option<Timestamp>,
}

/// What keeps a job from starting now, as far as it can be told from the job itself: the one that
/// ends last stands first, because it decides the start. Empty for a job that may start; what else
/// it waits for then (room, a node, a site) is known to those who dispatch.
pub fn waits(key: &JobKey, terms: &Terms, state: &JobState, now: Timestamp) -> Vec<Wait> {
    let without_end = |reason| vec![Wait { reason, until: None }];
    if state.owner.is_some() {
        return without_end(WaitReason::Running);
    }
    if let Some(pause) = &state.pause {
        return without_end(match pause.by {
            PausedBy::Operator => WaitReason::PausedOperator,
            PausedBy::Quota => WaitReason::PausedQuota,
            PausedBy::Failures => WaitReason::PausedFailures,
            PausedBy::Invalid => WaitReason::DisabledInvalid,
        });
    }
    if !terms.enabled {
        return without_end(WaitReason::Disabled);
    }
    if let Some(waits) = waits_of_extra(key, terms, state, now) {
        return waits;
    }
    let Some(pending) = state.next_run_at else {
        return without_end(match terms.schedule {
            Schedule::Manual => WaitReason::Manual,
            _ if state.last_start_at.is_none() => WaitReason::NeverRun,
            _ => WaitReason::NotDue,
        });
    };

    let mut waits = Vec::new();
    if now < pending {
        let reason = match terms.schedule {
            _ if state.last_start_at.is_none() => WaitReason::NeverRun,
            Schedule::Fresh { .. } => WaitReason::Cooldown,
            _ => WaitReason::NotDue,
        };
        waits.push(Wait { reason, until: Some(pending) });
    }
    let floor = urgency::retry_floor(key, terms, state).filter(|floor| now < *floor);
    if let Some(floor) = floor {
        waits.push(Wait { reason: WaitReason::Backoff, until: Some(floor) });
    }
    let unblocked = floor.unwrap_or(pending).max(pending).max(now);
    waits.extend(blackout_at(terms, unblocked));
    // What has no end at all ends last.
    waits.sort_by_key(|wait| std::cmp::Reverse((wait.until.is_none(), wait.until)));
    waits
}

/// The same for what the job owes besides its pending occurrence; none if the latter comes first.
fn waits_of_extra(key: &JobKey, terms: &Terms, state: &JobState, now: Timestamp) -> Option<Vec<Wait>> {
    let not_before = state.extras.iter().map(|extra| extra.not_before).min()?;
    let floor = urgency::retry_floor(key, terms, state);
    let pending = state.next_run_at.map(|pending| floor.map_or(pending, |floor| floor.max(pending)));
    if pending.is_some_and(|pending| pending.max(now) <= not_before.max(now)) {
        return None;
    }
    let backoff = Wait { reason: WaitReason::Backoff, until: Some(not_before) };
    let mut waits: Vec<Wait> = blackout_at(terms, not_before.max(now)).into_iter().collect();
    waits.extend((now < not_before).then_some(backoff));
    Some(waits)
}

fn blackout_at(terms: &Terms, at: Timestamp) -> Option<Wait> {
    let until = terms.blackouts.exit(&terms.zone, at);
    (until != Some(at)).then_some(Wait { reason: WaitReason::Blackout, until })
}

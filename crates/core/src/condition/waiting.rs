//! Why a job does not run right now.

use super::{Reason, system_pause};
use crate::ids::JobKey;
use crate::job::{JobState, Terms};
use crate::schedule::Schedule;
use crate::time::Timestamp;
use crate::urgency::{self, Outlook};

/// One thing that a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub reason: Reason,
    /// Until when; none if that is not a matter of time.
    pub until: Option<Timestamp>,
}

/// What keeps a job from starting now, as far as it can be told from the job itself: the one that
/// ends last stands first, because it decides the start. Empty for a job that may start; what else
/// it waits for then (room, a node, a site) is known to those who dispatch.
pub fn waits(key: &JobKey, terms: &Terms, state: &JobState, now: Timestamp, outlook: &Outlook) -> Vec<Wait> {
    let without_end = |reason| vec![Wait { reason, until: None }];
    if state.owner.is_some() && terms.max_open() == 1 {
        return without_end(Reason::Running);
    }
    if state.pause.is_some() {
        return without_end(system_pause(state).unwrap_or(Reason::PausedOperator));
    }
    if !terms.enabled {
        return without_end(Reason::Disabled);
    }
    if let Some(waits) = waits_of_extra(key, terms, state, now, outlook) {
        return waits;
    }
    let Some(pending) = state.next_run_at else {
        return without_end(match terms.schedule {
            Schedule::Manual => Reason::Manual,
            _ if state.placement.is_some() => Reason::Done,
            _ if state.last_start_at.is_none() => Reason::NeverRun,
            _ => Reason::NotDue,
        });
    };

    let mut waits = Vec::new();
    if now < pending {
        let reason = match terms.schedule {
            _ if state.last_start_at.is_none() => Reason::NeverRun,
            Schedule::Fresh { .. } => Reason::Cooldown,
            _ => Reason::NotDue,
        };
        waits.push(Wait { reason, until: Some(pending) });
    }
    let floor = urgency::retry_floor(key, terms, state).filter(|floor| now.max(pending) < *floor);
    if let Some(floor) = floor {
        waits.push(Wait { reason: Reason::Backoff, until: Some(floor) });
    }
    let unblocked = floor.unwrap_or(pending).max(pending).max(now);
    waits.extend(held_up_from(terms, state, unblocked, outlook));
    // What has no end at all ends last.
    waits.sort_by_key(|wait| std::cmp::Reverse((wait.until.is_none(), wait.until)));
    waits
}

/// The same for what the job owes besides its pending occurrence; none if the latter comes first.
fn waits_of_extra(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    now: Timestamp,
    outlook: &Outlook,
) -> Option<Vec<Wait>> {
    let not_before = state.extras.iter().map(|extra| extra.not_before).min()?;
    let floor = urgency::retry_floor(key, terms, state);
    let pending = state.next_run_at.map(|pending| floor.map_or(pending, |floor| floor.max(pending)));
    if pending.is_some_and(|pending| pending.max(now) <= not_before.max(now)) {
        return None;
    }
    let backoff = Wait { reason: Reason::Backoff, until: Some(not_before) };
    let mut waits = held_up_from(terms, state, not_before.max(now), outlook);
    waits.extend((now < not_before).then_some(backoff));
    Some(waits)
}

/// What blackouts do to a run that could otherwise start then, what ends last first: it waits for the end of the one
/// that it lies in, and for the end of the next one if it would not be over before that.
fn held_up_from(terms: &Terms, state: &JobState, at: Timestamp, outlook: &Outlook) -> Vec<Wait> {
    let exit = terms.blackouts.exit(&terms.zone, at);
    let inside = (exit != Some(at)).then_some(Wait { reason: Reason::Blackout, until: exit });
    let ahead = exit.and_then(|exit| {
        let length = urgency::expected_length(terms, state, outlook);
        let until = terms.blackouts.earliest_fit(&terms.zone, exit, length);
        (until != Some(exit)).then_some(Wait { reason: Reason::BlackoutAhead, until })
    });
    ahead.into_iter().chain(inside).collect()
}

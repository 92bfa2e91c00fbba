//! The watcher's side: which sessions have been silent long enough to be fenced off.

use std::collections::BTreeMap;

use super::{Epoch, Reign, Timings};
use crate::ids::{SessionId, stable_hash};
use crate::rules::{Rule, Rules};
use crate::time::{BootTime, Duration};

/// What one session's row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionBeat {
    /// Whose.
    pub session: SessionId,
    /// How often it has beaten.
    pub beat: u64,
}

/// A session that may be fenced off, if its beat is still this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    pub session: SessionId,
    /// The beat that was seen for the whole window.
    pub beat: u64,
}

/// What one node has seen of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watcher {
    timings: Timings,
    me: SessionId,
    seen: BTreeMap<SessionId, LastBeat>,
    last_answer_at: Option<BootTime>,
    rules: Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastBeat {
    beat: u64,
    epoch: Epoch,
    /// When the answer came that first showed it.
    since: BootTime,
    /// When its window is over, if nothing is heard of it until then.
    fenced_from: BootTime,
}

impl Watcher {
    /// A watcher that has seen nothing yet.
    pub fn new(timings: Timings, me: SessionId) -> Watcher {
        Watcher { timings, me, seen: BTreeMap::new(), last_answer_at: None, rules: Rules::ALL }
    }

    /// The same, by these rules.
    #[must_use]
    pub fn by(self, rules: Rules) -> Watcher {
        Watcher { rules, ..self }
    }

    /// Takes a reading of all sessions that hold runs; `answered_at` is after its answer.
    pub fn read(&mut self, answered_at: BootTime, epoch: Epoch, sessions: &[SessionBeat]) {
        // Of a time in which we saw nothing we know nothing: a living session may have been as cut off as
        // we were, and gets a whole window to speak.
        let was_blind = self.rules.hold(Rule::Amnesty)
            && self.last_answer_at.is_none_or(|last| self.timings.gap() < answered_at - last);
        let before = if was_blind { BTreeMap::new() } else { std::mem::take(&mut self.seen) };
        self.seen = sessions
            .iter()
            .map(|it| {
                let is_same = |seen: &&LastBeat| {
                    (seen.beat, seen.epoch) == (it.beat, epoch) || !self.rules.hold(Rule::BeatRestartsWindow)
                };
                let unchanged = before.get(&it.session).filter(is_same);
                let (since, fenced_from) = unchanged.map_or_else(
                    || (answered_at, self.fenced_from(it.session, answered_at)),
                    |seen| (seen.since, seen.fenced_from),
                );
                (it.session, LastBeat { beat: it.beat, epoch, since, fenced_from })
            })
            .collect();
        self.last_answer_at = Some(answered_at);
    }

    /// The sessions that may be fenced off now. To be asked right before the fencing is sent; never
    /// ourselves, and none while the epoch is not open.
    pub fn silent(&self, now: BootTime, reign: &Reign) -> Vec<Silent> {
        let is_blind = self.last_answer_at.is_none_or(|last| self.timings.gap() < now - last);
        let is_closed = !reign.is_open() && self.rules.hold(Rule::FenceOnlyInOpenEpoch);
        if (is_blind && self.rules.hold(Rule::Amnesty)) || is_closed {
            return Vec::new();
        }
        self.seen
            .iter()
            .filter(|(session, seen)| {
                **session != self.me && seen.epoch == reign.epoch() && seen.fenced_from <= now
            })
            .map(|(session, seen)| Silent { session: *session, beat: seen.beat })
            .collect()
    }

    /// When the beat that a session shows now was first seen; none if it is not known.
    pub fn beat_seen_at(&self, session: SessionId) -> Option<BootTime> {
        self.seen.get(&session).map(|seen| seen.since)
    }

    /// When the next session's window will be over, if nothing is heard of it until then.
    pub fn next_silent_at(&self) -> Option<BootTime> {
        self.seen.iter().filter(|(session, _)| **session != self.me).map(|(_, seen)| seen.fenced_from).min()
    }

    /// The window, and a little of our own, so that not all nodes write at once.
    fn fenced_from(&self, session: SessionId, since: BootTime) -> BootTime {
        let mut identity = self.me.0.to_le_bytes().to_vec();
        identity.extend(session.0.to_le_bytes());
        let spread = u64::try_from(self.timings.probe().as_millis()).unwrap_or(1).max(1);
        let jitter = i64::try_from(stable_hash(&identity) % spread).unwrap_or(0);
        let window = if self.rules.hold(Rule::WholeWindow) {
            self.timings.window()
        } else {
            self.timings.self_fence()
        };
        since + window + Duration::from_millis(jitter)
    }
}

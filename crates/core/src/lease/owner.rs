//! The owner's side: how long a session may trust that its runs are its own.

use std::collections::BTreeMap;

use super::{Epoch, Reign, Timings};
use crate::ids::{Fence, RunId};
use crate::rules::{Rule, Rules};
use crate::time::BootTime;

/// What a session knows about its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOwner {
    timings: Timings,
    /// When the last beat that succeeded was begun: trust counts from there.
    beat_began_at: Option<BootTime>,
    reign: Option<Reign>,
    is_dead: bool,
    /// In which epoch the runs were last allowed to execute. If it is another one now, and they have
    /// been frozen, they must wait.
    trusted_in: Option<Epoch>,
    /// Whether it begins with runs of an earlier session, which may be frozen.
    inherits: bool,
    rules: Rules,
}

/// How a session stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// It has not beaten yet: it has no runs, and may claim none.
    New,
    /// Its runs may execute until then, and not a moment longer without another beat.
    Trusted {
        /// The end of trust.
        until: BootTime,
    },
    /// Its runs must not execute until a beat succeeds.
    Frozen,
    /// Others have taken over: its runs must be killed.
    Dead,
}

/// What the store answers to a beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeatAnswer {
    /// The session lives. These are its open runs, read after the beat was committed.
    Alive {
        /// The reign that answered.
        epoch: Epoch,
        /// Whether it is open.
        is_open: bool,
        /// The open runs of the session, with their fences.
        runs: BTreeMap<RunId, Fence>,
    },
    /// The session was fenced off.
    Dead,
}

/// A run that a session believes it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRun {
    /// Its lease.
    pub fence: Fence,
    /// Whether its claim or its end is on its way to the store: then what a beat says of it may already
    /// be old.
    pub is_in_flight: bool,
}

/// What a beat's answer asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// These runs are no longer ours, or never were: kill them.
    pub revoke: Vec<RunId>,
    /// These are ours in the store and have no process: their claim's answer was lost. Give them back;
    /// no attempt is counted.
    pub release: Vec<(RunId, Fence)>,
}

impl LeaseOwner {
    /// A session that has yet to beat.
    pub fn new(timings: Timings) -> LeaseOwner {
        LeaseOwner {
            timings,
            beat_began_at: None,
            reign: None,
            is_dead: false,
            trusted_in: None,
            inherits: false,
            rules: Rules::ALL,
        }
    }

    /// A session that has taken over runs of an earlier one in an epoch that is not open. They may be frozen, and
    /// another session may have been given them: they wait like any frozen run.
    pub fn inheriting(timings: Timings) -> LeaseOwner {
        LeaseOwner { inherits: true, ..LeaseOwner::new(timings) }
    }

    /// The same, by these rules.
    #[must_use]
    pub fn by(self, rules: Rules) -> LeaseOwner {
        LeaseOwner { rules, ..self }
    }

    /// How the session stands.
    pub fn lease_state(&self, now: BootTime) -> LeaseState {
        if self.is_dead {
            return LeaseState::Dead;
        }
        let (Some(began_at), Some(reign)) = (self.beat_began_at, &self.reign) else { return LeaseState::New };
        let until = began_at + self.timings.self_fence();
        let in_same_reign = self.trusted_in == Some(reign.epoch());
        if until <= now || !in_same_reign {
            return LeaseState::Frozen;
        }
        LeaseState::Trusted { until }
    }

    /// Whether it may ask for new runs.
    pub fn may_claim(&self, now: BootTime) -> bool {
        let Some(began_at) = self.beat_began_at else { return false };
        let is_trusted = matches!(self.lease_state(now), LeaseState::Trusted { .. });
        let is_recent = now < began_at + self.timings.claim_trust();
        is_trusted && is_recent && self.reign.is_some_and(|reign| reign.is_open())
    }

    /// What it knows of the current epoch.
    pub fn reign(&self) -> Option<&Reign> {
        self.reign.as_ref()
    }

    /// Takes the answer to a beat that was begun at `began_at` and answered at `answered_at`, and says
    /// what follows for the runs that it believes to hold.
    pub fn beat_answered(
        &mut self,
        began_at: BootTime,
        answered_at: BootTime,
        answer: &BeatAnswer,
        held: &BTreeMap<RunId, HeldRun>,
    ) -> Verdict {
        let BeatAnswer::Alive { epoch, is_open, runs } = answer else {
            self.is_dead = true;
            return Verdict { revoke: held.keys().copied().collect(), release: Vec::new() };
        };
        if self.is_dead || self.reign.is_some_and(|reign| *epoch < reign.epoch()) {
            // A late answer from before we died, or from an old primary.
            return Verdict::default();
        }
        let was_trusted = match self.lease_state(answered_at) {
            LeaseState::Trusted { .. } => true,
            LeaseState::New => !self.inherits,
            LeaseState::Frozen | LeaseState::Dead => !self.rules.hold(Rule::ThawAfterQuarantine),
        };
        let began_at = if self.rules.hold(Rule::TrustFromRequest) { began_at } else { answered_at };
        let mut reign = self.reign.unwrap_or_else(|| Reign::new(*epoch, *is_open, answered_at));
        reign.observe(*epoch, *is_open, answered_at);
        self.reign = Some(reign);
        // Answers may overtake each other; trust never shrinks by that, and never grows by a beat that
        // was begun earlier.
        self.beat_began_at = self.beat_began_at.max(Some(began_at));
        // What executes in good trust goes on under a new primary: no other session can have taken it. What is
        // frozen must first outlast those whose beats the old primary may have taken with it.
        if was_trusted || self.trusted_in == Some(*epoch) || reign.may_thaw(answered_at, &self.timings) {
            self.trusted_in = Some(*epoch);
        }
        judge(runs, held)
    }
}

/// Compares what the store says with what we believe.
fn judge(runs: &BTreeMap<RunId, Fence>, held: &BTreeMap<RunId, HeldRun>) -> Verdict {
    let is_settled = |it: &HeldRun| !it.is_in_flight;
    let revoke = held
        .iter()
        .filter(|(run, it)| is_settled(it) && runs.get(run) != Some(&it.fence))
        .map(|(run, _)| *run)
        .collect();
    let release =
        runs.iter().filter(|(run, _)| !held.contains_key(run)).map(|(run, fence)| (*run, *fence)).collect();
    Verdict { revoke, release }
}

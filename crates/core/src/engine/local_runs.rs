//! The runs of this node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ends::Ends;
use super::pool::Hold;
use super::view::{JobIdx, JobUpdate};
use crate::ids::{Fence, JobKey, RunId};
use crate::job::{RunEnd, Terms};
use crate::lease::HeldRun;
use crate::occurrence::Due;
use crate::run::Outcome;
use crate::store::CounterKey;
use crate::time::{BootTime, Duration, Timestamp};

/// A run of this node.
#[derive(Clone, Debug)]
pub(crate) struct LocalRun {
    /// The number that its job had. Another job may have it by now, so compare the key.
    pub(crate) idx: JobIdx,
    pub(crate) key: JobKey,
    pub(crate) fence: Fence,
    pub(crate) due: Due,
    pub(crate) phase: Phase,
    /// None for a run that was taken over, until the fleet has been read. Until then it holds no units either.
    pub(crate) terms: Option<Arc<Terms>>,
    /// The units it holds, while anything of it may execute.
    pub(crate) hold: Option<Hold>,
    pub(crate) takes: Vec<CounterKey>,
    /// Whether its end is kept until it is on record, also if the node dies.
    pub(crate) keeps_end: bool,
    /// When it became ours. What the store said before that does not include it.
    pub(crate) since: BootTime,
    pub(crate) started_at: Option<Timestamp>,
    /// How much this session had executed when it started.
    pub(crate) worked_before: Duration,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// To be started.
    Starting,
    /// With a broker, for a worker to start: nothing of it ever executes here, but it holds its units until a
    /// worker has won it.
    Published,
    /// It executes, or is frozen.
    Running,
    /// It has been told to stop.
    Stopping,
    /// It has ended, and the store does not know yet.
    Over,
    /// It is no longer ours, and is being killed.
    Revoked,
}

/// Something that will be due about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// A blackout begins.
    Blackout,
    /// Another occurrence comes due while it runs.
    Overlap,
    /// It takes longer than expected.
    Overrun,
    /// It takes far longer than runs of its job usually do.
    Slow,
    /// It takes longer than it may.
    TooLong,
    /// No worker has started it in time.
    NotTakenUp,
}

/// All runs of this node, and their alarms.
#[derive(Debug, Default)]
pub(crate) struct LocalRuns {
    pub(crate) by_id: BTreeMap<RunId, LocalRun>,
    /// By the clock that occurrences go by.
    by_time: BTreeSet<(Timestamp, RunId, Alarm)>,
    /// By how much this session has executed: frozen time does not count.
    by_work: BTreeSet<(Duration, RunId, Alarm)>,
    /// Which alarms a run has, so that they go with it.
    set: BTreeMap<RunId, Vec<AlarmAt>>,
}

#[derive(Clone, Copy, Debug)]
enum AlarmAt {
    Time(Timestamp, Alarm),
    Work(Duration, Alarm),
}

impl LocalRuns {
    /// Keeps the terms of a removed job: it is no longer in the view, and its runs here must still keep to them.
    pub(crate) fn learn_terms(&mut self, removed: JobUpdate<'_>) {
        if removed.n_open == 0 {
            return;
        }
        for held in self.by_id.values_mut().filter(|it| it.terms.is_none() && it.key == *removed.key) {
            held.terms = Some(Arc::new(removed.terms.clone()));
        }
    }

    /// The runs as the lease compares them with the answer to a beat that was begun then. A run that has ended stays
    /// ours until the store has written its end.
    pub(crate) fn for_lease(&self, ends: &Ends, began_at: BootTime) -> BTreeMap<RunId, HeldRun> {
        let held = self.by_id.iter().map(|(run, held)| {
            let is_ending = matches!(held.phase, Phase::Over | Phase::Revoked);
            (*run, HeldRun { fence: held.fence, is_in_flight: is_ending || began_at <= held.since })
        });
        // Runs that are about to be given back must not be given back twice.
        let ending = ends.iter().map(|(run, end)| (*run, HeldRun { fence: end.fence, is_in_flight: true }));
        held.chain(ending).collect()
    }

    /// Runs that were taken over and hold no units yet, though they may execute.
    pub(crate) fn unplaced(&self) -> impl Iterator<Item = RunId> {
        let is_unplaced = |held: &LocalRun| held.hold.is_none() && held.phase != Phase::Over;
        self.by_id.iter().filter(move |(_, held)| is_unplaced(held)).map(|(run, _)| *run)
    }

    pub(crate) fn alarm_at(&mut self, at: Timestamp, run: RunId, alarm: Alarm) {
        self.by_time.insert((at, run, alarm));
        self.set.entry(run).or_default().push(AlarmAt::Time(at, alarm));
    }

    pub(crate) fn alarm_after_work(&mut self, worked: Duration, run: RunId, alarm: Alarm) {
        self.by_work.insert((worked, run, alarm));
        self.set.entry(run).or_default().push(AlarmAt::Work(worked, alarm));
    }

    /// The alarms that are due, taken out.
    pub(crate) fn due(&mut self, time: Timestamp, worked: Duration) -> Vec<(RunId, Alarm)> {
        let mut due = Vec::new();
        while let Some(first) = self.by_time.first().copied().filter(|(at, ..)| *at <= time) {
            self.by_time.remove(&first);
            due.push((first.1, first.2));
        }
        while let Some(first) = self.by_work.first().copied().filter(|(at, ..)| *at <= worked) {
            self.by_work.remove(&first);
            due.push((first.1, first.2));
        }
        due
    }

    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, ..)| *at)
    }

    pub(crate) fn next_work(&self) -> Option<Duration> {
        self.by_work.first().map(|(at, ..)| *at)
    }

    /// Whether anything of this node may still execute.
    pub(crate) fn any_executes(&self) -> bool {
        self.by_id.values().any(|held| held.phase != Phase::Over)
    }

    pub(crate) fn forget_alarms(&mut self, run: RunId) {
        for alarm_at in self.set.remove(&run).unwrap_or_default() {
            match alarm_at {
                AlarmAt::Time(at, alarm) => self.by_time.remove(&(at, run, alarm)),
                AlarmAt::Work(worked, alarm) => self.by_work.remove(&(worked, run, alarm)),
            };
        }
    }
}

/// The end of a run that was lost: when it ended is not known.
pub(crate) fn lost_end(
    run: RunId,
    started_at: Option<Timestamp>,
    claimed_at: Timestamp,
    now: Timestamp,
) -> RunEnd {
    let started_at = started_at.unwrap_or(claimed_at);
    RunEnd {
        run,
        started_at,
        ended_at: now.max(started_at),
        outcome: Outcome::Lost,
        exit_code: None,
        frozen_for: Duration::ZERO,
    }
}

//! The process tree of a run: the truth about what executes.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{BootTime, Duration};

use super::node::ShimReport;
use super::shim::State;
use super::{ForShim, World, WorldWeakness};
use crate::fact::{RealTime, What};

/// The process tree of a run.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) began_at: BootTime,
    /// How long it still takes, counted from `since` while it executes.
    left: i64,
    since: RealTime,
    pub(super) is_executing: bool,
    pub(super) freeze: Freeze,
    /// Counts freezes, so that one that was called off does not take effect.
    pub(super) n_freezes: u32,
    /// Counts halts, so that an end that was put off does not come.
    pub(super) n_halts: u32,
    halted_for: i64,
    pub(super) outcome: Outcome,
    pub(super) exit_code: Option<i32>,
    /// It is being stopped.
    pub(super) is_dying: bool,
}

/// Whether its shim has frozen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freeze {
    None,
    /// It is being frozen, and still executes; which time that is.
    Asked(u32),
    Effective,
}

impl World {
    /// A process fails on its own.
    pub(super) fn process_dies(&mut self, node: usize, run: RunId) {
        if let Some(process) = self.process(node, run) {
            (process.outcome, process.exit_code) = (Outcome::Failed, Some(137));
            self.process_is_gone(node, run);
        }
    }

    /// A process has done its work.
    pub(super) fn process_ends(&mut self, node: usize, run: RunId) {
        if !self.is_weak(WorldWeakness::ReportsEndBeforeGone) {
            return self.process_is_gone(node, run);
        }
        let boot = self.boot_now(node);
        let gone_at = self.after(200, 4_000);
        if let Some(report) = self.process(node, run).map(|process| process.last_word(boot)) {
            self.tell_of(node, run, report);
            self.put_for_shim(gone_at, node, run, ForShim::Killed);
        }
    }

    /// The last process of a run is gone.
    pub(super) fn process_is_gone(&mut self, node: usize, run: RunId) {
        let (boot, now) = (self.boot_now(node), self.now);
        let Some(process) = self.process(node, run) else { return };
        process.count_halt(now);
        let report = process.last_word(boot);
        self.trace.tell(What::IsGone { run });
        self.shim(node, run).state = State::Over(report);
        self.tell_of(node, run, report);
    }

    /// A process stops executing for now.
    pub(super) fn halt(&mut self, node: usize, run: RunId) {
        let now = self.now;
        if self.process(node, run).is_some_and(|process| process.stop(now)) {
            self.trace.tell(What::Halts { run });
        }
    }

    /// It goes on, unless it is frozen.
    pub(super) fn go_on(&mut self, node: usize, run: RunId) {
        if self.process(node, run).is_none_or(|it| it.is_executing || it.freeze == Freeze::Effective) {
            return;
        }
        let now = self.now;
        if self.process(node, run).is_some_and(|process| process.resume(now)) {
            self.trace.tell(What::GoesOn { run });
            self.put_end(node, run);
        }
    }

    pub(super) fn put_end(&mut self, node: usize, run: RunId) {
        let now = self.now;
        let Some((at, n_halts)) = self.process(node, run).map(|process| process.ends_at(now)) else { return };
        self.put_for_shim(at, node, run, ForShim::Ends(n_halts));
    }

    pub(super) fn draw_process(&mut self, key: &JobKey, boot: BootTime) -> Process {
        let (left, fails_percent) = match self.habits.get(key) {
            Some(habit) => {
                let (least, most) = (habit.length_min.as_millis(), habit.length_max.as_millis());
                // Half of all runs are much shorter than the longest, the others as it comes.
                let left = if self.dice.chance(50) {
                    self.dice.spread(least, most)
                } else {
                    self.dice.between(least, most)
                };
                (left, habit.fails_percent)
            }
            None => (self.dice.spread(100, 5_000), 10),
        };
        let (outcome, exit_code) = if self.dice.chance(fails_percent) {
            (Outcome::Failed, Some(if self.dice.chance(20) { 2 } else { 1 }))
        } else {
            (Outcome::Succeeded, Some(0))
        };
        Process {
            began_at: boot,
            left,
            since: self.now,
            is_executing: true,
            freeze: Freeze::None,
            n_freezes: 0,
            n_halts: 0,
            halted_for: 0,
            outcome,
            exit_code,
            is_dying: false,
        }
    }
}

impl Process {
    /// Stops executing, if it does.
    pub(super) fn stop(&mut self, now: RealTime) -> bool {
        if self.is_executing {
            self.left -= now.0 - self.since.0;
            self.since = now;
            self.n_halts += 1;
            self.is_executing = false;
            return true;
        }
        false
    }

    /// Goes on, if it stands still.
    pub(super) fn resume(&mut self, now: RealTime) -> bool {
        if self.is_executing {
            return false;
        }
        self.count_halt(now);
        self.is_executing = true;
        true
    }

    /// How long it stood still is not how long it took.
    pub(super) fn count_halt(&mut self, now: RealTime) {
        if !self.is_executing {
            self.halted_for += now.0 - self.since.0;
            self.since = now;
        }
    }

    /// When it ends if nothing halts it, and how often it was halted before.
    pub(super) fn ends_at(&self, now: RealTime) -> (RealTime, u32) {
        (RealTime(now.0 + self.left.max(0)), self.n_halts)
    }

    /// How long it stood still.
    pub(super) fn halted_for(&self) -> Duration {
        Duration::from_millis(self.halted_for)
    }

    /// What its shim says of it at the end.
    fn last_word(&self, now: BootTime) -> ShimReport {
        ShimReport::Ended {
            began_at: self.began_at,
            ended_at: now,
            outcome: self.outcome,
            exit_code: self.exit_code,
            halted_for: self.halted_for(),
        }
    }
}

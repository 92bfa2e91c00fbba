//! The shim of a run: a process of its own that begins, halts and ends the run's process, with or without a
//! scheduler.
//!
//! What it does is all that keeps two copies apart when a scheduler cannot: it looks at its lease right before
//! it begins, and halts its process when the lease is over.

use evenbeat_core::engine::Start;
use evenbeat_core::ids::{Fence, JobKey, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::time::BootTime;

use super::node::ShimReport;
use super::process::{Freeze, Process};
use super::{AtNode, ForScheduler, ForShim, Happening, World, WorldWeakness};
use crate::fact::{RealTime, What};

/// What a scheduler says to a shim.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShimMessage {
    Extend(BootTime),
    Stop(Outcome),
    Revoke,
}

/// A shim.
#[derive(Debug)]
pub(super) struct Shim {
    key: JobKey,
    fence: Fence,
    cost: u32,
    /// None if it may run without a lease.
    lease_until: Option<BootTime>,
    /// The life of the scheduler that it is connected to.
    life: Option<u32>,
    /// Since when it is connected to none.
    orphan_since: RealTime,
    pub(super) state: State,
    is_revoked: bool,
    /// When its lease will be looked at.
    armed_at: Option<RealTime>,
    /// Words and reports keep their order.
    next_word_at: RealTime,
    next_report_at: RealTime,
}

#[derive(Debug)]
pub(super) enum State {
    /// It is there, and has not begun its process.
    Starting,
    /// Its process is there.
    Began(Process),
    /// Its process never was.
    NeverBegan,
    /// Its process is gone; this is what it says of it.
    Over(ShimReport),
}

impl Shim {
    pub(super) fn has_process(&self) -> bool {
        matches!(self.state, State::Began(_))
    }

    pub(super) fn is_executing(&self) -> bool {
        matches!(&self.state, State::Began(process) if process.is_executing)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::NeverBegan | State::Over(_))
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.is_revoked
    }

    /// Its scheduler is gone.
    pub(super) fn let_go(&mut self, now: RealTime) {
        (self.life, self.orphan_since) = (None, now);
    }

    /// A scheduler connects to it.
    pub(super) fn hold(&mut self, life: u32) {
        self.life = Some(life);
    }

    /// What it says to a scheduler that has just connected.
    pub(super) fn report(&self) -> Option<ShimReport> {
        match &self.state {
            State::Starting => None,
            State::Began(process) => Some(ShimReport::Started { at: process.began_at }),
            State::NeverBegan => Some(ShimReport::NotStarted),
            State::Over(report) => Some(*report),
        }
    }

    pub(super) fn process(&mut self) -> Option<&mut Process> {
        match &mut self.state {
            State::Began(process) => Some(process),
            _ => None,
        }
    }
}

impl World {
    /// A scheduler starts a run: its shim is there at once, its process a moment later.
    pub(super) fn start_shim(&mut self, node: usize, start: &Start) {
        let self_fence = self.setup.timings.self_fence().as_millis();
        // A machine that is busy takes long, now and then longer than any lease.
        let slow_percent = if self.is_aimed_at(node) { 50 } else { 4 };
        let begins_at =
            if self.dice.chance(slow_percent) { self.after(50, self_fence * 2) } else { self.after(1, 30) };
        let life = self.scheduler(node).life;
        let it = &mut self.nodes[node];
        let shim = Shim {
            key: start.job.key.clone(),
            fence: start.fence,
            cost: start.job.place.cost,
            lease_until: start.lease_until,
            life: Some(life),
            orphan_since: self.now,
            state: State::Starting,
            is_revoked: false,
            armed_at: None,
            next_word_at: self.now,
            next_report_at: self.now,
        };
        it.shims.insert(start.run, shim);
        self.put_for_shim(begins_at, node, start.run, ForShim::Begin);
    }

    /// Lets every strict run of this scheduler execute until then.
    pub(super) fn extend(&mut self, node: usize, until: BootTime) {
        let life = self.scheduler(node).life;
        let is_held = |shim: &Shim| {
            shim.life == Some(life) && shim.lease_until.is_some() && !shim.is_over() && !shim.is_revoked
        };
        let held: Vec<RunId> =
            self.nodes[node].shims.iter().filter(|(_, shim)| is_held(shim)).map(|(run, _)| *run).collect();
        for run in held {
            self.say(node, run, ShimMessage::Extend(until));
        }
    }

    /// Says something to a shim, over a socket that keeps the order.
    pub(super) fn say(&mut self, node: usize, run: RunId, word: ShimMessage) {
        let at = if self.dice.chance(2) { self.after(5, 60) } else { self.after(0, 3) };
        let Some(shim) = self.nodes[node].shims.get_mut(&run) else {
            // There is nothing to stop, and the scheduler learns that.
            return self.tell_of(node, run, ShimReport::NotStarted);
        };
        shim.next_word_at = shim.next_word_at.max(at);
        let at = shim.next_word_at;
        self.put_for_shim(at, node, run, ForShim::ShimMessage(word));
    }

    /// Says something to the scheduler, if there is one that listens.
    pub(super) fn tell_of(&mut self, node: usize, run: RunId, report: ShimReport) {
        let at = self.after(0, 5);
        let life = match self.nodes[node].shims.get_mut(&run) {
            Some(shim) => {
                shim.next_report_at = shim.next_report_at.max(at);
                shim.life
            }
            // There is no shim: the scheduler finds that out.
            None => self.nodes[node].scheduler.as_ref().map(|it| it.life),
        };
        let at = self.nodes[node].shims.get(&run).map_or(at, |shim| shim.next_report_at);
        if let Some(life) = life {
            self.queue
                .put(at, Happening::At(node, AtNode::Scheduler(life, ForScheduler::Hears(run, report))));
        }
    }

    /// Something comes for a shim that is there and awake.
    pub(super) fn at_shim(&mut self, node: usize, run: RunId, what: ForShim) {
        match what {
            ForShim::Begin => self.begin(node, run),
            ForShim::ShimMessage(ShimMessage::Extend(until)) => self.extended(node, run, until),
            ForShim::ShimMessage(ShimMessage::Stop(outcome)) => self.stop(node, run, outcome),
            ForShim::ShimMessage(ShimMessage::Revoke) => self.revoke(node, run),
            ForShim::Deadline(at) => self.deadline(node, run, at),
            ForShim::Frozen(n_freezes) => {
                if let Some(process) = self.process(node, run)
                    && process.freeze == Freeze::Asked(n_freezes)
                {
                    process.freeze = Freeze::Effective;
                    self.halt(node, run);
                }
            }
            ForShim::Ends(n_halts) => {
                if self.process(node, run).is_some_and(|it| it.is_executing && it.n_halts == n_halts) {
                    self.process_ends(node, run);
                }
            }
            ForShim::Killed => self.process_is_gone(node, run),
            ForShim::Orphaned(since) => {
                let shim = self.shim(node, run);
                if shim.life.is_none() && shim.orphan_since == since {
                    self.kill(node, run, Outcome::Failed);
                }
            }
            ForShim::Turn => self.turn(node, run),
        }
    }

    fn begin(&mut self, node: usize, run: RunId) {
        let boot = self.boot_now(node);
        let looks = !self.is_weak(WorldWeakness::ShimIgnoresDeadlineBeforeStart);
        let shim = self.shim(node, run);
        if !matches!(shim.state, State::Starting) {
            return;
        }
        if looks && shim.lease_until.is_some_and(|until| until <= boot) {
            return self.never_begins(node, run);
        }
        let (key, fence, cost) = (shim.key.clone(), shim.fence, shim.cost);
        let process = self.draw_process(&key, boot);
        self.shim(node, run).state = State::Began(process);
        let node_name = self.nodes[node].name.clone();
        self.trace.tell(What::Begins { run, key, fence, node: node_name, cost });
        self.put_end(node, run);
        let is_leased = self.shim(node, run).lease_until.is_none_or(|until| boot < until);
        if is_leased {
            // Without the check there is no timer for what is past either.
            self.arm_deadline(node, run);
        }
        self.tell_of(node, run, ShimReport::Started { at: boot });
    }

    fn never_begins(&mut self, node: usize, run: RunId) {
        self.shim(node, run).state = State::NeverBegan;
        self.tell_of(node, run, ShimReport::NotStarted);
    }

    fn extended(&mut self, node: usize, run: RunId, until: BootTime) {
        let boot = self.boot_now(node);
        let shim = self.shim(node, run);
        if shim.is_revoked || shim.lease_until.is_none() || shim.is_over() {
            return;
        }
        shim.lease_until = shim.lease_until.max(Some(until));
        if let Some(process) = shim.process()
            && boot < until
        {
            process.freeze = Freeze::None;
            self.go_on(node, run);
            self.arm_deadline(node, run);
        }
    }

    /// Sets a timer for the end of the lease, unless one goes off early enough to look again.
    fn arm_deadline(&mut self, node: usize, run: RunId) {
        let (clock, soonest) = (self.nodes[node].clock, self.now);
        let shim = self.shim(node, run);
        let Some(until) = shim.lease_until else { return };
        let at = clock.real(until).max(soonest);
        if shim.armed_at.is_none_or(|armed_at| at < armed_at) {
            shim.armed_at = Some(at);
            self.put_for_shim(at, node, run, ForShim::Deadline(at));
        }
    }

    /// A clock that leases must not go by was set: a shim that uses it sets its timers again.
    pub(super) fn arm_all_deadlines(&mut self, node: usize) {
        let runs: Vec<RunId> = self.nodes[node].shims.keys().copied().collect();
        for run in runs {
            self.shim(node, run).armed_at = None;
            self.arm_deadline(node, run);
        }
    }

    fn deadline(&mut self, node: usize, run: RunId, at: RealTime) {
        let boot = self.boot_now(node);
        let freezes = !self.is_weak(WorldWeakness::NoFreeze);
        let shim = self.shim(node, run);
        if shim.armed_at != Some(at) {
            return;
        }
        shim.armed_at = None;
        if shim.lease_until.is_some_and(|until| boot < until) {
            return self.arm_deadline(node, run);
        }
        if freezes {
            self.freeze(node, run);
        }
    }

    /// Stops every process of the tree; that takes a moment, and now and then only a kill helps.
    fn freeze(&mut self, node: usize, run: RunId) {
        let spec = self.setup.timings.spec();
        let (quick, slow) = (spec.freeze_bound.as_millis(), spec.stop_bound.as_millis());
        let works = !self.dice.chance(2);
        let takes_effect_at = if works { self.after(0, quick) } else { self.after(quick, slow) };
        let Some(process) = self.process(node, run) else { return };
        if process.freeze != Freeze::None {
            return;
        }
        if works {
            process.n_freezes += 1;
            let n_freezes = process.n_freezes;
            process.freeze = Freeze::Asked(n_freezes);
            self.put_for_shim(takes_effect_at, node, run, ForShim::Frozen(n_freezes));
        } else {
            if !process.is_dying {
                (process.outcome, process.exit_code) = (Outcome::Failed, None);
            }
            process.is_dying = true;
            self.put_for_shim(takes_effect_at, node, run, ForShim::Killed);
        }
    }

    fn stop(&mut self, node: usize, run: RunId, outcome: Outcome) {
        let key = match &self.shim(node, run).state {
            State::Starting => return self.never_begins(node, run),
            State::Began(_) => self.shim(node, run).key.clone(),
            State::NeverBegan | State::Over(_) => return,
        };
        let bound = self.setup.timings.spec().stop_bound.as_millis();
        let stubborn_percent = self.habits.get(&key).map_or(0, |it| it.stubborn_percent);
        let gone_at = if self.dice.chance(stubborn_percent) {
            self.after(bound / 2, bound)
        } else {
            self.after(5, bound / 4)
        };
        if let Some(process) = self.process(node, run)
            && !process.is_dying
        {
            (process.outcome, process.exit_code, process.is_dying) = (outcome, None, true);
            self.put_for_shim(gone_at, node, run, ForShim::Killed);
        }
    }

    fn revoke(&mut self, node: usize, run: RunId) {
        if self.is_weak(WorldWeakness::RevokeDoesNothing) {
            return;
        }
        let shim = self.shim(node, run);
        shim.is_revoked = true;
        match &shim.state {
            State::Starting => self.never_begins(node, run),
            State::Began(_) => {
                self.freeze(node, run);
                self.kill(node, run, Outcome::Lost);
            }
            State::NeverBegan | State::Over(_) => {}
        }
    }

    /// Ends a process by force, within the time that takes.
    fn kill(&mut self, node: usize, run: RunId, outcome: Outcome) {
        let bound = self.setup.timings.spec().stop_bound.as_millis();
        let gone_at = self.after(1, bound);
        if matches!(self.shim(node, run).state, State::Starting) {
            return self.never_begins(node, run);
        }
        if let Some(process) = self.process(node, run) {
            (process.outcome, process.exit_code, process.is_dying) = (outcome, None, true);
            self.put_for_shim(gone_at, node, run, ForShim::Killed);
        }
    }

    /// A node goes on after it stood still: nothing executes before its shim has looked at its clock.
    fn turn(&mut self, node: usize, run: RunId) {
        let boot = self.boot_now(node);
        let freezes =
            !self.is_weak(WorldWeakness::NoFreeze) && !self.is_weak(WorldWeakness::FenceInScheduler);
        let shim = self.shim(node, run);
        let is_over = shim.lease_until.is_some_and(|until| until <= boot);
        if let Some(process) = shim.process()
            && is_over
            && freezes
            && !process.is_executing
        {
            process.freeze = Freeze::Effective;
        }
        self.go_on(node, run);
    }

    pub(super) fn put_for_shim(&mut self, at: RealTime, node: usize, run: RunId, what: ForShim) {
        let boot = self.nodes[node].boot;
        self.queue.put(at, Happening::At(node, AtNode::Shim(boot, run, what)));
    }

    pub(super) fn shim(&mut self, node: usize, run: RunId) -> &mut Shim {
        self.nodes[node].shims.get_mut(&run).expect("only a shim that is there does anything")
    }

    pub(super) fn process(&mut self, node: usize, run: RunId) -> Option<&mut Process> {
        self.nodes[node].shims.get_mut(&run).and_then(Shim::process)
    }
}

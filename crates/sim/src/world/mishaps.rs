//! Faults begin and end.

use evenbeat_core::ids::RunId;
use evenbeat_core::time::Duration;

use super::network::Party;
use super::{ForShim, Happening, World, WorldWeakness};
use crate::fact::What;
use crate::faults::{CutWay, FaultKind, Outage};

/// How long a fault that finds nothing to strike waits.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// How long a fault waits for a start.
const AIMS_FOR: Duration = Duration::from_secs(30);
/// How long after a pause shims need at most to look at their clocks.
pub(super) const TURN_MAX_MS: i64 = 5;

impl World {
    /// It is time for a fault.
    pub(super) fn fault_begins(&mut self, idx: usize) {
        if self.setup.faults[idx].is_aimed {
            self.aiming.push(idx);
            self.queue.put(self.later(AIMS_FOR), Happening::Strikes(idx));
        } else {
            self.fault_strikes(idx);
        }
    }

    pub(super) fn aimed_fault_strikes(&mut self, idx: usize) {
        if let Some(place) = self.aiming.iter().position(|it| *it == idx) {
            self.aiming.remove(place);
            self.fault_strikes(idx);
        }
    }

    /// A run is being started there: faults that wait for that strike now, or in a moment. Whether there
    /// were any.
    pub(super) fn is_aimed_at(&mut self, node: usize) -> bool {
        let is_it =
            |world: &World, idx: usize| world.setup.faults[idx].kind.node().is_none_or(|it| it == node);
        let found: Vec<usize> = self.aiming.iter().copied().filter(|idx| is_it(self, *idx)).collect();
        for idx in &found {
            let at = self.after(0, 50);
            self.queue.put(at, Happening::Strikes(*idx));
        }
        !found.is_empty()
    }

    fn fault_strikes(&mut self, idx: usize) {
        if self.is_healed {
            return;
        }
        let fault = self.setup.faults[idx];
        if !self.strike(idx, fault.kind) {
            self.queue.put(self.later(TRY_AGAIN), Happening::Begins(idx));
            return;
        }
        self.faults_hit.insert(fault.kind.name());
        self.trace.tell(What::FaultBegan { fault: fault.kind.name() });
        self.trace.line(format_args!("! {:?} for {}", fault.kind, fault.lasts));
        if Duration::ZERO < fault.lasts {
            self.active.push(idx);
            self.queue.put(self.later(fault.lasts), Happening::IsOver(idx));
        }
    }

    /// What a fault does at once. False if there is nothing that it could strike now.
    fn strike(&mut self, idx: usize, kind: FaultKind) -> bool {
        match kind {
            FaultKind::NodeCrash(node) => {
                if !self.nodes[node].is_up {
                    return false;
                }
                self.crash(node);
            }
            FaultKind::SchedulerKilled(node) => {
                if self.nodes[node].scheduler.is_none() {
                    return false;
                }
                self.end_scheduler(node);
            }
            FaultKind::NodePaused(node) => {
                for run in self.runs_at(node) {
                    self.halt(node, run);
                }
            }
            FaultKind::NodeClockStep(node, by) => {
                self.nodes[node].clock.step_wall(by);
                if self.is_weak(WorldWeakness::LeaseByWallClock) {
                    self.arm_all_deadlines(node);
                }
            }
            FaultKind::DatabaseClockStep(by) => self.database.step_wall(by),
            FaultKind::Failover { .. } => {
                let is_seen = !self.is_weak(WorldWeakness::FailoverUnseen);
                self.database.fail_over(idx, is_seen, &mut self.trace);
            }
            FaultKind::ProcessDies(node) => {
                let Some((node, run)) = self.some_executing(node) else { return false };
                self.process_dies(node, run);
            }
            FaultKind::ShimDies(node) => {
                let Some((node, run)) = self.some_executing(node) else { return false };
                // Its process dies with it, and the scheduler sees its socket close.
                self.process_dies(node, run);
            }
            FaultKind::QueueWorkerCrash(worker) => {
                if !self.workers[worker].is_up {
                    return false;
                }
                self.crash_worker(worker);
            }
            FaultKind::QueueWorkerPaused(worker) => self.halt_worker(worker),
            FaultKind::SchedulerPaused(_)
            | FaultKind::Cut(..)
            | FaultKind::QueueWorkerCut(..)
            | FaultKind::ClockSkew
            | FaultKind::DatabaseAway(_)
            | FaultKind::LostAnswers(_)
            | FaultKind::LateRequests(_)
            | FaultKind::SlowDatabase(_) => {}
        }
        true
    }

    pub(super) fn fault_is_over(&mut self, idx: usize) {
        if let Some(place) = self.active.iter().position(|it| *it == idx) {
            self.active.remove(place);
            self.trace.line(format_args!("! {:?} is over", self.setup.faults[idx].kind));
            self.repair(idx);
        }
    }

    /// Puts right what a fault that is over has broken, unless another still holds it.
    pub(super) fn repair(&mut self, idx: usize) {
        match self.setup.faults[idx].kind {
            FaultKind::NodeCrash(node) if !self.any_active(|kind| kind == FaultKind::NodeCrash(node)) => {
                self.boot(node);
            }
            FaultKind::SchedulerKilled(node) => self.start_scheduler(node),
            FaultKind::SchedulerPaused(node) if !self.is_scheduler_paused(node) => {
                self.release_waiting(node, 1);
            }
            FaultKind::NodePaused(node) if !self.is_node_paused(node) => {
                self.resume_node(node);
            }
            FaultKind::QueueWorkerCrash(worker)
                if !self.any_active(|kind| kind == FaultKind::QueueWorkerCrash(worker)) =>
            {
                self.boot_worker(worker);
            }
            FaultKind::QueueWorkerPaused(worker) if !self.is_worker_paused(worker) => {
                self.resume_worker(worker);
            }
            FaultKind::DatabaseAway(_) | FaultKind::Failover { .. } if self.database_is_away().is_none() => {
                for letter in std::mem::take(&mut self.stuck) {
                    let at = self.after(0, 50);
                    self.queue.put(at, Happening::Arrives(Box::new(letter)));
                }
            }
            _ => {}
        }
    }

    /// A node that stood still goes on: first its shims look at their clocks, then all the rest comes.
    fn resume_node(&mut self, node: usize) {
        let is_late = self.is_weak(WorldWeakness::ShimWakesLate);
        for run in self.runs_at(node) {
            let at = if is_late { self.after(1_000, 6_000) } else { self.after(0, TURN_MAX_MS) };
            self.put_for_shim(at, node, run, ForShim::Turn);
            if is_late {
                self.go_on(node, run);
            }
        }
        self.release_waiting(node, if is_late { 6_000 } else { TURN_MAX_MS });
    }

    fn runs_at(&self, node: usize) -> Vec<RunId> {
        self.nodes[node].shims.keys().copied().collect()
    }

    /// A run that executes, on this node or on the first after it that has any.
    fn some_executing(&mut self, node: usize) -> Option<(usize, RunId)> {
        let n_nodes = self.nodes.len();
        for node in (node..n_nodes).chain(0..node) {
            let executing = self.nodes[node].shims.iter().filter(|(_, shim)| shim.is_executing());
            let runs: Vec<RunId> = executing.map(|(run, _)| *run).collect();
            if !runs.is_empty() {
                return Some((node, *self.dice.pick(&runs)));
            }
        }
        None
    }

    fn any_active(&self, is_it: impl Fn(FaultKind) -> bool) -> bool {
        self.active.iter().any(|idx| is_it(self.setup.faults[*idx].kind))
    }

    /// The greatest number that a fault that goes on has for something.
    pub(super) fn strongest(&self, number: impl Fn(FaultKind) -> Option<i64>) -> Option<i64> {
        self.active.iter().filter_map(|idx| number(self.setup.faults[*idx].kind)).max()
    }

    pub(super) fn is_node_paused(&self, node: usize) -> bool {
        !self.active.is_empty() && self.any_active(|kind| kind == FaultKind::NodePaused(node))
    }

    pub(super) fn is_scheduler_paused(&self, node: usize) -> bool {
        !self.active.is_empty() && self.any_active(|kind| kind == FaultKind::SchedulerPaused(node))
    }

    /// Whether its scheduler was killed and is not to be started yet.
    pub(super) fn is_scheduler_down(&self, node: usize) -> bool {
        self.any_active(|kind| kind == FaultKind::SchedulerKilled(node))
    }

    pub(super) fn is_worker_paused(&self, worker: usize) -> bool {
        !self.active.is_empty() && self.any_active(|kind| kind == FaultKind::QueueWorkerPaused(worker))
    }

    /// Whether messages to or from this party are lost, in this direction.
    pub(super) fn is_cut(&self, party: Party, way: CutWay) -> bool {
        let cut = |way| match party {
            Party::Node(node) => FaultKind::Cut(node, way),
            Party::Worker(worker) => FaultKind::QueueWorkerCut(worker, way),
        };
        self.any_active(|kind| kind == cut(CutWay::Both) || kind == cut(way))
    }

    pub(super) fn database_is_away(&self) -> Option<Outage> {
        self.active.iter().find_map(|idx| match self.setup.faults[*idx].kind {
            FaultKind::DatabaseAway(away) => Some(away),
            FaultKind::Failover { .. } => Some(Outage::Refuses),
            _ => None,
        })
    }
}

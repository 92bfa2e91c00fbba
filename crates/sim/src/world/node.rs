//! A node: a machine with clocks, a scheduler that comes and goes, and the shims of its runs.

use std::collections::BTreeMap;

use evenbeat_core::engine::{Engine, RunTime, Settings};
use evenbeat_core::ids::{NodeName, RunId, SessionId};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{BootTime, Duration};

use super::clock::NodeClock;
use super::rim::StoreCall;
use super::shim::Shim;
use super::{AtNode, ForScheduler, ForShim, Happening, Options, World, WorldWeakness};
use crate::fact::{RealTime, What};
use crate::setup::Setup;

/// A machine. It keeps nothing of a scheduler's life but its shims.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: NodeName,
    pub(super) clock: NodeClock,
    pub(super) is_up: bool,
    /// Counts the boots of the machine.
    pub(super) boot: u32,
    pub(super) boot_id: u128,
    /// Counts the lives of its schedulers.
    pub(super) n_lives: u32,
    pub(super) scheduler: Option<Scheduler>,
    pub(super) shims: BTreeMap<RunId, Shim>,
    /// What came while its receiver was paused.
    pub(super) waiting: Vec<AtNode>,
    settings: Settings,
}

/// One life of a scheduler: an engine, and all that its rim remembers.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) life: u32,
    pub(super) engine: Engine,
    pub(super) session: Option<SessionId>,
    /// How long it waits before it tries to join again.
    pub(super) backoff: Duration,
    pub(super) n_calls: u64,
    /// Whether it asks for start messages, or tells that they are with the broker.
    pub(super) is_publishing: bool,
    /// Questions that are not answered yet.
    pub(super) calls: BTreeMap<u64, StoreCall>,
    /// When the engine wants to be woken.
    pub(super) wake_at: Option<BootTime>,
    /// When it will be looked at whether it is as late as that.
    pub(super) armed_at: Option<RealTime>,
}

/// What a shim says to its scheduler.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShimReport {
    Started {
        at: BootTime,
    },
    NotStarted,
    Ended {
        began_at: BootTime,
        ended_at: BootTime,
        outcome: Outcome,
        exit_code: Option<i32>,
        halted_for: Duration,
    },
}

impl Node {
    pub(super) fn new(setup: &Setup, idx: usize, options: Options) -> Node {
        let it = &setup.nodes[idx];
        let wall_at_zero = setup.begins_at + it.wall_offset;
        let mut clock = NodeClock::new(it.boot_offset, it.drift_ppm, wall_at_zero);
        if options.weakness == Some(WorldWeakness::LeaseByWallClock) {
            clock = clock.with_boot_from_wall();
        }
        let settings = Settings {
            pools: it.pools.clone(),
            sites: setup.sites.clone(),
            tenants: setup.tenants.clone(),
            other_tenants: CounterLimit::default(),
            all_runs: CounterLimit::default(),
            run_time: RunTime::default(),
            dispatch: it.dispatch,
            poll_every: it.poll_every,
            start_within: setup.start_within,
            slot_width: evenbeat_core::slot::SlotWidth::DEFAULT,
            rules: options.rules,
            ..Settings::new(it.name.clone(), Some(setup.timings), 0)
        };
        Node {
            name: it.name.clone(),
            clock,
            is_up: true,
            boot: 1,
            boot_id: u128::from(setup.seed) << 32 | (idx as u128) << 16,
            n_lives: 0,
            scheduler: None,
            shims: BTreeMap::new(),
            waiting: Vec::new(),
            settings,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl World {
    /// Something arrives at a node: it waits while its receiver is paused, and is dropped if that life is
    /// over.
    pub(super) fn at_node(&mut self, node: usize, it: AtNode) {
        let is_for_scheduler = match &it {
            AtNode::Scheduler(..) => true,
            AtNode::Shim(_, _, ForShim::Deadline(_)) => self.is_weak(WorldWeakness::FenceInScheduler),
            AtNode::Shim(..) => false,
        };
        if self.is_node_paused(node) || is_for_scheduler && self.is_scheduler_paused(node) {
            self.nodes[node].waiting.push(it);
            return;
        }
        match it {
            AtNode::Scheduler(life, what) => {
                if self.nodes[node].scheduler.as_ref().is_some_and(|it| it.life == life) {
                    self.at_scheduler(node, what);
                }
            }
            AtNode::Shim(boot, run, what) => {
                let has_fencer = !is_for_scheduler || self.nodes[node].scheduler.is_some();
                let is_there = self.nodes[node].boot == boot && self.nodes[node].shims.contains_key(&run);
                if is_there && self.nodes[node].is_up && has_fencer {
                    self.at_shim(node, run, what);
                }
            }
        }
    }

    /// What waited is delivered in its order, after this many milliseconds.
    pub(super) fn release_waiting(&mut self, node: usize, after: i64) {
        let at = RealTime(self.now.0 + after);
        for it in std::mem::take(&mut self.nodes[node].waiting) {
            self.queue.put(at, Happening::At(node, it));
        }
    }

    /// Starts a scheduler, unless there is one, or there can be none.
    pub(super) fn start_scheduler(&mut self, node: usize) {
        let is_kept_down = self.is_scheduler_down(node);
        let it = &mut self.nodes[node];
        if it.scheduler.is_some() || !it.is_up || is_kept_down {
            return;
        }
        it.n_lives += 1;
        let (life, wakes_at) = (it.n_lives, RealTime(self.now.0 + 1));
        it.scheduler = Some(Scheduler {
            life,
            engine: Engine::new(it.settings.clone()),
            session: None,
            backoff: Duration::ZERO,
            n_calls: 0,
            is_publishing: false,
            calls: BTreeMap::new(),
            wake_at: Some(it.clock.boot(self.now)),
            armed_at: Some(wakes_at),
        });
        let wake = AtNode::Scheduler(life, ForScheduler::Wakes(wakes_at));
        self.queue.put(wakes_at, Happening::At(node, wake));
        self.begin_to_publish(node, life);
    }

    /// A scheduler is gone from one moment to the next; its shims are not.
    pub(super) fn end_scheduler(&mut self, node: usize) {
        let orphaned_at = self.later(self.setup.max_orphan);
        let it = &mut self.nodes[node];
        it.scheduler = None;
        for (run, shim) in &mut it.shims {
            shim.let_go(self.now);
            let orphaned = AtNode::Shim(it.boot, *run, ForShim::Orphaned(self.now));
            self.queue.put(orphaned_at, Happening::At(node, orphaned));
        }
    }

    /// The power of a machine fails.
    pub(super) fn crash(&mut self, node: usize) {
        let it = &mut self.nodes[node];
        it.is_up = false;
        it.scheduler = None;
        it.waiting.clear();
        for (run, shim) in std::mem::take(&mut it.shims) {
            if shim.has_process() {
                self.trace.tell(What::IsGone { run });
            }
        }
    }

    /// The machine is started again.
    pub(super) fn boot(&mut self, node: usize) {
        let offset = Duration::from_millis(self.dice.between(2_000, 60_000));
        let it = &mut self.nodes[node];
        if it.is_up {
            return;
        }
        it.is_up = true;
        it.boot += 1;
        it.boot_id += 1;
        it.clock.reboot(self.now, offset);
        self.start_scheduler(node);
    }

    pub(super) fn boot_now(&self, node: usize) -> BootTime {
        self.nodes[node].clock.boot(self.now)
    }

    pub(super) fn is_weak(&self, weakness: WorldWeakness) -> bool {
        self.options.weakness == Some(weakness)
    }
}

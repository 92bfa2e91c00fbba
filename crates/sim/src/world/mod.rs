//! A world: nodes, a database and what lies between them, on virtual time.
//!
//! Everything that happens stands in one queue, ordered by real time. Real time is unknown inside:
//! each node has clocks of its own, and so has the database. Whatever is left to chance is drawn from the
//! seed of the setup, so the same seed gives the same world, throw by throw.
//!
//! A node is an engine, unmodified; a rim that does what the engine says, by messages to the
//! database that take time and get lost; and a shim for every run, which is a process of its own
//! and outlives a scheduler. Some worlds have a broker besides, and workers that take up what nodes publish
//! through it. Runs execute, halt and go on by what their shims do, and the checkers see
//! the truth about it, whatever the nodes believe.

mod broker;
mod clock;
mod database;
mod mishaps;
mod network;
mod node;
mod operators;
mod process;
mod queue;
mod rim;
mod shim;
mod weakness;
mod worker;
mod worker_runs;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::job::Job;
use evenbeat_core::rules::Rules;
use evenbeat_core::time::{Duration, Timestamp};

pub use weakness::WorldWeakness;

use self::broker::Broker;
use self::database::Database;
use self::network::Packet;
use self::node::{Node, ShimReport};
use self::operators::Edit;
use self::queue::Queue;
use self::shim::ShimMessage;
use self::worker::{ForWorker, Worker};
use crate::dice::Dice;
use crate::fact::{RealTime, What};
use crate::reference::{ReferenceStore, Weakness};
use crate::setup::{Habit, Setup};
use crate::trace::{Observer, Tally, Trace};

/// No world has this many things happening in it: one of its parts goes in circles.
const HAPPENINGS_MAX: u64 = 8_000_000;

/// What is different from how it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The rules that engines go by.
    pub rules: Rules,
    /// Something that nodes do not do as they should.
    pub weakness: Option<WorldWeakness>,
    /// Something that the store does not do as it should.
    pub store_weakness: Option<Weakness>,
}

/// What is left of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed of its setup.
    pub seed: u64,
    /// One number for everything that happened.
    pub hash: u64,
    /// How many things happened, seen or not.
    pub n_happenings: u64,
    /// How many workers there were.
    pub n_workers: usize,
    /// The classes of faults that struck.
    pub faults_hit: BTreeSet<&'static str>,
    /// How often what was seen.
    pub tally: Tally,
}

/// Simulates the world of a seed, and shows every fact to an observer.
pub fn run(seed: u64, options: Options, observer: &mut dyn Observer) -> Report {
    World::new(Setup::from_seed(seed), options).run(observer)
}

/// A world.
#[derive(Debug)]
pub struct World {
    setup: Setup,
    options: Options,
    now: RealTime,
    dice: Dice,
    queue: Queue<Happening>,
    database: Database,
    nodes: Vec<Node>,
    workers: Vec<Worker>,
    broker: Broker,
    trace: Trace,
    habits: BTreeMap<JobKey, Habit>,
    /// What each job was first defined as: what workers know of it.
    definitions: BTreeMap<JobKey, Arc<Job>>,
    /// The faults that have begun and are not over, by their place in the setup.
    active: Vec<usize>,
    /// The faults that wait for a start.
    aiming: Vec<usize>,
    /// Letters that a database that hangs may still read.
    stuck: Vec<Packet>,
    faults_hit: BTreeSet<&'static str>,
    is_healed: bool,
}

/// One thing that will happen. Whatever is meant for a scheduler names its life, whatever is meant for a shim
/// the boot of its node: what comes too late is dropped.
#[derive(Debug)]
enum Happening {
    /// A request reaches the database.
    Arrives(Box<Packet>),
    /// Something that waits for one node.
    At(usize, AtNode),
    /// Something that waits for one worker, in that life.
    AtWorker(usize, u32, Box<ForWorker>),
    /// The broker delivers a message, unless it is done with.
    Deliver(u64),
    /// What a primary to come will know is decided.
    Keep(usize),
    /// It is time for a fault.
    Begins(usize),
    /// A fault that waited for a start has found one, or has waited long enough.
    Strikes(usize),
    /// It is over.
    IsOver(usize),
    /// A person does something, by its place in the setup.
    Act(usize),
    /// A person's edit is written.
    Write(Box<Edit>),
    /// All faults are over.
    Heal,
    /// A scheduler is started.
    Starts(usize),
}

/// Something that waits for one node.
#[derive(Debug)]
enum AtNode {
    /// For its scheduler, in that life.
    Scheduler(u32, ForScheduler),
    /// For the shim of a run, in that boot.
    Shim(u32, RunId, ForShim),
}

/// Something that waits for a scheduler.
#[derive(Debug)]
enum ForScheduler {
    /// The time at which it wanted to be woken, as it was set.
    Wakes(RealTime),
    /// There is news in the store.
    Nudge,
    /// An answer from the database.
    Answer(u64, Result<Box<database::Answer>, evenbeat_core::store::StoreDown>),
    /// The answer is no longer waited for.
    TimesOut(u64),
    /// After a pause it tries again to begin a session.
    JoinAgain,
    /// A shim says something.
    Hears(RunId, ShimReport),
    /// It looks for start messages; whether it will do so again.
    Publish(bool),
    /// It shall drain, or no longer.
    Drain(bool),
    /// It has left: its process ends.
    Exits,
}

/// Something that waits for a shim.
#[derive(Clone, Copy, Debug)]
enum ForShim {
    /// It is about to begin its process.
    Begin,
    /// Its scheduler says something.
    ShimMessage(ShimMessage),
    /// The end of its lease, as it was set.
    Deadline(RealTime),
    /// A freeze takes effect, if it is still that one.
    Frozen(u32),
    /// Its process ends on its own, if it was not halted since.
    Ends(u32),
    /// Its process is gone, because it was made to.
    Killed,
    /// It has been without a scheduler for as long as it may, if that is still since then.
    Orphaned(RealTime),
    /// Its node stood still, and it looks at its clock for the first time since.
    Turn,
}

impl World {
    /// A world in which nothing has happened yet.
    pub fn new(setup: Setup, options: Options) -> World {
        let mut store = ReferenceStore::new(setup.begins_at);
        if let Some(weakness) = options.store_weakness {
            store = store.weakened(weakness);
        }
        let database = Database::new(store, setup.timings, setup.begins_at);
        let dice = Dice::new(setup.seed).fork(0x0077_6f72_6c64);
        let habits = setup.all_jobs().map(|it| (it.job.key.clone(), it.habit)).collect();
        let definitions = setup.all_jobs().map(|it| (it.job.key.clone(), Arc::clone(&it.job))).collect();
        let nodes = (0..setup.nodes.len()).map(|idx| Node::new(&setup, idx, options)).collect();
        let workers = (0..setup.workers.len()).map(|idx| Worker::new(&setup, idx)).collect();
        let mut world = World {
            setup,
            options,
            now: RealTime(0),
            dice,
            queue: Queue::new(),
            database,
            nodes,
            workers,
            broker: Broker::default(),
            trace: Trace::new(),
            habits,
            definitions,
            active: Vec::new(),
            aiming: Vec::new(),
            stuck: Vec::new(),
            faults_hit: BTreeSet::new(),
            is_healed: false,
        };
        world.plan();
        world
    }

    /// Lets everything happen until the world ends.
    pub fn run(&mut self, observer: &mut dyn Observer) -> Report {
        if observer.wants_lines() {
            self.trace.want_lines();
        }
        self.put_first_jobs();
        while self.happen(self.setup.ends_at) {
            self.trace.flush(observer);
        }
        self.trace.flush(observer);
        self.report()
    }

    /// Lets the next thing happen, if it does so by then.
    fn happen(&mut self, until: RealTime) -> bool {
        let Some((at, happening)) = self.queue.take() else { return false };
        if until < at {
            self.queue.put(at, happening);
            self.now = until;
            return false;
        }
        assert!(self.queue.n_put() < HAPPENINGS_MAX, "seed {} goes in circles at {at:?}", self.setup.seed);
        self.now = at;
        self.trace.now = at;
        match happening {
            Happening::Arrives(letter) => self.letter_arrives(*letter),
            Happening::At(node, it) => self.at_node(node, it),
            Happening::AtWorker(worker, life, it) => self.at_worker(worker, life, *it),
            Happening::Deliver(message) => self.deliver(message),
            Happening::Keep(fault) => self.database.keep_for(fault, self.now),
            Happening::Begins(fault) => self.fault_begins(fault),
            Happening::Strikes(fault) => self.aimed_fault_strikes(fault),
            Happening::IsOver(fault) => self.fault_is_over(fault),
            Happening::Act(act) => self.act(act),
            Happening::Write(edit) => self.write_edit(&edit),
            Happening::Heal => self.heal(),
            Happening::Starts(node) => self.start_scheduler(node),
        }
        true
    }

    /// What is known beforehand.
    fn plan(&mut self) {
        // First of all at their instant: whatever is committed then is lost already.
        for (idx, fault) in self.setup.faults.iter().enumerate() {
            if let crate::faults::FaultKind::Failover { loses } = fault.kind
                && Duration::ZERO < loses
            {
                // What was there in the beginning is never lost.
                let kept_at = (fault.at.0 - loses.as_millis()).max(1);
                self.queue.put(RealTime(kept_at), Happening::Keep(idx));
            }
        }
        for (idx, fault) in self.setup.faults.iter().enumerate() {
            self.queue.put(fault.at, Happening::Begins(idx));
        }
        for (idx, act) in self.setup.acts.iter().enumerate() {
            self.queue.put(act.at, Happening::Act(idx));
        }
        for (idx, node) in self.setup.nodes.iter().enumerate() {
            self.queue.put(node.starts_at, Happening::Starts(idx));
        }
        self.queue.put(self.setup.healed_at, Happening::Heal);
    }

    fn heal(&mut self) {
        self.is_healed = true;
        for fault in std::mem::take(&mut self.active) {
            self.repair(fault);
        }
        for node in 0..self.nodes.len() {
            self.undrain(node);
            self.start_scheduler(node);
        }
        self.trace.tell(What::Healed);
    }

    fn report(&self) -> Report {
        Report {
            seed: self.setup.seed,
            hash: self.trace.hash.value(),
            n_happenings: self.queue.n_put(),
            n_workers: self.workers.len(),
            faults_hit: self.faults_hit.clone(),
            tally: self.trace.tally,
        }
    }

    fn later(&self, by: Duration) -> RealTime {
        RealTime(self.now.0 + by.as_millis())
    }

    fn after(&mut self, least: i64, most: i64) -> RealTime {
        RealTime(self.now.0 + self.dice.between(least, most))
    }

    /// The store as it is.
    pub fn store(&self) -> &ReferenceStore {
        self.database.store()
    }

    /// Real time.
    pub fn now(&self) -> RealTime {
        self.now
    }

    /// What the database's clock says.
    pub fn store_now(&self) -> Timestamp {
        self.database.now(self.now)
    }

    /// What it is made of.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }
}

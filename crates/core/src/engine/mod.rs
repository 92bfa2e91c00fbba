//! The engine: every decision of a node, and nothing else. One event in, commands out.
//!
//! A node has one engine for its whole life. It gets each event with the time and returns commands; it does
//! nothing itself, reads no clock and rolls no dice. So a day of a cluster can be
//! replayed, and a simulator can live through ten thousand of them with exactly the code that runs in
//! production.
//!
//! ```text
//!   rows of the store -> view -> waiting (by when it may start)
//!                                  |  time passes
//!                                  v
//!                                ready (by latest start, per pool and cost)   parked (a counter is full)
//!                                  |  plan: room, share, look-ahead, limits
//!                                  v
//!                                asked -- Granted --> held -- Ended --> end sent to the store -> its row
//! ```
//!
//! - `view`: what is known of all jobs. `queue`: where each stands. `pool`, `counters`, `start_rate`: what is
//!   there to be given away. `plan`: which jobs get it. `dispatch`: claiming it, and the answers.
//! - `life`, `session`: joining, beats, trust, watching, epochs, leaving. `feed`: reading what changes in the store.
//!   `recover`: runs that no other node will end.
//! - `local_runs` and `runs`: what this node runs, from the start to the end that the store has written.
//!
//! The schedule of a job moves on when the store has answered, never when it was asked. So a lost answer changes
//! nothing.

mod ahead;
mod batches;
mod command;
mod counters;
mod dispatch;
mod ends;
mod event;
mod feed;
mod gauges;
mod load;
mod local_runs;
mod lengths;
mod life;
mod nodes;
pub(crate) mod plan;
mod poll;
mod pool;
mod preference;
mod queue;
mod recover;
mod runs;
mod session;
mod settings;
mod start_rate;
pub(crate) mod view;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use command::{Command, Start};
pub use event::{Event, Now, RunOver};
pub use gauges::{EngineGauges, JobTimes, PoolGauges};
pub use load::{CounterLoad, PoolLoad};
pub use settings::{DispatchSettings, Order, PoolSettings, RunTime, Settings, StartRate};

use crate::ids::{JobKey, NodeName, Pool, SessionId};
use crate::store::{JobNews, SessionRow};
use crate::time::{BootTime, Duration, Timestamp};
use crate::upcoming;
use batches::Batches;
use counters::Counters;
use dispatch::PendingRequest;
use ends::Ends;
use feed::ChangeFeed;
use life::Life;
use local_runs::LocalRuns;
use nodes::Nodes;
pub(crate) use pool::PoolLine;
use queue::QueueEntry;
use start_rate::StartBucket;
use view::{JobIdx, View};

/// Time that falls this far behind the boot clock has been set back. Less than the slack of a repair, so that no step is
/// missed.
const STEP_MIN: Duration = Duration::from_secs(10);

/// What one node decides with.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,

    // Jobs.
    pub(crate) view: View,
    pub(crate) pools: BTreeMap<Pool, PoolLine>,
    pub(crate) queued: BTreeMap<JobIdx, QueueEntry>,
    pub(crate) counters: Counters,
    start_bucket: StartBucket,
    /// Claims and settlements without an answer, by job.
    pub(crate) asked: BTreeMap<JobKey, PendingRequest>,
    pub(crate) feed: ChangeFeed,

    // Sessions.
    pub(crate) life: Life,
    /// All living sessions, as last seen.
    pub(crate) peers: Vec<SessionRow>,
    /// Of these, the ones whose beat has stood still for too long.
    pub(crate) silent: BTreeSet<SessionId>,
    pub(crate) nodes: Nodes,
    /// By the store's clock, when they were last seen.
    pub(crate) watched_at: Option<Timestamp>,
    /// Whether this process is to end. It leaves when its last run has ended.
    pub(crate) is_draining: bool,
    /// Whether the store says that this node takes nothing new.
    pub(crate) is_drained: bool,
    /// The store's clock less the node's boot clock, as last heard.
    store_offset: Option<Duration>,
    /// How far time has been ahead of the boot clock since it was last set back.
    furthest: Option<Duration>,
    n_steps_back: u64,
    /// Whether the last question to the store was answered; if not, only beats are sent.
    is_store_up: bool,

    // Runs.
    pub(crate) held: LocalRuns,
    /// Ends that the store has not written yet.
    ends: Ends,
    batches: Batches,
}

impl Engine {
    /// An engine that knows nothing yet. Its first command is to join.
    pub fn new(settings: Settings) -> Engine {
        let pools = settings.pools.iter().map(|(pool, it)| (pool.clone(), PoolLine::new(*it))).collect();
        let carries = settings.pools.iter().map(|(pool, it)| (pool.clone(), it.capacity)).collect();
        let nodes = Nodes::new(settings.node.clone(), carries, settings.lease.is_none());
        Engine {
            start_bucket: StartBucket::new(settings.dispatch.start_rate),
            view: View::default(),
            pools,
            queued: BTreeMap::new(),
            counters: Counters::default(),
            asked: BTreeMap::new(),
            feed: ChangeFeed::default(),
            life: Life::default(),
            peers: Vec::new(),
            silent: BTreeSet::new(),
            nodes,
            watched_at: None,
            is_draining: false,
            is_drained: false,
            store_offset: None,
            furthest: None,
            n_steps_back: 0,
            is_store_up: true,
            held: LocalRuns::default(),
            ends: Ends::default(),
            batches: Batches::default(),
            settings,
        }
    }

    /// Takes one event and returns what must now be done. Does nothing itself.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Woke => {}
            Event::Nudged => self.nudged(),
            Event::Joined { session, began_at, epoch, is_open, store_now, adopted } => {
                self.joined(now, session, began_at, (epoch, is_open), store_now, adopted);
            }
            Event::Beaten { began_at, answer } => self.beaten(now, began_at, answer, &mut out),
            Event::Watched(answer) => self.watched(now, answer),
            Event::Fenced { silent, answer } => self.fenced(now, &silent, answer, &mut out),
            Event::EpochOpened(answer) => self.epoch_opened(now, &answer),
            Event::Changed(answer) => self.changed(now, answer),
            Event::Claimed { claims, answer } => self.claimed(now, claims, answer, &mut out),
            Event::Settled { keys, answer } => self.settled(now, keys, answer),
            Event::EndAnswered { runs, answer } => self.end_answered(now, runs, answer, &mut out),
            Event::Started { run, at } => self.started(now, run, at, &mut out),
            Event::NotStarted { run } => self.not_started(run),
            Event::Ended { run, over } => self.run_ended(now, run, over),
            Event::Drain(is_draining) => self.is_draining = is_draining,
        }
        self.note_steps(now);
        self.advance(now, &mut out);
        out
    }

    /// With every event, so that a clock which was ahead for a moment only is noticed too.
    fn note_steps(&mut self, now: Now) {
        if self.settings.lease.is_some() && self.store_offset.is_none() {
            // The store's time is not known yet.
            return;
        }
        let ahead = self.time(now) - Timestamp::from_millis(now.boot.as_millis());
        let furthest = self.furthest.unwrap_or(ahead);
        let is_back = ahead + STEP_MIN < furthest;
        self.n_steps_back += u64::from(is_back);
        self.furthest = Some(if is_back { ahead } else { ahead.max(furthest) });
    }

    /// How often time was set back so far that what was stored before may lie in the future.
    pub fn n_steps_back(&self) -> u64 {
        self.n_steps_back
    }

    /// Does everything that is due after an event.
    fn advance(&mut self, now: Now, out: &mut Vec<Command>) {
        self.ring_alarms(now, out);
        self.send_ends(now, out);
        self.keep_session(now, out);
        self.ask_changes(now, out);
        if self.feed.is_loaded {
            self.promote(self.time(now));
            self.dispatch(now, out);
        } else {
            self.batches.is_burst = false;
        }
        // Ends that had to wait until it was clear what starts.
        self.send_ends(now, out);
    }

    /// When the engine next wants to be woken. Ask after every event.
    pub fn wake_at(&self, now: Now) -> Option<BootTime> {
        let time = self.time(now);
        let at_time = |at: Timestamp| now.boot + (at - time).max(Duration::from_millis(1));
        let waiting = self.pools.values().filter_map(|line| line.waiting.first().map(|(at, _)| *at)).min();
        let by_time =
            [waiting.filter(|_| self.may_dispatch(now)), self.held.next_time(), self.counters.next_at()];
        let by_time = by_time.into_iter().flatten().min().map(at_time);
        let rated =
            self.start_bucket.next_at(now.boot).filter(|_| !self.queued.is_empty() && self.may_dispatch(now));
        let own =
            [by_time, rated, self.session_wakes_at(now), self.changes_wake_at(now), self.work_wakes_at(now)];
        own.into_iter().flatten().min()
    }

    /// The time that occurrences go by: the store's where several nodes share it, else the node's own.
    pub fn time(&self, now: Now) -> Timestamp {
        match self.store_offset() {
            Some(offset) => Timestamp::from_millis(now.boot.as_millis()) + offset,
            None => now.wall,
        }
    }

    /// The store's time less the boot clock, where several nodes share a store that has told its time.
    pub fn store_offset(&self) -> Option<Duration> {
        self.store_offset.filter(|_| self.settings.lease.is_some())
    }

    /// The time that occurrences go by, at an instant of this node.
    fn time_at(&self, now: Now, at: BootTime) -> Timestamp {
        self.time(now) - (now.boot - at)
    }

    /// Takes the store's time, which was read at some moment between the request and this answer. An offset that fits
    /// between the two is kept, so that a slow answer does not set the clock back. The first one is rather late than early.
    fn hear_time(&mut self, now: Now, asked_at: BootTime, store_now: Timestamp) {
        let offset_at = |boot: BootTime| store_now - Timestamp::from_millis(boot.as_millis());
        let (least, most) = (offset_at(now.boot), offset_at(asked_at));
        self.store_offset =
            Some(self.store_offset.map_or(least, |offset| offset.clamp(least, most.max(least))));
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The next starts of a job, after an instant if one is given. None if the job is unknown.
    pub fn upcoming(
        &self,
        now: Now,
        key: &JobKey,
        after: Option<Timestamp>,
        most: usize,
    ) -> Option<Vec<upcoming::UpcomingRun>> {
        let entry = self.view.find(key)?;
        let outlook = self.outlook(&entry.terms);
        let time = self.time(now);
        Some(upcoming::of_job(key, &entry.terms, &entry.state, &outlook, time, after, most))
    }

    /// Whether no node can take a job: the answer that [`Engine::explain`] gives as `no_node`.
    pub fn has_no_node(&self, key: &JobKey) -> bool {
        self.view.find(key).is_some_and(|entry| self.is_taken_by_no_node(&entry.terms))
    }

    /// A page of all jobs in the order of their keys, after this one.
    pub fn jobs_after(&self, key: Option<&JobKey>, most: usize) -> Vec<JobNews> {
        let told = |entry: &view::Entry| JobNews {
            key: entry.key.clone(),
            terms: Arc::clone(&entry.terms),
            is_published: entry.is_published,
            state: entry.state.clone(),
            version: entry.version,
            n_open: entry.n_open,
            is_deleted: false,
        };
        match key {
            Some(key) => self.view.entries_after(key).take(most).map(told).collect(),
            None => self.view.entries().take(most).map(told).collect(),
        }
    }

    /// Whether this version of a job is already known, from the answer to a request.
    pub fn has_heard(&self, news: &JobNews) -> bool {
        !news.is_deleted && self.view.find(&news.key).is_some_and(|entry| news.version <= entry.version)
    }

    /// The nodes that are there now, and what each can carry.
    pub fn nodes(&self) -> Vec<(NodeName, BTreeMap<Pool, u32>)> {
        self.nodes.all().map(|(name, pools)| (name.clone(), pools.clone())).collect()
    }

    /// Grows whenever nodes come or go: conditions may have changed with them.
    pub fn nodes_version(&self) -> u64 {
        self.nodes.version()
    }

    /// Whether the store says that this node takes nothing new.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// How many jobs it knows.
    pub fn n_jobs(&self) -> usize {
        self.view.len()
    }
}

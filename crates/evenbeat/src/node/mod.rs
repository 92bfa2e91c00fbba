//! The loop of a node: events go to the engine, and its commands are carried out.
//!
//! The engine is owned by one task. Questions about its state are answered between two events.

mod doubts;
pub mod events;
mod start_writer;
pub mod metrics;
mod open_runs;
mod outcomes;
mod feed_reader;
mod perform;
mod reports;
mod roster_keeper;
pub mod telemetry;
mod traces;
mod trouble;
pub mod turns;
pub mod write_probe;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use evenbeat_core::engine::{Command, Engine, Event, Now, RunOver, Settings};
use evenbeat_core::ids::{JobKey, NodeName, Pool};
use evenbeat_core::job::RunEnd;
use evenbeat_core::lease::Timings;
use evenbeat_core::notice::Notice;
use evenbeat_core::roster::{Roster, Turned};
use evenbeat_core::store::{Changes, JobNews};
use evenbeat_core::time::{BootTime, Duration, Timestamp};
use tokio::sync::{Notify, mpsc, oneshot};

use self::doubts::Doubts;
use self::events::FleetEvent;
use self::feed_reader::FeedReader;
use self::metrics::Metrics;
use self::open_runs::OpenRuns;
use self::perform::Performer;
use self::reports::Reports;
use self::roster_keeper::{RosterKeeper, changed_by};
use self::start_writer::StartWriter;
use self::telemetry::Telemetry;
use self::trouble::Troubles;
use self::turns::LateTurns;
use crate::clock::{Clock, Timer, WallSteps};
use crate::exec::Router;
use crate::outbound::Pings;
use crate::point::point;
use crate::store::any::AnyStore;
use crate::target::RunNews;

/// Capacity of the engine's inbox; senders wait when it is full.
const MESSAGES_MAX: usize = 4_096;

/// Pages of changes that may wait for the fleet's follower.
const PAGES_MAX: usize = 16;

/// Number of run news taken in before the store's answers get their turn.
const NEWS_MAX: usize = 64;

/// Jobs sent to the follower at once after a load; the engine waits meanwhile.
const TOLD_MAX: usize = 2_000;

/// A step of the wall clock that is smaller is called drift.
const STEP_MIN: Duration = Duration::from_secs(1);

/// Who a node is, for as long as its process lives.
#[derive(Clone, Debug)]
pub struct NodeIdentity {
    /// The server.
    pub node: NodeName,
    /// The instance on it.
    pub instance: String,
    /// Which boot of the machine.
    pub boot_id: u128,
    /// Which data directory, as long as this process holds its lock.
    pub home: u128,
    /// What it can carry, in cost units.
    pub pools: BTreeMap<Pool, u32>,
}

/// What comes into the loop.
enum Message {
    Event(Event),
    Asked(Question),
    OtherTimings(Timings),
    Left,
}

type Question = Box<dyn FnOnce(&Engine, &Roster, Now) + Send>;

/// Why a node ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It may not join.
    #[error(
        "the cluster keeps leases by other timings ({theirs:?}); give this node the same `lease` settings, or stop all \
         nodes before they change"
    )]
    OtherTimings {
        /// What the cluster goes by.
        theirs: Box<Timings>,
    },
    /// There is no clock to wait by.
    #[error("the system's timers cannot be used")]
    Timer(#[source] io::Error),
}

/// What is heard of a fleet: pages of the feed, as the engine hears them.
#[derive(Clone, Debug)]
pub enum FleetNews {
    /// All that was known before may never have been.
    Reset,
    /// These have changed, as of an instant of the fleet's time.
    Rows(Vec<JobNews>, Timestamp),
    /// That was all there is for now.
    Read,
}

/// The part of a load that the fleet's follower has not received yet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FleetBacklog {
    Nothing,
    /// All jobs after this one, by their keys.
    After(Option<JobKey>),
}

impl FleetBacklog {
    /// The next part.
    fn next(&mut self, engine: &Engine, now: Now) -> FleetNews {
        let after = match std::mem::replace(self, FleetBacklog::Nothing) {
            FleetBacklog::Nothing => None,
            FleetBacklog::After(key) => key,
        };
        let rows = engine.jobs_after(after.as_ref(), TOLD_MAX);
        match rows.last() {
            Some(last) => {
                *self = FleetBacklog::After(Some(last.key.clone()));
                FleetNews::Rows(rows, engine.time(now))
            }
            None => FleetNews::Read,
        }
    }
}

/// A way to reach a node.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    inbox: mpsc::Sender<Message>,
    nudge: Arc<Notify>,
    turns: LateTurns,
}

impl NodeHandle {
    /// The jobs that turned late or well again, for the one who records that.
    pub fn late_turns(&self) -> &LateTurns {
        &self.turns
    }

    /// Says that the store has news.
    pub fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Tells it to finish what runs, take nothing new, and leave; or no longer so.
    pub async fn drain(&self, is_draining: bool) {
        // A node that is gone has left already.
        let _ = self.inbox.send(Message::Event(Event::Drain(is_draining))).await;
    }

    /// Asks the engine something; it is answered between two events, so it must be quick. None if the node is gone.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, Now) -> T + Send + 'static,
    ) -> Option<T> {
        self.ask_both(|engine, _, now| question(engine, now)).await
    }

    /// Asks how jobs stand; in the same way.
    pub async fn ask_roster<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Roster) -> T + Send + 'static,
    ) -> Option<T> {
        self.ask_both(|_, roster, _| question(roster)).await
    }

    /// Asks both; in the same way.
    pub async fn ask_both<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, &Roster, Now) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, hear) = oneshot::channel();
        let question: Question = Box::new(move |engine, roster, now| {
            // The caller may be gone.
            let _ = tell.send(question(engine, roster, now));
        });
        self.inbox.send(Message::Asked(question)).await.ok()?;
        hear.await.ok()
    }
}

/// All that a node needs.
#[derive(Debug)]
pub struct NodeParts {
    /// Who it is.
    pub identity: NodeIdentity,
    /// What its engine goes by.
    pub settings: Settings,
    /// Where the fleet is kept.
    pub store: AnyStore,
    /// Where runs execute.
    pub exec: Router,
    /// What is heard of them.
    pub news: mpsc::Receiver<RunNews>,
    /// Logs, metrics and events.
    pub telemetry: Telemetry,
    /// Calls to the addresses of jobs.
    pub pings: Pings,
    /// What time it is.
    pub clock: Clock,
}

/// A node, before and while it runs.
pub struct Node {
    engine: Engine,
    standings: RosterKeeper,
    performer: Performer,
    inbox: mpsc::Receiver<Message>,
    news: mpsc::Receiver<RunNews>,
    nudge: Arc<Notify>,
    fleet: mpsc::Sender<FleetNews>,
    /// Whether the engine had read everything when we last looked.
    was_loaded: bool,
    /// What the fleet's follower has not received yet, after a load.
    untold: FleetBacklog,
    clock: Clock,
    timer: Timer,
    steps: WallSteps,
    /// The wall clock less the boot clock, as last seen.
    offset: Duration,
    /// What people were told that the store does not do.
    troubles: Troubles,
    /// Whether a session is about to begin. Until then the engine does not know the runs that are taken over with it,
    /// and would not understand what is heard of them.
    is_joining: bool,
    turns: LateTurns,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("identity", &self.performer.identity).finish_non_exhaustive()
    }
}

impl Node {
    /// A node that has not begun, a way to reach it, and what it hears of the fleet. Must be called within the runtime.
    pub fn new(parts: NodeParts) -> Result<(Node, NodeHandle, mpsc::Receiver<FleetNews>), NodeError> {
        let NodeParts { identity, settings, store, exec, news, telemetry, pings, clock } = parts;
        telemetry.metrics().know_pools(settings.pools.keys());
        let (to_inbox, inbox) = mpsc::channel(MESSAGES_MAX);
        let (to_fleet, fleet) = mpsc::channel(PAGES_MAX);
        let nudge = Arc::new(Notify::new());
        let turns = LateTurns::default();
        let handle = NodeHandle { inbox: to_inbox.clone(), nudge: Arc::clone(&nudge), turns: turns.clone() };
        let (timings, is_leased) = (settings.lease.unwrap_or_default(), settings.lease.is_some());
        let node = Node {
            engine: Engine::new(settings),
            standings: RosterKeeper::new(clock.now()),
            performer: Performer {
                marks: StartWriter::to(store.clone(), telemetry.metrics().clone()),
                pages: FeedReader::of(store.clone()),
                store,
                exec,
                telemetry,
                pings,
                identity,
                timings,
                is_leased,
                inbox: to_inbox,
                session: None,
                is_drained: false,
                reports: Reports::default(),
                open_runs: OpenRuns::default(),
                doubts: Doubts::default(),
                clock: clock.clone(),
            },
            inbox,
            news,
            nudge,
            fleet: to_fleet,
            was_loaded: false,
            untold: FleetBacklog::Nothing,
            timer: Timer::new(&clock).map_err(NodeError::Timer)?,
            steps: WallSteps::new(&clock).map_err(NodeError::Timer)?,
            offset: offset(&clock),
            clock,
            troubles: Troubles::default(),
            is_joining: false,
            turns,
        };
        Ok((node, handle, fleet))
    }

    /// Lives until it has left. To be given up in between is how a node lets go of runs that another life will adopt.
    pub async fn run(mut self) -> Result<(), NodeError> {
        self.feed(Event::Woke);
        let fleet = self.fleet.clone();
        loop {
            self.tell_of_loads().await;
            let wake_at = self.wake_at();
            tokio::select! {
                biased;
                word = self.inbox.recv() => match word {
                    Some(Message::Event(event)) => self.hear(event).await,
                    Some(Message::Asked(question)) => self.answer(question),
                    Some(Message::OtherTimings(theirs)) => {
                        return Err(NodeError::OtherTimings { theirs: Box::new(theirs) });
                    }
                    Some(Message::Left) | None => return Ok(()),
                },
                Some(news) = self.news.recv(), if !self.is_joining => self.hear_of_runs(news),
                () = self.nudge.notified() => self.feed(Event::Nudged),
                alarm = self.timer.until(wake_at) => {
                    alarm.map_err(NodeError::Timer)?;
                    if let Some(at) = wake_at {
                        self.metrics().woke_late_by(self.clock.boot() - at);
                    }
                    self.feed(Event::Woke);
                }
                step = self.steps.next() => {
                    step.map_err(NodeError::Timer)?;
                    self.feed(Event::Woke);
                }
                Ok(place) = fleet.reserve(), if self.untold != FleetBacklog::Nothing => {
                    place.send(self.untold.next(&self.engine, self.clock.both()));
                }
            }
        }
    }

    /// What a run tells, and what others have told meanwhile.
    fn hear_of_runs(&mut self, first: RunNews) {
        self.hear_of_run(first);
        for _ in 1..NEWS_MAX {
            if self.is_joining {
                return;
            }
            let Ok(news) = self.news.try_recv() else { return };
            self.hear_of_run(news);
        }
    }

    fn hear_of_run(&mut self, news: RunNews) {
        if let Some(event) = self.event_of(news) {
            self.feed(event);
        }
    }

    /// An answer of the store. The fleet's follower hears what the engine hears, and slows it down if it must; but
    /// of a load only when it is over, so that runs need not wait for it.
    async fn hear(&mut self, event: Event) {
        self.look_for_trouble(&event);
        if let Event::Changed(Ok(Changes::Rows { is_last: true, .. })) = &event {
            self.metrics().feed_was_read(self.clock.boot());
        }
        match &event {
            Event::Joined { session, .. } => {
                self.performer.session = Some(*session);
                self.is_joining = false;
            }
            Event::Changed(Ok(Changes::Rows { rows, .. })) if self.was_loaded && !rows.is_empty() => {
                self.tell_of_changes(rows);
                let now = self.engine.time(self.clock.both());
                self.pass_on(FleetNews::Rows(rows.clone(), now)).await;
            }
            _ => {}
        }
        self.feed(event);
    }

    /// Tells the fleet's follower that the fleet was read, or must be read again.
    async fn tell_of_loads(&mut self) {
        let is_loaded = self.engine.jobs().is_some();
        if is_loaded == self.was_loaded {
            return;
        }
        self.was_loaded = is_loaded;
        if is_loaded {
            self.untold = FleetBacklog::After(None);
        } else {
            self.untold = FleetBacklog::Nothing;
            self.pass_on(FleetNews::Reset).await;
        }
    }

    async fn pass_on(&self, news: FleetNews) {
        // Without a follower nothing is sent, and that is fine.
        let _ = self.fleet.send(news).await;
    }

    fn feed(&mut self, event: Event) {
        let now = self.clock.both();
        self.look_for_steps();
        self.metrics().ticked(now.wall);
        let nodes_version = self.engine.nodes_version();
        let changed = changed_by(&event, &self.engine);
        for command in self.engine.handle(now, event) {
            if matches!(command, Command::Join) {
                self.is_joining = true;
                self.performer.is_drained = self.engine.is_drained();
            }
            self.performer.perform(command);
        }
        self.clock.set_store_offset(self.engine.store_offset());
        if nodes_version != self.engine.nodes_version() {
            self.performer.telemetry.events().tell(FleetEvent::NodesChanged);
        }
        let turned = self.standings.follow(&self.engine, self.engine.time(now), &changed);
        for Turned { key, at, from, to, .. } in turned.iter().cloned() {
            self.tell(Notice::ConditionChanged { key, at, from, to });
        }
        self.turns.add(turned);
    }

    /// When something is due of itself.
    fn wake_at(&self) -> Option<BootTime> {
        let now = self.clock.both();
        let turns_at = self.standings.roster().next_change_at();
        let turns_at = turns_at.map(|at| now.boot + (at - self.engine.time(now)).max(Duration::ZERO));
        self.engine.wake_at(now).into_iter().chain(turns_at).min()
    }

    fn answer(&mut self, question: Question) {
        let now = self.clock.both();
        question(&self.engine, self.standings.roster(), now);
    }

    /// What the engine hears of a run; people hear the rest.
    fn event_of(&self, news: RunNews) -> Option<Event> {
        match news {
            RunNews::Started { run, at } => {
                point("news.started");
                self.performer.pings.started(run);
                if let Some(known) = self.performer.open_runs.of(run) {
                    let now = self.clock.both();
                    let started_at = self.engine.time(now) - (now.boot - at);
                    self.performer.telemetry.run_started(run, &known, started_at);
                }
                Some(Event::Started { run, at })
            }
            RunNews::NotStarted { run, why } => {
                self.tell(Notice::RunNotStarted { run, why });
                Some(Event::NotStarted { run })
            }
            RunNews::Ended { run, over, told } => {
                point("news.ended");
                self.performer.pings.ended(run, over.outcome);
                self.performer.reports.keep(run, over.outcome, *told);
                self.performer.marks.keep_for_end(run);
                Some(Event::Ended { run, over })
            }
            RunNews::LeftBehind { run, over, told } => {
                self.performer.reports.keep(run, over.outcome, *told);
                let now = self.clock.both();
                let at = |at: BootTime| self.engine.time(now) - (now.boot - at);
                let RunOver { outcome, exit_code, frozen_for, .. } = over;
                let (started_at, ended_at) = (at(over.started_at), at(over.ended_at));
                let end = RunEnd { run, started_at, ended_at, outcome, exit_code, frozen_for };
                self.performer.keep_late_result(run, end);
                None
            }
            RunNews::Frozen { run, .. } => {
                self.tell(Notice::RunFrozen { run });
                None
            }
            RunNews::Thawed { run, .. } => {
                self.tell(Notice::RunThawed { run });
                None
            }
            RunNews::Unkillable { run } => {
                self.tell(Notice::RunUnkillable { run });
                None
            }
        }
    }

    /// Tells readers of events which jobs have changed, unless this node did it.
    fn tell_of_changes(&self, rows: &[JobNews]) {
        let events = self.performer.telemetry.events();
        if !events.is_open() {
            return;
        }
        for row in rows.iter().filter(|row| !self.engine.has_heard(row)) {
            let key = row.key.clone();
            events.tell(if row.is_deleted {
                FleetEvent::JobRemoved(key)
            } else {
                FleetEvent::JobChanged(key)
            });
        }
    }

    fn metrics(&self) -> &Metrics {
        self.performer.telemetry.metrics()
    }

    fn look_for_trouble(&mut self, event: &Event) {
        if let Some(notice) = self.troubles.hear(event) {
            self.tell(notice);
        }
    }

    fn tell(&self, notice: Notice) {
        self.performer.telemetry.tell(notice);
    }

    fn look_for_steps(&mut self) {
        let seen = offset(&self.clock);
        let by = seen - std::mem::replace(&mut self.offset, seen);
        if Duration::ZERO - STEP_MIN < by && by < STEP_MIN {
            return;
        }
        // Where a store is shared, its clock is the one that counts.
        let behind = if self.performer.is_leased { Duration::ZERO } else { self.clock.behind() };
        self.tell(Notice::ClockStepped { by, ahead: behind });
    }
}

/// The wall clock less the boot clock.
fn offset(clock: &Clock) -> Duration {
    Duration::from_millis(clock.wall().as_millis() - clock.boot().as_millis())
}

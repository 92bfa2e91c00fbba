//! The loop: real engines, a store that answers at once, and runs that take their time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::ControlFlow;

use evenbeat_core::engine::{Command, Engine, Event, Now, RunOver, RunTime, Settings, Start};
use evenbeat_core::ids::{RunId, SessionId};
use evenbeat_core::job::Job;
use evenbeat_core::lease::Timings;
use evenbeat_core::rules::Rules;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{
    Claim, ClaimAnswer, Claims, CounterLimit, EndAnswer, Lives, SessionKind, SessionSpec, SettleAnswer,
};
use evenbeat_core::time::{BootTime, Duration, Timestamp};

use super::store::{EPOCH, KernelStore};
use super::tally::Tally;
use super::{Report, Scenario};

/// How many rows are read at a time.
const PAGE: usize = 10_000;

/// How much simulated time passes between two reports of progress.
const PROGRESS_EVERY: Duration = Duration::from_hours(1);

/// One run of a scenario, when it is over.
#[derive(Clone, Copy, Debug)]
pub struct RunObservation<'a> {
    /// Whose.
    pub job: &'a Job,
    /// The occurrence.
    pub due_at: Timestamp,
    /// Why it ran.
    pub trigger: Trigger,
    /// When it started.
    pub started_at: Timestamp,
    /// When it was over.
    pub ended_at: Timestamp,
    /// How it ended; none if an outage or the end of the story came first.
    pub outcome: Option<Outcome>,
    /// By when a good run had to be complete.
    pub deadline: Option<Timestamp>,
}

/// Lives through a scenario. `progress` is called with the share that is done, from 0 to 1.
pub fn simulate(scenario: &Scenario, progress: &mut dyn FnMut(f64)) -> Report {
    simulate_watched(scenario, progress, &mut |_| {})
}

/// The same for someone who wants to see every run, in the order in which they end.
pub fn simulate_watched(
    scenario: &Scenario,
    progress: &mut dyn FnMut(f64),
    watch: &mut dyn FnMut(RunObservation<'_>),
) -> Report {
    let mut go_on = |share| {
        progress(share);
        ControlFlow::Continue(())
    };
    match simulate_while(scenario, &mut go_on, watch) {
        Some(report) => report,
        None => unreachable!("nothing stops it"),
    }
}

/// The same for someone who may lose interest: `progress` says whether it goes on. None if it does not.
pub fn simulate_while(
    scenario: &Scenario,
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    watch: &mut dyn FnMut(RunObservation<'_>),
) -> Option<Report> {
    let mut kernel = Kernel::new(scenario, watch);
    let (start, end) = (scenario.window.start(), scenario.window.end());
    let length = (end - start).as_millis_f64().max(1.0);
    let mut next_progress = start + PROGRESS_EVERY;
    for node_idx in 0..kernel.nodes.len() {
        kernel.wake(node_idx, start);
    }
    for outage in &scenario.outages {
        kernel.push(outage.start(), KernelEvent::Down);
        kernel.push(outage.end(), KernelEvent::Up);
    }
    while let Some(Reverse(next)) = kernel.queue.pop() {
        if end <= next.at {
            break;
        }
        kernel.now = next.at;
        kernel.store.set_now(next.at);
        kernel.happen(&next.what);
        if next_progress <= next.at {
            next_progress = next.at + PROGRESS_EVERY;
            if progress((next.at - start).as_millis_f64() / length).is_break() {
                return None;
            }
        }
    }
    kernel.now = end;
    kernel.cut_off_all();
    if progress(1.0).is_break() {
        return None;
    }
    Some(kernel.tally.report(scenario, &kernel.store))
}

struct Kernel<'a> {
    scenario: &'a Scenario,
    store: KernelStore,
    nodes: Vec<Node>,
    now: Timestamp,
    queue: BinaryHeap<Reverse<QueuedEvent>>,
    n_scheduled: u64,
    n_ids: u128,
    tally: Tally,
    watch: &'a mut dyn FnMut(RunObservation<'_>),
}

struct Node {
    settings: Settings,
    /// None while it is down.
    engine: Option<Engine>,
    session: Option<SessionId>,
    boot_id: u128,
    /// What executes on it.
    runs: BTreeMap<RunId, ActiveRun>,
    /// When it wants to be woken; an earlier wish that is still in the queue is void.
    wakes_at: Option<Timestamp>,
}

struct ActiveRun {
    start: Box<Start>,
    started_at: Timestamp,
    is_good: bool,
    stopped_as: Option<Outcome>,
    /// Whether an outage ended it, and only its bookkeeping is still to be done.
    is_leftover: bool,
}

impl ActiveRun {
    fn seen(&self, ended_at: Timestamp, outcome: Option<Outcome>) -> RunObservation<'_> {
        RunObservation {
            job: &self.start.job,
            due_at: self.start.due.due_at,
            trigger: self.start.due.trigger,
            started_at: self.started_at,
            ended_at,
            outcome,
            deadline: self.start.deadline,
        }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct QueuedEvent {
    at: Timestamp,
    number: u64,
    what: KernelEvent,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum KernelEvent {
    Wake { node_idx: usize },
    RunOver { node_idx: usize, run: RunId },
    Down,
    Up,
}

impl<'a> Kernel<'a> {
    fn new(scenario: &'a Scenario, watch: &'a mut dyn FnMut(RunObservation<'_>)) -> Kernel<'a> {
        let start = scenario.window.start();
        let store = KernelStore::new(start, &scenario.jobs);
        // Alone, a node needs no lease; several keep theirs as in production.
        let lease = (1 < scenario.nodes.len()).then(Timings::default);
        let nodes = scenario
            .nodes
            .iter()
            .map(|plan| Node {
                settings: Settings {
                    node: plan.name.clone(),
                    lease,
                    pools: plan.pools.clone(),
                    sites: scenario.sites.clone(),
                    tenants: scenario.tenants.clone(),
                    other_tenants: CounterLimit::default(),
                    all_runs: scenario.all_runs,
                    run_time: RunTime::default(),
                    dispatch: scenario.dispatch,
                    // Alone, it is the only one who changes anything, and its answers carry the rows.
                    poll_every: if lease.is_some() {
                        Duration::from_secs(5)
                    } else {
                        Duration::from_hours(1)
                    },
                    start_within: Duration::from_mins(5),
                    slot_width: evenbeat_core::slot::SlotWidth::DEFAULT,
                    rules: Rules::ALL,
                },
                engine: None,
                session: None,
                boot_id: 0,
                runs: BTreeMap::new(),
                wakes_at: None,
            })
            .collect();
        let mut kernel = Kernel {
            scenario,
            store,
            nodes,
            now: start,
            queue: BinaryHeap::new(),
            n_scheduled: 0,
            n_ids: 0,
            tally: Tally::new(scenario),
            watch,
        };
        kernel.boot_all();
        kernel
    }

    fn boot_all(&mut self) {
        for node_idx in 0..self.nodes.len() {
            let boot_id = self.mint();
            if let Some(node) = self.nodes.get_mut(node_idx) {
                node.engine = Some(Engine::new(node.settings.clone()));
                node.boot_id = boot_id;
            }
        }
    }

    fn mint(&mut self) -> u128 {
        self.n_ids += 1;
        self.n_ids
    }

    fn push(&mut self, at: Timestamp, what: KernelEvent) {
        self.n_scheduled += 1;
        self.queue.push(Reverse(QueuedEvent { at, number: self.n_scheduled, what }));
    }

    fn wake(&mut self, node_idx: usize, at: Timestamp) {
        if let Some(node) = self.nodes.get_mut(node_idx) {
            node.wakes_at = Some(at);
        }
        self.push(at, KernelEvent::Wake { node_idx });
    }

    fn happen(&mut self, what: &KernelEvent) {
        match *what {
            KernelEvent::Wake { node_idx } => {
                // Woken earlier or later since: that wish is another one in the queue.
                if self.nodes.get(node_idx).is_some_and(|node| node.wakes_at == Some(self.now)) {
                    self.tell(node_idx, Event::Woke);
                }
            }
            KernelEvent::RunOver { node_idx, run } => {
                let over = self.nodes.get_mut(node_idx).and_then(|node| node.runs.remove(&run));
                if let Some(running) = over {
                    self.over(node_idx, run, &running);
                }
            }
            KernelEvent::Down => {
                self.cut_off_all();
                for node in &mut self.nodes {
                    node.engine = None;
                    node.session = None;
                    node.wakes_at = None;
                }
            }
            KernelEvent::Up => {
                self.boot_all();
                for node_idx in 0..self.nodes.len() {
                    self.tell(node_idx, Event::Woke);
                }
            }
        }
    }

    /// Whatever executes is not seen to end.
    fn cut_off_all(&mut self) {
        for node_idx in 0..self.nodes.len() {
            let runs = self.nodes.get_mut(node_idx).map(|node| std::mem::take(&mut node.runs));
            for (_, running) in runs.into_iter().flatten().filter(|(_, it)| !it.is_leftover) {
                self.tally.cut_off(self.now, &running.start, running.started_at);
                (self.watch)(running.seen(self.now, None));
            }
        }
    }

    fn over(&mut self, node_idx: usize, run: RunId, running: &ActiveRun) {
        let outcome = match running.stopped_as {
            Some(outcome) => outcome,
            None if running.is_good => Outcome::Succeeded,
            None => Outcome::Failed,
        };
        if !running.is_leftover {
            self.tally.ended(self.now, &running.start, running.started_at, outcome);
            (self.watch)(running.seen(self.now, Some(outcome)));
        }
        let over = RunOver {
            started_at: self.boot_at(running.started_at),
            ended_at: self.boot_at(self.now),
            outcome,
            exit_code: None,
            frozen_for: Duration::ZERO,
        };
        self.tell(node_idx, Event::Ended { run, over });
    }

    /// Tells a node what happened, does what it wants, and tells it what came of that, until it is content.
    fn tell(&mut self, node_idx: usize, event: Event) {
        let boot = self.boot_at(self.now);
        let now = Now { wall: self.now, boot };
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let Some(engine) = self.nodes.get_mut(node_idx).and_then(|node| node.engine.as_mut()) else {
                return;
            };
            let commands = engine.handle(now, event);
            for command in commands {
                events.extend(self.perform(node_idx, boot, command));
            }
        }
        let wakes_at = self.nodes.get(node_idx).and_then(|node| node.engine.as_ref()?.wake_at(now));
        if let Some(wakes_at) = wakes_at {
            let at = self.now + (wakes_at - boot).max(Duration::from_millis(1));
            if self.nodes.get(node_idx).is_some_and(|node| node.wakes_at != Some(at)) {
                self.wake(node_idx, at);
            }
        }
    }

    fn perform(&mut self, node_idx: usize, boot: BootTime, command: Command) -> Option<Event> {
        let me = self.nodes.get(node_idx)?.session;
        Some(match command {
            Command::Join => return self.join(node_idx, boot),
            Command::Beat => Event::Beaten { began_at: boot, answer: Ok(self.store.beat(me?)) },
            Command::Watch => Event::Watched(Ok(self.store.watch(1_000))),
            Command::Fence { silent, .. } => {
                let answer = Ok(self.store.fence(&silent));
                Event::Fenced { silent, answer }
            }
            Command::OpenEpoch(epoch) => Event::EpochOpened(Ok(epoch == EPOCH)),
            Command::Changes(since) => Event::Changed(Ok(self.store.changes(since, PAGE))),
            Command::Claim { bids, .. } => {
                let claims: Vec<Claim> = bids
                    .into_iter()
                    .map(|bid| Claim { run: bid.run.unwrap_or_else(|| RunId(self.mint())), bid })
                    .collect();
                let answer = self.store.claim(me?, &claims);
                if let Claims::Answered(answers) = &answer {
                    for (claim, answer) in claims.iter().zip(answers) {
                        if matches!(answer, ClaimAnswer::Granted(_)) {
                            self.tally.recorded(&claim.bid.key, &claim.bid.records);
                        }
                    }
                }
                let claims = claims.into_iter().map(|claim| (claim.bid.key, claim.run)).collect();
                Event::Claimed { claims, answer: Ok(answer) }
            }
            Command::Settle { settles, .. } => {
                let answers = self.store.settle(me?, &settles);
                for (settle, answer) in settles.iter().zip(&answers) {
                    if matches!(answer, SettleAnswer::Settled(_)) {
                        self.tally.recorded(&settle.key, &settle.records);
                    }
                }
                Event::Settled { keys: settles.into_iter().map(|it| it.key).collect(), answer: Ok(answers) }
            }
            Command::End { ends, .. } => {
                let answers = self.store.end(&ends);
                for (end, answer) in ends.iter().zip(&answers) {
                    if matches!(answer, EndAnswer::Ended(_)) {
                        self.tally.recorded(&end.key, &end.records);
                    }
                }
                Event::EndAnswered { runs: ends.iter().map(|it| it.run).collect(), answer: Ok(answers) }
            }
            Command::Start(start) => self.start(node_idx, start),
            Command::Stop { run, outcome, .. } => {
                let node = self.nodes.get_mut(node_idx)?;
                node.runs.get_mut(&run)?.stopped_as = Some(outcome);
                self.push(self.now, KernelEvent::RunOver { node_idx, run });
                return None;
            }
            Command::Revoke { run } => {
                self.push(self.now, KernelEvent::RunOver { node_idx, run });
                return None;
            }
            Command::Mark(_) | Command::Extend { .. } | Command::Leave | Command::Notice(_) => return None,
        })
    }

    fn join(&mut self, node_idx: usize, boot: BootTime) -> Option<Event> {
        let id = SessionId(self.mint());
        let node = self.nodes.get_mut(node_idx)?;
        node.session = Some(id);
        let spec = SessionSpec {
            id,
            node: node.settings.node.clone(),
            name: node.settings.node.to_string(),
            boot_id: node.boot_id,
            home: 0,
            kind: SessionKind::Node,
            pools: node.settings.pools.iter().map(|(pool, it)| (pool.clone(), it.capacity)).collect(),
            zone_data: String::new(),
        };
        // A node that is alone takes over whatever an earlier boot left behind: no other node watches.
        let lives = if node.settings.lease.is_some() { Lives::OfThisBoot } else { Lives::OfAllNodes };
        self.store.join(&spec);
        let adopted = self.store.adopt(&spec, lives);
        for row in &adopted {
            self.push(self.now, KernelEvent::RunOver { node_idx, run: row.run });
            let start = Start {
                run: row.run,
                fence: row.fence,
                job: self.store.job(&row.key)?.job.clone(),
                due: row.due.clone(),
                lease_until: None,
                deadline: None,
                last_good_start_at: None,
            };
            let running = ActiveRun {
                start: Box::new(start),
                started_at: row.started_at.unwrap_or(row.claimed_at),
                is_good: false,
                stopped_as: Some(Outcome::Lost),
                is_leftover: true,
            };
            self.nodes.get_mut(node_idx)?.runs.insert(row.run, running);
        }
        Some(Event::Joined {
            session: id,
            began_at: boot,
            epoch: EPOCH,
            is_open: true,
            store_now: self.now,
            adopted,
        })
    }

    fn start(&mut self, node_idx: usize, start: Box<Start>) -> Event {
        let run = start.run;
        let draw = self.scenario.runs.draw(&start.job, start.due.due_at, start.due.attempt);
        self.tally.started(self.now, &start);
        self.push(self.now + draw.length, KernelEvent::RunOver { node_idx, run });
        let running = ActiveRun {
            start,
            started_at: self.now,
            is_good: draw.is_good,
            stopped_as: None,
            is_leftover: false,
        };
        if let Some(node) = self.nodes.get_mut(node_idx) {
            node.runs.insert(run, running);
        }
        Event::Started { run, at: self.boot_at(self.now) }
    }

    /// The clock of every node: since the beginning.
    fn boot_at(&self, at: Timestamp) -> BootTime {
        BootTime::from_millis((at - self.scenario.window.start()).as_millis())
    }
}

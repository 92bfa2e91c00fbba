//! The rim of a node: it does what the engine says, and tells it what came of it.

use evenbeat_core::engine::{Command, Event, RunOver};
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::store::{Claim, EndAnswer, Joined, RunPhase, RunRow, SessionKind, SessionSpec, StoreDown};
use evenbeat_core::time::{BootTime, Duration, Timestamp};

use super::database::{Answer, StoreRequest};
use super::network::Party;
use super::node::{Scheduler, ShimReport};
use super::shim::{Shim, ShimMessage};
use super::{AtNode, ForScheduler, Happening, World, WorldWeakness};
use crate::fact::RealTime;

/// The first pause before another attempt to join.
const BACKOFF_MIN: Duration = Duration::from_millis(100);

/// A question that is not answered yet.
#[derive(Debug)]
pub(super) struct StoreCall {
    /// When it was begun, before anything was sent.
    began_at: BootTime,
    asked: CallKind,
}

/// What was asked, as far as the answer must name it.
#[derive(Debug)]
pub(super) enum CallKind {
    Join(SessionId),
    Adopt { session: SessionId, began_at: BootTime, epoch: Epoch, is_open: bool, store_now: Timestamp },
    Beat,
    Watch,
    Fence(Vec<Silent>),
    OpenEpoch,
    Changes,
    Claim(Vec<(JobKey, RunId)>),
    Settle(Vec<JobKey>),
    End(Vec<RunId>),
    Leave,
    Outbox,
    Published,
}

impl World {
    /// Something comes for a scheduler that is there and awake.
    pub(super) fn at_scheduler(&mut self, node: usize, what: ForScheduler) {
        match what {
            ForScheduler::Wakes(at) => self.wakes(node, at),
            ForScheduler::Nudge => self.feed(node, Event::Nudged),
            ForScheduler::Answer(call, answer) => {
                if let Some(call) = self.scheduler(node).calls.remove(&call) {
                    self.answered(node, call, answer.map(|it| *it));
                }
            }
            ForScheduler::TimesOut(call) => {
                if let Some(call) = self.scheduler(node).calls.remove(&call) {
                    self.answered(node, call, Err(StoreDown("no answer in time".to_owned())));
                }
            }
            ForScheduler::JoinAgain => self.join(node),
            ForScheduler::Hears(run, report) => self.hears(node, run, report),
            ForScheduler::Publish(is_again) => self.publish(node, is_again),
            ForScheduler::Drain(is_draining) => self.feed(node, Event::Drain(is_draining)),
            ForScheduler::Exits => {
                self.end_scheduler(node);
                let starts_at = self.after(200, 10_000);
                self.queue.put(starts_at, Happening::Starts(node));
            }
        }
    }

    fn wakes(&mut self, node: usize, at: RealTime) {
        let boot = self.boot_now(node);
        let scheduler = self.scheduler(node);
        if scheduler.armed_at != Some(at) {
            return;
        }
        scheduler.armed_at = None;
        if scheduler.wake_at.is_some_and(|wake_at| wake_at <= boot) {
            self.feed(node, Event::Woke);
        } else {
            self.arm(node);
        }
    }

    /// Tells the engine what happened, and does what it says.
    fn feed(&mut self, node: usize, event: Event) {
        let now = self.nodes[node].clock.now(self.now);
        self.trace.hash.mix_signed(self.now.0 << 8 | i64::from(kind_of_event(&event)));
        self.trace.line(format_args!("{} < {event:?}", self.nodes[node].name));
        let commands = self.scheduler(node).engine.handle(now, event);
        for command in commands {
            self.perform(node, command);
        }
        let scheduler = self.scheduler(node);
        scheduler.wake_at = scheduler.engine.wake_at(now);
        self.arm(node);
    }

    /// Sets the one timer, unless it will go off early enough anyway.
    fn arm(&mut self, node: usize) {
        let clock = self.nodes[node].clock;
        let soonest = RealTime(self.now.0 + 1);
        let scheduler = self.scheduler(node);
        let Some(wake_at) = scheduler.wake_at else { return };
        let at = clock.real(wake_at).max(soonest);
        if scheduler.armed_at.is_none_or(|armed_at| at < armed_at) {
            scheduler.armed_at = Some(at);
            let wake = AtNode::Scheduler(scheduler.life, ForScheduler::Wakes(at));
            self.queue.put(at, Happening::At(node, wake));
        }
    }

    fn perform(&mut self, node: usize, command: Command) {
        self.trace.hash.mix(u64::from(kind_of_command(&command)));
        if !matches!(command, Command::Notice(_)) {
            self.trace.line(format_args!("{} > {command:?}", self.nodes[node].name));
        }
        let session = self.scheduler(node).session;
        match command {
            Command::Join => self.join(node),
            Command::Watch => self.ask(node, StoreRequest::Watch, CallKind::Watch),
            Command::Fence { epoch, silent } => {
                self.ask(node, StoreRequest::Fence(epoch, silent.clone()), CallKind::Fence(silent));
            }
            Command::OpenEpoch(epoch) => self.ask(node, StoreRequest::OpenEpoch(epoch), CallKind::OpenEpoch),
            Command::Changes(since) => self.ask(node, StoreRequest::Changes(since), CallKind::Changes),
            Command::End { epoch, ends } => {
                let runs = ends.iter().map(|it| it.run).collect();
                self.ask(node, StoreRequest::End(epoch, ends), CallKind::End(runs));
            }
            Command::Start(start) if start.job.target.is_published() => self.publish_soon(node),
            Command::Start(start) => self.start_shim(node, &start),
            Command::Extend { until } => self.extend(node, until),
            Command::Stop { run, outcome, .. } => self.say(node, run, ShimMessage::Stop(outcome)),
            Command::Revoke { run } => self.say(node, run, ShimMessage::Revoke),
            Command::Notice(_) => {}
            Command::Beat
            | Command::Claim { .. }
            | Command::Settle { .. }
            | Command::Mark(_)
            | Command::Leave => {
                let session =
                    session.expect("whoever has no session beats, claims, settles and leaves nothing");
                self.perform_in_session(node, session, command);
            }
        }
    }

    fn perform_in_session(&mut self, node: usize, session: SessionId, command: Command) {
        match command {
            Command::Beat => self.ask(node, StoreRequest::Beat(session), CallKind::Beat),
            Command::Claim { epoch, bids } => {
                let claims: Vec<Claim> = bids
                    .into_iter()
                    .map(|bid| Claim { run: bid.run.unwrap_or_else(|| self.mint_run()), bid })
                    .collect();
                let named = claims.iter().map(|it| (it.bid.key.clone(), it.run)).collect();
                self.ask(node, StoreRequest::Claim(session, epoch, claims), CallKind::Claim(named));
            }
            Command::Settle { epoch, settles } => {
                let keys = settles.iter().map(|it| it.key.clone()).collect();
                self.ask(node, StoreRequest::Settle(session, epoch, settles), CallKind::Settle(keys));
            }
            Command::Mark(marks) => {
                // No answer is expected.
                let life = self.scheduler(node).life;
                self.post(Party::Node(node), life, u64::MAX, StoreRequest::Mark(marks));
            }
            Command::Leave => self.ask(node, StoreRequest::Leave(session), CallKind::Leave),
            other => unreachable!("{other:?} needs no session"),
        }
    }

    /// Asks the database, and stops waiting after the time that one attempt may take.
    pub(super) fn ask(&mut self, node: usize, request: StoreRequest, asked: CallKind) {
        let attempt = self.setup.timings.spec().attempt;
        let clock = self.nodes[node].clock;
        let began_at = clock.boot(self.now);
        let scheduler = self.scheduler(node);
        let (life, call) = (scheduler.life, scheduler.n_calls);
        scheduler.n_calls += 1;
        scheduler.calls.insert(call, StoreCall { began_at, asked });
        let times_out = AtNode::Scheduler(life, ForScheduler::TimesOut(call));
        self.queue.put(clock.real(began_at + attempt), Happening::At(node, times_out));
        self.post(Party::Node(node), life, call, request);
    }

    fn answered(&mut self, node: usize, call: StoreCall, answer: Result<Answer, StoreDown>) {
        let StoreCall { began_at, asked } = call;
        let event = match asked {
            CallKind::Join(session) => return self.join_answered(node, session, began_at, answer),
            CallKind::Adopt { session, began_at, epoch, is_open, store_now } => {
                let Ok(Answer::Adopted(adopted)) = answer else { return self.join_failed(node) };
                self.take_over(node, &adopted);
                self.scheduler(node).session = Some(session);
                self.scheduler(node).backoff = Duration::ZERO;
                Event::Joined { session, began_at, epoch, is_open, store_now, adopted }
            }
            CallKind::Beat => {
                let answer = the(answer, |it| if let Answer::Beaten(it) = it { Some(it) } else { None });
                Event::Beaten { began_at, answer }
            }
            CallKind::Watch => {
                Event::Watched(the(answer, |it| if let Answer::Watched(it) = it { Some(it) } else { None }))
            }
            CallKind::Fence(silent) => {
                let answer = the(answer, |it| if let Answer::Fenced(it) = it { Some(it) } else { None });
                Event::Fenced { silent, answer }
            }
            CallKind::OpenEpoch => Event::EpochOpened(the(answer, |it| {
                if let Answer::EpochOpened(it) = it { Some(it) } else { None }
            })),
            CallKind::Changes => {
                Event::Changed(the(answer, |it| if let Answer::Changed(it) = it { Some(it) } else { None }))
            }
            CallKind::Claim(claims) => {
                let answer = the(answer, |it| if let Answer::Claimed(it) = it { Some(it) } else { None });
                Event::Claimed { claims, answer }
            }
            CallKind::Settle(keys) => {
                let answer = the(answer, |it| if let Answer::Settled(it) = it { Some(it) } else { None });
                Event::Settled { keys, answer }
            }
            CallKind::End(runs) => {
                let answer = the(answer, |it| if let Answer::Ended(it) = it { Some(it) } else { None });
                self.forget_ended(node, &runs, &answer);
                Event::EndAnswered { runs, answer }
            }
            CallKind::Outbox => return self.outbox_answered(node, answer),
            CallKind::Published => {
                self.scheduler(node).is_publishing = false;
                return;
            }
            CallKind::Leave => {
                let life = self.scheduler(node).life;
                let exits = AtNode::Scheduler(life, ForScheduler::Exits);
                return self.queue.put(self.now, Happening::At(node, exits));
            }
        };
        self.feed(node, event);
    }

    /// Begins a session under a new id. Whatever came of an earlier attempt is taken over with the rest.
    fn join(&mut self, node: usize) {
        let id = SessionId(self.dice.wide_number());
        let it = &self.nodes[node];
        let spec = SessionSpec {
            id,
            node: it.name.clone(),
            name: format!("{}-{}", it.name, it.n_lives),
            boot_id: it.boot_id,
            home: 0,
            kind: SessionKind::Node,
            pools: it.settings().pools.iter().map(|(pool, it)| (pool.clone(), it.capacity)).collect(),
            zone_data: String::new(),
        };
        self.ask(node, StoreRequest::Join(spec), CallKind::Join(id));
    }

    fn join_answered(
        &mut self,
        node: usize,
        session: SessionId,
        began_at: BootTime,
        answer: Result<Answer, StoreDown>,
    ) {
        match answer {
            Ok(Answer::Joined(Joined::Welcome { epoch, is_open, now })) => {
                let asked = CallKind::Adopt { session, began_at, epoch, is_open, store_now: now };
                self.ask(node, StoreRequest::Adopt(session), asked);
            }
            Ok(other) => unreachable!("all nodes of a world go by the same timings, yet: {other:?}"),
            Err(_) => self.join_failed(node),
        }
    }

    fn join_failed(&mut self, node: usize) {
        let cap = self.setup.timings.spec().backoff_cap;
        let scheduler = self.scheduler(node);
        scheduler.backoff = (scheduler.backoff * 2).clamp(BACKOFF_MIN, cap);
        let (life, backoff) = (scheduler.life, scheduler.backoff);
        let again = AtNode::Scheduler(life, ForScheduler::JoinAgain);
        self.queue.put(self.later(backoff), Happening::At(node, again));
    }

    /// Connects to the shims of runs that this session has taken over, and makes an end of all others.
    fn take_over(&mut self, node: usize, adopted: &[RunRow]) {
        let life = self.scheduler(node).life;
        for row in adopted {
            let report = match self.nodes[node].shims.get_mut(&row.run) {
                Some(shim) => {
                    shim.hold(life);
                    shim.report()
                }
                // It is with the broker: the worker that takes it up reports to the store.
                None if row.phase == RunPhase::Published => None,
                None => Some(ShimReport::NotStarted),
            };
            if let Some(report) = report {
                self.tell_of(node, row.run, report);
            }
        }
        let is_adopted = |run: &RunId| adopted.iter().any(|row| row.run == *run);
        let others: Vec<RunId> =
            self.nodes[node].shims.keys().copied().filter(|run| !is_adopted(run)).collect();
        let extends_all = self.is_weak(WorldWeakness::ExtendsUnadopted);
        for run in others {
            let Some(shim) = self.nodes[node].shims.get_mut(&run) else { continue };
            if shim.is_over() {
                self.nodes[node].shims.remove(&run);
            } else if extends_all {
                shim.hold(life);
            } else {
                self.say(node, run, ShimMessage::Revoke);
            }
        }
    }

    /// Drops shims whose end the store has on record.
    fn forget_ended(&mut self, node: usize, runs: &[RunId], answer: &Result<Vec<EndAnswer>, StoreDown>) {
        let Ok(answers) = answer else { return };
        for (run, answer) in runs.iter().zip(answers) {
            let is_on_record = matches!(answer, EndAnswer::Ended(_) | EndAnswer::Late);
            let shims = &mut self.nodes[node].shims;
            if is_on_record && shims.get(run).is_some_and(Shim::is_over) {
                shims.remove(run);
            }
        }
    }

    fn hears(&mut self, node: usize, run: RunId, report: ShimReport) {
        let event = match report {
            ShimReport::Started { at } => Event::Started { run, at },
            ShimReport::NotStarted => Event::NotStarted { run },
            ShimReport::Ended { began_at, ended_at, outcome, exit_code, halted_for } => {
                let started_at = began_at;
                let over = RunOver { started_at, ended_at, outcome, exit_code, frozen_for: halted_for };
                Event::Ended { run, over }
            }
        };
        let shims = &mut self.nodes[node].shims;
        if shims.get(&run).is_some_and(|shim| shim.is_over() && shim.is_revoked()) {
            shims.remove(&run);
        }
        self.feed(node, event);
    }

    fn mint_run(&mut self) -> RunId {
        RunId(u128::from(self.now.0.unsigned_abs()) << 64 | u128::from(self.dice.number()))
    }

    pub(super) fn scheduler(&mut self, node: usize) -> &mut Scheduler {
        self.nodes[node].scheduler.as_mut().expect("only a scheduler that is there does anything")
    }
}

/// The answer, which must be of this kind.
fn the<T>(answer: Result<Answer, StoreDown>, kind: impl FnOnce(Answer) -> Option<T>) -> Result<T, StoreDown> {
    answer.map(|it| kind(it).expect("a question is answered by an answer of its kind"))
}

fn kind_of_event(event: &Event) -> u8 {
    match event {
        Event::Woke => 1,
        Event::Nudged => 2,
        Event::Joined { .. } => 3,
        Event::Beaten { .. } => 4,
        Event::Watched(_) => 5,
        Event::Fenced { .. } => 6,
        Event::EpochOpened(_) => 7,
        Event::Changed(_) => 8,
        Event::Claimed { .. } => 9,
        Event::Settled { .. } => 10,
        Event::EndAnswered { .. } => 11,
        Event::Started { .. } => 12,
        Event::NotStarted { .. } => 13,
        Event::Ended { .. } => 14,
        Event::Drain(_) => 15,
    }
}

fn kind_of_command(command: &Command) -> u8 {
    match command {
        Command::Join => 1,
        Command::Beat => 2,
        Command::Watch => 3,
        Command::Fence { .. } => 4,
        Command::OpenEpoch(_) => 5,
        Command::Changes(_) => 6,
        Command::Claim { .. } => 7,
        Command::Settle { .. } => 8,
        Command::End { .. } => 9,
        Command::Mark(_) => 10,
        Command::Start(_) => 11,
        Command::Extend { .. } => 12,
        Command::Stop { .. } => 13,
        Command::Revoke { .. } => 14,
        Command::Leave => 15,
        Command::Notice(_) => 16,
    }
}

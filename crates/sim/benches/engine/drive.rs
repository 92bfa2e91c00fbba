//! One engine, a store that answers at once, runs that take no time: what is timed is the engine alone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration as RealDuration, Instant};

use evenbeat_core::engine::{Command, Engine, Event, Now, RunOver, Settings};
use evenbeat_core::ids::{RunId, SessionId, stable_hash};
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::lease::Timings;
use evenbeat_core::run::Outcome;
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::{Claim, Joined, PutJob, Seen, SessionKind, SessionSpec, Store};
use evenbeat_core::time::{BootTime, Duration};
use evenbeat_sim::reference::ReferenceStore;

use crate::fleet;

pub(crate) struct Driven {
    pub(crate) view_bytes: u64,
    pub(crate) loading: RealDuration,
    pub(crate) handling: RealDuration,
    pub(crate) n_events: u64,
}

/// Loads a fleet, then lets `n_runs` runs happen.
pub(crate) fn drive(n_jobs: usize, n_runs: u64) -> Driven {
    let start = fleet::start();
    let mut store = ReferenceStore::new(start);
    for chunk in (0..n_jobs).collect::<Vec<_>>().chunks(10_000) {
        let puts: Vec<PutJob> = chunk
            .iter()
            .map(|idx| {
                let (job, state) = scattered(*idx);
                PutJob {
                    job: Arc::new(job),
                    state,
                    seen: Seen::Nothing,
                    is_revision: true,
                    is_deleted: false,
                    records: Vec::new(),
                    audit: None,
                    request: None,
                }
            })
            .collect();
        store.put_jobs(&puts).expect("a store in memory answers");
    }
    let mut engine = Engine::new(Settings::new("n1".parse().expect("a name"), None, 1_000));
    let mut driver = Driver { store: &mut store, me: SessionId(1), n_ids: 1, n_ended: 0 };
    let mut now = Now { wall: start, boot: BootTime::from_millis(0) };
    let (mut loading, mut handling, mut n_events) = (RealDuration::ZERO, RealDuration::ZERO, 0_u64);
    let before = resident();
    let mut view_bytes = 0;
    let mut events = VecDeque::from([Event::Woke]);
    while driver.n_ended < n_runs {
        while let Some(event) = events.pop_front() {
            let is_load = matches!(event, Event::Changed(_)) && view_bytes == 0;
            let began = Instant::now();
            let commands = engine.handle(now, event);
            if is_load {
                loading += began.elapsed();
            } else {
                handling += began.elapsed();
                n_events += 1;
            }
            if is_load && engine.n_jobs() == n_jobs {
                view_bytes = resident().saturating_sub(before);
            }
            for command in commands {
                driver.perform(now, command, &mut events);
            }
        }
        let Some(wakes_at) = engine.wake_at(now) else { break };
        let passed = (wakes_at - now.boot).max(Duration::from_millis(1));
        now = Now { wall: now.wall + passed, boot: now.boot + passed };
        driver.store.set_now(now.wall);
        events.push_back(Event::Woke);
    }
    Driven { view_bytes, loading, handling, n_events }
}

struct Driver<'a> {
    store: &'a mut ReferenceStore,
    me: SessionId,
    n_ids: u128,
    n_ended: u64,
}

impl Driver<'_> {
    fn perform(&mut self, now: Now, command: Command, events: &mut VecDeque<Event>) {
        match command {
            Command::Join => {
                let spec = SessionSpec {
                    id: self.me,
                    node: "n1".parse().expect("a name"),
                    name: "n1".to_owned(),
                    boot_id: 1,
                    home: 0,
                    kind: SessionKind::Node,
                    pools: std::collections::BTreeMap::new(),
                    zone_data: String::new(),
                };
                let joined = self.store.join(&spec, &Timings::default()).expect("an answer");
                let Joined::Welcome { epoch, is_open, now: store_now } = joined else {
                    unreachable!("nobody else has joined")
                };
                let adopted = Vec::new();
                events.push_back(Event::Joined {
                    session: self.me,
                    began_at: now.boot,
                    epoch,
                    is_open,
                    store_now,
                    adopted,
                });
            }
            Command::Beat => {
                events.push_back(Event::Beaten { began_at: now.boot, answer: self.store.beat(self.me) });
            }
            // Small pages, so that what is read is not mistaken for what is kept.
            Command::Changes(since) => events.push_back(Event::Changed(self.store.changes(since, 1_000))),
            Command::Claim { epoch, bids } => {
                let claims: Vec<Claim> = bids
                    .into_iter()
                    .map(|bid| {
                        self.n_ids += 1;
                        Claim { run: RunId(self.n_ids), bid }
                    })
                    .collect();
                let answer = self.store.claim(self.me, epoch, &claims);
                let claims = claims.into_iter().map(|claim| (claim.bid.key, claim.run)).collect();
                events.push_back(Event::Claimed { claims, answer });
            }
            Command::End { epoch, ends } => {
                let answer = self.store.end(epoch, &ends);
                self.n_ended += ends.len() as u64;
                events.push_back(Event::EndAnswered { runs: ends.iter().map(|it| it.run).collect(), answer });
            }
            Command::Start(start) => {
                let run = start.run;
                events.push_back(Event::Started { run, at: now.boot });
                let over = RunOver {
                    started_at: now.boot,
                    ended_at: now.boot,
                    outcome: Outcome::Succeeded,
                    exit_code: None,
                    frozen_for: Duration::ZERO,
                };
                events.push_back(Event::Ended { run, over });
            }
            _ => {}
        }
    }
}

/// The job, with its first occurrence somewhere in its first interval.
fn scattered(idx: usize) -> (Job, JobState) {
    let job = fleet::job(idx);
    let Schedule::Every { interval, .. } = &job.schedule else { unreachable!("all of them are") };
    let offset = stable_hash(&(idx + 2).to_le_bytes()) % interval.as_millis() as u64;
    let mut state = JobState::new(fleet::start());
    state.place(
        &job,
        Placement::at(fleet::start() + Duration::from_millis(offset as i64 + 1), fleet::start()),
    );
    (job, state)
}

/// Bytes of memory that this process has in use.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    pages * 4_096
}

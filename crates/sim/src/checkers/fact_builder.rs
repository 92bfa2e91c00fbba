//! Small worlds built fact by fact.
//!
//! A world begins at 10:00 of a Wednesday, 2026-02-04, with the store's clock on time. Runs and sessions are
//! numbers; session 1 and node `n1` do everything unless said otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Job, Target};
use evenbeat_core::lease::{Epoch, Timings, TimingsSpec};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::schedule::{Cron, Placement, Schedule};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, Timestamp};

use super::fake_store::FakeStore;
use super::{Checker, Premises, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// This many milliseconds after the beginning, by a clock that is on time.
pub(super) fn instant(millis: i64) -> Timestamp {
    "2026-02-04T10:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_millis(millis)
}

fn job(key: &str, schedule: Schedule) -> Job {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    Job::new(key.parse().unwrap(), Target::Command(command), schedule)
}

/// A job at a fixed distance, in milliseconds.
pub(super) fn every(key: &str, interval: i64) -> Job {
    job(key, Schedule::Every { interval: Duration::from_millis(interval), finish_within: None })
}

/// A job that rests between runs.
pub(super) fn fresh(key: &str, max_age: i64, cooldown: i64) -> Job {
    let (max_age, cooldown) = (Duration::from_millis(max_age), Duration::from_millis(cooldown));
    job(key, Schedule::Fresh { max_age, cooldown })
}

/// A job by an expression.
pub(super) fn cron(key: &str, expression: &str) -> Job {
    job(key, Schedule::Cron(Cron::new(CronExpr::parse(expression).unwrap(), None)))
}

/// A job that has no schedule.
pub(super) fn manual(key: &str) -> Job {
    job(key, Schedule::Manual)
}

/// The same with one blackout.
pub(super) fn with_blackout(mut job: Job, start: &str, end: &str, days: &[&str]) -> Job {
    let days = Weekdays::from_names(days).unwrap();
    let period = BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), days).unwrap();
    job.blackouts = Blackouts::new(vec![period]).unwrap();
    job
}

/// Two nodes that carry 4 each, fast timings, runs of up to 10 s; site `shop` allows 2 runs at a time, 1 s
/// apart, site `slow` 2 an hour, tenant `acme` 1.
pub(super) fn premises() -> Premises {
    let node = |name: &str| (name.parse().unwrap(), BTreeMap::from([("default".parse().unwrap(), 4)]));
    let second = Duration::from_secs(1);
    let shop = CounterLimit { max_open: Some(2), min_gap: Some(second), max_per_hour: None };
    let slow = CounterLimit { max_per_hour: Some(2), ..CounterLimit::default() };
    let acme = CounterLimit { max_open: Some(1), ..CounterLimit::default() };
    Premises {
        timings: Timings::new(TimingsSpec::FAST).unwrap(),
        nodes: vec![node("n1"), node("n2")],
        site_limits: BTreeMap::from([("shop".parse().unwrap(), shop), ("slow".parse().unwrap(), slow)]),
        tenant_limits: BTreeMap::from([("acme".parse().unwrap(), acme)]),
        is_overloaded: false,
        longest_run: Duration::from_secs(10),
        start_within: Duration::from_secs(8),
    }
}

/// Facts, one after the other.
#[derive(Debug)]
pub(super) struct FactBuilder {
    at: RealTime,
    store_ahead: i64,
    epoch: Epoch,
    attempt: u32,
    facts: Vec<Fact>,
    jobs: BTreeMap<JobKey, (Arc<Job>, Option<Placement>)>,
    runs: BTreeMap<RunId, (JobKey, Fence)>,
}

impl FactBuilder {
    pub(super) fn new() -> FactBuilder {
        FactBuilder {
            at: RealTime(0),
            store_ahead: 0,
            epoch: Epoch(1),
            attempt: 1,
            facts: Vec::new(),
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    pub(super) fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Tells it to a checker, whose words must begin so, or contain this. `..1` stands for a long id.
    #[track_caller]
    pub(super) fn check(self, checker: impl Checker, expected: &[&str]) {
        self.check_with(&FakeStore::default(), checker, expected);
    }

    /// The same with a store at the end.
    #[track_caller]
    pub(super) fn check_with(self, fake_store: &FakeStore, mut checker: impl Checker, expected: &[&str]) {
        for fact in &self.facts {
            checker.see(fact);
        }
        checker.end(&WorldEnd { store: fake_store, now: self.at, store_now: self.store_now() });
        let found: Vec<String> = checker.violations().iter().map(|it| shortened(&it.to_string())).collect();
        let is_met = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| found.contains(expected));
        assert!(is_met, "found {found:#?}, expected {expected:#?}");
    }

    fn store_now(&self) -> Timestamp {
        instant(self.at.0 + self.store_ahead)
    }

    fn tell(mut self, what: What) -> FactBuilder {
        self.facts.push(Fact { at: self.at, what });
        self
    }

    /// From now on it is so late.
    pub(super) fn at(mut self, millis: i64) -> FactBuilder {
        self.at = RealTime(millis);
        self
    }

    /// From now on the store's clock is ahead by this much.
    pub(super) fn store_ahead(mut self, millis: i64) -> FactBuilder {
        self.store_ahead = millis;
        self
    }

    /// From now on grants are of this epoch.
    pub(super) fn epoch(mut self, number: u64) -> FactBuilder {
        self.epoch = Epoch(number);
        self
    }

    /// From now on grants are such an attempt.
    pub(super) fn attempt(mut self, number: u32) -> FactBuilder {
        self.attempt = number;
        self
    }

    fn put_so(mut self, job: Arc<Job>, placement: Option<Placement>, is_paused: bool) -> FactBuilder {
        self.jobs.insert(job.key.clone(), (Arc::clone(&job), placement.clone()));
        let store_now = self.store_now();
        self.tell(What::Put { job, placement, is_paused, store_now })
    }

    /// Puts a job, placed at the beginning of the tale.
    pub(super) fn put(self, job: Job) -> FactBuilder {
        self.put_so(Arc::new(job), Some(Placement::at(instant(0), instant(0))), false)
    }

    /// Puts a job, placed now with its first occurrence then.
    pub(super) fn put_at(self, job: Job, anchor: i64) -> FactBuilder {
        let placement = Placement::at(instant(anchor), self.store_now());
        self.put_so(Arc::new(job), Some(placement), false)
    }

    /// Puts a job that is not placed.
    pub(super) fn put_unplaced(self, job: Job) -> FactBuilder {
        self.put_so(Arc::new(job), None, false)
    }

    pub(super) fn paused(self, key: &str) -> FactBuilder {
        let (job, placement) = self.jobs.get(key).cloned().unwrap();
        self.put_so(job, placement, true)
    }

    pub(super) fn removed(self, key: &str) -> FactBuilder {
        let store_now = self.store_now();
        self.tell(What::Removed { key: key.parse().unwrap(), store_now })
    }

    pub(super) fn triggered(self, key: &str) -> FactBuilder {
        let due_at = self.store_now();
        self.tell(What::Triggered { key: key.parse().unwrap(), due_at })
    }

    /// Grants a run of what was due at the beginning of the tale.
    pub(super) fn granted(self, run: u128, key: &str, fence: u64) -> FactBuilder {
        self.granted_so(run, key, fence, instant(0), Trigger::Scheduler)
    }

    /// Grants a run of what was due then.
    pub(super) fn granted_for(self, run: u128, key: &str, due: i64, trigger: Trigger) -> FactBuilder {
        let fence = u64::try_from(run).unwrap();
        self.granted_so(run, key, fence, instant(due), trigger)
    }

    fn granted_so(
        mut self,
        run: u128,
        key: &str,
        fence: u64,
        due_at: Timestamp,
        trigger: Trigger,
    ) -> FactBuilder {
        let (run, key, fence): (RunId, JobKey, Fence) = (RunId(run), key.parse().unwrap(), Fence(fence));
        self.runs.insert(run, (key.clone(), fence));
        let (session, epoch, attempt, store_now) = (SessionId(1), self.epoch, self.attempt, self.store_now());
        self.tell(What::Granted { run, key, fence, session, epoch, due_at, attempt, trigger, store_now })
    }

    /// A run begins as it was granted, on `n1`.
    pub(super) fn begins(self, run: u128) -> FactBuilder {
        self.begins_with(run, 1)
    }

    pub(super) fn begins_with(self, run: u128, cost: u32) -> FactBuilder {
        let (key, fence) = self.runs.get(&RunId(run)).cloned().unwrap();
        self.begins_as_with(run, key.as_str(), fence.0, "n1", cost)
    }

    pub(super) fn begins_as(self, run: u128, key: &str, fence: u64, node: &str) -> FactBuilder {
        self.begins_as_with(run, key, fence, node, 1)
    }

    pub(super) fn begins_as_with(
        self,
        run: u128,
        key: &str,
        fence: u64,
        node: &str,
        cost: u32,
    ) -> FactBuilder {
        let (key, node) = (key.parse().unwrap(), node.parse().unwrap());
        self.tell(What::Begins { run: RunId(run), key, fence: Fence(fence), node, cost })
    }

    /// A worker wins the start of a run.
    pub(super) fn taken_up(self, run: u128, session: u128, worker: &str) -> FactBuilder {
        let (run, session) = (RunId(run), SessionId(session));
        self.tell(What::TakenUp { run, session, worker: worker.parse().unwrap() })
    }

    pub(super) fn halts(self, run: u128) -> FactBuilder {
        self.tell(What::Halts { run: RunId(run) })
    }

    pub(super) fn goes_on(self, run: u128) -> FactBuilder {
        self.tell(What::GoesOn { run: RunId(run) })
    }

    pub(super) fn gone(self, run: u128) -> FactBuilder {
        self.tell(What::IsGone { run: RunId(run) })
    }

    fn ended_so(self, run: u128, outcome: Option<Outcome>, is_release: bool) -> FactBuilder {
        let (key, _) = self.runs.get(&RunId(run)).cloned().unwrap();
        self.tell(What::RunEnded { run: RunId(run), key, outcome, is_release })
    }

    pub(super) fn ended(self, run: u128) -> FactBuilder {
        self.ended_so(run, Some(Outcome::Succeeded), false)
    }

    pub(super) fn ended_as(self, run: u128, key: &str) -> FactBuilder {
        let key = key.parse().unwrap();
        self.tell(What::RunEnded {
            run: RunId(run),
            key,
            outcome: Some(Outcome::Succeeded),
            is_release: false,
        })
    }

    pub(super) fn failed(self, run: u128) -> FactBuilder {
        self.ended_so(run, Some(Outcome::Failed), false)
    }

    pub(super) fn taken_back(self, run: u128) -> FactBuilder {
        self.ended_so(run, None, false)
    }

    pub(super) fn released(self, run: u128) -> FactBuilder {
        self.ended_so(run, Some(Outcome::Lost), true)
    }

    pub(super) fn joined(self, session: u128, node: &str) -> FactBuilder {
        self.tell(What::Joined { session: SessionId(session), node: node.parse().unwrap() })
    }

    pub(super) fn beat(self, session: u128) -> FactBuilder {
        self.tell(What::Beat { session: SessionId(session) })
    }

    pub(super) fn watched(self, by: &str) -> FactBuilder {
        let by = by.parse().expect("a name");
        self.tell(What::Watched { by })
    }

    pub(super) fn fenced(self, session: u128, by: &str) -> FactBuilder {
        self.tell(What::Fenced { session: SessionId(session), by: by.parse().unwrap() })
    }

    pub(super) fn adopted(self, session: u128, by: &str) -> FactBuilder {
        self.tell(What::Adopted { session: SessionId(session), by: by.parse().unwrap() })
    }

    pub(super) fn opened(self, epoch: u64) -> FactBuilder {
        self.tell(What::EpochOpened { epoch: Epoch(epoch) })
    }

    pub(super) fn failed_over(self, kept_until: i64, epoch: u64) -> FactBuilder {
        self.tell(What::FailedOver { kept_until: RealTime(kept_until), epoch: Epoch(epoch) })
    }

    pub(super) fn drained(self, node: &str) -> FactBuilder {
        self.tell(What::Drained { node: node.parse().unwrap() })
    }

    pub(super) fn undrained(self, node: &str) -> FactBuilder {
        self.tell(What::Undrained { node: node.parse().unwrap() })
    }

    pub(super) fn fault(self) -> FactBuilder {
        self.tell(What::FaultBegan { fault: "cut" })
    }

    pub(super) fn healed(self) -> FactBuilder {
        self.tell(What::Healed)
    }
}

/// Ids of small numbers, written as `..1`.
fn shortened(text: &str) -> String {
    let mut parts = text.split("00000000-0000-0000-0000-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + ".." + part.trim_start_matches('0'))
}

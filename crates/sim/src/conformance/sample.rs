//! What the cases write: jobs, memories, records. Only here is it known how they are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Extra, Job, JobState, Pause, PausedBy, RunEnd, Target};
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::missed::RecordRange;
use evenbeat_core::occurrence::{Due, Record, RecordKind, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::{Bounds, Placement, Schedule};
use evenbeat_core::store::{CounterKey, CounterLimit, Seen, SessionKind, SessionSpec, Take};
use evenbeat_core::store::{JobRow, PutJob};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::value::Value;

pub(super) const HOUR: Duration = Duration::from_hours(1);
pub(super) const NO_FENCE: Fence = Fence(0);
pub(super) const UNKNOWN_RUN: RunId = RunId(0xdead);
pub(super) const STRANGER: SessionId = SessionId(0xdead);

pub(super) fn key(text: &str) -> JobKey {
    text.parse().unwrap()
}

pub(super) fn timings() -> Timings {
    Timings::new(TimingsSpec::DEFAULT).unwrap()
}

pub(super) fn other_timings() -> Timings {
    Timings::new(TimingsSpec::FAST).unwrap()
}

/// An hourly job.
pub(super) fn job(text: &str) -> Arc<Job> {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    let schedule = Schedule::Every { interval: HOUR, finish_within: None };
    Arc::new(Job::new(key(text), Target::Command(command), schedule))
}

/// A job with something in many of its fields.
pub(super) fn rich_job(text: &str, now: Timestamp) -> Arc<Job> {
    let mut job = Job::clone(&job(text));
    job.labels.insert("team".to_owned(), "prices".to_owned());
    job.params = params();
    job.terms.bounds = Bounds { starts_at: Some(now - HOUR), ends_at: None, max_runs: Some(7) };
    job.terms.tenant = Some("acme".parse().unwrap());
    job.terms.place.cost = 3;
    Arc::new(job)
}

/// The memory of a job that is due at this instant.
pub(super) fn state(now: Timestamp) -> JobState {
    let mut state = JobState::new(now - HOUR);
    state.placement = Some(Placement::at(now, now - HOUR));
    state.next_run_at = Some(now);
    state
}

/// A memory with something in many of its fields.
pub(super) fn rich_state(now: Timestamp) -> JobState {
    let mut state = state(now);
    state.settled_until = Some(now + HOUR);
    state.record_end(&run_end(Outcome::Succeeded, now), 0.37);
    state.record_end(&run_end(Outcome::Blackout, now + HOUR), 0.37);
    state.record_end(&run_end(Outcome::Failed, now + HOUR), 0.37);
    state.attempt = 2;
    state.losses = 1;
    state.attempt_outcome = Some(Outcome::Lost);
    state.n_served = 41;
    let mut asked = Extra::manual(ExtraId(5), now);
    asked.params = Some(Arc::new(params()));
    state.extras.push(asked);
    state.extras.push(Extra::backfill(ExtraId(6), now - HOUR, now));
    state.pause =
        Some(Box::new(Pause { by: PausedBy::Quota, reason: Some("FREE_TIER_LIMIT_EXCEEDED".to_owned()) }));
    state
}

/// The memory after one more run has begun; it differs from the one before.
pub(super) fn begun(state: &JobState) -> JobState {
    let mut state = state.clone();
    state.attempt += 1;
    state
}

/// The memory after a run has ended; it differs from the one before.
pub(super) fn served(state: &JobState) -> JobState {
    let mut state = state.clone();
    state.attempt = 0;
    state.n_served += 1;
    state.next_run_at = state.next_run_at.map(|at| at + HOUR);
    state
}

pub(super) fn due(at: Timestamp) -> Due {
    Due {
        due_at: at,
        attempt: 2,
        trigger: Trigger::Retry,
        serves: Serves::Extra(ExtraId(7)),
        losses: 1,
        last_outcome: Some(Outcome::Lost),
        params: Some(Arc::new(params())),
    }
}

fn params() -> BTreeMap<String, Value> {
    [("url".to_owned(), Value::Text("https://shop.example/\u{e4}".to_owned()))].into()
}

pub(super) fn run_end(outcome: Outcome, ended_at: Timestamp) -> RunEnd {
    RunEnd {
        run: UNKNOWN_RUN,
        started_at: ended_at - Duration::from_mins(5),
        ended_at,
        outcome,
        exit_code: Some(3),
        frozen_for: Duration::from_secs(7),
    }
}

pub(super) fn record(first: Timestamp) -> Record {
    let range = RecordRange { first, last: first + HOUR + HOUR, count: 3 };
    Record { range, what: RecordKind::MissedLate }
}

/// A new job, due now.
pub(super) fn new_job(text: &str, now: Timestamp) -> PutJob {
    PutJob {
        job: job(text),
        state: state(now),
        seen: Seen::Nothing,
        is_revision: true,
        is_deleted: false,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

/// The job as it is, written again.
pub(super) fn again(row: &JobRow) -> PutJob {
    PutJob {
        job: row.job.clone(),
        state: row.state.clone(),
        seen: Seen::Version(row.version),
        is_revision: false,
        is_deleted: row.is_deleted,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

/// The job, removed.
pub(super) fn removed(row: &JobRow) -> PutJob {
    let mut put = again(row);
    put.state.next_run_at = None;
    put.is_revision = true;
    put.is_deleted = true;
    put
}

pub(super) fn node(id: u128, name: &str) -> SessionSpec {
    SessionSpec {
        id: SessionId(id),
        node: name.parse().unwrap(),
        name: "main".to_owned(),
        boot_id: 1,
        home: 0,
        kind: SessionKind::Node,
        pools: [("default".parse().unwrap(), 4)].into(),
        zone_data: "2026e".to_owned(),
    }
}

pub(super) fn worker(id: u128) -> SessionSpec {
    SessionSpec { kind: SessionKind::Worker, name: "worker".to_owned(), ..node(id, "w1") }
}

pub(super) fn site(name: &str) -> CounterKey {
    CounterKey::Site(name.parse().unwrap())
}

/// A limit of open runs against a site.
pub(super) fn at_most(most: u32, name: &str) -> Take {
    Take { counter: site(name), limit: CounterLimit { max_open: Some(most), ..CounterLimit::default() } }
}

//! The fleet that is stored, and what is asked about it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use evenbeat_core::estimate::Estimate;
use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Job, JobState, Pause, PausedBy, RunEnd, Target};
use evenbeat_core::lease::{Epoch, Timings, TimingsSpec};
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::{Choices, Placement, Schedule};
use evenbeat_core::store::{
    BATCH_MAX, Bid, Claim, End, EndBy, Joined, PutAnswer, PutJob, Seen, SessionKind, SessionSpec, Store,
    Version,
};
use evenbeat_core::time::{Duration, Timestamp};

pub(crate) const ME: SessionId = SessionId(1);
pub(crate) const N_SITES: usize = 50;
pub(crate) const N_TEAMS: usize = 20;
/// One of so many jobs is paused.
const PAUSED_STEP: usize = 1_000;

/// One run of one job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) job_idx: usize,
    /// The version of the job that is known.
    pub(crate) version: u64,
    pub(crate) fence: u64,
    pub(crate) run: RunId,
}

pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    Timestamp::from_millis(since_epoch.as_millis() as i64)
}

/// Ids grow with time, and are else as good as drawn.
pub(crate) fn run_id(at: Timestamp, no: u64) -> RunId {
    let drawn = mixed(no) >> 2 | 1 << 63;
    RunId((at.as_millis() as u128) << 80 | 7 << 76 | u128::from(no & 0xfff) << 64 | u128::from(drawn))
}

/// A number that has nothing to do with its neighbours'.
pub(crate) fn mixed(no: u64) -> u64 {
    let mut it = no.wrapping_add(0x9e37_79b9_7f4a_7c15);
    it = (it ^ it >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ it >> 31
}

/// Keys sort as their jobs were made.
pub(crate) fn key(idx: usize) -> JobKey {
    let configuration = ["at", "de", "fr", "it"][idx % 4];
    JobKey::new(&format!("shop-{:07}", idx / 4), Some(configuration)).expect("a key")
}

fn job(idx: usize) -> Job {
    let command =
        CommandTarget { argv: vec!["crawl".to_owned(), format!("--shop={idx}")], ..CommandTarget::default() };
    let interval = Duration::from_mins([15, 30, 60, 120, 360, 720, 1_440][idx % 7]);
    let schedule = Schedule::Every { interval, finish_within: None };
    let mut job = Job::new(key(idx), Target::Command(command), schedule);
    job.terms.place.pool = ["default", "crawlers", "exports"][idx % 3].parse().expect("a pool");
    job.terms.site = Some(format!("site-{}", idx % N_SITES).parse().expect("a site"));
    job.labels.insert("team".to_owned(), format!("team-{}", idx % N_TEAMS));
    job.labels.insert("stage".to_owned(), if idx.is_multiple_of(10) { "test" } else { "live" }.to_owned());
    job
}

/// What is remembered of a job that has run for a while.
pub(crate) fn state(at: Timestamp) -> JobState {
    let hour = Duration::from_hours(1);
    let mut state = JobState::new(at - hour);
    state.placement =
        Some(Placement { placed_at: at - hour, anchor_at: at + hour, choices: Choices::from(Vec::new()) });
    state.next_run_at = Some(at + hour);
    state.settled_until = Some(at);
    state.last_start_at = Some(at);
    state.last_end_at = Some(at);
    state.last_good_start_at = Some(at);
    state.last_good_end_at = Some(at);
    state.last_exit_code = Some(0);
    state.last_outcome = Some(Outcome::Succeeded);
    state.estimate = Some(Estimate::from_stored(1_500.0, 250.0, 12));
    state
}

/// Joins, and writes all jobs.
pub(crate) fn fill(store: &mut (impl Store + ?Sized), n_jobs: usize) -> Epoch {
    let epoch = join(store);
    let at = now();
    for first in (0..n_jobs).step_by(BATCH_MAX) {
        let put = |idx: usize| {
            let mut state = state(at);
            if idx % PAUSED_STEP == 7 {
                state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
            }
            PutJob {
                job: Arc::new(job(idx)),
                state,
                seen: Seen::Nothing,
                is_revision: true,
                is_deleted: false,
                records: Vec::new(),
                audit: None,
                request: None,
            }
        };
        let puts: Vec<PutJob> = (first..n_jobs.min(first + BATCH_MAX)).map(put).collect();
        let answers = store.put_jobs(&puts).expect("the store answers");
        assert!(answers.iter().all(|it| matches!(it, PutAnswer::Put(_))), "a job was there already");
    }
    epoch
}

pub(crate) fn join(store: &mut (impl Store + ?Sized)) -> Epoch {
    let session = SessionSpec {
        id: ME,
        node: "n1".parse().expect("a node"),
        name: "main".to_owned(),
        boot_id: 1,
        home: 0,
        kind: SessionKind::Node,
        pools: [("default".parse().expect("a pool"), 4)].into(),
        zone_data: String::new(),
    };
    let timings = Timings::new(TimingsSpec::DEFAULT).expect("timings");
    match store.join(&session, &timings).expect("the store answers") {
        Joined::Welcome { epoch, .. } => epoch,
        Joined::OtherTimings(_) => unreachable!("nobody else is there"),
    }
}

/// Of the job of this key, which whoever claims has at hand.
pub(crate) fn claim(turn: &Turn, key: JobKey, at: Timestamp) -> Claim {
    let due = Due {
        due_at: at,
        attempt: 1,
        trigger: Trigger::Scheduler,
        serves: Serves::Pending,
        losses: 0,
        last_outcome: None,
        params: None,
    };
    let bid = Bid {
        key,
        run: None,
        seen: Version(turn.version),
        max_open: 1,
        not_before: at - Duration::from_hours(1),
        due,
        state: state(at),
        records: Vec::new(),
        takes: Vec::new(),
        is_published: false,
    };
    Claim { run: turn.run, bid }
}

pub(crate) fn end(turn: &Turn, key: JobKey, at: Timestamp) -> End {
    let end = RunEnd {
        run: turn.run,
        started_at: at,
        ended_at: at,
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        frozen_for: Duration::ZERO,
    };
    End {
        run: turn.run,
        fence: Fence(turn.fence),
        me: ME,
        key,
        seen: Version(turn.version),
        by: EndBy::Owner(end),
        state: state(at),
        records: Vec::new(),
        report: None,
    }
}

/// A run of long ago: its id, which job's, when it ended and whether it failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PastRun {
    pub(crate) id: RunId,
    pub(crate) job_idx: usize,
    pub(crate) ended_at: Timestamp,
    pub(crate) outcome: Outcome,
}

/// The history: evenly over the hours before, of all jobs in no order.
pub(crate) fn past_runs(n_runs: usize, n_jobs: usize, until: Timestamp) -> impl Iterator<Item = PastRun> {
    let step = PAST_FOR.as_millis() as f64 / n_runs.max(1) as f64;
    let begin = until - PAST_FOR;
    (0..n_runs).map(move |no| {
        let ended_at = begin + Duration::from_millis((no as f64 * step) as i64);
        PastRun {
            id: run_id(ended_at, no as u64),
            job_idx: (mixed(no as u64) % n_jobs as u64) as usize,
            ended_at,
            outcome: if no % 50 == 0 { Outcome::Failed } else { Outcome::Succeeded },
        }
    })
}

/// How far the history goes back.
pub(crate) const PAST_FOR: Duration = Duration::from_hours(20);

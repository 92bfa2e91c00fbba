//! A day of downtime under ten thousand jobs: each policy makes up for exactly what it says, no faster than it
//! may, and every occurrence has had a run or is on record.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::engine::{DispatchSettings, PoolSettings, StartRate};
use evenbeat_core::ids::{JobKey, Pool};
use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
use evenbeat_core::missed::{MissedPolicy, MissedRuns};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_whatif::{NodePlan, Report, RunModel, Scenario, simulate_watched};

const N_JOBS: i64 = 10_000;
const CAPACITY: u32 = 4_000;
const RATE: StartRate = StartRate { per_second: 1_000, burst: 1_000 };
const MOST: u32 = 10;

/// No job is due in the last seconds of a minute: then nothing runs.
const PHASES: i64 = 50;

fn start() -> Timestamp {
    "2026-02-04T00:00:00Z".parse().unwrap()
}

/// A day from shortly before one hour after the beginning.
fn outage() -> TimeWindow {
    let down = start() + Duration::from_hours(1) - Duration::from_secs(1);
    TimeWindow::new(down, down + Duration::from_hours(24))
}

fn window() -> TimeWindow {
    TimeWindow::new(start(), outage().end() + Duration::from_hours(1))
}

/// Each policy has a pool, so that what goes on record is counted for it.
fn policies() -> [(Pool, MissedRuns); 3] {
    let pool = |name: &str| name.parse().unwrap();
    [(pool("skip"), MissedRuns::Skip), (pool("once"), MissedRuns::Once), (pool("all"), MissedRuns::All)]
}

fn job(no: i64) -> (Job, JobState) {
    // Most are slow, and some come every minute.
    let minutes = if no % 25 == 0 { 1 } else { [5, 15, 60, 360, 1_440][usize::try_from(no % 5).unwrap()] };
    let interval = Duration::from_mins(minutes);
    let target = Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
    let schedule = Schedule::Every { interval, finish_within: None };
    let mut job = Job::new(format!("job{no}").parse().unwrap(), target, schedule);
    let (pool, runs) = policies()[usize::try_from(no / 25 % 3).unwrap()].clone();
    job.place.pool = pool;
    job.estimate = Some(Duration::from_secs(1));
    job.missed =
        MissedPolicy { runs, most: MOST, window: Duration::from_hours(48), ..MissedPolicy::default() };
    let first = Duration::from_mins(no * 7 % minutes) + Duration::from_secs(no % PHASES);
    let mut state = JobState::new(start());
    state.place(&job, Placement::at(start() + first, start()));
    (job, state)
}

/// When a job was due, by arithmetic.
fn due_within(job: &Job, state: &JobState, window: TimeWindow) -> usize {
    let Schedule::Every { interval, .. } = job.schedule else { unreachable!("all are intervals") };
    let mut at = state.next_run_at.unwrap();
    let mut n_due = 0;
    while at < window.end() {
        n_due += usize::from(window.start() <= at);
        at = at + interval;
    }
    n_due
}

/// Every occurrence of a job that got a run, with the first start of each.
type Served = BTreeMap<JobKey, BTreeMap<Timestamp, Timestamp>>;

fn lived() -> (Scenario, Report, Served, Vec<Timestamp>) {
    let pools = policies().map(|(pool, _)| (pool, PoolSettings { capacity: CAPACITY, reserved: 0 }));
    let scenario = Scenario {
        jobs: (0..N_JOBS).map(job).collect(),
        window: window(),
        nodes: vec![NodePlan { name: "n1".parse().unwrap(), pools: pools.into_iter().collect() }],
        sites: BTreeMap::new(),
        tenants: BTreeMap::new(),
        all_runs: CounterLimit::default(),
        dispatch: DispatchSettings { start_rate: Some(RATE), ..DispatchSettings::default() },
        runs: RunModel { spread: 0.0, ..RunModel::default() },
        outages: vec![outage()],
    };
    let (mut served, mut starts) = (Served::new(), Vec::new());
    let report = simulate_watched(&scenario, &mut |_| {}, &mut |run| {
        let before = served.entry(run.job.key.clone()).or_default().insert(run.due_at, run.started_at);
        assert_eq!(before, None, "{} served {} twice", run.job.key, run.due_at);
        assert!(run.due_at <= run.started_at, "{} began before it was due", run.job.key);
        starts.push(run.started_at);
    });
    starts.sort_unstable();
    (scenario, report, served, starts)
}

#[test]
fn after_a_day_of_downtime_each_policy_makes_up_for_what_it_says() {
    let (scenario, report, served, starts) = lived();
    let nothing = BTreeMap::new();
    let mut n_due: BTreeMap<&Pool, usize> = BTreeMap::new();
    let mut n_served: BTreeMap<&Pool, usize> = BTreeMap::new();
    let mut seen: BTreeSet<(&str, usize)> = BTreeSet::new();
    for (job, state) in &scenario.jobs {
        let of_job = served.get(&job.key).unwrap_or(&nothing);
        *n_due.entry(&job.place.pool).or_default() += due_within(job, state, window());
        *n_served.entry(&job.place.pool).or_default() += of_job.len();
        let n_missed = due_within(job, state, outage());
        let n_made_up = of_job.range(outage().start()..outage().end()).count();
        let is_quick =
            matches!(job.schedule, Schedule::Every { interval, .. } if interval < Duration::from_mins(5));
        match job.missed.runs {
            // What is late by less than the grace is not missed.
            MissedRuns::Skip => {
                let of_grace = TimeWindow::new(outage().end() - job.missed.grace, outage().end());
                let n_in_grace = due_within(job, state, of_grace);
                assert!(n_made_up <= n_in_grace.min(1), "{}: {n_made_up}", job.key);
            }
            // A quick one may have come due again before its turn.
            MissedRuns::Once if is_quick => assert!(n_made_up <= 1, "{}: {n_made_up}", job.key),
            MissedRuns::Once => assert_eq!(n_made_up, n_missed.min(1), "{}", job.key),
            MissedRuns::All if is_quick => assert!(n_made_up <= MOST as usize, "{}: {n_made_up}", job.key),
            MissedRuns::All => assert_eq!(n_made_up, n_missed.min(MOST as usize), "{}", job.key),
        }
        seen.insert((job.place.pool.as_str(), n_made_up));
    }
    // All that can be seen was: nothing, one, the most.
    assert!(
        seen.contains(&("skip", 0)) && seen.contains(&("once", 1)) && seen.contains(&("all", 10)),
        "{seen:?}"
    );
    // Conservation, to the last occurrence.
    for (pool, group) in &report.pools {
        let n_recorded = usize::try_from(group.n_recorded()).unwrap();
        assert_eq!(n_served[pool] + n_recorded, n_due[pool], "{pool}");
    }
    keeps_the_rate(&starts);
    let made_up = served.values().flatten().filter(|(due_at, _)| **due_at < outage().end());
    let last = made_up.map(|(_, started_at)| *started_at).max().unwrap();
    let settled = last - outage().end();
    assert!(settled <= Duration::from_mins(15), "it took {settled} to make up for everything");
}

/// In no stretch of time more starts than the rate and the burst allow.
fn keeps_the_rate(starts: &[Timestamp]) {
    let (burst, per_second) = (RATE.burst as usize, f64::from(RATE.per_second));
    // It is enough to look at stretches that begin and end with a start, and hold as many as a burst and more.
    for extra in [0, 100, 1_000, 5_000] {
        let n = burst + 1 + extra;
        for (first, last) in starts.iter().zip(starts.iter().skip(n - 1)) {
            let seconds = (*last - *first).as_millis_f64() / 1_000.0;
            let most = f64::from(RATE.burst) + per_second * (seconds + 0.001);
            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
            let n = n as f64;
            assert!(n <= most + 1.0, "{n} starts in {seconds} s from {first} on");
        }
    }
}

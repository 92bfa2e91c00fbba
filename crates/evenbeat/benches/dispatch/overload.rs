//! Ten times more than can be carried: jobs that can never be in time beside jobs that can.

use std::collections::BTreeMap;

use evenbeat_core::engine::{DispatchSettings, Order};
use evenbeat_core::ids::Pool;
use evenbeat_core::job::Job;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_whatif::{AddedJobs, Fleet, RunModel, Scenario, Setup};

use crate::Size;
use crate::fleet::window;
use crate::lived::{Drawn, Lived, live_all, mean};
use crate::way::{Way, plain};

const CAPACITY: u32 = 8;
const DAYS: i64 = 3;

/// No feasible job is to wait longer than so many of its periods for a good run.
const TARGET: f64 = 2.0;

/// A quarter of the capacity.
const FEASIBLE: [&str; 4] = [
    "10 every 15m taking 30s",
    "20 every 30m taking 45s",
    "20 every 1h taking 90s",
    "10 every 4h taking 10m",
];

/// Each would run without a break, if it could: ten times what there is.
const HOPELESS: [&str; 2] = ["80 every 10m taking 25m", "80 every 30m taking 2h"];

pub(crate) fn run(size: Size, figures: &mut Vec<(String, f64)>) {
    println!();
    println!(
        "80 hopeless jobs beside 60 feasible ones that need a quarter of {CAPACITY} units, {DAYS} days, mean and \
         range of {} draws: the longest time between good runs of a feasible job, in its periods (target: \
         {TARGET})",
        size.n_seeds
    );
    println!(
        "{:<24} {:<15} {:>18} {:>11} {:>15} {:>9} {:>6}",
        "hopeless", "order", "longest", "late of 60", "late runs", "hopeless", "target"
    );
    for hopeless in HOPELESS {
        for way in ways() {
            let scenarios: Vec<Scenario> =
                (1..=size.n_seeds).map(|seed| scenario(hopeless, &way, seed)).collect();
            let lived: Vec<Fared> = live_all(&scenarios)
                .iter()
                .zip(&scenarios)
                .map(|(it, scenario)| fared(it, scenario))
                .collect();
            let of = |figure: fn(&Fared) -> f64| -> Drawn { mean(lived.iter().map(figure)) };
            let longest = of(|it| it.longest_gap);
            println!(
                "{hopeless:<24} {:<15} {:>18} {:>11} {:>15} {:>7.0} % {:>6}",
                way.name,
                format!("{:.1} ({:.1}..{:.1})", longest.mean, longest.least, longest.most),
                of(|it| it.n_late_jobs).to_string(),
                of(|it| it.n_late_runs).to_string(),
                of(|it| it.hopeless_share * 100.0).mean,
                if longest.most <= TARGET { "pass" } else { "miss" },
            );
            let name =
                format!("overload_{}_{}", if hopeless == HOPELESS[0] { "25m" } else { "2h" }, way.code);
            figures.push((format!("{name}_longest_gap_periods"), longest.mean));
            figures.push((format!("{name}_late_jobs"), of(|it| it.n_late_jobs).mean));
        }
    }
}

fn ways() -> [Way; 4] {
    let ours = DispatchSettings::default();
    [
        Way { name: "late share 50", code: "share_50", dispatch: ours },
        Way {
            name: "  no look-ahead",
            code: "share_50_no_lookahead",
            dispatch: DispatchSettings { lookahead: false, ..ours },
        },
        Way {
            name: "late share 100",
            code: "share_100",
            dispatch: DispatchSettings { late_share: 100, ..ours },
        },
        Way { name: "first come", code: "first_come", dispatch: plain(Order::FirstCome) },
    ]
}

fn scenario(hopeless: &str, way: &Way, seed: u64) -> Scenario {
    let kinds = FEASIBLE.iter().chain([&hopeless]).map(|it| it.parse().expect("a kind of jobs"));
    let jobs: Vec<Job> =
        kinds.enumerate().flat_map(|(idx, kind): (usize, AddedJobs)| kind.jobs(kind.n, idx)).collect();
    let mut setup = Setup::new();
    setup.capacity = BTreeMap::from([(Pool::default_pool(), CAPACITY)]);
    setup.dispatch = way.dispatch;
    setup.runs = RunModel { seed, ..RunModel::default() };
    setup.scenario(&Fleet { jobs, added: Vec::new() }, window(DAYS)).expect("each run fits on the node")
}

/// How the feasible jobs fared.
struct Fared {
    longest_gap: f64,
    n_late_jobs: f64,
    n_late_runs: f64,
    hopeless_share: f64,
}

fn fared(lived: &Lived, scenario: &Scenario) -> Fared {
    let window = scenario.window;
    let mut last_good: BTreeMap<usize, Timestamp> = BTreeMap::new();
    let mut late: BTreeMap<usize, u32> = BTreeMap::new();
    let mut fared = Fared { longest_gap: 0.0, n_late_jobs: 0.0, n_late_runs: 0.0, hopeless_share: 0.0 };
    let mut hopeless_for = Duration::ZERO;
    let period = |job_idx: usize| scenario.jobs.get(job_idx).and_then(|(job, _)| feasible_period(job));
    for run in &lived.runs {
        let Some(period) = period(run.job_idx) else {
            hopeless_for = hopeless_for + (run.ended_at - run.started_at);
            continue;
        };
        if !run.is_good {
            continue;
        }
        let before = last_good.insert(run.job_idx, run.started_at).unwrap_or(window.start());
        fared.longest_gap = fared.longest_gap.max((run.started_at - before).as_millis_f64() / period);
        if run.deadline.is_some_and(|deadline| deadline < run.ended_at) {
            *late.entry(run.job_idx).or_default() += 1;
        }
    }
    for (job_idx, period) in (0..scenario.jobs.len()).filter_map(|idx| Some((idx, period(idx)?))) {
        let before = last_good.get(&job_idx).copied().unwrap_or(window.start());
        let gap = (window.end() - before).as_millis_f64() / period;
        fared.longest_gap = fared.longest_gap.max(gap);
        if TARGET < gap {
            *late.entry(job_idx).or_default() += 1;
        }
    }
    fared.n_late_jobs = late.len() as f64;
    fared.n_late_runs = f64::from(late.values().sum::<u32>());
    fared.hopeless_share =
        hopeless_for.as_millis_f64() / (window.length().as_millis_f64() * f64::from(CAPACITY));
    fared
}

/// Its period in milliseconds, if its runs fit into it.
fn feasible_period(job: &Job) -> Option<f64> {
    let Schedule::Every { interval, .. } = &job.schedule else { return None };
    let interval = interval.as_millis_f64();
    (RunModel::usual_length(job).as_millis_f64() < interval).then_some(interval)
}

//! The jobs of a world: short intervals, short runs, and a little of everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::blackout::{BlackoutPeriod, Blackouts, TimeOfDay, Weekdays};
use evenbeat_core::ids::{JobKey, NodeName, Pool, Site, Tenant};
use evenbeat_core::job::{CommandTarget, Exclusive, Job, Overlap, Target};
use evenbeat_core::missed::{MissedPolicy, MissedRuns};
use evenbeat_core::retry::RetryPolicy;
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::schedule::{Cron, OnceAt, Schedule};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, Timestamp};

use super::{Habit, JobSetup};
use crate::dice::Dice;
use crate::fact::RealTime;

/// The only cron expressions of simulated jobs: those who check know no others.
pub(super) const CRONS: [&str; 2] = ["* * * * *", "*/5 * * * *"];
const INTERVALS_S: [i64; 14] = [2, 3, 5, 8, 10, 15, 20, 30, 45, 60, 90, 120, 300, 600];
/// The longest that an undisturbed run takes.
const LENGTH_MAX_MS: i64 = 120_000;

/// The jobs, and what they share.
pub(super) struct Fleet {
    pub(super) jobs: Vec<JobSetup>,
    pub(super) sites: BTreeMap<Site, CounterLimit>,
    pub(super) tenants: BTreeMap<Tenant, CounterLimit>,
}

/// The jobs of a world that begins then and is healed then.
pub(super) fn draw(dice: &mut Dice, begins_at: Timestamp, healed_at: RealTime, nodes: &[NodeName]) -> Fleet {
    let n_jobs = match dice.below(100) {
        0 => 1_000,
        1..=4 => dice.between(61, 200),
        5..=9 => dice.between(1, 4),
        _ => dice.spread(5, 60),
    };
    let has_pool = dice.chance(25);
    let mut jobs: Vec<JobSetup> = (0..n_jobs)
        .map(|idx| draw_job(dice, idx, 100 < n_jobs, begins_at, healed_at, nodes, has_pool))
        .collect();
    let sites = share_limits(dice, &mut jobs, "site", |job, site| job.site = Some(site));
    let tenants = share_limits(dice, &mut jobs, "tenant", |job, tenant| job.tenant = Some(tenant));
    limit_names(dice, &mut jobs);
    Fleet { jobs, sites, tenants }
}

/// How much of a node's capacity a job takes up in the long run, in thousandths of a unit.
pub(super) fn load_millis(it: &JobSetup) -> i64 {
    let habit = it.habit;
    let length = (habit.length_min + habit.length_max).as_millis() / 2;
    length * 1_000 * i64::from(it.job.place.cost) / distance(&it.job.schedule).as_millis()
}

/// One job. In a large fleet each runs rarely.
fn draw_job(
    dice: &mut Dice,
    idx: i64,
    is_rare: bool,
    begins_at: Timestamp,
    healed_at: RealTime,
    nodes: &[NodeName],
    has_pool: bool,
) -> JobSetup {
    let key = match idx % 4 {
        3 => format!("group{}@c{idx}", idx / 16),
        _ => format!("job{idx}"),
    };
    let mut it = draw_plain(dice, key.parse().expect("a word and a number are a key"), is_rare);
    let job = Arc::make_mut(&mut it.job);
    if dice.chance(15) {
        job.blackouts = draw_blackouts(dice, begins_at, healed_at);
    }
    if dice.chance(8) {
        job.schedule = draw_once(dice, begins_at, healed_at);
    }
    if has_pool && dice.chance(30) {
        job.place.pool = "browser".parse::<Pool>().expect("a word is a name");
    }
    match dice.below(100) {
        0..8 => job.place.run_on_nodes = vec![dice.pick(nodes).clone(), dice.pick(nodes).clone()],
        8..14 if 1 < nodes.len() => job.place.dont_run_on_nodes = vec![dice.pick(nodes).clone()],
        _ => {}
    }
    it
}

/// A job that knows nothing of the world it will be in.
pub(super) fn draw_plain(dice: &mut Dice, key: JobKey, is_rare: bool) -> JobSetup {
    let schedule = draw_schedule(dice, is_rare);
    let distance = distance(&schedule).as_millis();
    let target = CommandTarget { argv: vec!["work".to_owned()], ..CommandTarget::default() };
    let mut job = Job::new(key, Target::Command(target), schedule);
    let percent = dice.weighted(&[(40, 15), (30, 50), (20, 90), (10, 150)]);
    let length_max = (distance * percent / 100).clamp(200, LENGTH_MAX_MS);
    let habit = Habit {
        length_min: Duration::from_millis(dice.between(100, length_max.min(5_000))),
        length_max: Duration::from_millis(length_max),
        fails_percent: dice.weighted(&[(40, 0), (40, 8), (15, 25), (5, 80)]),
        stubborn_percent: *dice.pick(&[0, 10, 60]),
    };
    job.overlap = match dice.below(100) {
        0..60 => Overlap::Skip,
        60..85 => Overlap::Queue,
        _ => Overlap::Allow { max_parallel: if dice.chance(70) { 2 } else { 3 } },
    };
    job.exclusive = if dice.chance(92) { Exclusive::Strict } else { Exclusive::BestEffort };
    job.place.cost = dice.weighted(&[(70, 1), (20, 2), (10, 3)]);
    job.missed = MissedPolicy {
        runs: dice.weighted(&[(60, MissedRuns::Once), (20, MissedRuns::Skip), (20, MissedRuns::All)]),
        grace: Duration::from_secs(*dice.pick(&[1, 5, 60])),
        window: Duration::from_mins(*dice.pick(&[2, 10, 1_440])),
        most: *dice.pick(&[1, 3, 10]),
    };
    // Some wait for longer than their world lasts: then only the schedule brings the next run.
    let longest_delay = if dice.chance(20) { 1_800_000 } else { 30_000 };
    job.retry = RetryPolicy {
        delays: (0..dice.between(1, 3))
            .map(|_| Duration::from_millis(dice.spread(longest_delay / 60, longest_delay)))
            .collect(),
        holds_schedule: dice.chance(20),
        jitter: if dice.chance(30) { 0.1 } else { 0.0 },
        not_on_exit_codes: if dice.chance(15) { vec![2] } else { Vec::new() },
        ..RetryPolicy::default()
    };
    if dice.chance(25) {
        job.limits.max_allowed = Some(Duration::from_millis(dice.between(length_max / 2, length_max * 2)));
    }
    let first_after = Duration::from_millis(dice.between(0, distance - 1));
    JobSetup { job: Arc::new(job), first_after, habit }
}

/// Any schedule but `once`.
pub(super) fn draw_schedule(dice: &mut Dice, is_rare: bool) -> Schedule {
    let interval_s = if is_rare { *dice.pick(&[120, 300, 600]) } else { *dice.pick(&INTERVALS_S) };
    match dice.below(100) {
        0..62 => Schedule::Every {
            interval: Duration::from_secs(interval_s),
            finish_within: dice.chance(15).then(|| Duration::from_secs((interval_s / 2).max(1))),
        },
        62..76 => Schedule::Fresh {
            max_age: Duration::from_secs(interval_s.max(5)),
            cooldown: Duration::from_secs((interval_s / 2).max(1)),
        },
        76..92 => {
            let expr = CronExpr::parse(dice.pick::<&str>(&CRONS)).expect("the expressions are valid");
            Schedule::Cron(Cron::new(expr, None))
        }
        _ => Schedule::Manual,
    }
}

fn draw_once(dice: &mut Dice, begins_at: Timestamp, healed_at: RealTime) -> Schedule {
    let at = if dice.chance(30) {
        OnceAt::Now
    } else {
        OnceAt::Instant(begins_at + Duration::from_millis(dice.between(0, healed_at.0)))
    };
    Schedule::Once { at, finish_within: None }
}

/// One or two stretches of minutes that the world will see.
fn draw_blackouts(dice: &mut Dice, begins_at: Timestamp, healed_at: RealTime) -> Blackouts {
    let time_of = |minute: i64| -> TimeOfDay {
        let minute = minute.rem_euclid(1_440);
        format!("{:02}:{:02}", minute / 60, minute % 60).parse().expect("a minute of the day is a time")
    };
    let first_minute = begins_at.as_second() / 60;
    let periods = (0..dice.between(1, 2))
        .map(|_| {
            let from = first_minute + dice.between(1, healed_at.0 / 60_000);
            let until = from + dice.between(1, 4);
            BlackoutPeriod::new(time_of(from), time_of(until), Weekdays::ALL).expect("minutes have a length")
        })
        .collect();
    Blackouts::new(periods).expect("two periods are not too many")
}

/// How far apart occurrences usually lie.
fn distance(schedule: &Schedule) -> Duration {
    match schedule {
        Schedule::Every { interval, .. } => *interval,
        Schedule::Fresh { cooldown, .. } => *cooldown * 2,
        Schedule::Cron(cron) if cron.expr().to_string() == CRONS[0] => Duration::from_mins(1),
        Schedule::Cron(_) => Duration::from_mins(5),
        Schedule::Once { .. } | Schedule::Manual => Duration::from_mins(2),
    }
}

/// Some jobs share a limit, wide enough for twice what they need in the long run.
fn share_limits<T>(
    dice: &mut Dice,
    jobs: &mut [JobSetup],
    word: &str,
    assign: impl Fn(&mut Job, T),
) -> BTreeMap<T, CounterLimit>
where
    T: std::str::FromStr<Err: std::fmt::Debug> + Clone + Ord,
{
    let mut limits = BTreeMap::new();
    for idx in 0..dice.weighted(&[(50, 0), (30, 1), (20, 2)]) {
        let shared: T = format!("{word}{idx}").parse().expect("a word and a number are a name");
        let (mut load, mut starts_an_hour) = (0, 0);
        for it in jobs.iter_mut() {
            if !dice.chance(25) {
                continue;
            }
            let cost = i64::from(it.job.place.cost);
            load += load_millis(it) / cost;
            starts_an_hour += 3_600_000 / distance(&it.job.schedule).as_millis();
            assign(Arc::make_mut(&mut it.job), shared.clone());
        }
        let max_open = u32::try_from(load * 2 / 1_000 + 1).unwrap_or(u32::MAX);
        let gap_max = 3_600_000 / (starts_an_hour * 3 + 60);
        let limit = CounterLimit {
            max_open: dice.chance(80).then_some(max_open),
            min_gap: dice.chance(40).then(|| Duration::from_millis(dice.between(1, gap_max.max(1)))),
            max_per_hour: None,
        };
        limits.insert(shared, limit);
    }
    limits
}

/// Some names say how many of their configurations may run at once.
fn limit_names(dice: &mut Dice, jobs: &mut [JobSetup]) {
    let mut load_by_name: BTreeMap<String, i64> = BTreeMap::new();
    for it in jobs.iter().filter(|it| it.job.key.configuration().is_some()) {
        *load_by_name.entry(it.job.key.name().to_owned()).or_default() += load_millis(it);
    }
    for (name, load) in load_by_name {
        if dice.chance(50) {
            let most = u32::try_from(load * 2 / 1_000 + 1).unwrap_or(u32::MAX);
            for it in jobs.iter_mut().filter(|it| it.job.key.name() == name) {
                Arc::make_mut(&mut it.job).max_parallel_of_name = Some(most);
            }
        }
    }
}

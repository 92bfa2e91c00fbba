//! What is written down while it happens, to be a [`Report`] in the end.

use std::collections::BTreeMap;

use evenbeat_core::engine::Start;
use evenbeat_core::ids::{JobKey, Pool, Site};
use evenbeat_core::job::Job;
use evenbeat_core::occurrence::{Record, RecordKind};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::urgency;

use super::report::{Group, LateJob, POINT, Point, Report, Trouble, WORST_MAX, Waits};
use super::scenario::Scenario;
use super::store::KernelStore;

/// A shorter wait is ignored: a start takes that long.
const WAIT_MIN: Duration = Duration::from_secs(1);

pub(super) struct Tally {
    window: TimeWindow,
    all: GroupTally,
    pools: BTreeMap<Pool, GroupTally>,
    sites: BTreeMap<Site, GroupTally>,
    schedules: BTreeMap<String, GroupTally>,
    jobs: BTreeMap<JobKey, JobTally>,
    points: Vec<PointTally>,
}

#[derive(Default)]
struct GroupTally {
    group: Group,
    n_running: u32,
    busy: i64,
    minute: i64,
    n_in_minute: u32,
    late_for: i64,
    waits: BTreeMap<i64, u64>,
    troubles: BTreeMap<usize, TroubleTally>,
}

#[derive(Default)]
struct JobTally {
    late_for: i64,
    n_late: u64,
    n_skipped: u64,
    n_missed: u64,
}

#[derive(Clone, Copy, Default)]
struct PointTally {
    n_starts: u32,
    busy: i64,
}

#[derive(Clone, Copy, Default)]
struct TroubleTally {
    waited: i64,
    n_late: u32,
}

impl Tally {
    pub(super) fn new(scenario: &Scenario) -> Tally {
        // The last point may be cut short.
        let length = scenario.window.length().as_millis() + POINT.as_millis() - 1;
        let n_points = usize::try_from(length / POINT.as_millis());
        let mut tally = Tally {
            window: scenario.window,
            all: GroupTally::default(),
            pools: BTreeMap::new(),
            sites: BTreeMap::new(),
            schedules: BTreeMap::new(),
            jobs: BTreeMap::new(),
            points: vec![PointTally::default(); n_points.unwrap_or(1).max(1)],
        };
        for node in &scenario.nodes {
            for (pool, settings) in &node.pools {
                tally.pools.entry(pool.clone()).or_default().group.capacity += settings.capacity;
                tally.all.group.capacity += settings.capacity;
            }
        }
        for (job, _) in &scenario.jobs {
            tally.pools.entry(job.place.pool.clone()).or_default();
            if let Some(site) = &job.site {
                tally.sites.entry(site.clone()).or_default();
            }
            tally.schedules.entry(schedule_of(job)).or_default();
            for group in tally.groups(job) {
                group.group.n_jobs += 1;
            }
        }
        tally
    }

    pub(super) fn started(&mut self, now: Timestamp, start: &Start) {
        let waited = now - start.due.due_at;
        let is_first = matches!(start.due.trigger, Trigger::Scheduler | Trigger::Catchup);
        for group in self.groups(&start.job) {
            group.started(now, is_first.then_some(waited));
        }
        let idx = self.idx(now);
        self.points[idx].n_starts += 1;
        if is_first {
            self.queued(&start.job, start.due.due_at, now);
        }
    }

    pub(super) fn ended(&mut self, now: Timestamp, start: &Start, started_at: Timestamp, outcome: Outcome) {
        let deadline = start.deadline.filter(|_| start.due.trigger != Trigger::Manual);
        let late_for = deadline.filter(|_| outcome == Outcome::Succeeded).map(|deadline| now - deadline);
        for group in self.groups(&start.job) {
            group.ended(outcome, late_for);
        }
        self.busy(&start.job, started_at, now);
        if let Some(late_for) = late_for.filter(|it| Duration::ZERO < *it) {
            self.late(&start.job, late_for, now - late_for);
        }
    }

    /// An outage or the end of the story came before the run was over.
    pub(super) fn cut_off(&mut self, now: Timestamp, start: &Start, started_at: Timestamp) {
        for group in self.groups(&start.job) {
            group.n_running = group.n_running.saturating_sub(1);
        }
        self.busy(&start.job, started_at, now);
    }

    /// Occurrences that the store has put on record.
    pub(super) fn recorded(&mut self, key: &JobKey, records: &[Record]) {
        if records.is_empty() {
            return;
        }
        let job = self.jobs.entry(key.clone()).or_default();
        for record in records {
            match record.what {
                RecordKind::SkippedOverlap => job.n_skipped += record.range.count,
                RecordKind::MissedLate
                | RecordKind::MissedBackoff
                | RecordKind::MissedPaused
                | RecordKind::MissedReplaced => {
                    job.n_missed += record.range.count;
                }
            }
        }
    }

    fn late(&mut self, job: &Job, late_for: Duration, since: Timestamp) {
        let idx = self.idx(since);
        for group in self.groups(job) {
            group.group.n_late += 1;
            group.late_for += late_for.as_millis();
            group.troubles.entry(idx).or_default().n_late += 1;
        }
        let job = self.jobs.entry(job.key.clone()).or_default();
        job.late_for += late_for.as_millis();
        job.n_late += 1;
    }

    fn idx(&self, at: Timestamp) -> usize {
        let idx = (at - self.window.start()).as_millis().div_euclid(POINT.as_millis());
        usize::try_from(idx).unwrap_or(0).min(self.points.len() - 1)
    }

    /// Spreads what a run used over the points it lay in.
    fn busy(&mut self, job: &Job, from: Timestamp, until: Timestamp) {
        let cost = i64::from(job.place.cost);
        for group in self.groups(job) {
            group.busy += (until - from).as_millis() * cost;
        }
        for (idx, length) in self.parts(from, until) {
            self.points[idx].busy += length.as_millis() * cost;
        }
    }

    /// A run that waited counts in every point in which it did, for as long as it did.
    fn queued(&mut self, job: &Job, due_at: Timestamp, until: Timestamp) {
        if until - due_at < WAIT_MIN {
            return;
        }
        let parts = self.parts(due_at, until);
        for group in self.groups(job) {
            for (idx, length) in &parts {
                group.troubles.entry(*idx).or_default().waited += length.as_millis();
            }
        }
    }

    /// The points that a stretch of time lies in, and how much of it lies in each.
    fn parts(&self, from: Timestamp, until: Timestamp) -> Vec<(usize, Duration)> {
        let mut parts = Vec::new();
        let mut at = from.max(self.window.start());
        while at < until {
            let idx = self.idx(at);
            let next = (self.point_start(idx) + POINT).min(until).max(at + Duration::from_millis(1));
            parts.push((idx, next - at));
            at = next;
        }
        parts
    }

    fn point_start(&self, idx: usize) -> Timestamp {
        self.window.start() + POINT * i64::try_from(idx).unwrap_or(0)
    }

    pub(super) fn report(mut self, scenario: &Scenario, store: &KernelStore) -> Report {
        self.count_unfinished(scenario, store);
        let window = self.window;
        let mut worst: Vec<LateJob> = self
            .jobs
            .into_iter()
            .filter(|(_, it)| 0 < it.n_late)
            .map(|(key, it)| LateJob { key, late_for: Duration::from_millis(it.late_for), n_late: it.n_late })
            .collect();
        worst.sort_by(|a, b| b.late_for.cmp(&a.late_for).then_with(|| a.key.cmp(&b.key)));
        let n_late_jobs = worst.len();
        worst.truncate(WORST_MAX);
        let points = self.points.iter().enumerate().map(|(idx, it)| {
            let trouble = self.all.troubles.get(&idx).copied().unwrap_or_default();
            Point {
                n_starts: it.n_starts,
                in_use: Duration::from_millis(it.busy).as_millis_f64() / POINT.as_millis_f64(),
                queue: trouble.queue(),
                n_late: trouble.n_late,
            }
        });
        Report {
            points: points.collect(),
            all: self.all.report(window, true),
            pools: reports(self.pools, window, true),
            sites: reports(self.sites, window, false),
            schedules: reports(self.schedules, window, false),
            worst,
            n_late_jobs,
        }
    }

    /// Jobs that are late or wait at the end, and what went on record.
    fn count_unfinished(&mut self, scenario: &Scenario, store: &KernelStore) {
        let end = self.window.end();
        for (job, _) in &scenario.jobs {
            if let Some(JobTally { n_skipped, n_missed, .. }) = self.jobs.get(&job.key) {
                let (n_skipped, n_missed) = (*n_skipped, *n_missed);
                for group in self.groups(job) {
                    group.group.n_skipped += n_skipped;
                    group.group.n_missed += n_missed;
                }
            }
            let Some(row) = store.job(&job.key) else { continue };
            if row.n_open == 0
                && let Some(due_at) = row.state.next_run_at.filter(|_| row.state.failure_count == 0)
            {
                self.queued(job, due_at, end);
            }
            let deadline = urgency::deadline(job, &row.state);
            if let Some(late_for) = deadline.map(|deadline| end - deadline).filter(|it| Duration::ZERO < *it)
            {
                self.late(job, late_for, end - late_for);
            }
        }
    }

    /// The groups that a job counts in.
    fn groups(&mut self, job: &Job) -> impl Iterator<Item = &mut GroupTally> {
        let pool = self.pools.get_mut(&job.place.pool);
        let site = job.site.as_ref().and_then(|site| self.sites.get_mut(site));
        let schedule = self.schedules.get_mut(&schedule_of(job));
        [Some(&mut self.all), pool, site, schedule].into_iter().flatten()
    }
}

/// What a job's schedule is called: expressions are too many to be told apart.
fn schedule_of(job: &Job) -> String {
    match &job.schedule {
        Schedule::Every { interval, .. } => format!("every {interval}"),
        Schedule::Fresh { max_age, .. } => format!("fresh {max_age}"),
        Schedule::Cron(_) => "cron".to_owned(),
        Schedule::Once { .. } => "once".to_owned(),
        Schedule::Manual => "manual".to_owned(),
    }
}

fn reports<K: Ord>(
    tallies: BTreeMap<K, GroupTally>,
    window: TimeWindow,
    has_capacity: bool,
) -> BTreeMap<K, Group> {
    tallies.into_iter().map(|(name, it)| (name, it.report(window, has_capacity))).collect()
}

impl GroupTally {
    fn started(&mut self, now: Timestamp, waited: Option<Duration>) {
        self.group.n_runs += 1;
        self.n_running += 1;
        self.group.peak_running = self.group.peak_running.max(self.n_running);
        let minute = now.as_millis().div_euclid(60_000);
        self.n_in_minute = if minute == self.minute { self.n_in_minute + 1 } else { 1 };
        self.minute = minute;
        self.group.peak_starts = self.group.peak_starts.max(self.n_in_minute);
        if let Some(waited) = waited {
            // To a tenth of a second, and beyond a minute to a second: enough for people.
            let millis = waited.as_millis().max(0);
            let step = if millis < 60_000 { 100 } else { 1_000 };
            *self.waits.entry(millis / step * step).or_default() += 1;
        }
    }

    fn ended(&mut self, outcome: Outcome, late_for: Option<Duration>) {
        self.n_running = self.n_running.saturating_sub(1);
        self.group.n_good += u64::from(outcome == Outcome::Succeeded);
        self.group.n_in_time += u64::from(late_for.is_some_and(|it| it <= Duration::ZERO));
    }

    #[expect(clippy::cast_precision_loss, reason = "shares for people")]
    fn report(self, window: TimeWindow, has_capacity: bool) -> Group {
        let length = window.length().as_millis_f64().max(1.0);
        let all_time = length * self.group.n_jobs.max(1) as f64;
        let all_units = length * f64::from(self.group.capacity.max(1));
        let n_waits: u64 = self.waits.values().sum();
        let nth = |share: f64| {
            let wanted = (n_waits as f64 * share).ceil().max(1.0);
            let mut seen = 0_u64;
            let found = self.waits.iter().find(|(_, n)| {
                seen += **n;
                wanted <= seen as f64
            });
            Duration::from_millis(found.map_or(0, |(millis, _)| *millis))
        };
        let wait = Waits { median: nth(0.5), p99: nth(0.99), longest: nth(1.0) };
        let troubles = self.troubles.iter().map(|(idx, it)| Trouble {
            at: window.start() + POINT * i64::try_from(*idx).unwrap_or(0),
            queue: it.queue(),
            n_late: it.n_late,
        });
        Group {
            freshness: (1.0 - self.late_for as f64 / all_time).max(0.0),
            utilisation: has_capacity.then(|| self.busy as f64 / all_units),
            wait,
            troubles: troubles.collect(),
            ..self.group
        }
    }
}

impl TroubleTally {
    fn queue(self) -> f64 {
        Duration::from_millis(self.waited).as_millis_f64() / POINT.as_millis_f64()
    }
}

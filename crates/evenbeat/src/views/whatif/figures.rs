//! What a simulation came to, as far as people look at it.

use evenbeat_core::ids::{JobKey, Pool, Site};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_whatif::{Break, BreakKind, Group, GroupName, POINT, Report, RunObservation};

/// Most bars of a chart.
const BARS_MAX: usize = 168;

/// A pool over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct PoolFigures {
    /// Slots on all nodes together.
    pub(crate) slots: u32,
    /// The share of deadlines that were met, from 0 to 1.
    pub(crate) in_time: f64,
    /// Deadlines that were missed.
    pub(crate) n_late: u64,
    pub(crate) longest_wait: Duration,
    /// The longest queue of any bar.
    pub(crate) most_waiting: f64,
    /// Slots in use on average, runs that wait on average, and deadlines missed: by bar.
    pub(crate) in_use: Vec<f64>,
    pub(crate) waiting: Vec<f64>,
    pub(crate) late: Vec<u64>,
    /// How long a bar is.
    pub(crate) bar: Duration,
}

/// The share of deadlines that were met.
pub(super) fn in_time(group: &Group) -> f64 {
    let n_all = group.n_in_time + group.n_late;
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let share = group.n_in_time as f64 / n_all.max(1) as f64;
    if n_all == 0 { 1.0 } else { share }
}

/// The first job that misses its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstLate {
    pub(crate) key: JobKey,
    /// The deadline.
    pub(crate) at: Timestamp,
    /// How long it had waited for its start.
    pub(crate) waited: Duration,
}

/// What is seen while a scenario is lived through.
#[derive(Debug)]
pub(super) struct PoolWatch {
    pool: Pool,
    window: TimeWindow,
    /// Milliseconds of slots by point.
    busy: Vec<f64>,
    pub(super) first_late: Option<FirstLate>,
    /// The first of the jobs that were there before.
    pub(super) first_old_late: Option<FirstLate>,
}

impl PoolWatch {
    pub(super) fn new(pool: &Pool, window: TimeWindow) -> PoolWatch {
        let n_points = window.length().as_millis().div_euclid(POINT.as_millis()).max(1);
        PoolWatch {
            pool: pool.clone(),
            window,
            busy: vec![0.0; usize::try_from(n_points).unwrap_or(1)],
            first_late: None,
            first_old_late: None,
        }
    }

    pub(super) fn see(&mut self, run: RunObservation<'_>) {
        self.see_late(run);
        if run.job.place.pool != self.pool {
            return;
        }
        let mut at = run.started_at.max(self.window.start());
        while at < run.ended_at {
            let idx =
                usize::try_from((at - self.window.start()).as_millis() / POINT.as_millis()).unwrap_or(0);
            let Some(busy) = self.busy.get_mut(idx) else { return };
            let next = self.window.start() + POINT * i64::try_from(idx + 1).unwrap_or(i64::MAX);
            let until = next.min(run.ended_at);
            *busy += (until - at).as_millis_f64() * f64::from(run.job.place.cost);
            at = until;
        }
    }

    fn see_late(&mut self, run: RunObservation<'_>) {
        let is_counted = run.outcome == Some(Outcome::Succeeded) && run.trigger != Trigger::Manual;
        let Some(at) = run.deadline.filter(|at| is_counted && *at < run.ended_at) else { return };
        let late = || FirstLate { key: run.job.key.clone(), at, waited: run.started_at - run.due_at };
        let is_first = |known: &Option<FirstLate>| known.as_ref().is_none_or(|it| at < it.at);
        if is_first(&self.first_late) {
            self.first_late = Some(late());
        }
        if !is_added(&run.job.key) && is_first(&self.first_old_late) {
            self.first_old_late = Some(late());
        }
    }

    /// The figures of the pool, with what the report has of it.
    pub(super) fn figures(&self, report: &Report) -> PoolFigures {
        let calm = Group { freshness: 1.0, ..Group::default() };
        let group = report.pools.get(&self.pool).unwrap_or(&calm);
        let mut waiting = vec![0.0; self.busy.len()];
        let mut late = vec![0_u64; self.busy.len()];
        for trouble in &group.troubles {
            let idx = (trouble.at - self.window.start()).as_millis() / POINT.as_millis();
            let idx = usize::try_from(idx).unwrap_or(usize::MAX);
            if let (Some(waiting), Some(late)) = (waiting.get_mut(idx), late.get_mut(idx)) {
                *waiting = trouble.queue;
                *late = u64::from(trouble.n_late);
            }
        }
        let n_points = self.busy.len().div_ceil(BARS_MAX);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / count(part.len());
        let in_use: Vec<f64> = self.busy.iter().map(|it| it / POINT.as_millis_f64()).collect();
        PoolFigures {
            slots: group.capacity,
            in_time: in_time(group),
            n_late: group.n_late,
            longest_wait: group.wait.longest,
            most_waiting: group.queue_max(),
            in_use: in_use.chunks(n_points).map(mean).collect(),
            waiting: waiting.chunks(n_points).map(mean).collect(),
            late: late.chunks(n_points).map(|part| part.iter().sum()).collect(),
            bar: POINT * i64::try_from(n_points).unwrap_or(1),
        }
    }
}

fn count(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX).max(1))
}

/// Whether a job was made up for a question.
pub(crate) fn is_added(key: &JobKey) -> bool {
    key.configuration() == Some("what-if")
}

/// What has a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitName {
    Pool(Pool),
    Site(Site),
}

/// A limit that gives way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BrokenLimit {
    pub(crate) name: LimitName,
    /// In the quarter of an hour from here on.
    pub(crate) at: Timestamp,
    pub(crate) what: BreakKind,
}

impl BrokenLimit {
    /// Breaks of pools and sites; schedules are not limits.
    pub(super) fn of(it: Break) -> Option<BrokenLimit> {
        let name = match it.group {
            GroupName::Pool(pool) => LimitName::Pool(pool),
            GroupName::Site(site) => LimitName::Site(site),
            GroupName::Schedule(_) => return None,
        };
        Some(BrokenLimit { name, at: it.at, what: it.what })
    }

    pub(crate) fn is_late(&self) -> bool {
        matches!(self.what, BreakKind::Freshness { .. })
    }
}

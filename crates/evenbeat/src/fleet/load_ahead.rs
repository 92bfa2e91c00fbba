//! How much of each pool the fleet will want, in equal parts of a window: the future of a time line.
//!
//! Every planned start counts for as long as its run is expected to take. Nothing waits here: what is wanted beyond the
//! capacity is just what people want to see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::ids::JobKey;
use evenbeat_core::placement::{LedgerJob, LedgerSnapshot, PoolNo};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use super::upcoming::held_up;

/// A job that starts more often in a window than this many times for each part of it is spread evenly over the parts.
const STARTS_A_PART_MAX: u64 = 4;

/// A window, cut into equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartedWindow {
    pub start: Timestamp,
    /// Whole milliseconds, at least one.
    pub part: Duration,
    pub n_parts: usize,
}

impl PartedWindow {
    pub fn end(&self) -> Timestamp {
        self.start + self.part * i64::try_from(self.n_parts).unwrap_or(i64::MAX)
    }

    pub fn window(&self) -> TimeWindow {
        TimeWindow::new(self.start, self.end())
    }

    /// The first instant of a part.
    pub fn at(&self, idx: usize) -> Timestamp {
        self.start + self.part * i64::try_from(idx).unwrap_or(i64::MAX)
    }

    /// The part that an instant lies in.
    pub fn idx(&self, at: Timestamp) -> Option<usize> {
        let idx = (at - self.start).as_millis().div_euclid(self.part.as_millis().max(1));
        usize::try_from(idx).ok().filter(|idx| *idx < self.n_parts)
    }

    /// Adds something that goes on from one instant to another: to each part, the share of the part that it fills.
    pub fn add(&self, parts: &mut [f64], from: Timestamp, to: Timestamp, amount: f64) {
        let (from, to) = (from.max(self.start), to.min(self.end()));
        let length = self.part.as_millis_f64().max(1.0);
        let mut at = from;
        while at < to {
            let Some(idx) = self.idx(at) else { return };
            let next = self.at(idx + 1).min(to);
            if let Some(part) = parts.get_mut(idx) {
                *part += amount * (next - at).as_millis_f64() / length;
            }
            at = next;
        }
    }
}

/// Units that are wanted in each part of a window.
pub type WantedParts = Vec<f64>;

/// What the fleet will want.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadAhead {
    /// By pool.
    pub pools: BTreeMap<Arc<str>, WantedParts>,
    /// By the groups that were asked for.
    pub groups: BTreeMap<Arc<str>, WantedParts>,
}

/// Looks through the whole fleet. `running` are jobs that run: what is pending there is being served.
pub(super) fn of_pools(
    jobs: &LedgerSnapshot,
    parts: PartedWindow,
    now: Timestamp,
    running: &BTreeSet<JobKey>,
) -> LoadAhead {
    let mut wanted: BTreeMap<PoolNo, WantedParts> = BTreeMap::new();
    for job in jobs.jobs() {
        let pool = wanted.entry(job.pool).or_insert_with(|| vec![0.0; parts.n_parts]);
        add(&job, parts, now, running, pool);
    }
    let named = wanted.into_iter().filter_map(|(no, it)| Some((jobs.pool(no)?.as_str().into(), it)));
    LoadAhead { pools: named.collect(), groups: BTreeMap::new() }
}

/// Looks at some jobs, each with its group.
pub(super) fn of_members(
    jobs: &LedgerSnapshot,
    members: &[(JobKey, Arc<str>)],
    parts: PartedWindow,
    now: Timestamp,
    running: &BTreeSet<JobKey>,
) -> LoadAhead {
    let mut groups: BTreeMap<Arc<str>, WantedParts> = BTreeMap::new();
    for (key, group) in members {
        let group = match groups.get_mut(group) {
            Some(group) => group,
            None => groups.entry(Arc::clone(group)).or_insert_with(|| vec![0.0; parts.n_parts]),
        };
        if let Some(job) = jobs.job(key) {
            add(&job, parts, now, running, group);
        }
    }
    LoadAhead { pools: BTreeMap::new(), groups }
}

fn add(
    job: &LedgerJob<'_>,
    parts: PartedWindow,
    now: Timestamp,
    running: &BTreeSet<JobKey>,
    wanted: &mut [f64],
) {
    let (length, cost) = (job.work.length.max(Duration::from_millis(1)), f64::from(job.work.cost));
    if parts.end() <= job.next_run_at {
        return;
    }
    // What is due already starts as soon as it can, unless it is running.
    let is_due = job.next_run_at < now;
    if is_due && job.hold_ups.is_none() && !running.contains(job.key) {
        parts.add(wanted, now, now + length, cost);
    }
    // A run that starts before the window may reach into it.
    let ahead = TimeWindow::new(now.max(parts.start - length), parts.end().max(now));
    if ahead.end() <= ahead.start() {
        return;
    }
    if let Some(starts) = held_up(job, ahead, now) {
        for start in starts {
            parts.add(wanted, start.at, start.at + length, cost);
        }
        return;
    }
    let n_starts = job.rhythm.count_in(ahead);
    if STARTS_A_PART_MAX * parts.n_parts as u64 <= n_starts {
        let mean = f64::from(u32::try_from(n_starts).unwrap_or(u32::MAX)) * length.as_millis_f64()
            / ahead.length().as_millis_f64().max(1.0);
        parts.add(wanted, ahead.start(), ahead.end(), mean * cost);
        return;
    }
    job.rhythm.for_each_in(ahead, |at| parts.add(wanted, at, at + length, cost));
}

#[cfg(test)]
mod tests {
    use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
    use evenbeat_core::placement::{Balance, Ledger};
    use evenbeat_core::schedule::{Placement, Schedule};

    use super::*;

    fn now() -> Timestamp {
        "2026-02-04T10:00:00Z".parse().unwrap()
    }

    fn parts() -> PartedWindow {
        PartedWindow { start: now() - Duration::from_mins(20), part: Duration::from_mins(10), n_parts: 8 }
    }

    /// Jobs as `(key, pool, every, first start, length)` in minutes.
    fn ledger(jobs: &[(&str, &str, i64, i64, i64)]) -> LedgerSnapshot {
        let mut ledger = Ledger::new(Balance::default(), now());
        for (key, pool, every, first, length) in jobs {
            let target =
                Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
            let schedule = Schedule::Every { interval: Duration::from_mins(*every), finish_within: None };
            let mut job = Job::new(key.parse().unwrap(), target, schedule);
            job.place.pool = pool.parse().unwrap();
            job.estimate = Some(Duration::from_mins(*length));
            let mut state = JobState::new(now());
            state.place(&job, Placement::at(now() + Duration::from_mins(*first), now()));
            ledger.put(&job.key, &job, &state);
        }
        ledger.snapshot()
    }

    #[track_caller]
    fn check(jobs: &[(&str, &str, i64, i64, i64)], running: &[&str], expected: &[(&str, [f64; 8])]) {
        let running = running.iter().map(|it| it.parse().unwrap()).collect();
        let load = of_pools(&ledger(jobs), parts(), now(), &running);
        let rounded = |it: &WantedParts| it.iter().map(|it| (it * 100.0).round() / 100.0).collect::<Vec<_>>();
        let found: Vec<(String, Vec<f64>)> =
            load.pools.iter().map(|(pool, it)| (pool.to_string(), rounded(it))).collect();
        let expected: Vec<(String, Vec<f64>)> =
            expected.iter().map(|(pool, it)| ((*pool).to_owned(), it.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_start_counts_for_as_long_as_its_run_takes() {
        check(&[("a", "p", 60, 5, 10)], &[], &[("p", [0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])]);
        check(&[("a", "p", 30, 0, 10)], &[], &[("p", [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])]);
        check(
            &[("a", "p", 60, 10, 20), ("b", "p", 60, 20, 20), ("c", "q", 60, 50, 90)],
            &[],
            &[
                ("p", [0.0, 0.0, 0.0, 1.0, 2.0, 1.0, 0.0, 0.0]),
                ("q", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
            ],
        );
    }

    #[test]
    fn what_is_due_starts_now_unless_it_runs() {
        check(&[("a", "p", 600, -15, 10)], &[], &[("p", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])]);
        check(&[("a", "p", 600, -15, 10)], &["a"], &[("p", [0.0; 8])]);
    }

    #[test]
    fn frequent_starts_are_spread() {
        let mut jobs = ledger(&[("a", "p", 1, 0, 3)]);
        let wide = PartedWindow { part: Duration::from_mins(10), n_parts: 8, start: now() };
        // Eighty starts of three minutes: three at once, all the time.
        let load = of_pools(&jobs, wide, now(), &BTreeSet::new());
        assert!(load.pools["p"].iter().all(|it| (it - 3.0).abs() < 0.5), "{load:?}");
        jobs = ledger(&[("a", "p", 1, 0, 3), ("b", "p", 60, 0, 10)]);
        let members = [("b".parse().unwrap(), Arc::from("team"))];
        let load = of_members(&jobs, &members, wide, now(), &BTreeSet::new());
        assert_eq!(load.groups["team"][..2], [1.0, 0.0]);
    }
}

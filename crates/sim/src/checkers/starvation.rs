//! No job that could run is passed over for ever (B3, B6, R-28).
//!
//! A job is starved when it has waited for longer than it may, while others that take no less room were
//! started again and again where it could have run, within the same limits across nodes. Each such start
//! is proof that there was room for it. What it may wait for is generous: two of its periods, several
//! of the longest runs, and, where there is more work than room, a turn for every job.
//!
//! Left out: jobs whose next start cannot be told from outside (in a back-off that holds the schedule or has
//! none to give way to, `once`, with a number of runs that is used up), and requested runs, which go first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::job::Job;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::Timestamp;

use super::finding::{Findings, Violation, shown};
use super::grid::Grid;
use super::history::SurvivingState;
use super::hours::has_blackout_between;
use super::premises::{Premises, may_run_on};
use super::projection::{Projection, Run};
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// This many starts of others, and three times as many as there are others, are "again and again".
const STARTS_MIN: usize = 20;

/// Watches over starvation.
#[derive(Debug)]
pub struct Starvation {
    findings: Findings,
    premises: Premises,
    projection: SurvivingState<Projection>,
    /// Since when nothing is broken: from the beginning until the first fault, and from the last on.
    calm_since: Option<RealTime>,
    waits: BTreeMap<JobKey, Wait>,
}

/// How a job has fared since it was last served, or since something about it changed.
#[derive(Debug)]
struct Wait {
    since: RealTime,
    n_passed_over: usize,
    last_end: Option<(RealTime, Option<Outcome>)>,
    last_due_at: Option<Timestamp>,
    is_told: bool,
}

impl Starvation {
    /// No job waits yet.
    pub fn new(premises: &Premises) -> Starvation {
        Starvation {
            findings: Findings::of("starvation"),
            premises: premises.clone(),
            projection: SurvivingState::default(),
            calm_since: Some(RealTime(0)),
            waits: BTreeMap::new(),
        }
    }

    fn begin_wait(&mut self, at: RealTime, key: &JobKey) -> &mut Wait {
        let fresh = Wait { since: at, n_passed_over: 0, last_end: None, last_due_at: None, is_told: false };
        let wait = self.waits.entry(key.clone()).or_insert(fresh);
        wait.since = at;
        wait.n_passed_over = 0;
        wait
    }

    /// From when on everything should go its way.
    fn settled_at(&self) -> Option<RealTime> {
        self.calm_since.map(|at| RealTime(at.0 + self.premises.settling().as_millis()))
    }

    fn grant(&mut self, at: RealTime, run: RunId) {
        let Some(granted) = self.projection.now().runs.get(&run).cloned() else { return };
        let wait = self.begin_wait(at, &granted.key);
        if !matches!(granted.trigger, Trigger::Manual | Trigger::Backfill) {
            wait.last_due_at = Some(granted.due_at);
        }
        if self.settled_at().is_some_and(|settled_at| settled_at <= at) && granted.trigger != Trigger::Manual
        {
            self.pass_over(at, &granted);
        }
    }

    /// Every job that could have run instead was passed over.
    fn pass_over(&mut self, at: RealTime, instead: &Run) {
        let Some(taken) = &instead.job else { return };
        let projection = self.projection.now();
        let Some(node) = projection.nodes.get(&instead.session).cloned() else { return };
        let busy: BTreeSet<&JobKey> = projection.open_runs().map(|it| &it.key).collect();
        let n_peers = projection.jobs.values().filter(|it| it.job.place.pool == taken.place.pool).count();
        let mut waiting: Vec<(JobKey, Arc<Job>, Grid)> = Vec::new();
        for (key, defined) in &projection.jobs {
            let job = &defined.job;
            let Some(placement) = &defined.placement else { continue };
            let could_run = !defined.is_paused
                && job.enabled
                && !busy.contains(key)
                && job.place.pool == taken.place.pool
                && job.place.cost <= taken.place.cost
                && (job.site.is_none() || job.site == taken.site)
                && (job.tenant.is_none() || job.tenant == taken.tenant)
                && (job.max_parallel_of_name.is_none() || key.name() == instead.key.name())
                && may_run_on(job, &node);
            if could_run {
                waiting.push((key.clone(), Arc::clone(job), Grid::of(job, placement)));
            }
        }
        for (key, job, grid) in waiting {
            self.count(at, &key, &job, &grid, instead.store_now, n_peers);
        }
    }

    fn count(
        &mut self,
        at: RealTime,
        key: &JobKey,
        job: &Job,
        grid: &Grid,
        store_now: Timestamp,
        n_peers: usize,
    ) {
        let longest_run = self.premises.longest_run;
        let is_overloaded = self.premises.is_overloaded;
        let Some(settled_at) = self.settled_at() else { return };
        let slack = self.premises.timings.spec().window * 3;
        let Some(wait) = self.waits.get_mut(key) else { return };
        wait.since = wait.since.max(settled_at);
        let is_due = next_due(job, grid, wait, at, store_now).is_some_and(|due_at| due_at <= store_now);
        let is_hindered = has_blackout_between(job, store_now - longest_run, store_now + longest_run * 2);
        if !is_due || is_hindered {
            wait.since = at;
            wait.n_passed_over = 0;
            return;
        }
        wait.n_passed_over += 1;
        let turns = if is_overloaded { i64::try_from(n_peers).unwrap_or(i64::MAX) * 2 } else { 4 };
        let bound = Grid::period(job) * 2 + longest_run * turns + slack;
        let waited = at.since(wait.since);
        if bound < waited && (n_peers * 3).max(STARTS_MIN) <= wait.n_passed_over && !wait.is_told {
            wait.is_told = true;
            let what = format!(
                "waits since {}, {waited} long, while {} others that take no less room were started where it may run; {bound} is the most",
                shown(wait.since),
                wait.n_passed_over
            );
            self.findings.add(at, key, what);
        }
    }
}

/// When the job is next due as far as can be told from outside; none if it cannot.
fn next_due(job: &Job, grid: &Grid, wait: &Wait, at: RealTime, store_now: Timestamp) -> Option<Timestamp> {
    if job.bounds.max_runs.is_some() || matches!(job.schedule, Schedule::Once { .. } | Schedule::Manual) {
        return None;
    }
    match wait.last_end {
        // In back-off, or paused by it; but the next regular occurrence does not wait for a retry.
        Some((ended_at, Some(outcome)))
            if !matches!(outcome, Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost) =>
        {
            let is_held = job.retry.holds_schedule || job.retry.pause_after_failures.is_some();
            if is_held { None } else { grid.first_after(store_now - at.since(ended_at)) }
        }
        Some((ended_at, _)) if grid.is_minted() => match job.schedule {
            Schedule::Fresh { cooldown, .. } => Some(store_now - at.since(ended_at) + cooldown),
            _ => None,
        },
        None if grid.is_minted() => grid.has(store_now).then_some(store_now),
        _ => grid.first_after(wait.last_due_at.unwrap_or(Timestamp::MIN)),
    }
}

impl Checker for Starvation {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.projection.see(fact);
        match &fact.what {
            What::Healed => self.calm_since = Some(fact.at),
            What::FaultBegan { .. } => self.calm_since = None,
            What::Put { job, .. } => {
                self.begin_wait(fact.at, &job.key);
            }
            What::RunEnded { key, outcome, .. } => {
                self.begin_wait(fact.at, key).last_end = Some((fact.at, *outcome));
            }
            What::Granted { run, .. } => self.grant(fact.at, *run),
            // What was known of them may never have been.
            What::FailedOver { .. } => {
                let keys: Vec<JobKey> = self.waits.keys().cloned().collect();
                for key in keys {
                    self.begin_wait(fact.at, &key);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _end: &WorldEnd<'_>) {}

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;

    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every, fresh, premises, with_blackout};

    /// FAST: all is settled 107 s after the last fault; the longest run takes 10 s. So a job each
    /// 10 s may wait for 20 + 40 + 36 s from then on.
    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        fact_builder.check(Starvation::new(&premises()), expected);
    }

    /// Another job is started every 5 s from the third minute to the eighth, and `a` never.
    fn passed_over(fact_builder: FactBuilder, other: &str) -> FactBuilder {
        (0_u32..60).fold(fact_builder.joined(1, "n1").healed(), |fact_builder, n| {
            fact_builder
                .at(180_000 + i64::from(n) * 5_000)
                .granted(100 + u128::from(n), other, 1 + u64::from(n))
                .at(181_000 + i64::from(n) * 5_000)
                .ended(100 + u128::from(n))
        })
    }

    fn of(key: &str, set: impl Fn(&mut Job)) -> Job {
        let mut job = every(key, 10_000);
        set(&mut job);
        job
    }

    fn told(a: Job) -> FactBuilder {
        FactBuilder::new().put(a).put(of("b", |job| job.place.cost = 2))
    }

    #[test]
    fn a_job_that_is_never_chosen_is_caught() {
        check(
            passed_over(told(every("a", 10_000)), "b"),
            &[
                "at 4m35s: a: waits since 1m47s, 2m48s long, while 20 others that take no less room were started where it may run; 1m36s is the most",
            ],
        );
        check(passed_over(told(fresh("a", 10_000, 1_000)), "b"), &["a: waits since"]);
        let site = |key: &str| of(key, |job| job.site = Some("shop".parse().unwrap()));
        check(passed_over(FactBuilder::new().put(site("a")).put(site("b")), "b"), &["a: waits since"]);
        // What was granted, and lost with a failover, does not count; what follows does.
        let lost = FactBuilder::new()
            .put(every("a", 10_000))
            .put(every("b", 10_000))
            .at(500)
            .granted(1, "a", 1)
            .failed_over(400, 2);
        check(passed_over(lost, "b"), &["a: waits since"]);
        // A world without faults is calm from the beginning; one that still breaks promises nothing.
        let turns = |fact_builder: FactBuilder, healed: fn(FactBuilder) -> FactBuilder| {
            (0_u32..60).fold(healed(fact_builder.joined(1, "n1")), |fact_builder, n| {
                let run = 100 + u128::from(n);
                fact_builder.at(180_000 + i64::from(n) * 5_000).granted(run, "b", 1 + u64::from(n)).ended(run)
            })
        };
        check(turns(told(every("a", 10_000)), |fact_builder| fact_builder), &["a: waits since"]);
        check(turns(told(every("a", 10_000)), FactBuilder::fault), &[]);
    }

    #[test]
    fn who_could_not_have_run_instead_is_not_starved() {
        for set in [
            (|job: &mut Job| job.place.cost = 3) as fn(&mut Job),
            |job| job.place.pool = "gpu".parse().unwrap(),
            |job| job.place.run_on_nodes = vec!["n2".parse().unwrap()],
            |job| job.site = Some("shop".parse().unwrap()),
            |job| job.tenant = Some("acme".parse().unwrap()),
            |job| job.enabled = false,
            |job| job.bounds.max_runs = Some(1),
            |job| job.terms.schedule = every("a", 600_000).terms.schedule,
        ] {
            check(passed_over(told(of("a", set)), "b"), &[]);
        }
        check(passed_over(told(with_blackout(every("a", 10_000), "10:00", "10:30", &["wed"])), "b"), &[]);
        check(passed_over(told(every("a", 10_000)).paused("a"), "b"), &[]);
        check(passed_over(told(every("a", 10_000)).removed("a"), "b"), &[]);
        check(passed_over(told(every("a", 10_000)).granted(1, "a", 1), "b"), &[]);
        let holds = |job: &mut Job| job.retry.holds_schedule = true;
        check(passed_over(told(of("a", holds)).granted(1, "a", 1).failed(1), "b"), &[]);
        check(passed_over(told(fresh("a", 10_000, 1_000)).granted(1, "a", 1).failed(1), "b"), &[]);
    }

    #[test]
    fn the_next_regular_occurrence_after_a_failure_is_due_like_any_other() {
        check(passed_over(told(every("a", 10_000)).granted(1, "a", 1).failed(1), "b"), &["a: waits since"]);
    }

    #[test]
    fn who_gets_its_turn_is_not_starved() {
        let with_turns = |turns: &[i64]| {
            (0_u32..60).fold(told(every("a", 10_000)).joined(1, "n1").healed(), |fact_builder, n| {
                let (now, run) = (180_000 + i64::from(n) * 5_000, 100 + u128::from(n));
                let fact_builder = fact_builder.at(now).granted(run, "b", 1 + u64::from(n)).ended(run);
                if turns.contains(&now) { fact_builder.granted(1, "a", 1).ended(1) } else { fact_builder }
            })
        };
        check(with_turns(&[200_000, 290_000, 380_000]), &[]);
        check(with_turns(&[200_000]), &["at 5m: a: waits since 3m20s"]);
        check(with_turns(&[290_000]), &["at 4m35s: a: waits since 1m47s"]);
    }

    #[test]
    fn where_there_is_more_work_than_room_everybody_else_may_come_first() {
        let told = || passed_over(told(every("a", 10_000)).put(every("c", 10_000)), "b");
        let premises =
            |is_overloaded| Premises { is_overloaded, longest_run: Duration::from_secs(50), ..premises() };
        // 20 + 4 * 50 + 36 s, or 20 + 6 * 50 + 36 s.
        told().check(Starvation::new(&premises(false)), &["a: waits since 2m27s", "c: waits since 2m27s"]);
        told().check(Starvation::new(&premises(true)), &[]);
    }
}

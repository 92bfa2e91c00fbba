//! What an operator can set, and what that makes of a fleet: a [`Scenario`], or the reason why not.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::ids::{JobKey, NodeName, Pool, Site, Tenant};
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::placement::{Balance, Ledger, Strategy, place_fleet};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::urgency;

use super::{NodePlan, RunModel, Scenario};

/// The average use of capacity that is assumed where none is given.
const USE_WANTED: f64 = 0.7;

/// One way to carry a fleet.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The nodes, all alike.
    pub nodes: Vec<NodeName>,
    /// Units of each pool on each node. A pool that is not named gets what its jobs need.
    pub capacity: BTreeMap<Pool, u32>,
    /// Limits of sites, across nodes.
    pub sites: BTreeMap<Site, CounterLimit>,
    /// Limits of tenants, across nodes.
    pub tenants: BTreeMap<Tenant, CounterLimit>,
    /// Limits of all runs together, across nodes.
    pub all_runs: CounterLimit,
    /// How nodes choose.
    pub dispatch: DispatchSettings,
    /// How jobs are placed.
    pub strategy: Strategy,
    /// Where jobs are already: they keep their rhythm, and all others are placed around them.
    pub placements: Arc<BTreeMap<JobKey, Placement>>,
    /// How runs go.
    pub runs: RunModel,
    /// When nothing runs at all.
    pub outages: Vec<TimeWindow>,
}

/// The jobs in question.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Those that are there.
    pub jobs: Vec<Job>,
    /// Those that come on top: placed around the others, which stay where they are.
    pub added: Vec<Job>,
}

/// What the jobs of a pool ask of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Need {
    /// Units in use on average, if all runs take as long as expected.
    pub units: f64,
    /// What the costliest of its jobs takes.
    pub cost_max: u32,
    /// What all of them take if they all run at once.
    pub cost_all: u32,
}

/// Why a set-up cannot carry a fleet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotCarry {
    /// A job that fits nowhere.
    #[error(
        "`{job}`{} can never run: it costs {} of pool `{pool}`, and a node has {capacity} \
         (raise the capacity to {cost}, or lower the cost)", and_more(*n_more), units(*cost)
    )]
    TooCostly {
        /// The first of them.
        job: JobKey,
        /// How many others there are.
        n_more: usize,
        /// What it takes, and what the costliest of them takes.
        cost: u32,
        /// Of what.
        pool: Pool,
        /// What there is.
        capacity: u32,
    },
    /// A job that may run on none of the nodes.
    #[error(
        "`{job}`{} can never run: {why} (name nodes that it may run on, or change `run_on_nodes` and \
         `dont_run_on_nodes`)", and_more(*n_more)
    )]
    NoNode {
        /// The first of them.
        job: JobKey,
        /// How many others there are.
        n_more: usize,
        /// Which nodes it wants, which there are.
        why: String,
    },
}

fn units(n: u32) -> String {
    if n == 1 { "1 unit".to_owned() } else { format!("{n} units") }
}

fn and_more(n: usize) -> String {
    match n {
        0 => String::new(),
        1 => " and 1 other job".to_owned(),
        n => format!(" and {n} other jobs"),
    }
}

impl Setup {
    /// One node with what the fleet needs, and everything else at its default.
    pub fn new() -> Setup {
        Setup {
            nodes: node_names(1),
            capacity: BTreeMap::new(),
            sites: BTreeMap::new(),
            tenants: BTreeMap::new(),
            all_runs: CounterLimit::default(),
            dispatch: DispatchSettings::default(),
            strategy: Strategy::default(),
            placements: Arc::default(),
            runs: RunModel::default(),
            outages: Vec::new(),
        }
    }

    /// The same with a capacity for every pool of these jobs: where none is given, what they need, so that
    /// about 70% of it is used, and at least what the costliest of them takes.
    #[must_use]
    pub fn with_capacity_for(&self, jobs: &[Job], window: TimeWindow) -> Setup {
        let mut setup = self.clone();
        for (pool, need) in needs(jobs, window) {
            let enough = setup.capacity_for(need);
            setup.capacity.entry(pool).or_insert(enough);
        }
        setup
    }

    /// Units a node at which a need uses about 70%.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float casts to the nearest u32"
    )]
    pub(super) fn capacity_for(&self, need: Need) -> u32 {
        let n_nodes = f64::from(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX).max(1));
        let units = (need.units / USE_WANTED / n_nodes - 1e-9).ceil();
        (units as u32).max(need.cost_max).max(1)
    }

    /// The fleet carried this way, placed, from the beginning of the window.
    pub fn scenario(&self, fleet: &Fleet, window: TimeWindow) -> Result<Scenario, CannotCarry> {
        let setup = self.with_capacity_for(&fleet.jobs, window).with_capacity_for(&fleet.added, window);
        let jobs = setup.placed(fleet, window);
        let runnable = || jobs.iter().filter(|(_, state)| state.placement.is_some()).map(|(job, _)| job);
        setup.check_nodes(runnable())?;
        setup.check_costs(runnable())?;
        let pools: BTreeMap<Pool, PoolSettings> = setup
            .capacity
            .iter()
            .map(|(pool, capacity)| (pool.clone(), PoolSettings { capacity: *capacity, reserved: 0 }))
            .collect();
        let nodes = setup.nodes.iter().map(|name| NodePlan { name: name.clone(), pools: pools.clone() });
        Ok(Scenario {
            window,
            nodes: nodes.collect(),
            sites: setup.sites,
            tenants: setup.tenants,
            all_runs: setup.all_runs,
            dispatch: setup.dispatch,
            runs: setup.runs,
            outages: setup.outages,
            jobs,
        })
    }

    /// Why one of these jobs can never run, if there is such a one; every pool of theirs must have a capacity.
    pub fn why_not<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone) -> Option<CannotCarry> {
        self.check_nodes(jobs.clone()).and_then(|()| self.check_costs(jobs)).err()
    }

    /// Whether that is why a job can never run.
    pub fn is_why_not(&self, why: &CannotCarry, job: &Job) -> bool {
        let job_alone = std::iter::once(job);
        match why {
            CannotCarry::NoNode { .. } => self.check_nodes(job_alone).is_err(),
            CannotCarry::TooCostly { pool, .. } => {
                job.place.pool == *pool && self.check_costs(job_alone).is_err()
            }
        }
    }

    fn placed(&self, fleet: &Fleet, window: TimeWindow) -> Vec<(Job, JobState)> {
        let balance = Balance { strategy: self.strategy, ..Balance::default() };
        // "Strictly later" than the last moment before the window: its first instant may be chosen.
        let now = window.start() - Duration::from_millis(1);
        if self.placements.is_empty() && fleet.added.is_empty() {
            let states = place_fleet(balance, now, &fleet.jobs);
            return fleet.jobs.iter().cloned().zip(states).collect();
        }
        // Who is somewhere already stays there; all others go around them.
        let states = if self.placements.is_empty() {
            place_fleet(balance, now, &fleet.jobs)
        } else {
            fleet.jobs.iter().map(|job| self.state_as_placed(job, window.start(), now)).collect()
        };
        let added = fleet.added.iter().map(|job| (job.clone(), JobState::new(now)));
        let mut placed: Vec<(Job, JobState)> = fleet.jobs.iter().cloned().zip(states).chain(added).collect();
        let mut ledger = Ledger::new(balance, now);
        for (job, state) in &placed {
            ledger.put(&job.key, job, state);
        }
        for (job, state) in &mut placed {
            let is_waiting = job.enabled && state.pause.is_none() && state.placement.is_none();
            let is_over = self.placements.contains_key(&job.key);
            if !is_waiting || is_over {
                continue;
            }
            if let Some((placement, _)) = ledger.place(job, state, now) {
                state.place(job, placement);
                ledger.put(&job.key, job, state);
            }
        }
        placed
    }

    /// A job with its first occurrence in the window where its rhythm has one: as if all before had gone well.
    fn state_as_placed(&self, job: &Job, start: Timestamp, now: Timestamp) -> JobState {
        let mut state = JobState { pause: job.paused.clone().map(Box::new), ..JobState::new(now) };
        let Some(placement) = self.placements.get(&job.key) else { return state };
        if !job.enabled || state.pause.is_some() {
            return state;
        }
        let anchor_at = match &job.schedule {
            // Its runs set its rhythm: what is due already is due at once.
            Schedule::Fresh { .. } => Some(placement.anchor_at.max(start)),
            schedule => {
                schedule.rhythm(placement, job.bounds, &job.zone).next_after(start - Duration::from_millis(1))
            }
        };
        if let Some(anchor_at) = anchor_at {
            state.place(job, Placement { anchor_at, ..placement.clone() });
        }
        state
    }

    fn check_nodes<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Result<(), CannotCarry> {
        let mut homeless = jobs.filter(|job| !self.nodes.iter().any(|node| job.place.allows(node)));
        let Some(job) = homeless.next() else { return Ok(()) };
        let place = &job.place;
        let listed = |names: &[NodeName]| names.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", ");
        let why = if place.excludes_all() {
            "every node it wants is also one it must not run on".to_owned()
        } else if place.run_on_nodes.is_empty() {
            format!("it must not run on {}", listed(&self.nodes))
        } else {
            format!(
                "it runs only on {}, and the nodes are {}",
                listed(&place.run_on_nodes),
                listed(&self.nodes)
            )
        };
        Err(CannotCarry::NoNode { job: job.key.clone(), n_more: homeless.count(), why })
    }

    fn check_costs<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> Result<(), CannotCarry> {
        let capacity = |job: &Job| self.capacity.get(&job.place.pool).copied().unwrap_or(0);
        let mut too_costly = jobs.filter(|job| capacity(job) < job.place.cost);
        let Some(job) = too_costly.next() else { return Ok(()) };
        let pool = job.place.pool.clone();
        let others: Vec<u32> =
            too_costly.filter(|it| it.place.pool == pool).map(|it| it.place.cost).collect();
        Err(CannotCarry::TooCostly {
            job: job.key.clone(),
            n_more: others.len(),
            cost: others.iter().copied().fold(job.place.cost, u32::max),
            capacity: capacity(job),
            pool,
        })
    }
}

impl Default for Setup {
    fn default() -> Setup {
        Setup::new()
    }
}

/// The names of `n` nodes: `n1` and so on.
pub fn node_names(n: usize) -> Vec<NodeName> {
    (1..=n).filter_map(|number| format!("n{number}").parse().ok()).collect()
}

/// What jobs ask of their pools over a stretch of time. Jobs that never start on their own ask nothing.
pub fn needs(jobs: &[Job], window: TimeWindow) -> BTreeMap<Pool, Need> {
    let balance = Balance { strategy: Strategy::None, ..Balance::default() };
    let states = place_fleet(balance, window.start() - Duration::from_millis(1), jobs);
    let mut needs: BTreeMap<Pool, Need> = BTreeMap::new();
    for (job, state) in jobs.iter().zip(&states) {
        let need = needs.entry(job.place.pool.clone()).or_default();
        if state.placement.is_none() {
            continue;
        }
        need.units += f64::from(job.place.cost) * share_of_time(job, state, window);
        need.cost_max = need.cost_max.max(job.place.cost);
        need.cost_all = need.cost_all.saturating_add(job.place.cost.saturating_mul(job.max_open()));
    }
    needs
}

/// The share of all time in which a job runs.
#[expect(clippy::cast_precision_loss, reason = "a count of starts, for an average")]
fn share_of_time(job: &Job, state: &JobState, window: TimeWindow) -> f64 {
    let length = RunModel::usual_length(job).as_millis_f64();
    match &job.schedule {
        Schedule::Every { interval, .. } => length / interval.as_millis_f64(),
        Schedule::Fresh { cooldown, .. } => length / (length + cooldown.as_millis_f64()),
        Schedule::Cron(_) | Schedule::Once { .. } => {
            let n_starts = urgency::rhythm(job, state).map_or(0, |rhythm| rhythm.count_in(window));
            n_starts as f64 * length / window.length().as_millis_f64().max(1.0)
        }
        Schedule::Manual => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::schedule::{Cron, OnceAt};

    use super::super::sample::{job, start};
    use super::*;

    fn week() -> TimeWindow {
        TimeWindow::starting_at(start(), Duration::from_days(7))
    }

    fn fleet(n: usize, seconds: i64) -> Vec<Job> {
        (0..n).map(|n| job(&format!("job{n}"), "every 1h", seconds)).collect()
    }

    #[test]
    fn capacity_follows_from_what_the_fleet_needs() {
        let check = |n, seconds, n_nodes, expected| {
            let setup = Setup { nodes: node_names(n_nodes), ..Setup::new() };
            let setup = setup.with_capacity_for(&fleet(n, seconds), week());
            assert_eq!(setup.capacity.get(&Pool::default_pool()), Some(&expected), "{n} of {seconds} s");
        };
        check(42, 300, 1, 5); // 3.5 units in use, 70% of 5
        check(43, 300, 1, 6);
        check(42, 300, 2, 3);
        check(1, 1, 1, 1);
    }

    #[test]
    fn what_was_said_stays_and_the_costliest_job_fits() {
        let mut jobs = fleet(2, 60);
        jobs[1].place.cost = 7;
        let pool = Pool::default_pool();
        assert_eq!(Setup::new().with_capacity_for(&jobs, week()).capacity[&pool], 7);
        let said = Setup { capacity: BTreeMap::from([(pool.clone(), 3)]), ..Setup::new() };
        assert_eq!(said.with_capacity_for(&jobs, week()).capacity[&pool], 3);
        let error = said.scenario(&Fleet { jobs, added: Vec::new() }, week()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`job1` can never run: it costs 7 units of pool `default`, and a node has 3 (raise the capacity \
             to 7, or lower the cost)"
        );
    }

    #[test]
    fn a_job_that_no_node_may_run_is_named() {
        let check = |run_on: &[&str], dont: &[&str], expected: &str| {
            let mut jobs = fleet(3, 60);
            for job in &mut jobs[..2] {
                job.place.run_on_nodes = run_on.iter().map(|it| it.parse().unwrap()).collect();
                job.place.dont_run_on_nodes = dont.iter().map(|it| it.parse().unwrap()).collect();
            }
            let said = Setup::new().scenario(&Fleet { jobs, added: Vec::new() }, week()).unwrap_err();
            let said = said.to_string();
            assert!(said.starts_with("`job0` and 1 other job can never run: "), "{said}");
            assert!(said.contains(expected), "{said}");
        };
        check(&["gpu"], &[], "it runs only on gpu, and the nodes are n1 (");
        check(&[], &["n1"], "it must not run on n1 (");
        check(&["n1"], &["n1"], "every node it wants is also one it must not run on (");
    }

    #[test]
    fn jobs_that_are_somewhere_stay_there_and_others_go_around_them() {
        let mut jobs: Vec<Job> =
            ["hourly", "daily", "young", "over", "new"].map(|key| job(key, "every 1h", 60)).into();
        let (max_age, cooldown) = (Duration::from_hours(6), Duration::from_hours(3));
        jobs[1].schedule = Schedule::Cron(Cron::new("30 7 * * *".parse().unwrap(), None));
        jobs[2].schedule = Schedule::Fresh { max_age, cooldown };
        jobs[3].schedule = Schedule::Once { at: OnceAt::Instant(start() - max_age), finish_within: None };
        let long_ago = start() - Duration::from_days(300);
        let at = |minutes: i64| Placement::at(long_ago + Duration::from_mins(minutes), long_ago);
        let placements = [("hourly", at(17)), ("daily", at(0)), ("young", at(5)), ("over", at(0))];
        let placements = placements.map(|(key, it)| (key.parse().unwrap(), it)).into_iter().collect();
        let setup = Setup { placements: Arc::new(placements), ..Setup::new() };
        let placed = setup.scenario(&Fleet { jobs, added: Vec::new() }, week()).unwrap().jobs;
        let next = |idx: usize| placed[idx].1.next_run_at.map(|at| at - start());
        let minutes = |n: i64| Some(Duration::from_mins(n));
        assert_eq!(next(0), minutes(17), "its phase is its own");
        assert_eq!(next(2), Some(Duration::ZERO), "what was due is due at once");
        assert_eq!(next(3), None, "what is over is over");
        assert_eq!(next(1), minutes(7 * 60 + 30));
        let new = next(4).unwrap();
        assert!((Duration::ZERO..Duration::from_hours(1)).contains(&new) && new != Duration::from_mins(17));
    }

    #[test]
    fn added_jobs_leave_the_others_where_they_are() {
        let (jobs, added) = (fleet(20, 60), vec![job("new", "every 1h", 60)]);
        let before = Setup::new().scenario(&Fleet { jobs: jobs.clone(), added: Vec::new() }, week()).unwrap();
        let after = Setup::new().scenario(&Fleet { jobs, added }, week()).unwrap();
        assert_eq!(before.jobs[..], after.jobs[..20]);
        assert!(after.jobs[20].1.next_run_at.is_some());
    }
}

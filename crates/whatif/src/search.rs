//! "How many units do I need for 99.9%?": the smallest capacity that reaches a freshness, by whole simulations.
//!
//! Pools share nothing but sites, so all of them are searched at once: each simulation tries one size of each.

use std::collections::BTreeMap;

use evenbeat_core::ids::Pool;
use evenbeat_core::time::TimeWindow;

use super::setup::{CannotCarry, Fleet, Need, Setup, needs};
use super::{Report, Scenario};

/// A difference of freshness that is ignored.
pub(super) const FRESHNESS_TOLERANCE: f64 = 1e-9;

/// Lives through scenarios: the caller says in how many threads, and shows how far they are.
pub type Simulate<'a> = &'a mut dyn FnMut(&[Scenario]) -> Vec<Report>;

/// The smallest capacity that reaches a freshness.
#[derive(Clone, Debug, PartialEq)]
pub struct Smallest {
    /// The freshness that was wanted, from 0 to 1.
    pub target: f64,
    /// What was found for each pool.
    pub pools: BTreeMap<Pool, PoolAnswer>,
    /// How many simulations it took.
    pub n_simulations: usize,
}

/// What was found for a pool.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolAnswer {
    /// This many units a node are needed.
    Enough {
        /// The smallest number that reaches the target.
        enough: Tried,
        /// One unit less; none if its jobs would not even fit.
        below: Option<Tried>,
    },
    /// No number reaches it: not even room for all jobs at once.
    OutOfReach(Tried),
}

/// A capacity, and what it came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Units a node.
    pub capacity: u32,
    /// The freshness of the pool.
    pub freshness: f64,
}

impl PoolAnswer {
    /// What to provide: the smallest that is enough, else the most that could help.
    pub fn tried(&self) -> Tried {
        match self {
            PoolAnswer::Enough { enough, .. } => *enough,
            PoolAnswer::OutOfReach(most) => *most,
        }
    }
}

impl Smallest {
    /// Whether every pool can reach it.
    pub fn is_reached(&self) -> bool {
        self.pools.values().all(|it| matches!(it, PoolAnswer::Enough { .. }))
    }
}

/// Finds the smallest capacity a node for each pool with which its jobs are fresh for this share of time, trying
/// several at once. What the set-up says about capacity is left aside. With it comes what that capacity leads to.
pub fn smallest_capacity(
    setup: &Setup,
    fleet: &Fleet,
    window: TimeWindow,
    target: f64,
    n_at_once: usize,
    simulate: Simulate<'_>,
) -> Result<(Smallest, Scenario, Report), CannotCarry> {
    let all: Vec<_> = fleet.jobs.iter().chain(&fleet.added).cloned().collect();
    let mut brackets: BTreeMap<Pool, Bracket> =
        needs(&all, window).into_iter().map(|(pool, need)| (pool, Bracket::new(setup, need))).collect();
    let mut seen: BTreeMap<BTreeMap<Pool, u32>, Report> = BTreeMap::new();
    let scenario_with = |capacity: &BTreeMap<Pool, u32>| {
        Setup { capacity: capacity.clone(), ..setup.clone() }.scenario(fleet, window)
    };
    while brackets.values().any(Bracket::is_open) {
        let tries = tries(&brackets, n_at_once.max(1));
        let scenarios = tries.iter().map(scenario_with).collect::<Result<Vec<_>, _>>()?;
        for (capacity, report) in tries.into_iter().zip(simulate(&scenarios)) {
            for (pool, bracket) in &mut brackets {
                let freshness = report.pools.get(pool).map_or(1.0, |it| it.freshness);
                bracket
                    .learn(Tried { capacity: capacity.get(pool).copied().unwrap_or(1), freshness }, target);
            }
            seen.insert(capacity, report);
        }
    }
    let pools: BTreeMap<Pool, PoolAnswer> =
        brackets.into_iter().map(|(pool, bracket)| (pool, bracket.answer())).collect();
    let capacity: BTreeMap<Pool, u32> =
        pools.iter().map(|(pool, answer)| (pool.clone(), answer.tried().capacity)).collect();
    let scenario = scenario_with(&capacity)?;
    let mut n_simulations = seen.len();
    let report = match seen.remove(&capacity) {
        Some(report) => Some(report),
        None => {
            n_simulations += 1;
            simulate(std::slice::from_ref(&scenario)).pop()
        }
    };
    let Some(report) = report else { unreachable!("a scenario has a report") };
    Ok((Smallest { target, pools, n_simulations }, scenario, report))
}

/// What to try next: the first number of each pool, the second of each, and so on.
fn tries(brackets: &BTreeMap<Pool, Bracket>, n_at_once: usize) -> Vec<BTreeMap<Pool, u32>> {
    let points: BTreeMap<&Pool, Vec<u32>> =
        brackets.iter().map(|(pool, bracket)| (pool, bracket.points(n_at_once))).collect();
    let n_tries = points.values().map(Vec::len).max().unwrap_or(0);
    let nth = |n: usize| {
        let of_pool = |(pool, points): (&&Pool, &Vec<u32>)| {
            let point = points.get(n).or(points.last()).copied().unwrap_or(1);
            ((*pool).clone(), point)
        };
        points.iter().map(of_pool).collect()
    };
    (0..n_tries).map(nth).collect()
}

/// Between what is known not to be enough and what is known to be.
struct Bracket {
    /// Not enough; without a freshness if its jobs would not fit.
    low: u32,
    low_tried: Option<Tried>,
    high: Option<Tried>,
    /// Where to begin.
    guess: u32,
    /// More is of no use.
    most: u32,
}

impl Bracket {
    fn new(setup: &Setup, need: Need) -> Bracket {
        let least = need.cost_max.max(1);
        let n_nodes = u32::try_from(setup.nodes.len()).unwrap_or(u32::MAX).max(1);
        // On several nodes the last units may be left over in pieces that are too small for a costly job.
        let most =
            need.cost_all.div_ceil(n_nodes).saturating_add(if n_nodes == 1 { 0 } else { least }).max(least);
        Bracket {
            low: least - 1,
            low_tried: None,
            high: None,
            guess: setup.capacity_for(need).min(most),
            most,
        }
    }

    fn is_open(&self) -> bool {
        match self.high {
            Some(high) => 1 < high.capacity - self.low,
            None => self.low < self.most,
        }
    }

    /// Up to `n_at_once` numbers to try, ascending. The known one if there is nothing left to find.
    fn points(&self, n_at_once: usize) -> Vec<u32> {
        let n = u32::try_from(n_at_once).unwrap_or(1);
        let mut points: Vec<u32> = match self.high {
            Some(high) => {
                let between = high.capacity - self.low;
                (1..=n).map(|nth| self.low + scaled(between, nth, n + 1)).collect()
            }
            None => {
                let first = self.guess.max(self.low.saturating_mul(2)).max(self.low + 1);
                (0..n).map(|nth| first.saturating_mul(1 << nth.min(16)).min(self.most)).collect()
            }
        };
        let high = self.high.map_or(u32::MAX, |it| it.capacity);
        points.retain(|point| self.low < *point && *point < high);
        points.dedup();
        if points.is_empty() {
            points.push(self.high.map_or(self.most, |it| it.capacity).min(self.most.max(self.low)));
        }
        points
    }

    fn learn(&mut self, tried: Tried, target: f64) {
        if target <= tried.freshness + FRESHNESS_TOLERANCE {
            if self.high.is_none_or(|high| tried.capacity < high.capacity) && self.low < tried.capacity {
                self.high = Some(tried);
            }
        } else if self.low < tried.capacity && self.high.is_none_or(|high| tried.capacity < high.capacity) {
            self.low = tried.capacity;
            self.low_tried = Some(tried);
        }
    }

    fn answer(self) -> PoolAnswer {
        match (self.high, self.low_tried) {
            (Some(enough), below) => PoolAnswer::Enough { enough, below },
            (None, Some(most)) => PoolAnswer::OutOfReach(most),
            // Nothing runs in it, so nothing can be late.
            (None, None) => PoolAnswer::Enough { enough: Tried { capacity: 1, freshness: 1.0 }, below: None },
        }
    }
}

/// `n` parts of `of`, of which there are `parts`, rounded up and never all of them.
fn scaled(of: u32, n: u32, parts: u32) -> u32 {
    let scaled = (u64::from(of) * u64::from(n)).div_ceil(u64::from(parts.max(1)));
    u32::try_from(scaled).unwrap_or(u32::MAX).min(of.saturating_sub(1)).max(1)
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;

    use super::super::sample::{job, one_at_once, start};
    use super::super::{node_names, simulate_all};
    use super::*;

    fn found(setup: &Setup, fleet: &Fleet, target: f64, n_at_once: usize) -> (Smallest, Report) {
        let window = TimeWindow::starting_at(start(), Duration::from_hours(24));
        let mut simulate = |scenarios: &[Scenario]| simulate_all(scenarios, n_at_once, &|_, _| {});
        let (smallest, _, report) =
            smallest_capacity(setup, fleet, window, target, n_at_once, &mut simulate).unwrap();
        (smallest, report)
    }

    /// Hours full of runs of five minutes: one unit for every twelve jobs.
    fn fleet(n: usize) -> Fleet {
        let jobs = (0..n).map(|n| job(&format!("job{n:03}"), "every 1h", 300)).collect();
        Fleet { jobs, added: Vec::new() }
    }

    fn exact() -> Setup {
        let mut setup = Setup::new();
        setup.runs.spread = 0.0;
        setup
    }

    #[track_caller]
    fn check(n_jobs: usize, n_nodes: usize, expected: u32) {
        let setup = Setup { nodes: node_names(n_nodes), ..exact() };
        for n_at_once in [1, 2, 5] {
            let (smallest, report) = found(&setup, &fleet(n_jobs), 0.999, n_at_once);
            let answer = &smallest.pools[&Pool::default_pool()];
            let PoolAnswer::Enough { enough, below } = answer else { panic!("{answer:?}") };
            assert_eq!(enough.capacity, expected, "{answer:?}");
            assert!(0.999 <= enough.freshness && smallest.is_reached());
            assert!((report.all.freshness - enough.freshness).abs() < 1e-9);
            match below {
                Some(below) => {
                    assert!(below.capacity + 1 == expected && below.freshness < 0.999, "{below:?}");
                }
                None => assert_eq!(expected, 1),
            }
        }
    }

    #[test]
    fn the_smallest_capacity_is_found_with_the_step_below_it() {
        check(1, 1, 1);
        check(12, 1, 1);
        check(36, 1, 3);
        check(120, 1, 10);
        check(48, 2, 2);
    }

    #[test]
    fn each_pool_has_its_own_answer() {
        let mut fleet = fleet(60);
        for job in &mut fleet.jobs[..48] {
            job.place.pool = "crawl".parse().unwrap();
        }
        let (smallest, report) = found(&exact(), &fleet, 0.999, 2);
        let capacities: Vec<(&str, u32)> =
            smallest.pools.iter().map(|(pool, it)| (pool.as_str(), it.tried().capacity)).collect();
        assert_eq!(capacities, [("crawl", 4), ("default", 1)]);
        assert!(report.all.freshness > 0.999);
    }

    #[test]
    fn what_no_capacity_can_reach_is_told() {
        let mut fleet = fleet(30);
        for job in &mut fleet.jobs {
            job.site = Some("shop".parse().unwrap());
        }
        let setup = Setup { sites: BTreeMap::from([("shop".parse().unwrap(), one_at_once())]), ..exact() };
        let (smallest, _) = found(&setup, &fleet, 0.999, 2);
        assert!(!smallest.is_reached());
        let PoolAnswer::OutOfReach(most) = smallest.pools[&Pool::default_pool()] else {
            panic!("{smallest:?}")
        };
        assert_eq!(most.capacity, 30);
        assert!(most.freshness < 0.9, "{most:?}");
    }

    #[test]
    fn a_costly_job_sets_the_least() {
        let mut fleet = fleet(2);
        fleet.jobs[0].place.cost = 9;
        let (smallest, _) = found(&exact(), &fleet, 0.5, 2);
        assert_eq!(smallest.pools[&Pool::default_pool()].tried().capacity, 9);
    }
}

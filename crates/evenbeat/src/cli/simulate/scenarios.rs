//! Turns the arguments into setups, runs the simulations and collects the figures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::engine::Order;
use evenbeat_core::ids::Pool;
use evenbeat_core::job::Job;
use evenbeat_core::placement::Strategy;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;
use evenbeat_whatif::{
    ADDED_MAX, CannotCarry, Fleet, Growth, Report, RunModel, Scenario, Setup, first_break, most_added,
    share_out, simulate_all, smallest_capacity,
};

use super::args::{BalanceArg, OrderArg, SetupArgs, SimulateArgs, compared};
use super::figures::{FleetOrigin, GrowthResult, SetupResult, SimulationFigures};
use crate::cli::progress::Progress;
use crate::views::whatif::{self, is_idle, next_quarter};

/// Number of simulations to run at once.
const N_THREADS: usize = 2;
/// Number of simulations to run at once during a search.
const N_TRIES: u32 = 2;

/// Default freshness to keep when jobs are added.
const LEAST: f64 = 0.99;

/// A fleet, its origin, and its default setup.
#[derive(Debug)]
pub(super) struct Subject {
    /// The name of the file, or the address of the server.
    pub(super) name: String,
    pub(super) origin: FleetOrigin,
    pub(super) jobs: Vec<Job>,
    pub(super) base: Setup,
    /// The zone that all jobs share, or UTC.
    pub(super) zone: Zone,
    pub(super) n_left_out: usize,
    /// Why some jobs were already skipped.
    pub(super) warnings: Vec<String>,
    pub(super) assumes_utc: bool,
}

/// The scenarios to simulate.
struct Scenarios<'a> {
    args: &'a SimulateArgs,
    fleet: Fleet,
    window: TimeWindow,
    /// The given setup, then those to compare with.
    setups: Vec<(Option<String>, Setup)>,
    progress: &'a Progress,
}

/// Runs everything. The error is a message for the user.
pub(super) fn simulate(
    args: &SimulateArgs,
    subject: Subject,
    now: Timestamp,
    progress: &Progress,
) -> Result<SimulationFigures, String> {
    let start = args.from.unwrap_or_else(|| next_quarter(now));
    let window = TimeWindow::starting_at(start, Duration::from_days(args.days));
    let Subject { name, origin, jobs, mut base, zone, n_left_out, mut warnings, assumes_utc } = subject;
    if args.target.is_some() && args.add.is_empty() && !args.setup.capacity.is_empty() {
        return Err(
            "--capacity cannot be used with --target, which searches for it (remove one of them)".to_owned()
        );
    }
    if args.target.is_some() && args.add.is_empty() {
        base.capacity.clear();
    }
    let n_added = args.add.iter().map(|it| it.n).fold(0, u32::saturating_add);
    if ADDED_MAX < n_added {
        return Err(format!("--add: {n_added} jobs are too many (at most {ADDED_MAX})"));
    }
    let added = share_out(&args.add, n_added, n_added);
    let mut fleet = Fleet { jobs, added };
    let mut setups = vec![(None, setup_of(&args.setup, &base, &fleet, window)?)];
    for text in &args.compare {
        let named = |message: String| format!("--compare `{text}`: {message}");
        let other = compared(text).map_err(named)?;
        if args.target.is_some() && !other.capacity.is_empty() {
            return Err(named(
                "a capacity cannot be used with --target, which searches for it (remove one of them)"
                    .to_owned(),
            ));
        }
        let setup = setup_of(&args.setup.but(&other), &base, &fleet, window).map_err(named)?;
        setups.push((Some(text.split_whitespace().collect::<Vec<_>>().join(" ")), setup));
    }
    warnings.extend(leave_out(&mut fleet, &setups, window)?);
    let scenarios = Scenarios { args, fleet, window, setups, progress };
    let (setups, added) = if scenarios.args.add.is_empty() {
        (scenarios.compare()?, None)
    } else {
        let (lived, added) = scenarios.add()?;
        (vec![lived], Some(added))
    };
    let all = &scenarios.fleet.jobs;
    Ok(SimulationFigures {
        file: name,
        origin,
        zone,
        window,
        days: args.days,
        seed: args.setup.seed.unwrap_or(RunModel::default().seed),
        n_idle: all.iter().filter(|job| is_idle(job)).count(),
        n_unknown_length: all
            .iter()
            .filter(|job| !is_idle(job) && job.estimate.is_none() && job.limits.max_expected.is_none())
            .count(),
        n_left_out,
        warnings,
        assumes_utc: assumes_utc && !all.is_empty(),
        setups,
        added,
    })
}

/// Skips jobs that can never run in one of the setups, so that all setups simulate the same fleet, and returns the reasons.
/// Fails if no job is left.
fn leave_out(
    fleet: &mut Fleet,
    setups: &[(Option<String>, Setup)],
    window: TimeWindow,
) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    for (differs, setup) in setups {
        let named = |why: CannotCarry| named(differs.as_deref(), &why.to_string());
        let reasons = whatif::leave_out(fleet, setup, window).map_err(named)?;
        warnings.extend(reasons.into_iter().map(|why| format!("skipped: {}", named(why))));
    }
    Ok(warnings)
}

impl Scenarios<'_> {
    fn compare(&self) -> Result<Vec<SetupResult>, String> {
        if let Some(target) = self.args.target {
            return self
                .setups
                .iter()
                .map(|(differs, setup)| self.search(differs.as_deref(), setup, target))
                .collect();
        }
        let scenarios = self
            .setups
            .iter()
            .map(|(differs, setup)| self.scenario(differs.as_deref(), setup, &self.fleet))
            .collect::<Result<Vec<_>, _>>()?;
        let reports = self.simulate("simulating", &scenarios);
        let lived =
            self.setups.iter().zip(&scenarios).zip(reports).map(|(((differs, setup), scenario), report)| {
                lived(differs.as_deref(), setup, scenario, report)
            });
        Ok(lived.collect())
    }

    fn search(&self, differs: Option<&str>, setup: &Setup, target: f64) -> Result<SetupResult, String> {
        let mut n_round = 0;
        let mut simulate = |scenarios: &[Scenario]| {
            n_round += 1;
            self.simulate(&format!("searching, step {n_round}"), scenarios)
        };
        let found = smallest_capacity(setup, &self.fleet, self.window, target, N_THREADS, &mut simulate);
        let (smallest, scenario, report) = found.map_err(|error| named(differs, &error.to_string()))?;
        Ok(SetupResult { smallest: Some(smallest), ..lived(differs, setup, &scenario, report) })
    }

    fn add(&self) -> Result<(SetupResult, GrowthResult), String> {
        let Some((_, setup)) = self.setups.first() else { unreachable!("the given setup always exists") };
        // Keep the capacity of the current fleet. Only a new pool gets capacity for the added jobs.
        let settled = setup
            .with_capacity_for(&self.fleet.jobs, self.window)
            .with_capacity_for(&self.fleet.added, self.window);
        let without = Fleet { jobs: self.fleet.jobs.clone(), added: Vec::new() };
        let scenarios =
            [self.scenario(None, &settled, &without)?, self.scenario(None, &settled, &self.fleet)?];
        let mut reports = self.simulate("simulating", &scenarios).into_iter();
        let (Some(before), Some(after)) = (reports.next(), reports.next()) else {
            unreachable!("each scenario has a report")
        };
        let mut n_round = 0;
        let mut simulate = |scenarios: &[Scenario]| {
            n_round += 1;
            self.simulate(&format!("searching, step {n_round}"), scenarios)
        };
        let growth = Growth {
            setup: &settled,
            jobs: &self.fleet.jobs,
            kinds: &self.args.add,
            window: self.window,
            before: &before,
            after: &after,
        };
        let least = self.args.target.unwrap_or(LEAST);
        let most = most_added(&growth, least, N_TRIES, &mut simulate);
        let most = most.map_err(|error| error.to_string())?;
        let [_, scenario] = scenarios;
        let first_break = first_break(&before, &after);
        let added = GrowthResult { kinds: self.args.add.clone(), before, first_break, most };
        Ok((lived(None, setup, &scenario, after), added))
    }

    fn scenario(&self, differs: Option<&str>, setup: &Setup, fleet: &Fleet) -> Result<Scenario, String> {
        setup.scenario(fleet, self.window).map_err(|error| named(differs, &error.to_string()))
    }

    fn simulate(&self, title: &str, scenarios: &[Scenario]) -> Vec<Report> {
        self.progress.begin(title, scenarios.len());
        simulate_all(scenarios, N_THREADS, &|idx, share| self.progress.tell(idx, share))
    }
}

fn named(differs: Option<&str>, message: &str) -> String {
    differs.map_or_else(|| message.to_owned(), |differs| format!("--compare `{differs}`: {message}"))
}

fn lived(differs: Option<&str>, setup: &Setup, scenario: &Scenario, report: Report) -> SetupResult {
    let pools = scenario.nodes.first().map(|node| &node.pools);
    let capacity: BTreeMap<Pool, u32> =
        pools.into_iter().flatten().map(|(pool, it)| (pool.clone(), it.capacity)).collect();
    let assumed: BTreeSet<Pool> =
        capacity.keys().filter(|pool| !setup.capacity.contains_key(*pool)).cloned().collect();
    SetupResult {
        differs: differs.map(str::to_owned),
        n_nodes: scenario.nodes.len(),
        capacity,
        assumed,
        report,
        smallest: None,
    }
}

fn setup_of(args: &SetupArgs, base: &Setup, fleet: &Fleet, window: TimeWindow) -> Result<Setup, String> {
    let mut setup = base.clone();
    if let Some(nodes) = &args.nodes {
        setup.nodes.clone_from(&nodes.0);
    }
    let pools: BTreeSet<&Pool> = fleet.jobs.iter().chain(&fleet.added).map(|job| &job.place.pool).collect();
    for capacity in args.capacity.iter().filter(|it| it.pool.is_none()) {
        setup.capacity.extend(pools.iter().map(|pool| ((*pool).clone(), capacity.units)));
    }
    for capacity in &args.capacity {
        let Some(pool) = &capacity.pool else { continue };
        if !pools.contains(pool) {
            let known = pools.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
            return Err(format!("--capacity: no job uses pool `{pool}` (the pools are {known})"));
        }
        setup.capacity.insert(pool.clone(), capacity.units);
    }
    for limit in &args.site {
        if !fleet.jobs.iter().chain(&fleet.added).any(|job| job.site.as_ref() == Some(&limit.site)) {
            return Err(format!(
                "--site: no job has site `{}` (jobs set it with `site = \"…\"`)",
                limit.site
            ));
        }
        setup.sites.entry(limit.site.clone()).or_default().max_open = Some(limit.max_at_once);
    }
    for outage in &args.outage {
        if window.length() <= outage.start {
            return Err(format!(
                "--outage: it starts after {}, when the simulation has ended (raise --days, or start it earlier)",
                outage.start
            ));
        }
        setup.outages.push(TimeWindow::starting_at(window.start() + outage.start, outage.length));
    }
    setup.runs = RunModel {
        spread: args.spread.unwrap_or(setup.runs.spread),
        failing: args.failing.unwrap_or(setup.runs.failing),
        seed: args.seed.unwrap_or(setup.runs.seed),
    };
    setup.dispatch.order = match args.order {
        Some(OrderArg::FirstCome) => Order::FirstCome,
        Some(OrderArg::ByMinute) => Order::ByMinute,
        Some(OrderArg::LatestStart) | None => Order::LatestStart,
    };
    setup.dispatch.lookahead = !args.no_lookahead;
    if args.balance.is_some() {
        // To compare balancing strategies, all jobs must be placed again.
        setup.placements = Arc::default();
    }
    setup.strategy = match args.balance {
        Some(BalanceArg::None) => Strategy::None,
        Some(BalanceArg::LeastLoaded) => Strategy::LeastLoaded,
        Some(BalanceArg::Phase) | None => Strategy::Phase,
    };
    Ok(setup)
}

//! Runs the simulations of a question.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use evenbeat_core::engine::PoolSettings;
use evenbeat_core::ids::Pool;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_whatif::{
    Fleet, LENGTH, NodePlan, Report, Scenario, Setup, all_breaks, needs, share_out, simulate_while,
};

use super::figures::{BrokenLimit, FirstLate, LimitName, PoolFigures, PoolWatch, in_time};
use super::fleet::{LiveFleet, LiveJob, NodePools, is_idle, leave_out, live_fleet, next_quarter};
use super::question::{NotAnswerable, WhatIfQuestion};
use super::search::{SlotShare, enough_slots, is_kept, most_that_fit};
use crate::app::App;
use crate::store::query::{JobFilter, PAGE_MAX};
use crate::views::model::LimitsView;
use crate::views::{ViewError, nodes};

/// The answer to a question.
#[derive(Debug)]
pub(crate) struct WhatIfAnswer {
    pub(crate) question: WhatIfQuestion,
    pub(crate) window: TimeWindow,
    /// The pool of the charts and figures: that of the question, or the one that breaks first.
    pub(crate) pool: Pool,
    pub(crate) before: PoolFigures,
    pub(crate) after: PoolFigures,
    /// Runs that were simulated for the answer itself.
    pub(crate) n_runs: u64,
    /// What gives way, in the order of time.
    pub(crate) breaks: Vec<BrokenLimit>,
    pub(crate) first_late: Option<FirstLate>,
    pub(crate) first_old_late: Option<FirstLate>,
    /// Pools in which nothing breaks.
    pub(crate) calm: Vec<Pool>,
    /// How many of the added jobs fit; none if none are added.
    pub(crate) n_fit: Option<u32>,
    /// How many slots all of it needs, if that was looked for and any number is enough.
    pub(crate) enough: Option<u32>,
    /// Shares by slots, if they were looked for.
    pub(crate) shares: Vec<SlotShare>,
    /// What was assumed or left out.
    pub(crate) notes: Vec<String>,
    pub(crate) n_simulations: usize,
    pub(crate) took: std::time::Duration,
}

/// How long is searched. After that, the answer says what was found until then.
const SEARCH_MAX: std::time::Duration = std::time::Duration::from_secs(20);

/// Why simulations stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulationStop {
    /// No page waits for the answer.
    Cancelled,
    /// It takes too long.
    TooLong,
}

/// Why there is no answer.
#[derive(Debug)]
enum NoAnswer {
    Question(NotAnswerable),
    Stopped(SimulationStop),
    /// A search takes too long.
    SearchOver,
}

impl From<SimulationStop> for NoAnswer {
    fn from(stop: SimulationStop) -> NoAnswer {
        NoAnswer::Stopped(stop)
    }
}

fn not(text: impl Into<String>) -> NoAnswer {
    NoAnswer::Question(NotAnswerable(text.into()))
}

/// Reads the live fleet. None if it has more jobs than `most`.
pub(crate) async fn load(app: &App, most: usize) -> Result<Option<LiveFleet>, ViewError> {
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = app.store.list_jobs(JobFilter::default(), after, PAGE_MAX).await?;
        jobs.extend(page.rows.iter().filter_map(LiveJob::of_row));
        if most < jobs.len() {
            return Ok(None);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    let limits = app.node.ask(|engine, _| LimitsView::of(engine.settings())).await;
    let limits = limits.ok_or(ViewError::NodeGone)?;
    let nodes = nodes::list(app, false).await?;
    Ok(Some(live_fleet(jobs, &limits, &nodes)))
}

/// Answers a question. `may_go_on` is asked every few moments, and told how many simulations there were.
///
/// The outer error is why it stopped, the inner one why there is no answer.
pub(crate) fn answer(
    question: &WhatIfQuestion,
    fleet: LiveFleet,
    now: Timestamp,
    may_go_on: &mut dyn FnMut(usize) -> Result<(), SimulationStop>,
) -> Result<Result<WhatIfAnswer, NotAnswerable>, SimulationStop> {
    let window = TimeWindow::starting_at(next_quarter(now), Duration::from_days(question.days));
    let found = WhatIfCase::new(question, fleet, window).and_then(|(subject, notes)| {
        let mut simulator = Simulator { subject: &subject, may_go_on, n_simulations: 0 };
        simulator.answer(question, notes)
    });
    match found {
        Ok(answer) => Ok(Ok(answer)),
        Err(NoAnswer::Question(why)) => Ok(Err(why)),
        Err(NoAnswer::Stopped(stop)) => Err(stop),
        Err(NoAnswer::SearchOver) => Err(SimulationStop::TooLong),
    }
}

/// What is simulated.
struct WhatIfCase {
    fleet: Fleet,
    setup: Setup,
    window: TimeWindow,
    /// As it is, and as asked.
    nodes_before: NodePools,
    nodes_after: NodePools,
}

impl WhatIfCase {
    fn new(
        question: &WhatIfQuestion,
        live: LiveFleet,
        window: TimeWindow,
    ) -> Result<(WhatIfCase, Vec<String>), NoAnswer> {
        let LiveFleet { facts, jobs, mut setup, nodes } = live;
        if nodes.is_empty() {
            return Err(not("No node takes new runs at the moment, so there is nothing to compare with."));
        }
        let mut nodes_after = nodes.clone();
        if let Some(lost) = &question.lose {
            if nodes_after.remove(lost).is_none() {
                return Err(not(format!("No node {lost} takes runs at the moment.")));
            }
            if nodes_after.is_empty() {
                return Err(not(format!("{lost} is the only node: without it, nothing runs.")));
            }
        }
        let pools_known = nodes.values().any(|pools| pools.contains_key(&question.pool));
        if !pools_known && question.slots.is_none() && question.added.is_some() {
            return Err(not(format!("No node has slots in pool {}; say how many there are.", question.pool)));
        }
        if let Some(slots) = question.slots {
            spread(&mut nodes_after, &question.pool, slots);
        }
        // What fits on no node is left out; what fits on some may run there.
        setup.capacity = largest(&nodes);
        setup.nodes = nodes.keys().cloned().collect();
        let added = question.added.as_ref().map(|it| it.jobs(it.n, 0)).unwrap_or_default();
        let n_idle = jobs.iter().filter(|job| is_idle(job)).count();
        let unknown = |job: &&evenbeat_core::job::Job| {
            !is_idle(job) && job.estimate.is_none() && job.limits.max_expected.is_none()
        };
        let n_unknown = jobs.iter().filter(unknown).count();
        let mut fleet = Fleet { jobs, added };
        let mut notes = Vec::new();
        for nodes in [&nodes, &nodes_after] {
            let setup =
                Setup { nodes: nodes.keys().cloned().collect(), capacity: largest(nodes), ..setup.clone() };
            let reasons = leave_out(&mut fleet, &setup, window).map_err(|why| not(format!("{why}.")))?;
            notes.extend(reasons.into_iter().map(|why| format!("Left out: {why}.")));
        }
        notes.dedup();
        if 0 < facts.n_measured {
            notes.push(format!("{} as long as measured.", jobs_take(facts.n_measured)));
        }
        if 0 < n_unknown {
            notes.push(format!("{} {LENGTH}, because their length is not known.", jobs_take(n_unknown)));
        }
        if 0 < n_idle {
            notes.push(match n_idle {
                1 => "1 job never starts on its own and is not part of it.".to_owned(),
                n => format!("{n} jobs never start on their own and are not part of it."),
            });
        }
        Ok((WhatIfCase { fleet, setup, window, nodes_before: nodes, nodes_after }, notes))
    }

    fn scenario(
        &self,
        nodes: &NodePools,
        n_added: Option<u32>,
        question: &WhatIfQuestion,
    ) -> Result<Scenario, NoAnswer> {
        let added = match (&question.added, n_added) {
            (Some(kind), Some(n)) => share_out(std::slice::from_ref(kind), n, kind.n),
            _ => Vec::new(),
        };
        let fleet = Fleet { jobs: self.fleet.jobs.clone(), added };
        let setup =
            Setup { nodes: nodes.keys().cloned().collect(), capacity: largest(nodes), ..self.setup.clone() };
        let mut scenario = setup.scenario(&fleet, self.window).map_err(|why| not(format!("{why}.")))?;
        // Each node has its own capacity.
        scenario.nodes = nodes
            .iter()
            .map(|(name, pools)| NodePlan {
                name: name.clone(),
                pools: pools
                    .iter()
                    .map(|(pool, units)| (pool.clone(), PoolSettings { capacity: *units, reserved: 0 }))
                    .collect(),
            })
            .collect();
        Ok(scenario)
    }
}

fn jobs_take(n: usize) -> String {
    if n == 1 { "1 job takes".to_owned() } else { format!("{n} jobs take") }
}

/// The largest capacity that any node has, by pool.
fn largest(nodes: &NodePools) -> BTreeMap<Pool, u32> {
    let mut capacity: BTreeMap<Pool, u32> = BTreeMap::new();
    for (pool, units) in nodes.values().flatten() {
        let most = capacity.entry(pool.clone()).or_default();
        *most = (*most).max(*units);
    }
    capacity
}

/// Slots of a pool on all nodes.
fn slots_of(nodes: &NodePools, pool: &Pool) -> u32 {
    nodes.values().filter_map(|pools| pools.get(pool)).fold(0, |sum, it| sum.saturating_add(*it))
}

/// Spreads slots of a pool over the nodes that have it, or over all, as evenly as they were.
fn spread(nodes: &mut NodePools, pool: &Pool, slots: u32) {
    let total = slots_of(nodes, pool);
    if total == slots {
        return;
    }
    let n_nodes = nodes.values().filter(|pools| 0 < total && pools.contains_key(pool)).count();
    let is_new = n_nodes == 0;
    let n_nodes = u64::try_from(if is_new { nodes.len() } else { n_nodes }).unwrap_or(1).max(1);
    let mut left = u64::from(slots);
    let mut n_left = n_nodes;
    let mut weight_left = u64::from(total);
    for pools in nodes.values_mut() {
        if !is_new && !pools.contains_key(pool) {
            continue;
        }
        let weight = pools.get(pool).map_or(0, |it| u64::from(*it));
        let share = if is_new || weight_left == 0 {
            left.div_ceil(n_left)
        } else {
            (left * weight).div_ceil(weight_left)
        };
        let share = share.min(left);
        pools.insert(pool.clone(), u32::try_from(share).unwrap_or(u32::MAX));
        left -= share;
        weight_left -= weight.min(weight_left);
        n_left = (n_left - 1).max(1);
    }
}

fn may_search(began: Instant) -> Result<(), NoAnswer> {
    if began.elapsed() < SEARCH_MAX { Ok(()) } else { Err(NoAnswer::SearchOver) }
}

/// What a search found; none if it took too long.
fn as_far_as_it_goes<T>(found: Result<T, NoAnswer>) -> Result<Option<T>, NoAnswer> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(NoAnswer::SearchOver) => Ok(None),
        Err(other) => Err(other),
    }
}

struct Simulator<'a> {
    subject: &'a WhatIfCase,
    may_go_on: &'a mut dyn FnMut(usize) -> Result<(), SimulationStop>,
    n_simulations: usize,
}

impl Simulator<'_> {
    fn answer(
        &mut self,
        question: &WhatIfQuestion,
        mut notes: Vec<String>,
    ) -> Result<WhatIfAnswer, NoAnswer> {
        let began = Instant::now();
        let subject = self.subject;
        let all = question.added.as_ref().map(|it| it.n);
        let before = subject.scenario(&subject.nodes_before, None, question)?;
        let after = subject.scenario(&subject.nodes_after, all, question)?;
        let (before_report, before_watch) = self.live(&before, &question.pool)?;
        let (after_report, mut after_watch) = self.live(&after, &question.pool)?;
        let mut breaks: Vec<BrokenLimit> =
            all_breaks(&before_report, &after_report).into_iter().filter_map(BrokenLimit::of).collect();
        // A site without a limit only shares the trouble of its pool.
        breaks.retain(|it| match &it.name {
            LimitName::Site(site) => subject.setup.sites.contains_key(site),
            LimitName::Pool(_) => true,
        });
        let broken = breaks.iter().find_map(|it| match &it.name {
            LimitName::Pool(pool) if it.is_late() => Some(pool),
            _ => None,
        });
        // Who adds jobs or slots to a pool looks at that; who loses a node looks at what breaks.
        let is_about_pool = question.added.is_some() || question.slots.is_some();
        let pool = match broken {
            Some(broken) if !is_about_pool => broken.clone(),
            _ => question.pool.clone(),
        };
        let (mut before_figures, mut after_figures) =
            (before_watch.figures(&before_report), after_watch.figures(&after_report));
        if pool != question.pool {
            let (report, watch) = self.live(&before, &pool)?;
            before_figures = watch.figures(&report);
            let (report, watch) = self.live(&after, &pool)?;
            after_figures = watch.figures(&report);
            after_watch = watch;
        }
        let is_kept = is_fleet_kept(&before_report, &after_report);
        let n_fit = match all {
            Some(asked) if is_kept => Some(asked),
            Some(asked) => as_far_as_it_goes(most_that_fit(asked, |n| -> Result<bool, NoAnswer> {
                may_search(began)?;
                let scenario = subject.scenario(&subject.nodes_after, Some(n), question)?;
                let (report, _) = self.live(&scenario, &pool)?;
                Ok(is_fleet_kept(&before_report, &report))
            }))?,
            None => None,
        };
        if all.is_some() && n_fit.is_none() {
            notes.push("The search for how many jobs fit took too long and was ended.".to_owned());
        }
        let mut found = super::search::SlotSearch::default();
        if !is_kept && after_figures.in_time < super::search::WANTED {
            let now = SlotShare { slots: after_figures.slots, in_time: after_figures.in_time };
            let (least, most) = self.slot_range(&after, &pool);
            let searched =
                as_far_as_it_goes(enough_slots(now, least, most, |slots| -> Result<f64, NoAnswer> {
                    may_search(began)?;
                    let mut nodes = subject.nodes_after.clone();
                    spread(&mut nodes, &pool, slots);
                    let scenario = subject.scenario(&nodes, all, question)?;
                    let (report, _) = self.live(&scenario, &pool)?;
                    Ok(report.pools.get(&pool).map_or(1.0, in_time))
                }))?;
            if searched.is_none() {
                notes.push("The search for the number of slots took too long and was ended.".to_owned());
            }
            found = searched.unwrap_or_default();
        }
        let used = after_report.pools.iter().filter(|(_, it)| 0 < it.n_jobs).map(|(pool, _)| pool);
        let is_calm = |pool: &&Pool| breaks.iter().all(|it| it.name != LimitName::Pool((*pool).clone()));
        Ok(WhatIfAnswer {
            question: question.clone(),
            window: subject.window,
            calm: used.filter(is_calm).cloned().collect(),
            pool,
            before: before_figures,
            after: after_figures,
            n_runs: after_report.all.n_runs,
            breaks,
            first_late: after_watch.first_late,
            first_old_late: after_watch.first_old_late,
            n_fit,
            enough: found.enough,
            shares: found.tried,
            notes,
            n_simulations: self.n_simulations,
            took: began.elapsed(),
        })
    }

    /// The slots that are in use on average, and room for every job at once: fewer are not enough, more are of no use.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float casts to the nearest u32"
    )]
    fn slot_range(&self, scenario: &Scenario, pool: &Pool) -> (u32, u32) {
        let jobs: Vec<_> = scenario.jobs.iter().map(|(job, _)| job.clone()).collect();
        let n_nodes = u32::try_from(self.subject.nodes_after.len()).unwrap_or(1);
        let needs = needs(&jobs, self.subject.window);
        needs.get(pool).map_or((0, 0), |it| (it.units.floor() as u32, it.cost_all.saturating_mul(n_nodes)))
    }

    fn live(&mut self, scenario: &Scenario, pool: &Pool) -> Result<(Report, PoolWatch), SimulationStop> {
        let mut watch = PoolWatch::new(pool, self.subject.window);
        let mut stop = None;
        let n_simulations = self.n_simulations;
        let mut go_on = |_| match (self.may_go_on)(n_simulations) {
            Ok(()) => ControlFlow::Continue(()),
            Err(why) => {
                stop = Some(why);
                ControlFlow::Break(())
            }
        };
        let report = simulate_while(scenario, &mut go_on, &mut |run| watch.see(run));
        self.n_simulations += 1;
        match report {
            Some(report) => Ok((report, watch)),
            None => Err(stop.unwrap_or(SimulationStop::Cancelled)),
        }
    }
}

/// Whether every pool and site still meets its deadlines.
fn is_fleet_kept(before: &Report, after: &Report) -> bool {
    let share = |group: Option<&evenbeat_whatif::Group>| group.map_or(1.0, in_time);
    let pools = after.pools.iter().all(|(pool, it)| is_kept(share(before.pools.get(pool)), in_time(it)));
    let sites = after.sites.iter().all(|(site, it)| is_kept(share(before.sites.get(site)), in_time(it)));
    pools && sites
}

#[cfg(test)]
mod tests {
    use evenbeat_core::job::{CommandTarget, Job, Target};
    use evenbeat_core::schedule::Schedule;

    use super::super::fleet::ServerFacts;
    use super::*;

    fn pool() -> Pool {
        Pool::default_pool()
    }

    /// Jobs every hour that take five minutes: one slot for twelve of them.
    fn live(n_jobs: usize, nodes: &[(&str, u32)]) -> LiveFleet {
        let job = |n: usize| {
            let target =
                Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
            let schedule = Schedule::Every { interval: Duration::from_hours(1), finish_within: None };
            let mut job = Job::new(format!("job{n:03}").parse().unwrap(), target, schedule);
            job.estimate = Some(Duration::from_mins(5));
            job
        };
        let mut setup = Setup::new();
        setup.runs.spread = 0.0;
        let nodes: NodePools = nodes
            .iter()
            .map(|(name, units)| (name.parse().unwrap(), BTreeMap::from([(pool(), *units)])))
            .collect();
        LiveFleet {
            facts: ServerFacts { n_measured: 0, are_alike: true },
            jobs: (0..n_jobs).map(job).collect(),
            setup,
            nodes,
        }
    }

    fn ask(fields: &[(&str, &str)], fleet: LiveFleet) -> Result<WhatIfAnswer, String> {
        let question =
            WhatIfQuestion::read(|name| fields.iter().find(|(it, _)| *it == name).map(|(_, it)| *it))
                .unwrap();
        let now = "2026-02-04T00:00:00Z".parse().unwrap();
        answer(&question, fleet, now, &mut |_| Ok(())).unwrap().map_err(|it| it.to_string())
    }

    #[test]
    fn what_fits_breaks_nothing() {
        let answer = ask(&[("n", "6"), ("every", "1h"), ("take", "5m")], live(12, &[("n1", 2)])).unwrap();
        assert_eq!((answer.n_fit, answer.breaks.len(), answer.shares.len()), (Some(6), 0, 0));
        assert_eq!((answer.after.slots, answer.after.n_late, answer.n_simulations), (2, 0, 2));
        assert!(answer.before.in_time > 0.999 && answer.calm == [pool()], "{answer:?}");
        // Twelve runs of five minutes fill one slot, eighteen one and a half.
        let mean = |it: &PoolFigures| it.in_use.iter().sum::<f64>() / 96.0;
        assert!((mean(&answer.before) - 1.0).abs() < 0.1 && (mean(&answer.after) - 1.5).abs() < 0.1);
    }

    #[test]
    fn too_many_jobs_break_their_pool_and_the_smallest_fix_is_found() {
        let answer = ask(&[("n", "24"), ("every", "1h"), ("take", "5m")], live(12, &[("n1", 2)])).unwrap();
        assert_eq!(answer.breaks[0].name, LimitName::Pool(pool()), "{:?}", answer.breaks);
        assert_eq!((answer.n_fit, answer.enough), (Some(12), Some(3)));
        assert!(answer.after.in_time < 0.9 && 0 < answer.after.n_late, "{:?}", answer.after);
        let late = answer.first_late.as_ref().unwrap();
        assert!(Duration::ZERO < late.waited && answer.window.contains(late.at), "{late:?}");
        assert!(!super::super::figures::is_added(&answer.first_old_late.unwrap().key));
        let shares: Vec<u32> = answer.shares.iter().map(|it| it.slots).collect();
        assert_eq!(shares, [2, 3]);
    }

    #[test]
    fn a_lost_node_takes_its_slots_along() {
        let nodes = [("n1", 1), ("n2", 2)];
        let answer = ask(&[("lose", "n2")], live(30, &nodes)).unwrap();
        assert_eq!((answer.before.slots, answer.after.slots, answer.n_fit), (3, 1, None));
        assert!(answer.after.in_time < 0.9 && answer.enough == Some(3), "{answer:?}");
        let more = ask(&[("lose", "n2"), ("cap", "3")], live(30, &nodes)).unwrap();
        assert_eq!((more.after.slots, more.breaks.len()), (3, 0), "{:?}", more.breaks);
    }

    #[test]
    fn what_cannot_be_answered_says_so() {
        let check = |fields: &[(&str, &str)], nodes: &[(&str, u32)], expected: &str| {
            assert_eq!(ask(fields, live(3, nodes)).unwrap_err(), expected);
        };
        check(&[("lose", "n1")], &[("n1", 1)], "n1 is the only node: without it, nothing runs.");
        check(&[("lose", "n9")], &[("n1", 1)], "No node n9 takes runs at the moment.");
        check(
            &[("cap", "1")],
            &[],
            "No node takes new runs at the moment, so there is nothing to compare with.",
        );
        check(
            &[("n", "1"), ("every", "1h"), ("take", "5m"), ("pool", "gpu")],
            &[("n1", 1)],
            "No node has slots in pool gpu; say how many there are.",
        );
    }

    #[test]
    fn who_stops_waiting_gets_no_answer() {
        let question = WhatIfQuestion::read(|name| (name == "cap").then_some("1")).unwrap();
        let mut stop = |_| Err(SimulationStop::TooLong);
        let found = answer(&question, live(3, &[("n1", 1)]), Timestamp::UNIX_EPOCH, &mut stop);
        assert_eq!(found.err(), Some(SimulationStop::TooLong));
    }

    #[test]
    fn slots_are_spread_as_they_were() {
        let check = |nodes: &[(&str, u32)], slots: u32, expected: &[u32]| {
            let mut nodes = live(0, nodes).nodes;
            spread(&mut nodes, &pool(), slots);
            let found: Vec<u32> = nodes.values().map(|it| it[&pool()]).collect();
            assert_eq!(found, expected);
        };
        check(&[("a", 4), ("b", 4)], 8, &[4, 4]);
        check(&[("a", 4), ("b", 4)], 9, &[5, 4]);
        check(&[("a", 6), ("b", 2)], 4, &[3, 1]);
        check(&[("a", 6), ("b", 2)], 16, &[12, 4]);
        check(&[("a", 0), ("b", 0)], 5, &[3, 2]);
    }
}

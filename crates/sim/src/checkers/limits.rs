//! Limits hold: of sites, tenants and names by what the store granted, of nodes by what really runs there
//! (B11, B13, J2, L6).
//!
//! A run holds what its job was limited by when it was granted, until it ends in the store. What goes through a broker
//! takes up its node until a worker has taken it up, and nothing of a node from then on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::ids::{JobKey, NodeName, Pool, RunId};
use evenbeat_core::job::{Job, Target};
use evenbeat_core::store::{CounterKey, CounterLimit};
use evenbeat_core::time::{Duration, Timestamp};

use super::finding::{Findings, Violation, shown};
use super::history::SurvivingState;
use super::premises::{Premises, may_run_on};
use super::projection::{Projection, Run, counters_of};
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// Shorter attempts may end before a slow answer comes, also when nothing is broken.
const SURE_ATTEMPT: Duration = Duration::from_millis(500);

/// Watches over limits.
#[derive(Debug)]
pub struct Limits {
    findings: Findings,
    premises: Premises,
    projection: SurvivingState<Projection>,
    /// What began and is not gone, in order.
    live: Vec<RunningTree>,
    /// Jobs as they were when a run of theirs was granted, whether or not the grant was lost.
    granted: BTreeMap<RunId, Arc<Job>>,
    /// Since when the scheduler of a node knows that it shall take nothing.
    drained: BTreeMap<NodeName, RealTime>,
    /// What workers have taken up: that takes nothing up on a node, wherever it was granted.
    taken_up: BTreeSet<RunId>,
    healed_at: Option<RealTime>,
    /// Whose grants came, by then, too late after a drain: they must not begin.
    drained_before: BTreeMap<RunId, RealTime>,
}

#[derive(Debug)]
struct RunningTree {
    run: RunId,
    node: NodeName,
    cost: u32,
}

impl Limits {
    /// Nothing runs yet.
    pub fn new(premises: &Premises) -> Limits {
        Limits {
            findings: Findings::of("limits"),
            premises: premises.clone(),
            projection: SurvivingState::default(),
            live: Vec::new(),
            granted: BTreeMap::new(),
            drained: BTreeMap::new(),
            taken_up: BTreeSet::new(),
            healed_at: None,
            drained_before: BTreeMap::new(),
        }
    }

    fn grant(&mut self, at: RealTime, run: RunId, store_now: Timestamp) {
        let projection = self.projection.now();
        let Some(job) = projection.job_of(run).cloned() else { return };
        let node = projection.runs.get(&run).and_then(|it| projection.nodes.get(&it.session)).cloned();
        if let Some(drained_at) = node.as_ref().and_then(|node| self.drained.get(node)) {
            // A claim that was on its way may still be answered within an attempt.
            let on_its_way = self.premises.timings.spec().attempt * 2;
            if on_its_way < at.since(*drained_at) {
                self.drained_before.insert(run, *drained_at);
            }
        }
        for counter in counters_of(&job) {
            self.look_at_counter(at, run, store_now, &counter, limit_of(&self.premises, &job, &counter));
        }
        self.granted.insert(run, Arc::clone(&job));
        if let (Target::Queue(_), Some(node)) = (&job.target, node) {
            self.look_at_room(at, run, &job, &node);
        }
    }

    fn look_at_counter(
        &mut self,
        at: RealTime,
        run: RunId,
        store_now: Timestamp,
        counter: &CounterKey,
        limit: CounterLimit,
    ) {
        let projection = self.projection.now();
        if let Some(most) = limit.max_open {
            let holds = |it: &&Run| it.job.as_ref().is_some_and(|job| counters_of(job).contains(counter));
            let open: Vec<&JobKey> = projection.open_runs().filter(holds).map(|it| &it.key).collect();
            if usize::try_from(most).is_ok_and(|most| most < open.len()) {
                let what = format!("{} runs are open with run {run}, and {most} may: {open:?}", open.len());
                self.findings.add(at, counter, what);
                return;
            }
        }
        if limit.min_gap.is_none() && limit.max_per_hour.is_none() {
            return;
        }
        // A clock that went back leaves claims in its future; they say nothing about gaps.
        let before: Vec<Timestamp> = projection
            .claims
            .get(counter)
            .into_iter()
            .flatten()
            .filter(|other| **other != run)
            .filter_map(|other| projection.runs.get(other).map(|it| it.store_now))
            .filter(|claimed_at| *claimed_at <= store_now)
            .collect();
        if let (Some(min_gap), Some(last)) = (limit.min_gap, before.iter().max())
            && store_now - *last < min_gap
        {
            let what = format!(
                "run {run} is granted {} after the one before it, at {store_now}; the gap is {min_gap}",
                store_now - *last
            );
            self.findings.add(at, counter, what);
        }
        if let Some(most) = limit.max_per_hour {
            let n_granted = before.iter().filter(|it| store_now - **it < Duration::from_hours(1)).count() + 1;
            if usize::try_from(most).is_ok_and(|most| most < n_granted) {
                let what = format!("run {run} is the {n_granted}th within an hour, and {most} may be");
                self.findings.add(at, counter, what);
            }
        }
    }

    fn begin(&mut self, at: RealTime, run: RunId, key: &JobKey, node: &NodeName, cost: u32) {
        if self.taken_up.contains(&run) {
            return;
        }
        self.live.push(RunningTree { run, node: node.clone(), cost });
        if let Some(drained_at) = self.drained_before.get(&run) {
            let what = format!(
                "run {run} of {key} begins there, granted after the drain was known at {}",
                shown(*drained_at)
            );
            self.findings.add(at, node, what);
        }
        let Some(job) = self.granted.get(&run).cloned() else { return };
        if !may_run_on(&job, node) {
            self.findings.add(at, key, format!("run {run} begins on {node}, where the job may not run"));
        }
        self.look_at_room(at, run, &job, node);
    }

    /// Whether a node can carry all that it has taken, one more run included.
    fn look_at_room(&mut self, at: RealTime, run: RunId, job: &Job, node: &NodeName) {
        let pool = &job.place.pool;
        // What the store no longer has open is a remainder that its scheduler may not know of: it is
        // frozen, or about to be killed.
        let executing = self
            .live
            .iter()
            .filter(|tree| tree.node == *node && self.projection.now().open.contains(&tree.run))
            .filter(|tree| self.granted.get(&tree.run).is_some_and(|it| it.place.pool == *pool))
            .map(|tree| (tree.run, tree.cost));
        let there: Vec<(RunId, u32)> = executing.chain(self.awaiting_worker(at, node, pool)).collect();
        let in_use: u64 = there.iter().map(|(_, cost)| u64::from(*cost)).sum();
        let capacity = self.premises.capacity(node, pool);
        if u64::from(capacity) < in_use {
            let runs: Vec<String> = there.iter().map(|(run, _)| run.to_string()).collect();
            let what = format!(
                "carries {in_use} of pool {pool} with run {run} of {}, and can carry {capacity}: {}",
                job.key,
                runs.join(", ")
            );
            self.findings.add(at, node, what);
        }
    }

    /// What a node has published and no worker has taken up, as far as that can be told from outside: when nothing is
    /// broken, every answer is heard, and before it may be given up.
    fn awaiting_worker(&self, at: RealTime, node: &NodeName, pool: &Pool) -> Vec<(RunId, u32)> {
        let is_settled = self.healed_at.is_some_and(|it| self.premises.settling() < at.since(it));
        if !is_settled || self.premises.timings.spec().attempt < SURE_ATTEMPT {
            return Vec::new();
        }
        let sure_for = self.premises.start_within - self.premises.timings.spec().attempt;
        let projection = self.projection.now();
        let waiting = projection.open.iter().filter_map(|run| {
            let it = projection.runs.get(run)?;
            let job = it.job.as_ref()?;
            let is_awaiting = matches!(job.target, Target::Queue(_)) && !self.taken_up.contains(run);
            let is_sure = at.since(it.at) < sure_for && job.blackouts.is_empty();
            let is_here = projection.nodes.get(&it.session) == Some(node) && job.place.pool == *pool;
            (is_awaiting && is_sure && is_here).then_some((*run, job.place.cost))
        });
        waiting.collect()
    }
}

/// What a counter allows a job.
fn limit_of(premises: &Premises, job: &Job, counter: &CounterKey) -> CounterLimit {
    let limit = match counter {
        CounterKey::Site(site) => premises.site_limits.get(site).copied(),
        CounterKey::Tenant(tenant) => premises.tenant_limits.get(tenant).copied(),
        CounterKey::Name(_) => {
            Some(CounterLimit { max_open: job.max_parallel_of_name, ..CounterLimit::default() })
        }
    };
    limit.unwrap_or_default()
}

impl Checker for Limits {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.projection.see(fact);
        match &fact.what {
            What::Granted { run, store_now, .. } => self.grant(fact.at, *run, *store_now),
            What::Begins { run, key, node, cost, .. } => self.begin(fact.at, *run, key, node, *cost),
            What::TakenUp { run, .. } => {
                self.taken_up.insert(*run);
            }
            What::IsGone { run } => self.live.retain(|tree| tree.run != *run),
            What::Healed => self.healed_at = Some(fact.at),
            What::Drained { node } => {
                self.drained.entry(node.clone()).or_insert(fact.at);
            }
            // A new life of its scheduler does not know that it is draining.
            What::Undrained { node } | What::Joined { node, .. } => {
                self.drained.remove(node);
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
    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every, premises};

    /// Nodes `n1` and `n2` carry 4 each; site `shop` allows 2 at a time, 1 s apart; tenant `acme` 1;
    /// site `slow` 2 an hour.
    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        fact_builder.check(Limits::new(&premises()), expected);
    }

    fn of(key: &str, set: impl Fn(&mut Job)) -> Job {
        let mut job = every(key, 60_000);
        set(&mut job);
        job
    }

    fn shop(key: &str) -> Job {
        of(key, |job| job.site = Some("shop".parse().unwrap()))
    }

    fn told() -> FactBuilder {
        let acme = |key: &str| of(key, |job| job.tenant = Some("acme".parse().unwrap()));
        let fact_builder = ["s1", "s2", "s3"]
            .into_iter()
            .fold(FactBuilder::new(), |fact_builder, key| fact_builder.put(shop(key)));
        fact_builder
            .joined(1, "n1")
            .joined(2, "n2")
            .put(acme("t1"))
            .put(acme("t2"))
            .put(every("free", 60_000))
    }

    #[test]
    fn a_site_has_no_more_runs_than_it_allows() {
        let two = || told().at(1_000).granted(1, "s1", 1).at(2_000).granted(2, "s2", 1).at(3_000);
        check(two().granted(3, "free", 1), &[]);
        check(
            two().granted(3, "s3", 1),
            &["at 3s: site shop: 3 runs are open with run ..3, and 2 may: [s1, s2, s3]"],
        );
        check(two().ended(1).granted(3, "s3", 1), &[]);
        // Neither what a failover took back counts, nor an end that it took back.
        check(two().failed_over(1_500, 2).granted(3, "s3", 1), &[]);
        check(
            two().ended(1).at(4_000).failed_over(2_500, 2).granted(3, "s3", 1),
            &["site shop: 3 runs are open"],
        );
        // A run holds what it took, also after an edit.
        check(two().put(of("s1", |_| {})).granted(3, "s3", 1), &["site shop: 3 runs are open"]);
    }

    #[test]
    fn so_with_tenants_and_names() {
        check(told().granted(1, "t1", 1).ended(1).granted(2, "t2", 1), &[]);
        check(
            told().granted(1, "t1", 1).granted(2, "t2", 1),
            &["tenant acme: 2 runs are open with run ..2, and 1 may: [t1, t2]"],
        );
        let named = |key: &str, most| of(key, |job| job.max_parallel_of_name = most);
        let two = |most| {
            FactBuilder::new()
                .put(named("x@a", Some(1)))
                .put(named("x@b", most))
                .granted(1, "x@a", 1)
                .granted(2, "x@b", 1)
        };
        check(two(Some(1)), &["name x: 2 runs are open with run ..2, and 1 may: [x@a, x@b]"]);
        check(two(Some(2)), &[]);
        check(two(None), &[]);
    }

    #[test]
    fn a_site_keeps_its_gap_by_the_clock_of_the_store() {
        let one = || told().at(1_000).granted(1, "s1", 1).ended(1);
        check(one().at(2_000).granted(2, "s2", 1), &[]);
        check(
            one().at(1_999).granted(2, "s2", 1),
            &[
                "site shop: run ..2 is granted 999ms after the one before it, at 2026-02-04T10:00:01.999Z; the gap is 1s",
            ],
        );
        check(one().store_ahead(5_000).at(1_500).granted(2, "s2", 1), &[]);
        check(one().store_ahead(-5_000).at(7_000).granted(2, "s2", 1), &[]);
        check(one().at(1_100).failed_over(500, 2).at(1_500).granted(2, "s2", 1), &[]);
    }

    #[test]
    fn a_site_counts_an_hour() {
        let slow = || {
            let job = of("h", |job| job.site = Some("slow".parse().unwrap()));
            told().put(job).granted(1, "h", 1).ended(1).at(60_000).granted(2, "h", 2).ended(2)
        };
        check(
            slow().at(3_599_999).granted(3, "h", 3),
            &["site slow: run ..3 is the 3th within an hour, and 2 may be"],
        );
        check(slow().at(3_600_000).granted(3, "h", 3), &[]);
    }

    #[test]
    fn a_node_carries_no_more_than_it_can() {
        let heavy = |key: &str, cost| of(key, |job| job.place.cost = cost);
        let two = |cost| {
            FactBuilder::new()
                .joined(1, "n1")
                .put(heavy("a", 3))
                .put(heavy("b", cost))
                .granted(1, "a", 1)
                .granted(2, "b", 1)
                .begins_with(1, 3)
                .at(5_000)
        };
        check(two(1).begins_with(2, 1), &[]);
        check(
            two(2).begins_with(2, 2),
            &["at 5s: n1: carries 5 of pool default with run ..2 of b, and can carry 4: ..1, ..2"],
        );
        check(two(2).halts(1).begins_with(2, 2), &["n1: carries 5"]);
        check(two(2).gone(1).begins_with(2, 2), &[]);
        check(two(2).ended(1).begins_with(2, 2), &[]);
        check(two(2).begins_as_with(2, "b", 1, "n2", 2), &[]);
        let elsewhere = of("c", |job| job.place.pool = "gpu".parse().unwrap());
        check(
            FactBuilder::new().put(elsewhere).granted(1, "c", 1).begins(1),
            &["n1: carries 1 of pool gpu with run ..1 of c, and can carry 0"],
        );
    }

    #[test]
    fn a_job_begins_only_where_it_may() {
        let only = |nodes: &[&str], not: &[&str]| {
            of("a", |job| {
                job.place.run_on_nodes = nodes.iter().map(|it| it.parse().unwrap()).collect();
                job.place.dont_run_on_nodes = not.iter().map(|it| it.parse().unwrap()).collect();
            })
        };
        let begun = |job| FactBuilder::new().put(job).granted(1, "a", 1).begins(1);
        check(begun(only(&["n1"], &[])), &[]);
        check(begun(only(&["n2"], &[])), &["a: run ..1 begins on n1, where the job may not run"]);
        check(begun(only(&[], &["n1"])), &["a: run ..1 begins on n1, where the job may not run"]);
        check(begun(only(&["n1"], &["n1"])), &["a: run ..1 begins on n1, where the job may not run"]);
        check(begun(only(&[], &["n2"])), &[]);
    }

    #[test]
    fn a_drained_node_takes_nothing_new() {
        let drained = || told().at(10_000).drained("n1");
        check(drained().at(11_600).granted(1, "free", 1).begins(1), &[]);
        check(
            drained().at(11_601).granted(1, "free", 1).begins(1),
            &["n1: run ..1 of free begins there, granted after the drain was known at 10s"],
        );
        check(drained().at(60_000).granted(1, "free", 1).at(61_000).taken_back(1), &[]);
        check(drained().at(20_000).undrained("n1").granted(1, "free", 1).begins(1), &[]);
        check(drained().at(20_000).joined(3, "n1").granted(1, "free", 1).begins(1), &[]);
        check(told().granted(1, "free", 1).at(10_000).drained("n1").at(20_000).begins(1), &[]);
    }

    #[test]
    fn what_goes_through_a_broker_takes_up_its_node_until_a_worker_has_it() {
        let queued = |key: &str| {
            of(key, |job| {
                job.target = Target::Queue(evenbeat_core::job::QueueTarget::default());
                job.place.cost = 3;
            })
        };
        // FAST: all is settled 107 s after the last fault. A worker is waited for for 8 s.
        let told = || {
            let told = FactBuilder::new().put(queued("a")).put(queued("b")).put(every("c", 60_000));
            told.joined(1, "n1").healed().at(200_000).granted(1, "a", 5).at(203_000)
        };
        check(
            told().granted(2, "b", 5),
            &["n1: carries 6 of pool default with run ..2 of b, and can carry 4: ..1, ..2"],
        );
        check(told().granted(2, "c", 5).begins_with(2, 2), &["n1: carries 5 of pool default"]);
        check(told().taken_up(1, 9, "w1").begins_as_with(1, "a", 5, "w1", 3).granted(2, "b", 5), &[]);
        // It may have been given up by now, and the store not know it yet.
        check(told().at(207_900).granted(2, "b", 5), &[]);
        // While something is broken, an answer may be lost.
        check(told().fault().granted(2, "c", 5).begins_with(2, 1), &[]);
    }
}

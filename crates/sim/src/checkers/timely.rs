//! Nothing starts before its time or inside a blackout, and what a blackout finds running is ended (B2, B8).
//!
//! A request that arrives long after it was given up may still be granted, inside a blackout by then.
//! No node starts it, so what counts is what begins. And a node uses the store's clock as it last saw
//! it: right at the edge of a blackout, or right after the clock was set, it may be off.

use std::collections::BTreeMap;

use evenbeat_core::ids::RunId;
use evenbeat_core::time::{Duration, Timestamp};

use super::clock::StoreClock;
use super::finding::{Findings, Violation, shown};
use super::history::SurvivingState;
use super::hours::blackout_around;
use super::premises::Premises;
use super::projection::{Projection, Run};
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// Watches over starting times and blackouts.
#[derive(Debug)]
pub struct Timeliness {
    findings: Findings,
    projection: SurvivingState<Projection>,
    clock: StoreClock,
    /// Every grant, with what was known then; a failover does not take it back from the process.
    granted: BTreeMap<RunId, (Run, bool)>,
    /// What begun and is not gone, and since when it was seen inside a blackout with nothing broken.
    live: BTreeMap<RunId, Option<RealTime>>,
    /// Since when nothing is broken: from the beginning until the first fault, and from the last on.
    calm_since: Option<RealTime>,
    edge: Duration,
    /// How long it may take after the last fault until every node knows what runs where.
    recovery: Duration,
    patience: Duration,
}

impl Timeliness {
    /// Nothing has started yet.
    pub fn new(premises: &Premises) -> Timeliness {
        let spec = premises.timings.spec();
        Timeliness {
            findings: Findings::of("timely"),
            projection: SurvivingState::default(),
            clock: StoreClock::default(),
            granted: BTreeMap::new(),
            live: BTreeMap::new(),
            calm_since: Some(RealTime(0)),
            edge: spec.self_fence + spec.attempt,
            recovery: spec.window * 2,
            patience: spec.heartbeat * 2 + spec.self_fence + spec.stop_bound * 2 + Duration::from_secs(5),
        }
    }

    fn grant(&mut self, at: RealTime, run: RunId, due_at: Timestamp, attempt: u32, store_now: Timestamp) {
        let Some(granted) = self.projection.now().runs.get(&run).cloned() else { return };
        // What has had a run was due by then; the clock may have gone back since.
        if store_now < due_at && attempt == 1 {
            let what = format!("run {run} is granted at {store_now}, before it is due at {due_at}");
            self.findings.add(at, &granted.key, what);
        }
        let is_clock_sure = !self.clock.has_stepped_within(self.edge, at);
        self.granted.insert(run, (granted, is_clock_sure));
    }

    fn begin(&mut self, at: RealTime, run: RunId) {
        self.live.insert(run, None);
        let Some((granted, true)) = self.granted.get(&run) else { return };
        let Some(job) = &granted.job else { return };
        let Some((start, end)) = blackout_around(job, granted.store_now) else { return };
        let is_at_edge = granted.store_now - start <= self.edge || end - granted.store_now <= self.edge;
        if !is_at_edge {
            let what = format!(
                "run {run} begins, granted at {} inside the blackout from {start} to {end}",
                granted.store_now
            );
            self.findings.add(at, &granted.key, what);
        }
    }

    /// Whether something has executed inside a blackout for too long.
    fn look(&mut self, at: RealTime) {
        let (Some(calm_since), Some(store_now)) = (self.calm_since, self.clock.at(at)) else { return };
        if at.since(calm_since) < self.recovery {
            return;
        }
        for (run, inside_since) in &mut self.live {
            let Some((granted, _)) = self.granted.get(run) else { continue };
            // The definition of now: an edit may bring a blackout.
            let Some(defined) = self.projection.now().jobs.get(&granted.key) else { continue };
            let Some((start, end)) = blackout_around(&defined.job, store_now) else {
                *inside_since = None;
                continue;
            };
            let since = *inside_since.get_or_insert(at);
            if self.patience < at.since(since) {
                let what = format!(
                    "run {run} still executes {} after it was found inside the blackout from {start} to {end}; all was well since {}",
                    at.since(since),
                    shown(calm_since)
                );
                self.findings.add(at, &granted.key, what);
                // Said once.
                *inside_since = Some(RealTime(i64::MAX));
            }
        }
    }
}

impl Checker for Timeliness {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.projection.see(fact);
        self.clock.see(fact);
        match &fact.what {
            What::Granted { run, due_at, attempt, store_now, .. } => {
                self.grant(fact.at, *run, *due_at, *attempt, *store_now);
            }
            What::Begins { run, .. } => self.begin(fact.at, *run),
            What::IsGone { run } => {
                self.live.remove(run);
            }
            What::Healed => self.calm_since = Some(fact.at),
            What::FaultBegan { .. } => self.calm_since = None,
            _ => {}
        }
        self.look(fact.at);
    }

    fn end(&mut self, end: &WorldEnd<'_>) {
        self.look(end.now);
    }

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::job::Job;
    use evenbeat_core::run::Trigger;

    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every, premises, with_blackout};

    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        // FAST: the edge is 5.8 s, patience 16 s. The tale begins at 10:00.
        fact_builder.check(Timeliness::new(&premises()), expected);
    }

    fn quiet() -> Job {
        with_blackout(every("a", 60_000), "10:05", "10:10", &["wed"])
    }

    fn told() -> FactBuilder {
        FactBuilder::new().put(quiet())
    }

    #[test]
    fn nothing_is_granted_before_it_is_due() {
        check(told().at(60_000).granted_for(1, "a", 60_000, Trigger::Scheduler), &[]);
        check(
            told().at(59_999).granted_for(1, "a", 60_000, Trigger::Scheduler),
            &[
                "at 59s999ms: a: run ..1 is granted at 2026-02-04T10:00:59.999Z, before it is due at 2026-02-04T10:01:00Z",
            ],
        );
        check(
            told().store_ahead(-10_000).at(60_000).granted_for(1, "a", 60_000, Trigger::Scheduler),
            &["before it is due"],
        );
        check(told().at(1_000).granted_for(1, "a", 60_000, Trigger::Manual), &["before it is due"]);
        check(told().attempt(2).at(1_000).granted_for(1, "a", 60_000, Trigger::Retry), &[]);
    }

    #[test]
    fn nothing_begins_inside_a_blackout() {
        let granted = |at| told().at(at).granted_for(1, "a", 0, Trigger::Scheduler).begins(1).gone(1);
        check(granted(299_000), &[]);
        check(granted(305_000), &[]);
        check(
            granted(310_000),
            &[
                "at 5m10s: a: run ..1 begins, granted at 2026-02-04T10:05:10Z inside the blackout from 2026-02-04T10:05:00Z to 2026-02-04T10:10:00Z",
            ],
        );
        check(granted(500_000), &["begins, granted at"]);
        check(granted(599_000), &[]);
        check(granted(600_000), &[]);
        // A claim that arrived late and was never started.
        check(told().at(400_000).granted_for(1, "a", 0, Trigger::Scheduler).at(401_000).taken_back(1), &[]);
        // Also if the grant is lost.
        check(
            told()
                .at(400_000)
                .granted_for(1, "a", 0, Trigger::Scheduler)
                .at(400_100)
                .failed_over(399_000, 2)
                .begins(1),
            &["begins, granted at"],
        );
    }

    #[test]
    fn a_clock_that_was_just_set_is_not_held_against_anybody() {
        let set = || told().at(1_000).put(every("b", 60_000)).store_ahead(400_000);
        check(set().at(2_000).granted_for(1, "a", 0, Trigger::Scheduler).begins(1).gone(1), &[]);
        check(
            set()
                .at(2_000)
                .put(every("b", 9_000))
                .at(9_000)
                .granted_for(1, "a", 0, Trigger::Scheduler)
                .begins(1)
                .gone(1),
            &["begins, granted at"],
        );
    }

    #[test]
    fn what_a_blackout_finds_is_ended_once_all_is_well() {
        let running = || told().at(270_000).granted_for(1, "a", 0, Trigger::Scheduler).begins(1).healed();
        check(running().at(300_000).beat(1).at(316_000).beat(1), &[]);
        check(running().at(300_000).beat(1).at(310_000).gone(1).at(330_000).beat(1), &[]);
        check(
            running().at(300_000).beat(1).at(316_001).beat(1).at(320_000).beat(1),
            &["at 5m16s1ms: a: run ..1 still executes 16s1ms after it was found inside the blackout"],
        );
        check(running().at(400_000).beat(1).at(416_001).beat(1), &["still executes 16s1ms after"]);
        check(running().at(590_000).beat(1).at(601_000).beat(1).at(700_000).beat(1), &[]);
        // An edit brings the blackout.
        let edited = |job| {
            FactBuilder::new()
                .put(every("a", 60_000))
                .at(270_000)
                .granted(1, "a", 5)
                .begins(1)
                .healed()
                .at(320_000)
                .put(job)
                .at(337_000)
                .beat(1)
        };
        check(edited(every("a", 60_000)), &[]);
        check(edited(quiet()), &["still executes 17s after"]);
        // Right after the last fault no node knows yet what runs where.
        let late =
            || told().at(270_000).granted_for(1, "a", 0, Trigger::Scheduler).begins(1).at(400_000).healed();
        check(late().at(423_000).beat(1).at(439_000).beat(1), &[]);
        check(late().at(424_000).beat(1).at(440_001).beat(1), &["still executes 16s1ms after"]);
        // While something is broken nothing is promised; before that it is.
        let unhealed = |fact_builder: FactBuilder| {
            fact_builder
                .at(270_000)
                .granted_for(1, "a", 0, Trigger::Scheduler)
                .begins(1)
                .at(300_000)
                .beat(1)
                .at(400_000)
                .beat(1)
        };
        check(unhealed(told().fault()), &[]);
        check(unhealed(told()), &["still executes 1m40s after"]);
    }
}

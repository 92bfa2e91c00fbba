//! A job keeps its rhythm: what the schedule starts is due on the grid of its placement, and only people
//! move that (A5, A7).

use std::collections::BTreeSet;

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::run::Trigger;
use evenbeat_core::time::Timestamp;

use super::finding::{Findings, Violation};
use super::history::SurvivingState;
use super::projection::Projection;
use super::segments::Segments;
use super::{Checker, WorldEnd, store_rows};
use crate::fact::{Fact, RealTime, What};

/// Watches over the rhythm.
#[derive(Debug)]
pub struct RhythmKeeping {
    findings: Findings,
    projection: SurvivingState<Projection>,
    segments: SurvivingState<Segments>,
    /// What was granted before, of which job and for when.
    granted: BTreeSet<(JobKey, Timestamp)>,
}

impl RhythmKeeping {
    /// Nothing is placed yet.
    pub fn new() -> RhythmKeeping {
        RhythmKeeping {
            findings: Findings::of("rhythm"),
            projection: SurvivingState::default(),
            segments: SurvivingState::default(),
            granted: BTreeSet::new(),
        }
    }

    fn grant(&mut self, at: RealTime, run: RunId, key: &JobKey, due_at: Timestamp, trigger: Trigger) {
        let segments = self.segments.now();
        let is_kept = match trigger {
            Trigger::Manual | Trigger::Backfill => return,
            // It may go on under a placement that has been replaced since its first run.
            Trigger::Retry => {
                segments.of.get(key).is_some_and(|all| all.iter().any(|it| it.grid.has(due_at)))
            }
            // So may one that was granted, given back as never started, and comes again.
            Trigger::Scheduler | Trigger::Catchup => {
                self.granted.contains(&(key.clone(), due_at))
                    || segments.open(key).is_some_and(|it| it.grid.has(due_at))
            }
        };
        if is_kept {
            self.granted.insert((key.clone(), due_at));
        }
        if !is_kept {
            let placement = self.projection.now().jobs.get(key).and_then(|it| it.placement.as_ref());
            let placed = placement
                .map_or("it is not placed".to_owned(), |it| format!("it is placed at {}", it.anchor_at));
            let what = format!("run {run} ({trigger}) serves {due_at}, which is no occurrence: {placed}");
            self.findings.add(at, key, what);
        }
    }
}

impl Default for RhythmKeeping {
    fn default() -> RhythmKeeping {
        RhythmKeeping::new()
    }
}

impl Checker for RhythmKeeping {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.projection.see(fact);
        self.segments.see(fact);
        if let What::Granted { run, key, due_at, trigger, .. } = &fact.what {
            self.grant(fact.at, *run, key, *due_at, *trigger);
        }
    }

    fn end(&mut self, end: &WorldEnd<'_>) {
        for row in store_rows::jobs(end.store) {
            let put = self.projection.now().jobs.get(&row.job.key).map(|it| &it.placement);
            if put.is_some_and(|put| *put != row.state.placement) {
                let what = format!("was put at {put:?}, and lies at {:?}", row.state.placement);
                self.findings.add(end.now, &row.job.key, what);
            }
        }
    }

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, cron, every, fresh, manual};
    use crate::checkers::fake_store::FakeStore;

    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        fact_builder.check(RhythmKeeping::new(), expected);
    }

    #[test]
    fn what_is_served_lies_on_the_grid() {
        let told = || FactBuilder::new().put(every("a", 60_000));
        check(told().granted_for(1, "a", 120_000, Trigger::Scheduler), &[]);
        check(told().granted_for(1, "a", 120_001, Trigger::Manual), &[]);
        check(
            told().at(121_000).granted_for(1, "a", 120_001, Trigger::Scheduler),
            &[
                "at 2m1s: a: run ..1 (scheduler) serves 2026-02-04T10:02:00.001Z, which is no occurrence: it is placed at",
            ],
        );
        check(told().granted_for(1, "a", 120_001, Trigger::Catchup), &["which is no occurrence"]);
        check(told().granted_for(1, "a", 120_001, Trigger::Retry), &["which is no occurrence"]);
        check(
            FactBuilder::new().put(cron("a", "*/2 * * * *")).granted_for(1, "a", 180_000, Trigger::Scheduler),
            &["no occurrence"],
        );
        check(
            FactBuilder::new().put(manual("a")).granted_for(1, "a", 180_000, Trigger::Scheduler),
            &["no occurrence"],
        );
        check(
            FactBuilder::new().put(fresh("a", 60_000, 1_000)).granted_for(1, "a", 1_234, Trigger::Scheduler),
            &[],
        );
    }

    #[test]
    fn a_new_placement_moves_it_until_a_failover_moves_it_back() {
        let moved =
            || FactBuilder::new().put(every("a", 60_000)).at(90_000).put_at(every("a", 60_000), 100_000);
        check(moved().granted_for(1, "a", 160_000, Trigger::Scheduler), &[]);
        check(moved().granted_for(1, "a", 120_000, Trigger::Scheduler), &["which is no occurrence"]);
        check(moved().granted_for(1, "a", 60_000, Trigger::Retry), &[]);
        check(
            moved().at(91_000).failed_over(80_000, 2).granted_for(1, "a", 120_000, Trigger::Scheduler),
            &[],
        );
        check(
            moved().at(91_000).failed_over(80_000, 2).granted_for(1, "a", 160_000, Trigger::Scheduler),
            &["which is no occurrence"],
        );
    }

    #[test]
    fn nobody_else_moves_it() {
        let fake_store = |anchor| FakeStore::default().job(every("a", 60_000), anchor, Some(anchor));
        let told = || FactBuilder::new().put_at(every("a", 60_000), 500);
        told().check_with(&fake_store(500), RhythmKeeping::new(), &[]);
        told().check_with(&fake_store(501), RhythmKeeping::new(), &["a: was put at"]);
    }
}

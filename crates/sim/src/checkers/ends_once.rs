//! A run leaves the open phases exactly once (I4).
//!
//! In the history that survived: a run whose end was lost with a failover is open again, and ends again.
//! When the world has ended, the rows of the store must say the same as that history.

use std::collections::BTreeMap;

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::RunPhase;

use super::finding::{Findings, Violation, shown};
use super::history::SurvivingState;
use super::projection::Projection;
use super::{Checker, WorldEnd, store_rows};
use crate::fact::{Fact, What};

/// Watches over single ends.
#[derive(Debug)]
pub struct EndsOnce {
    findings: Findings,
    projection: SurvivingState<Projection>,
}

impl EndsOnce {
    /// Nothing was granted yet.
    pub fn new() -> EndsOnce {
        EndsOnce { findings: Findings::of("ends_once"), projection: SurvivingState::default() }
    }
}

impl Default for EndsOnce {
    fn default() -> EndsOnce {
        EndsOnce::new()
    }
}

impl Checker for EndsOnce {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        match &fact.what {
            What::Granted { run, key, .. } => {
                if let Some(before) = self.projection.now().runs.get(run) {
                    let what = format!("run {run} is granted again; it was granted at {}", shown(before.at));
                    self.findings.add(fact.at, key, what);
                }
            }
            What::RunEnded { run, key, .. } => match self.projection.now().runs.get(run) {
                None => {
                    self.findings.add(fact.at, key, format!("run {run} ends, and no grant of it survives"));
                }
                Some(granted) => {
                    if let Some((ended_at, _)) = granted.ended {
                        let what = format!("run {run} ends a second time; it ended at {}", shown(ended_at));
                        self.findings.add(fact.at, key, what);
                    }
                    if granted.key != *key {
                        let what =
                            format!("run {run} ends as one of {key}, but was granted to {}", granted.key);
                        self.findings.add(fact.at, key, what);
                    }
                }
            },
            _ => {}
        }
        self.projection.see(fact);
    }

    fn end(&mut self, end: &WorldEnd<'_>) {
        let rows = store_rows::runs(end.store);
        let phases: BTreeMap<RunId, RunPhase> = rows.iter().map(|row| (row.run, row.phase)).collect();
        for (run, granted) in &self.projection.now().runs {
            let outcome = match phases.get(run) {
                Some(RunPhase::Ended(outcome)) => Some(*outcome),
                _ => None,
            };
            let what = match (granted.ended, phases.get(run)) {
                (Some((ended_at, said)), Some(_)) => match (said, outcome) {
                    (_, None) => {
                        format!("run {run} ended at {}, and the store still has it open", shown(ended_at))
                    }
                    // A result that came too late is kept, and never counts.
                    (Some(Outcome::Lost), Some(Outcome::Superseded)) | (None, _) => continue,
                    (Some(said), Some(kept)) if said == kept => continue,
                    (Some(said), Some(kept)) => {
                        format!(
                            "run {run} ended {said} at {}, and the store has it as {kept}",
                            shown(ended_at)
                        )
                    }
                },
                // One that was taken back as never started need not leave a row.
                (Some(_), None) => continue,
                (None, Some(_)) if outcome.is_none() => continue,
                (None, Some(_)) => format!("run {run} is over in the store, and nobody ended it"),
                (None, None) => format!(
                    "run {run} was granted at {} and never ended, and the store does not know it",
                    shown(granted.at)
                ),
            };
            self.findings.add(end.now, &granted.key, what);
        }
        for row in rows {
            if !self.projection.now().runs.contains_key(&row.run) {
                let what = format!("run {} is in the store, and no grant of it survives", row.run);
                self.findings.add(end.now, &row.key, what);
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
    use crate::checkers::fact_builder::{FactBuilder, every};
    use crate::checkers::fake_store::FakeStore;

    #[track_caller]
    fn check(fact_builder: FactBuilder, fake_store: &FakeStore, expected: &[&str]) {
        fact_builder.check_with(fake_store, EndsOnce::new(), expected);
    }

    fn told() -> FactBuilder {
        FactBuilder::new().put(every("a", 60_000)).at(1_000).granted(1, "a", 5)
    }

    fn ended() -> FakeStore {
        FakeStore::default().run(1, "a", 0, RunPhase::Ended(Outcome::Succeeded))
    }

    fn open() -> FakeStore {
        FakeStore::default().run(1, "a", 0, RunPhase::Running)
    }

    #[test]
    fn one_end_is_enough() {
        check(told(), &open(), &[]);
        check(told().at(2_000).ended(1), &ended(), &[]);
        check(told().at(2_000).taken_back(1), &FakeStore::default(), &[]);
    }

    #[test]
    fn an_end_that_was_lost_comes_again() {
        check(told().at(2_000).ended(1).at(3_000).failed_over(1_500, 2).at(4_000).ended(1), &ended(), &[]);
        check(told().at(2_000).ended(1).at(3_000).failed_over(1_500, 2), &open(), &[]);
        check(told().at(3_000).failed_over(500, 2), &FakeStore::default(), &[]);
    }

    #[test]
    fn a_second_end_is_caught() {
        check(
            told().at(2_000).ended(1).at(3_000).ended(1),
            &ended(),
            &["at 3s: a: run ..1 ends a second time; it ended at 2s"],
        );
        check(
            told().at(2_000).ended(1).at(3_000).failed_over(2_500, 2).at(4_000).released(1),
            &FakeStore::default().run(1, "a", 0, RunPhase::Ended(Outcome::Lost)),
            &["at 4s: a: run ..1 ends a second time; it ended at 2s"],
        );
        check(
            told().at(3_000).failed_over(500, 2).at(4_000).ended(1),
            &FakeStore::default(),
            &["at 4s: a: run ..1 ends, and no grant of it survives"],
        );
        check(
            told().at(2_000).granted(1, "a", 6),
            &open(),
            &["at 2s: a: run ..1 is granted again; it was granted at 1s"],
        );
        check(
            told().at(2_000).ended_as(1, "b"),
            &ended(),
            &["b: run ..1 ends as one of b, but was granted to a"],
        );
    }

    #[test]
    fn the_store_must_say_the_same() {
        check(
            told().at(2_000).ended(1),
            &open(),
            &["a: run ..1 ended at 2s, and the store still has it open"],
        );
        check(told(), &ended(), &["a: run ..1 is over in the store, and nobody ended it"]);
        check(
            told(),
            &FakeStore::default(),
            &["a: run ..1 was granted at 1s and never ended, and the store does not know it"],
        );
        check(
            told().at(3_000).failed_over(500, 2),
            &ended(),
            &["a: run ..1 is in the store, and no grant of it survives"],
        );
        let as_now = |outcome| FakeStore::default().run(1, "a", 0, RunPhase::Ended(outcome));
        check(told().at(2_000).released(1), &as_now(Outcome::Lost), &[]);
        check(told().at(2_000).released(1), &as_now(Outcome::Superseded), &[]);
        check(
            told().at(2_000).released(1),
            &as_now(Outcome::Succeeded),
            &["a: run ..1 ended lost at 2s, and the store has it as succeeded"],
        );
        check(told().at(2_000).failed(1), &as_now(Outcome::Succeeded), &["a: run ..1 ended failed at 2s"]);
    }
}

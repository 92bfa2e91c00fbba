//! At no instant do two process trees of one job execute (L1).
//!
//! Only what executes counts here, whatever the store says. Runs of a job that accepts a second copy
//! (`best_effort`) are left out. Where runs may overlap, each run may have as many others beside it as
//! the definition under which it was granted allows; of those that were granted before it, that is, for
//! of later ones it knows nothing.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, JobKey, NodeName, RunId};
use evenbeat_core::job::Exclusive;

use super::finding::{Findings, Violation, shown};
use super::history::SurvivingState;
use super::premises::most_at_once;
use super::projection::Projection;
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// Watches over one copy.
#[derive(Debug)]
pub struct OneCopy {
    findings: Findings,
    projection: SurvivingState<Projection>,
    /// What was promised to each run when it was granted. A failover does not take it back: the process has
    /// heard it.
    promises: BTreeMap<RunId, Promise>,
    trees: BTreeMap<RunId, ProcessTree>,
    executing: BTreeMap<JobKey, BTreeSet<RunId>>,
    /// Also of those that never began: they must not begin later.
    gone: BTreeMap<RunId, RealTime>,
}

#[derive(Clone, Copy, Debug)]
struct Promise {
    most: usize,
    is_strict: bool,
}

#[derive(Debug)]
struct ProcessTree {
    key: JobKey,
    fence: Fence,
    node: NodeName,
    began_at: RealTime,
}

impl OneCopy {
    /// Nothing executes yet.
    pub fn new() -> OneCopy {
        OneCopy {
            findings: Findings::of("one_copy"),
            projection: SurvivingState::default(),
            promises: BTreeMap::new(),
            trees: BTreeMap::new(),
            executing: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    fn executes(&mut self, at: RealTime, run: RunId) {
        let Some(tree) = self.trees.get(&run) else {
            self.findings.add(at, &run, "goes on, and never began".to_owned());
            return;
        };
        if let Some(gone_at) = self.gone.get(&run) {
            let what = format!("run {run} executes after it was gone at {}", shown(*gone_at));
            self.findings.add(at, &tree.key, what);
        }
        let key = tree.key.clone();
        self.executing.entry(key.clone()).or_default().insert(run);
        self.compare(at, &key);
    }

    /// Whether each of them was promised room beside those that were granted before it.
    fn compare(&mut self, at: RealTime, key: &JobKey) {
        let Some(runs) = self.executing.get(key) else { return };
        let promised =
            |run: &RunId| self.promises.get(run).copied().unwrap_or(Promise { most: 1, is_strict: true });
        let mut strict: Vec<(Fence, RunId)> = runs
            .iter()
            .filter(|run| promised(run).is_strict)
            .filter_map(|run| Some((self.trees.get(run)?.fence, *run)))
            .collect();
        strict.sort();
        let crowded = strict
            .iter()
            .enumerate()
            .find(|(idx, (_, run))| promised(run).most < idx + 1)
            .map(|(idx, _)| idx);
        let Some(idx) = crowded else { return };
        let together: Vec<String> = strict
            .iter()
            .take(idx + 1)
            .filter_map(|(fence, run)| {
                let tree = self.trees.get(run)?;
                Some(format!(
                    "run {run} (fence {}, on {} since {})",
                    fence.0,
                    tree.node,
                    shown(tree.began_at)
                ))
            })
            .collect();
        let what = format!("{} copies execute at once: {}", together.len(), together.join(" and "));
        self.findings.add(at, key, what);
    }
}

impl Default for OneCopy {
    fn default() -> OneCopy {
        OneCopy::new()
    }
}

impl Checker for OneCopy {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.projection.see(fact);
        match &fact.what {
            What::Granted { run, .. } => {
                if let Some(job) = self.projection.now().job_of(*run) {
                    let is_strict = job.exclusive == Exclusive::Strict;
                    self.promises.insert(*run, Promise { most: most_at_once(job), is_strict });
                }
            }
            What::Begins { run, key, fence, node, .. } => {
                let tree =
                    ProcessTree { key: key.clone(), fence: *fence, node: node.clone(), began_at: fact.at };
                if let Some(before) = self.trees.insert(*run, tree) {
                    let what = format!(
                        "run {run} begins a second time; it first began at {}",
                        shown(before.began_at)
                    );
                    self.findings.add(fact.at, key, what);
                }
                self.executes(fact.at, *run);
            }
            What::GoesOn { run } => self.executes(fact.at, *run),
            What::Halts { run } | What::IsGone { run } => {
                if matches!(fact.what, What::IsGone { .. }) {
                    self.gone.insert(*run, fact.at);
                }
                if let Some(tree) = self.trees.get(run) {
                    self.executing.entry(tree.key.clone()).or_default().remove(run);
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
    use evenbeat_core::job::Overlap;

    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every};

    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        fact_builder.check(OneCopy::new(), expected);
    }

    fn told(overlap: Overlap) -> FactBuilder {
        let mut job = every("a", 60_000);
        job.overlap = overlap;
        FactBuilder::new().put(job)
    }

    #[test]
    fn one_after_the_other_is_one_at_a_time() {
        check(
            told(Overlap::Skip)
                .at(1_000)
                .granted(1, "a", 5)
                .begins(1)
                .at(2_000)
                .gone(1)
                .granted(2, "a", 6)
                .begins(2),
            &[],
        );
        // Also while the other is frozen.
        check(
            told(Overlap::Skip)
                .at(1_000)
                .granted(1, "a", 5)
                .begins(1)
                .at(2_000)
                .halts(1)
                .granted(2, "a", 6)
                .begins(2),
            &[],
        );
        check(
            FactBuilder::new()
                .put(every("a", 9))
                .put(every("b", 9))
                .granted(1, "a", 5)
                .begins(1)
                .granted(2, "b", 5)
                .begins(2),
            &[],
        );
    }

    #[test]
    fn a_second_copy_is_caught() {
        check(
            told(Overlap::Skip).at(1_000).granted(1, "a", 5).begins(1).at(2_000).granted(2, "a", 6).begins(2),
            &[
                "at 2s: a: 2 copies execute at once: run ..1 (fence 5, on n1 since 1s) and run ..2 (fence 6, on n1 since 2s)",
            ],
        );
        check(
            told(Overlap::Queue)
                .at(1_000)
                .granted(1, "a", 5)
                .begins(1)
                .halts(1)
                .at(2_000)
                .granted(2, "a", 6)
                .begins(2)
                .at(3_000)
                .goes_on(1),
            &["at 3s: a: 2 copies execute at once"],
        );
        // A failover loses the grant, not the process.
        check(
            told(Overlap::Skip)
                .at(1_000)
                .granted(1, "a", 5)
                .begins(1)
                .at(2_000)
                .failed_over(500, 2)
                .at(3_000)
                .granted(2, "a", 1 << 33)
                .begins(2),
            &["at 3s: a: 2 copies execute at once"],
        );
    }

    #[test]
    fn what_is_gone_or_has_begun_does_not_begin_again() {
        let one = || told(Overlap::Skip).at(1_000).granted(1, "a", 5).begins(1).at(2_000).gone(1).at(3_000);
        check(one().goes_on(1), &["at 3s: a: run ..1 executes after it was gone at 2s"]);
        check(
            one().begins(1),
            &[
                "at 3s: a: run ..1 begins a second time; it first began at 1s",
                "at 3s: a: run ..1 executes after it was gone at 2s",
            ],
        );
        // It was revoked before it began.
        check(
            told(Overlap::Skip).granted(1, "a", 5).at(2_000).gone(1).at(3_000).begins(1),
            &["at 3s: a: run ..1 executes after it was gone at 2s"],
        );
        check(FactBuilder::new().at(1_000).goes_on(9), &["goes on, and never began"]);
    }

    #[test]
    fn runs_that_may_overlap_have_so_much_room_as_was_promised() {
        let two = || {
            told(Overlap::Allow { max_parallel: 2 })
                .at(1_000)
                .granted(1, "a", 5)
                .begins(1)
                .granted(2, "a", 6)
                .begins(2)
        };
        check(two(), &[]);
        check(two().at(2_000).granted(3, "a", 7).begins(3), &["at 2s: a: 3 copies execute at once"]);
        // The second was granted while there was to be only one, the first is of an earlier time.
        check(
            told(Overlap::Allow { max_parallel: 2 })
                .granted(1, "a", 5)
                .begins(1)
                .put(every("a", 9))
                .granted(2, "a", 6)
                .begins(2),
            &["2 copies execute at once"],
        );
        // The other way round the second was promised that it may.
        let mut parallel = every("a", 9);
        parallel.overlap = Overlap::Allow { max_parallel: 2 };
        check(
            told(Overlap::Skip)
                .granted(1, "a", 5)
                .begins(1)
                .halts(1)
                .put(parallel)
                .granted(2, "a", 6)
                .begins(2)
                .goes_on(1),
            &[],
        );
    }

    #[test]
    fn a_job_that_accepts_copies_is_left_alone() {
        let mut job = every("a", 60_000);
        job.exclusive = Exclusive::BestEffort;
        check(FactBuilder::new().put(job).granted(1, "a", 5).begins(1).granted(2, "a", 6).begins(2), &[]);
    }
}

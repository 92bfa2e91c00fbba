//! The fences of a job grow with every grant, for ever (I1).
//!
//! A grant counts although a failover has taken it back: a process may have got its fence, and shown
//! it to something outside that compares fences. A removed job that comes back goes on from its last one.

use std::collections::BTreeMap;

use evenbeat_core::ids::{Fence, JobKey, RunId};
use evenbeat_core::job::Exclusive;

use super::finding::{Findings, Violation, shown};
use super::history::SurvivingState;
use super::premises::most_at_once;
use super::projection::Projection;
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// Watches over growing fences.
#[derive(Debug)]
pub struct FencesGrow {
    findings: Findings,
    projection: SurvivingState<Projection>,
    granted: BTreeMap<RunId, GrantedFence>,
    greatest: BTreeMap<JobKey, (Fence, RealTime)>,
    last_begun: BTreeMap<JobKey, (Fence, RealTime)>,
}

#[derive(Clone, Debug)]
struct GrantedFence {
    key: JobKey,
    fence: Fence,
    /// Whether it begins before any later one may: not so where copies are allowed.
    is_alone: bool,
}

impl FencesGrow {
    /// Nothing was granted yet.
    pub fn new() -> FencesGrow {
        FencesGrow {
            findings: Findings::of("fences_grow"),
            projection: SurvivingState::default(),
            granted: BTreeMap::new(),
            greatest: BTreeMap::new(),
            last_begun: BTreeMap::new(),
        }
    }

    fn grant(&mut self, at: RealTime, run: RunId, key: &JobKey, fence: Fence) {
        if let Some((greatest, granted_at)) = self.greatest.get(key)
            && fence <= *greatest
        {
            let what = format!(
                "run {run} is granted with fence {}, though fence {} was granted at {}",
                fence.0,
                greatest.0,
                shown(*granted_at)
            );
            self.findings.add(at, key, what);
        }
        let greatest = self.greatest.entry(key.clone()).or_insert((fence, at));
        if greatest.0 < fence {
            *greatest = (fence, at);
        }
        let job = self.projection.now().job_of(run);
        let is_alone = job.is_none_or(|job| most_at_once(job) == 1 && job.exclusive == Exclusive::Strict);
        self.granted.insert(run, GrantedFence { key: key.clone(), fence, is_alone });
    }

    fn begin(&mut self, at: RealTime, run: RunId, key: &JobKey, fence: Fence) {
        let Some(lease) = self.granted.get(&run) else {
            self.findings.add(
                at,
                key,
                format!("run {run} begins with fence {} and was never granted", fence.0),
            );
            return;
        };
        if lease.fence != fence || lease.key != *key {
            let what = format!(
                "run {run} begins with fence {}, but was granted to {} with fence {}",
                fence.0, lease.key, lease.fence.0
            );
            self.findings.add(at, key, what);
        }
        if !lease.is_alone {
            return;
        }
        if let Some((last, began_at)) = self.last_begun.get(key)
            && fence <= *last
        {
            let what = format!(
                "run {run} begins with fence {} after fence {} began at {}",
                fence.0,
                last.0,
                shown(*began_at)
            );
            self.findings.add(at, key, what);
        }
        self.last_begun.insert(key.clone(), (fence, at));
    }
}

impl Default for FencesGrow {
    fn default() -> FencesGrow {
        FencesGrow::new()
    }
}

impl Checker for FencesGrow {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        self.projection.see(fact);
        match &fact.what {
            What::Granted { run, key, fence, .. } => self.grant(fact.at, *run, key, *fence),
            What::Begins { run, key, fence, .. } => self.begin(fact.at, *run, key, *fence),
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
        fact_builder.check(FencesGrow::new(), expected);
    }

    fn told() -> FactBuilder {
        FactBuilder::new().put(every("a", 60_000)).put(every("b", 60_000))
    }

    #[test]
    fn each_job_counts_for_itself() {
        check(
            told().granted(1, "a", 5).begins(1).granted(2, "b", 5).begins(2).granted(3, "a", 7).begins(3),
            &[],
        );
    }

    #[test]
    fn a_fence_that_does_not_grow_is_caught() {
        check(
            told().at(1_000).granted(1, "a", 5).at(2_000).granted(2, "a", 5),
            &["at 2s: a: run ..2 is granted with fence 5, though fence 5 was granted at 1s"],
        );
        check(
            told().at(1_000).granted(1, "a", 5).at(2_000).granted(2, "a", 9).at(3_000).granted(3, "a", 6),
            &["at 3s: a: run ..3 is granted with fence 6, though fence 9 was granted at 2s"],
        );
        // Neither a failover nor a new life of the key starts from zero.
        check(
            told().at(1_000).granted(1, "a", 5).at(2_000).failed_over(500, 2).at(3_000).granted(2, "a", 5),
            &["at 3s: a: run ..2 is granted with fence 5, though fence 5 was granted at 1s"],
        );
        check(
            told().at(1_000).granted(1, "a", 5).removed("a").put(every("a", 9)).at(2_000).granted(2, "a", 1),
            &["at 2s: a: run ..2 is granted with fence 1, though fence 5 was granted at 1s"],
        );
    }

    #[test]
    fn processes_begin_in_the_order_of_their_fences() {
        check(
            told().granted(1, "a", 5).granted(2, "a", 6).at(1_000).begins(2).gone(2).at(2_000).begins(1),
            &["at 2s: a: run ..1 begins with fence 5 after fence 6 began at 1s"],
        );
        let mut parallel = every("a", 9);
        parallel.overlap = Overlap::Allow { max_parallel: 2 };
        check(told().put(parallel).granted(1, "a", 5).granted(2, "a", 6).begins(2).begins(1), &[]);
    }

    #[test]
    fn nothing_begins_that_was_not_granted_so() {
        check(told().begins_as(1, "a", 5, "n1"), &["a: run ..1 begins with fence 5 and was never granted"]);
        check(
            told().granted(1, "a", 5).begins_as(1, "a", 6, "n1"),
            &["a: run ..1 begins with fence 6, but was granted to a with fence 5"],
        );
        check(
            told().granted(1, "a", 5).begins_as(1, "b", 5, "n1"),
            &["b: run ..1 begins with fence 5, but was granted to a with fence 5"],
        );
    }
}

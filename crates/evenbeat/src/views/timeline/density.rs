//! How much ran, runs and will run in each part of a window.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::JobKey;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::Timestamp;

use crate::fleet::{PartedWindow, WantedParts};
use crate::store::run_times::RunTimes;

/// What some jobs do in the parts of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Density {
    /// Units in use on average: in the past as they were, from now on as they are wanted.
    pub(crate) wanted: WantedParts,
    /// Runs that ended badly.
    pub(crate) n_bad: Vec<u32>,
}

impl Density {
    pub(crate) fn empty(n_parts: usize) -> Density {
        Density { wanted: vec![0.0; n_parts], n_bad: vec![0; n_parts] }
    }

    /// The most units in any part.
    pub(crate) fn most(&self) -> f64 {
        self.wanted.iter().copied().fold(0.0, f64::max)
    }

    pub(crate) fn n_bad_in_all(&self) -> u64 {
        self.n_bad.iter().map(|it| u64::from(*it)).sum()
    }

    pub(super) fn add(&mut self, other: &Density) {
        for (sum, it) in self.wanted.iter_mut().zip(&other.wanted) {
            *sum += it;
        }
        for (sum, it) in self.n_bad.iter_mut().zip(&other.n_bad) {
            *sum += it;
        }
    }
}

/// Whether a run ended badly. A person who cancels one wanted it so.
pub(super) fn is_bad(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Succeeded | Outcome::Cancelled)
}

/// Runs of a window, ended and open.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) runs: Vec<RunTimes>,
}

impl Past {
    pub(super) fn open(&self) -> impl Iterator<Item = &RunTimes> {
        self.runs.iter().filter(|it| it.end.is_none())
    }

    /// These runs in their groups, with what is planned there.
    pub(super) fn by(
        &self,
        parts: PartedWindow,
        now: Timestamp,
        ahead: &BTreeMap<Arc<str>, WantedParts>,
        cost: impl Fn(&JobKey) -> u32,
        group_of: impl Fn(&RunTimes) -> Option<Arc<str>>,
    ) -> BTreeMap<Arc<str>, Density> {
        let planned = |(name, wanted): (&Arc<str>, &WantedParts)| {
            let n_bad = vec![0; wanted.len()];
            (Arc::clone(name), Density { wanted: wanted.clone(), n_bad })
        };
        let mut groups: BTreeMap<Arc<str>, Density> = ahead.iter().map(planned).collect();
        for run in &self.runs {
            let Some(name) = group_of(run) else { continue };
            let group = groups.entry(name).or_insert_with(|| Density::empty(parts.n_parts));
            parts.add(&mut group.wanted, run.started_at, run_until(run, now), f64::from(cost(&run.key)));
            if let Some((_, ended_at)) = run.end.filter(|(outcome, _)| is_bad(*outcome))
                && let Some(n_bad) = parts.idx(ended_at).and_then(|idx| group.n_bad.get_mut(idx))
            {
                *n_bad += 1;
            }
        }
        groups
    }
}

/// When a run ended, or will end as far as is known: not before now.
pub(super) fn run_until(run: &RunTimes, now: Timestamp) -> Timestamp {
    match (run.end, run.expected) {
        (Some((_, ended_at)), _) => ended_at,
        (None, Some(expected)) => (run.started_at + expected).max(now),
        (None, None) => now,
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::RunId;
    use evenbeat_core::time::Duration;

    use super::*;

    fn run(pool: &str, from: i64, end: Option<(Outcome, i64)>) -> RunTimes {
        let at = |minutes: i64| Timestamp::UNIX_EPOCH + Duration::from_mins(minutes);
        RunTimes {
            run: RunId(1),
            key: "a".parse().unwrap(),
            pool: pool.into(),
            site: None,
            started_at: at(from),
            end: end.map(|(outcome, minutes)| (outcome, at(minutes))),
            expected: end.is_none().then(|| Duration::from_mins(30)),
        }
    }

    #[test]
    fn runs_fill_the_parts_they_lie_in() {
        let parts = PartedWindow { start: Timestamp::UNIX_EPOCH, part: Duration::from_mins(10), n_parts: 4 };
        let now = Timestamp::UNIX_EPOCH + Duration::from_mins(15);
        let past = Past {
            runs: vec![
                run("p", -10, Some((Outcome::Succeeded, 5))),
                run("p", 0, Some((Outcome::Failed, 5))),
                run("p", 5, Some((Outcome::Cancelled, 10))),
                run("q", 10, None),
            ],
        };
        let ahead = BTreeMap::from([(Arc::from("q"), vec![0.0, 0.0, 0.0, 2.0])]);
        let groups = past.by(parts, now, &ahead, |_| 2, |run| Some(Arc::clone(&run.pool)));
        assert_eq!(groups["p"], Density { wanted: vec![3.0, 0.0, 0.0, 0.0], n_bad: vec![1, 0, 0, 0] });
        // It goes on for as long as it is expected to.
        assert_eq!(groups["q"].wanted, [0.0, 2.0, 2.0, 4.0]);
        assert_eq!((groups["q"].most(), groups["p"].n_bad_in_all()), (4.0, 1));
    }
}

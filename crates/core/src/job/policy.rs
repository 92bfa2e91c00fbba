//! The choices a job can make about overlap, exclusiveness, place and hours.

use std::fmt;

use crate::ids::{NodeName, Pool};

/// What happens to occurrences that come due while the job runs (B9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overlap {
    /// They are skipped, each on record; a trigger is refused.
    #[default]
    Skip,
    /// The first waits, later ones are skipped; a trigger waits.
    Queue,
    /// They run beside it.
    Allow {
        /// Largest number at once.
        max_parallel: u32,
    },
}

impl Overlap {
    /// How many runs of the job may be open at once.
    pub fn max_open(self) -> u32 {
        match self {
            Overlap::Skip | Overlap::Queue => 1,
            Overlap::Allow { max_parallel } => max_parallel,
        }
    }
}

/// What a job wants when its node cannot confirm its lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Exclusive {
    /// Never two copies: its runs are frozen before anyone may take them over.
    #[default]
    Strict,
    /// Keep running through outages, and accept that two copies may run.
    BestEffort,
}

/// Where a job may run and what it takes up there (B11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Where {
    /// The capacity it draws on.
    pub pool: Pool,
    /// How many units of it.
    pub cost: u32,
    /// Only these nodes, if any are named.
    pub run_on_nodes: Vec<NodeName>,
    /// Never these.
    pub dont_run_on_nodes: Vec<NodeName>,
}

impl Where {
    /// Whether a node may ever take the job.
    pub fn allows(&self, node: &NodeName) -> bool {
        let wanted = self.run_on_nodes.is_empty() || self.run_on_nodes.contains(node);
        wanted && !self.dont_run_on_nodes.contains(node)
    }

    /// Whether no node at all can satisfy what was written, whatever nodes there are: every node
    /// that is wanted is also unwanted.
    pub fn excludes_all(&self) -> bool {
        !self.run_on_nodes.is_empty() && !self.run_on_nodes.iter().any(|node| self.allows(node))
    }
}

impl Default for Where {
    fn default() -> Where {
        Where { pool: Pool::default_pool(), cost: 1, run_on_nodes: Vec::new(), dont_run_on_nodes: Vec::new() }
    }
}

/// A set of hours of the day.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HourSet(u32);

impl HourSet {
    /// The set of these hours; those over 23 are left out.
    pub fn new(hours: impl IntoIterator<Item = u8>) -> HourSet {
        HourSet(hours.into_iter().filter(|hour| *hour < 24).fold(0, |bits, hour| bits | 1 << hour))
    }

    /// Whether an hour is in it.
    pub fn contains(self, hour: u8) -> bool {
        hour < 24 && self.0 >> hour & 1 == 1
    }

    /// Whether no hour is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The hours, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..24).filter(move |hour| self.contains(*hour))
    }
}

impl fmt::Debug for HourSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> Vec<NodeName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[track_caller]
    fn check(run_on: &[&str], dont_run_on: &[&str], node: &str, allowed: bool) {
        let place =
            Where { run_on_nodes: nodes(run_on), dont_run_on_nodes: nodes(dont_run_on), ..Where::default() };
        assert_eq!(place.allows(&node.parse().unwrap()), allowed);
    }

    #[test]
    fn a_node_takes_only_what_it_may_run() {
        check(&[], &[], "n1", true);
        check(&["n1"], &[], "n1", true);
        check(&["n1"], &[], "n2", false);
        check(&[], &["n1"], "n1", false);
        check(&["n1", "n2"], &["n1"], "n1", false);
        check(&["n1", "n2"], &["n1"], "n2", true);
    }

    #[test]
    fn wanting_only_what_is_unwanted_excludes_all() {
        let excludes_all = |run_on: &[&str], dont: &[&str]| {
            Where { run_on_nodes: nodes(run_on), dont_run_on_nodes: nodes(dont), ..Where::default() }
                .excludes_all()
        };
        assert!(excludes_all(&["n1"], &["n1", "n2"]));
        assert!(!excludes_all(&["n1", "n3"], &["n1"]));
        assert!(!excludes_all(&[], &["n1"]));
    }

    #[test]
    fn hours_are_of_one_day() {
        let hours = HourSet::new([22, 3, 3, 24]);
        assert_eq!(hours.iter().collect::<Vec<_>>(), [3, 22]);
        assert!(!hours.contains(24));
        assert!(HourSet::new([]).is_empty());
    }
}

//! The nodes of the cluster and their capacity: to find jobs that no node can take (J6).
//!
//! A node that is away is counted for as long as it takes to fence a silent one, so that a rolling restart raises
//! no warning. For the same reason nothing is concluded before the others have been watched for that long.

use std::collections::BTreeMap;

use crate::ids::{NodeName, Pool, SessionId};
use crate::job::Terms;
use crate::lease::Timings;
use crate::store::{SessionKind, SessionRow};
use crate::time::BootTime;
use crate::unsatisfiable::NodeFit;

/// The nodes that are there, or were a moment ago.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// This one, which is always there.
    own: NodeCapacity,
    /// All that were seen, by node and instance.
    seen: BTreeMap<(NodeName, String), (NodeCapacity, BootTime)>,
    first_read_at: Option<BootTime>,
    /// Whether those that were away at first have had the time to come back.
    is_settled: bool,
    version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeCapacity {
    name: NodeName,
    pools: BTreeMap<Pool, u32>,
}

impl Nodes {
    /// This node alone. Where no others can be, that is all there is to know.
    pub(crate) fn new(name: NodeName, pools: BTreeMap<Pool, u32>, is_alone: bool) -> Nodes {
        Nodes {
            own: NodeCapacity { name, pools },
            seen: BTreeMap::new(),
            first_read_at: None,
            is_settled: is_alone,
            version: 0,
        }
    }

    /// Takes a reading of all living sessions. `since` says when a session's current beat was first seen.
    pub(crate) fn read(
        &mut self,
        now: BootTime,
        timings: &Timings,
        sessions: &[SessionRow],
        since: impl Fn(SessionId) -> Option<BootTime>,
    ) {
        let before: Vec<NodeCapacity> = self.seen.values().map(|(node, _)| node.clone()).collect();
        for row in sessions.iter().filter(|row| row.spec.kind == SessionKind::Node && !row.is_dead) {
            let node = NodeCapacity { name: row.spec.node.clone(), pools: row.spec.pools.clone() };
            let seen_at = since(row.spec.id).unwrap_or(now);
            self.seen.insert((row.spec.node.clone(), row.spec.name.clone()), (node, seen_at));
        }
        self.seen.retain(|_, (_, seen_at)| now < *seen_at + timings.window());
        let first_read_at = *self.first_read_at.get_or_insert(now);
        let is_settled = first_read_at + timings.window() <= now;
        let is_same = before.iter().eq(self.seen.values().map(|(node, _)| node));
        if !is_same || is_settled != self.is_settled {
            self.version += 1;
        }
        self.is_settled = is_settled;
    }

    /// How a job fits the nodes that are there.
    pub(crate) fn fit(&self, terms: &Terms) -> NodeFit {
        NodeFit::of(terms, self.all())
    }

    /// The nodes that are there, and what each can carry.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&NodeName, &BTreeMap<Pool, u32>)> + Clone {
        let all = std::iter::once(&self.own).chain(self.seen.values().map(|(node, _)| node));
        all.map(|node| (&node.name, &node.pools))
    }

    /// The same, if it can be concluded already.
    pub(crate) fn settled_fit(&self, terms: &Terms) -> NodeFit {
        if self.is_settled { self.fit(terms) } else { NodeFit::Fits }
    }

    /// Grows whenever the nodes change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sample::job;
    use crate::store::SessionSpec;

    fn pools(all: &[(&str, u32)]) -> BTreeMap<Pool, u32> {
        all.iter().map(|(pool, units)| (pool.parse().unwrap(), *units)).collect()
    }

    fn session(no: u128, node: &str, carries: &[(&str, u32)]) -> SessionRow {
        let spec = SessionSpec {
            id: SessionId(no),
            node: node.parse().unwrap(),
            name: format!("{node}-1"),
            boot_id: 1,
            kind: SessionKind::Node,
            home: no,
            pools: pools(carries),
            zone_data: String::new(),
        };
        SessionRow { spec, beat: 1, is_dead: false, is_draining: false }
    }

    fn at(second: i64) -> BootTime {
        BootTime::from_millis(second * 1_000)
    }

    /// Two nodes, one of which has `chrome`, watched since second 0.
    fn watched() -> Nodes {
        let mut nodes = Nodes::new("n1".parse().unwrap(), pools(&[("default", 4)]), false);
        nodes.read(at(0), &Timings::default(), &both(), |_| None);
        nodes
    }

    fn both() -> Vec<SessionRow> {
        vec![session(1, "n1", &[("default", 4)]), session(2, "n2", &[("default", 8), ("chrome", 2)])]
    }

    #[track_caller]
    fn check(change: impl Fn(&mut crate::job::Job), expected: &str) {
        let mut job = job("every 1h");
        change(&mut job);
        let why = watched().fit(&job).unsatisfiable(&job);
        assert_eq!(why.map_or("fits".to_owned(), |why| why.to_string()), expected);
    }

    #[test]
    fn the_cause_is_named() {
        check(|_| {}, "fits");
        check(|job| job.place.pool = "chrome".parse().unwrap(), "fits");
        check(|job| job.place.pool = "nosuchpool".parse().unwrap(), "no living node has pool `nosuchpool`");
        check(|job| job.place.cost = 8, "fits");
        check(
            |job| job.place.cost = 9,
            "it needs 9 units, but no living node has more than 8 units in pool `default`",
        );
        check(
            |job| job.place.run_on_nodes = vec!["n7".parse().unwrap(), "n8".parse().unwrap()],
            "no node that it may run on is alive (`n7`, `n8`)",
        );
        check(
            |job| job.place.dont_run_on_nodes = ["n1", "n2"].map(|it| it.parse().unwrap()).to_vec(),
            "`dont_run_on_nodes` excludes every living node",
        );
        check(
            |job| {
                job.place.pool = "chrome".parse().unwrap();
                job.place.run_on_nodes = vec!["n1".parse().unwrap()];
            },
            "no living node that it may run on has pool `chrome`",
        );
    }

    #[test]
    fn a_node_that_is_away_counts_for_a_window_and_no_longer() {
        let mut nodes = watched();
        let mut needs_chrome = job("every 1h");
        needs_chrome.place.pool = "chrome".parse().unwrap();
        let timings = Timings::default();
        for second in [5, 40] {
            nodes.read(at(second), &timings, &both(), |_| None);
        }
        for (second, expected) in [(45, NodeFit::Fits), (84, NodeFit::Fits), (85, NodeFit::NoPool)] {
            nodes.read(at(second), &timings, &both()[..1], |_| None);
            assert_eq!(nodes.settled_fit(&needs_chrome), expected, "at second {second}");
        }
        // It is back: the warning goes at once.
        nodes.read(at(90), &timings, &both(), |_| None);
        assert_eq!(nodes.settled_fit(&needs_chrome), NodeFit::Fits);
    }

    #[test]
    fn nothing_is_concluded_before_the_others_could_have_come() {
        let mut nodes = watched();
        let mut needs_more = job("every 1h");
        needs_more.place.cost = 9;
        assert_eq!(nodes.settled_fit(&needs_more), NodeFit::Fits);
        assert_eq!(nodes.fit(&needs_more), NodeFit::CostTooHigh { most: 8 });
        let version = nodes.version();
        nodes.read(at(45), &Timings::default(), &both(), |_| None);
        assert_eq!(nodes.settled_fit(&needs_more), NodeFit::CostTooHigh { most: 8 });
        assert!(version < nodes.version());
    }

    #[test]
    fn where_no_others_can_be_this_node_is_all_there_is() {
        let nodes = Nodes::new("n1".parse().unwrap(), pools(&[("default", 4)]), true);
        let mut needs_more = job("every 1h");
        needs_more.place.cost = 5;
        assert_eq!(nodes.settled_fit(&needs_more), NodeFit::CostTooHigh { most: 4 });
    }
}

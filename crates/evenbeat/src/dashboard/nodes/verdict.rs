//! The heading of the page: silent nodes, full pools, and when runs are taken over.

use evenbeat_core::store::SessionKind;
use evenbeat_core::time::Timestamp;
use maud::{Markup, html};

use crate::dashboard::parts::ConditionMark;
use crate::dashboard::times::{Distance, Times, brief, count, counted};
use crate::printable;
use crate::views::capacity::{CapacityOverview, NodeLoad, NodeStanding};

/// What is worst.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NodesVerdict {
    pub(super) mark: ConditionMark,
    pub(super) title: String,
    pub(super) sentence: String,
}

/// When the runs of a silent node can be taken over at the earliest.
pub(super) fn takeover_at(node: &NodeLoad, fleet: &CapacityOverview) -> Option<Timestamp> {
    Some(node.last_seen_at? + fleet.takeover_after?)
}

pub(super) fn verdict(fleet: &CapacityOverview, times: &Times) -> NodesVerdict {
    let of = |standing: NodeStanding| fleet.nodes.iter().filter(move |it| it.standing == standing);
    let names = |nodes: Vec<&str>, one: &str, many: &str, all: &str| match nodes.as_slice() {
        [] => None,
        [name] => Some(format!("{} {one}", printable::line(name))),
        [first, second] => Some(format!("{} and {} {many}", printable::line(first), printable::line(second))),
        more => Some(format!("{} {all}", more.len())),
    };
    let silent: Vec<&NodeLoad> = of(NodeStanding::Silent).collect();
    let full = fleet.pools.iter().filter(|it| it.is_full() && 0 < it.usable);
    let without = fleet.pools.iter().filter(|it| it.usable == 0);
    let parts = [
        names(
            silent.iter().map(|it| it.node.as_str()).collect(),
            "is silent",
            "are silent",
            "nodes are silent",
        ),
        names(full.map(|it| it.pool.as_str()).collect(), "pool is full", "pools are full", "pools are full"),
        names(
            without.map(|it| it.pool.as_str()).collect(),
            "pool has no usable node",
            "pools have no usable node",
            "pools have no usable node",
        ),
    ];
    let mut n_nodes = 0;
    let mut n_answering: u64 = 0;
    for node in fleet.nodes.iter().filter(|it| it.kind == SessionKind::Node) {
        n_nodes += 1;
        n_answering += u64::from(node.standing != NodeStanding::Silent);
    }
    let bad: Vec<String> = parts.into_iter().flatten().collect();
    let draining = names(
        of(NodeStanding::Draining).map(|it| it.node.as_str()).collect(),
        "is draining",
        "are draining",
        "nodes are draining",
    );
    let (mark, title) = match (bad.is_empty(), draining) {
        (false, _) if n_answering < n_nodes => (ConditionMark::Error, bad.join(", ")),
        (false, _) => (ConditionMark::Warning, bad.join(", ")),
        (true, Some(draining)) => (ConditionMark::Ok, format!("{draining}, every pool has room")),
        (true, None) if n_nodes == 0 => (ConditionMark::Error, "No node takes runs".to_owned()),
        (true, None) if n_nodes == 1 => {
            (ConditionMark::Ok, "The node answers, every pool has room".to_owned())
        }
        (true, None) => (ConditionMark::Ok, format!("All {n_nodes} nodes answer, every pool has room")),
    };
    NodesVerdict { mark, title, sentence: sentence(fleet, &silent, (n_answering, n_nodes), times) }
}

fn sentence(
    fleet: &CapacityOverview,
    silent: &[&NodeLoad],
    (n_answering, n_nodes): (u64, u64),
    times: &Times,
) -> String {
    let Some(takeover_after) = fleet.takeover_after else {
        return "This node has its store to itself. If it stops, its runs go on, and new ones start when it is back.".to_owned();
    };
    let answering = format!("{n_answering} of {n_nodes} nodes answer.");
    let n_runs: u64 = silent.iter().map(|it| it.n_runs).sum();
    let at = silent.iter().filter(|it| 0 < it.n_runs).filter_map(|it| takeover_at(it, fleet)).min();
    match at {
        None => format!(
            "{answering} If one falls silent, others take over its runs after {}.",
            brief(takeover_after)
        ),
        Some(at) if at <= times.now => {
            format!("{answering} {} can be taken over now.", counted(n_runs, "run"))
        }
        Some(at) => format!(
            "{answering} {} can be taken over from {}, {}.",
            counted(n_runs, "run"),
            times.clock_s(at),
            times.distance_text(at, Distance::In)
        ),
    }
}

impl NodesVerdict {
    pub(super) fn markup(&self, fleet: &CapacityOverview, times: &Times) -> Markup {
        let capacity: u64 = fleet.pools.iter().map(|it| it.usable + it.closed).sum();
        let in_use: Option<u64> =
            fleet.pools.iter().map(|it| it.in_use.map(crate::views::capacity::PoolInUse::all)).sum();
        let free: Option<u64> = fleet.pools.iter().map(crate::views::capacity::PoolUsage::free).sum();
        let waiting: u64 = fleet.pools.iter().filter_map(|it| it.waiting).map(|it| it.n_jobs).sum();
        let oldest = fleet.nodes.iter().filter(|it| !it.is_this).filter_map(|it| it.last_seen_at).min();
        html! {
            section.verdict id="verdict" data-l aria-labelledby="v" {
                div {
                    h1 id="v" aria-live="polite" { (self.mark.icon()) (self.title) }
                    p.sub { (self.sentence) }
                }
                dl.facts {
                    div { dt { "Running" } dd {
                        @match in_use {
                            Some(in_use) => { (count(in_use)) " " small { "of " (counted(capacity, "slot")) } }
                            None => { (count(fleet.n_running)) " " small { (if fleet.n_running == 1 { "run" } else { "runs" }) } }
                        }
                    } }
                    div { dt { "Free and usable" } dd { @match free { Some(free) => (count(free)), None => small { "not known" } } } }
                    div { dt { "Waiting for a slot" } dd { (count(waiting)) } }
                    @if let Some(oldest) = oldest {
                        div { dt { "Oldest ping" } dd class=[(self.mark == ConditionMark::Error).then_some("c-err")] {
                            (times.distance(oldest, Distance::Since))
                        } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use evenbeat_core::time::Duration;
    use evenbeat_core::zone::Zone;

    use super::*;
    use crate::views::capacity::{PoolInUse, PoolUsage, PoolWaiting};

    fn now() -> Timestamp {
        "2026-11-18T13:52:08Z".parse().unwrap()
    }

    fn node(name: &str, standing: NodeStanding, n_runs: u64) -> NodeLoad {
        NodeLoad {
            node: name.to_owned(),
            instance: "main".to_owned(),
            session: name.to_owned(),
            kind: SessionKind::Node,
            standing,
            pools: BTreeMap::new(),
            in_use: Some(n_runs),
            zone_data: String::new(),
            last_seen_at: Some(now() - Duration::from_secs(27)),
            is_this: false,
            n_runs,
            runs: Vec::new(),
        }
    }

    fn pool(name: &str, usable: u64, n_waiting: u64) -> PoolUsage {
        PoolUsage {
            pool: name.to_owned(),
            usable,
            closed: 0,
            n_runs: usable,
            in_use: Some(PoolInUse { usable, ..PoolInUse::default() }),
            waiting: Some(PoolWaiting { n_jobs: n_waiting, since: None }),
            silent: Vec::new(),
            draining: Vec::new(),
        }
    }

    #[track_caller]
    fn check(nodes: Vec<NodeLoad>, pools: Vec<PoolUsage>, mark: ConditionMark, title: &str, sentence: &str) {
        let takeover_after = Some(Duration::from_secs(45));
        let fleet =
            CapacityOverview { nodes, dead: Vec::new(), pools, n_running: 0, takeover_after, is_cut: false };
        let times = Times { zone: Zone::utc(), now: now() };
        let expected = NodesVerdict { mark, title: title.to_owned(), sentence: sentence.to_owned() };
        assert_eq!(verdict(&fleet, &times), expected);
    }

    #[test]
    fn the_worst_comes_first() {
        use NodeStanding::{Draining, Silent, Up};
        let calm = "If one falls silent, others take over its runs after 45s.";
        check(
            vec![node("fra-3", Silent, 4), node("fra-1", Up, 1)],
            vec![pool("http", 8, 0), pool("browser", 8, 6)],
            ConditionMark::Error,
            "fra-3 is silent, browser pool is full",
            "1 of 2 nodes answer. 4 runs can be taken over from 13:52:26, in 18s.",
        );
        check(
            vec![node("a", Up, 0), node("b", Up, 0)],
            vec![pool("x", 1, 1), pool("y", 1, 2), pool("z", 1, 3)],
            ConditionMark::Warning,
            "3 pools are full",
            &format!("2 of 2 nodes answer. {calm}"),
        );
        check(
            vec![node("a", Up, 0)],
            vec![pool("gpu", 0, 0)],
            ConditionMark::Warning,
            "gpu pool has no usable node",
            &format!("1 of 1 nodes answer. {calm}"),
        );
        check(
            vec![node("a", Up, 0), node("b", Draining, 1)],
            vec![pool("http", 8, 0)],
            ConditionMark::Ok,
            "b is draining, every pool has room",
            &format!("2 of 2 nodes answer. {calm}"),
        );
        check(
            Vec::new(),
            Vec::new(),
            ConditionMark::Error,
            "No node takes runs",
            &format!("0 of 0 nodes answer. {calm}"),
        );
    }
}

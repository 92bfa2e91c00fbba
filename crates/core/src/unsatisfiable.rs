//! Promises that cannot be kept, whatever happens (J6).
//!
//! Such a job is accepted, with a standing warning that says why: an operator may be about to
//! raise the limit, and a refusal would lose what was written.

use std::collections::BTreeMap;
use std::fmt;

use crate::ids::{NodeName, Pool};
use crate::job::Terms;
use crate::schedule::Schedule;
use crate::time::Duration;

/// Why a job cannot be satisfied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsatisfiable {
    /// From the start of a good run to the end of the next pass a run, a rest and a run, and that is
    /// longer than data may age.
    CooldownTooLong {
        /// The rest.
        cooldown: Duration,
        /// The length of a run.
        expected: Duration,
        /// How old data may become.
        max_age: Duration,
    },
    /// A run takes longer than it has until its deadline.
    RunTooLong {
        /// The length of a run.
        expected: Duration,
        /// The time from an occurrence to its deadline.
        allowed: Duration,
    },
    /// A run is ended before it can be complete.
    EndedTooEarly {
        /// The length of a run.
        expected: Duration,
        /// When it is ended.
        max_allowed: Duration,
    },
    /// Blackouts leave no moment of the week.
    BlackoutAllWeek,
    /// Every node that is wanted is also unwanted.
    NoNode,
    /// No node has its pool.
    NoPool {
        /// Its pool.
        pool: Pool,
    },
    /// Nodes have its pool, but it may run on none of them.
    NoPoolWhereAllowed {
        /// Its pool.
        pool: Pool,
    },
    /// It needs more units than any node has.
    CostTooHigh {
        /// Its pool.
        pool: Pool,
        /// What it needs.
        cost: u32,
        /// The most that a node has.
        most: u32,
    },
    /// It may run on none of the nodes.
    NotAllowed {
        /// The nodes that it is limited to; empty if it only excludes some.
        run_on_nodes: Vec<NodeName>,
    },
}

/// Whether any of the nodes can take a job, and if not, why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeFit {
    /// At least one can, or the nodes are not known.
    #[default]
    Fits,
    /// No node has its pool.
    NoPool,
    /// Nodes have its pool, but it may run on none of them.
    NoPoolWhereAllowed,
    /// It needs more units than any node has.
    CostTooHigh {
        /// The most that a node has.
        most: u32,
    },
    /// It may run on none of the nodes.
    NotAllowed,
}

impl NodeFit {
    /// How a job fits these nodes, each with what it can carry.
    pub fn of<'a>(
        terms: &Terms,
        nodes: impl Iterator<Item = (&'a NodeName, &'a BTreeMap<Pool, u32>)> + Clone,
    ) -> NodeFit {
        let place = &terms.place;
        let has_pool = |pools: &BTreeMap<Pool, u32>| pools.contains_key(&place.pool);
        if !nodes.clone().any(|(_, pools)| has_pool(pools)) {
            return NodeFit::NoPool;
        }
        let mut allowed = nodes.filter(|(node, _)| place.allows(node)).peekable();
        if allowed.peek().is_none() {
            return NodeFit::NotAllowed;
        }
        match allowed.filter_map(|(_, pools)| pools.get(&place.pool)).max() {
            None => NodeFit::NoPoolWhereAllowed,
            Some(most) if *most < place.cost => NodeFit::CostTooHigh { most: *most },
            Some(_) => NodeFit::Fits,
        }
    }

    /// Why a job cannot be satisfied by the nodes, if so.
    pub fn unsatisfiable(self, terms: &Terms) -> Option<Unsatisfiable> {
        let pool = || terms.place.pool.clone();
        match self {
            NodeFit::Fits => None,
            NodeFit::NoPool => Some(Unsatisfiable::NoPool { pool: pool() }),
            NodeFit::NoPoolWhereAllowed => Some(Unsatisfiable::NoPoolWhereAllowed { pool: pool() }),
            NodeFit::CostTooHigh { most } => {
                Some(Unsatisfiable::CostTooHigh { pool: pool(), cost: terms.place.cost, most })
            }
            NodeFit::NotAllowed => {
                Some(Unsatisfiable::NotAllowed { run_on_nodes: terms.place.run_on_nodes.clone() })
            }
        }
    }
}

/// Every reason why a job whose runs take this long cannot keep its promise; none for most.
pub fn unsatisfiable(terms: &Terms, expected: Duration) -> Vec<Unsatisfiable> {
    let mut found = Vec::new();
    let run_too_long =
        |allowed: Duration| (allowed < expected).then_some(Unsatisfiable::RunTooLong { expected, allowed });
    match &terms.schedule {
        // Age counts from the start of a good run, the rest from its end.
        Schedule::Fresh { max_age, cooldown }
            if max_age <= cooldown || *max_age < expected + *cooldown + expected =>
        {
            found.push(Unsatisfiable::CooldownTooLong { cooldown: *cooldown, expected, max_age: *max_age });
        }
        Schedule::Every { interval, finish_within } => {
            found.extend(run_too_long(finish_within.unwrap_or(*interval)));
        }
        // Without `finish_within` a cron job has until its next occurrence, which varies.
        Schedule::Cron(cron) => found.extend(cron.finish_within.and_then(run_too_long)),
        Schedule::Once { finish_within, .. } => found.extend(finish_within.and_then(run_too_long)),
        Schedule::Fresh { .. } | Schedule::Manual => {}
    }
    if let Some(max_allowed) = terms.limits.max_allowed.filter(|most| *most < expected) {
        found.push(Unsatisfiable::EndedTooEarly { expected, max_allowed });
    }
    if terms.blackouts.covers_all_week() {
        found.push(Unsatisfiable::BlackoutAllWeek);
    }
    if terms.place.excludes_all() {
        found.push(Unsatisfiable::NoNode);
    }
    found
}

impl Unsatisfiable {
    /// The field of a job that it is about.
    pub fn field(&self) -> &'static str {
        match self {
            Unsatisfiable::CooldownTooLong { .. } => "cooldown",
            Unsatisfiable::RunTooLong { .. } => "estimate",
            Unsatisfiable::EndedTooEarly { .. } => "max_allowed_duration",
            Unsatisfiable::BlackoutAllWeek => "blackout_periods",
            Unsatisfiable::NoNode => "dont_run_on_nodes",
            Unsatisfiable::NoPool { .. } | Unsatisfiable::NoPoolWhereAllowed { .. } => "pool",
            Unsatisfiable::CostTooHigh { .. } => "cost",
            Unsatisfiable::NotAllowed { run_on_nodes } if run_on_nodes.is_empty() => "dont_run_on_nodes",
            Unsatisfiable::NotAllowed { .. } => "run_on_nodes",
        }
    }

    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Unsatisfiable::CooldownTooLong { .. } => "shorten `cooldown`, or raise `fresh`",
            Unsatisfiable::RunTooLong { .. } => "raise `finish_within` or the interval, or shorten the runs",
            Unsatisfiable::EndedTooEarly { .. } => "raise `max_allowed_duration`, or shorten the runs",
            Unsatisfiable::BlackoutAllWeek => "leave some time of the week free",
            Unsatisfiable::NoNode => "remove one of them from `dont_run_on_nodes`",
            Unsatisfiable::NoPool { .. } => "start a node that has the pool, or correct `pool`",
            Unsatisfiable::NoPoolWhereAllowed { .. } => {
                "give one of those nodes the pool, or correct `pool`, `run_on_nodes` or `dont_run_on_nodes`"
            }
            Unsatisfiable::CostTooHigh { .. } => "lower `cost`, or raise the capacity of the pool",
            Unsatisfiable::NotAllowed { .. } => {
                "start such a node, or correct `run_on_nodes` or `dont_run_on_nodes`"
            }
        }
    }
}

impl fmt::Display for Unsatisfiable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsatisfiable::CooldownTooLong { cooldown, expected: Duration::ZERO, max_age } => {
                write!(f, "a cooldown of {cooldown} leaves no time for a run within the {max_age} of `fresh`")
            }
            Unsatisfiable::CooldownTooLong { cooldown, expected, max_age } => write!(
                f,
                "a run of {}, a cooldown of {cooldown} and the next run take longer than the {max_age} of `fresh`",
                expected.rounded()
            ),
            Unsatisfiable::RunTooLong { expected, allowed } => {
                write!(f, "a run takes {} but has only {allowed} until its deadline", expected.rounded())
            }
            Unsatisfiable::EndedTooEarly { expected, max_allowed } => {
                let expected = expected.rounded();
                write!(f, "a run takes {expected}, but `max_allowed_duration` stops it after {max_allowed}")
            }
            Unsatisfiable::BlackoutAllWeek => f.write_str("its blackouts cover the whole week"),
            Unsatisfiable::NoNode => {
                f.write_str("every node in `run_on_nodes` is also in `dont_run_on_nodes`")
            }
            Unsatisfiable::NoPool { pool } => write!(f, "no living node has pool `{pool}`"),
            Unsatisfiable::NoPoolWhereAllowed { pool } => {
                write!(f, "no living node that it may run on has pool `{pool}`")
            }
            Unsatisfiable::CostTooHigh { pool, cost, most } => {
                let (cost, most) = (units(*cost), units(*most));
                write!(f, "it needs {cost}, but no living node has more than {most} in pool `{pool}`")
            }
            Unsatisfiable::NotAllowed { run_on_nodes } if run_on_nodes.is_empty() => {
                f.write_str("`dont_run_on_nodes` excludes every living node")
            }
            Unsatisfiable::NotAllowed { run_on_nodes } => {
                let nodes: Vec<String> = run_on_nodes.iter().map(|node| format!("`{node}`")).collect();
                write!(f, "no node that it may run on is alive ({})", nodes.join(", "))
            }
        }
    }
}

/// `1 unit`, `2 units`.
pub(crate) fn units(n: u32) -> String {
    if n == 1 { "1 unit".to_owned() } else { format!("{n} units") }
}

//! Nodes (L6).

use std::collections::BTreeMap;

use evenbeat_core::store::{SessionKind, SessionRow};
use serde::{Deserialize, Serialize};

use super::Text;

/// One life of one process: of a node, or of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// The server.
    pub node: String,
    /// The instance on it.
    pub instance: String,
    /// Its session.
    pub session: String,
    /// `node` or `worker`.
    pub kind: Text,
    /// `living`, `draining` or `dead`.
    pub state: Text,
    /// How often it has beaten.
    pub beat: u64,
    /// What it can carry, in cost units, by pool.
    pub pools: BTreeMap<String, u32>,
    /// The release of its time zone data, such as `2026e`. Nodes with different ones may disagree about local times.
    pub zone_data: String,
    /// How many open runs it owns.
    pub open_runs: u64,
    /// Whether it is the one that answers.
    pub is_this: bool,
}

impl NodeView {
    /// A session as it is.
    pub fn of(row: &SessionRow, open_runs: u64, is_this: bool) -> NodeView {
        NodeView {
            node: row.spec.node.to_string(),
            instance: row.spec.name.clone(),
            session: row.spec.id.to_string(),
            kind: match row.spec.kind {
                SessionKind::Node => "node".into(),
                SessionKind::Worker => "worker".into(),
            },
            state: match (row.is_dead, row.is_draining) {
                (true, _) => "dead".into(),
                (false, true) => "draining".into(),
                (false, false) => "living".into(),
            },
            beat: row.beat,
            pools: row.spec.pools.iter().map(|(pool, capacity)| (pool.to_string(), *capacity)).collect(),
            zone_data: row.spec.zone_data.clone(),
            open_runs,
            is_this,
        }
    }
}

/// Whether a node is to finish what runs and take nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// True: take nothing new. False: take new runs again.
    pub draining: bool,
}

/// The answer to a drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainAnswer {
    /// Which node.
    pub node: String,
    /// Whether it is draining now.
    pub draining: bool,
    /// How many living sessions of it were told.
    pub sessions: usize,
}

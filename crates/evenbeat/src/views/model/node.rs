//! Nodes (L6).

use std::collections::BTreeMap;

use evenbeat_core::store::{SessionKind, SessionRow};
use evenbeat_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{NodeStateWord, SessionKindWord};
use super::{Instant, Text};

/// One life of one process: a session of a node or of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeView {
    /// The name of the server.
    pub node: String,
    /// The instance on that server.
    pub instance: String,
    /// The id of the session.
    pub session: String,
    /// What kind of process it is.
    #[schema(value_type = SessionKindWord)]
    pub kind: Text,
    /// Whether it lives and takes new runs.
    #[schema(value_type = NodeStateWord)]
    pub state: Text,
    /// Number of heartbeats so far.
    pub beat: u64,
    /// Capacity by pool, in cost units.
    pub pools: BTreeMap<String, u32>,
    /// The release of its time zone data, such as `2026e`. Nodes with different ones may disagree about local times.
    pub zone_data: String,
    /// Number of open runs it owns.
    pub open_runs: u64,
    /// True for the process that answers.
    pub is_this: bool,
    /// When the store last heard of it, by the store's clock.
    #[serde(default)]
    pub last_seen_at: Option<Instant>,
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
            last_seen_at: None,
        }
    }

    /// The same with when the store last heard of it.
    #[must_use]
    pub fn seen_at(self, at: Option<Timestamp>) -> NodeView {
        NodeView { last_seen_at: at.map(Instant), ..self }
    }
}

/// Whether a node should stop taking new runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// True: finish what runs and take nothing new. False: take new runs again.
    pub draining: bool,
}

/// What a drain did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DrainResult)]
pub struct DrainAnswer {
    /// The name of the node.
    pub node: String,
    /// Whether it is draining now.
    pub draining: bool,
    /// Number of living sessions that were told.
    pub sessions: usize,
}

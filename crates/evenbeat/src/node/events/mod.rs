//! Events for readers (G3): changes of jobs, runs, conditions and nodes, the score, rebalances.
//!
//! Nothing is kept while no one reads, so a run costs one look at a flag. With readers, events are collected for
//! [`COLLECT_FOR`] and kept in one buffer that all readers share: each knows how far it has read, none has a queue of its
//! own. A reader that falls behind the oldest event in the buffer is cut off; one that comes back in time goes on where it
//! was.

mod log;

use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::condition::Reason;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::notice::Notice;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::time::Timestamp;

pub use log::{EventBatch, EventId, EventLog, EventReader, EventRecord, NextEvents};

/// How long events are collected before readers get them.
pub const COLLECT_FOR: Length = Length::from_millis(250);

/// Events that are kept for readers that come back. What is collected at once is bounded by the same number.
pub const EVENTS_KEPT: usize = 8_192;

/// How long events are kept after the last reader has left.
pub const KEPT_FOR: Length = Length::from_mins(1);

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub enum FleetEvent {
    /// A job was added or edited, or another node ran it.
    JobChanged(JobKey),
    /// A job was removed.
    JobRemoved(JobKey),
    /// A run of this node began to execute.
    RunStarted {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
        /// When it was due.
        due_at: Timestamp,
        /// What made it start.
        trigger: Trigger,
        /// When it began.
        at: Timestamp,
    },
    /// The end of a run is on record.
    RunEnded {
        /// Of which job.
        key: JobKey,
        /// Which.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// What its process returned, if it ended by itself.
        exit_code: Option<i32>,
        /// When it began.
        started_at: Timestamp,
        /// When it ended.
        at: Timestamp,
    },
    /// A job's condition changed.
    ConditionChanged {
        /// Of which job.
        key: JobKey,
        /// When.
        at: Timestamp,
        /// The reason before; none if the job was not tracked.
        from: Option<Reason>,
        /// The reason now; none if the job is no longer tracked.
        to: Option<Reason>,
    },
    /// Nodes came or went.
    NodesChanged,
    /// Something else happened to a node or its store.
    Node(Arc<Notice>),
    /// The score was worked out.
    Scored {
        /// Evenness of the next day.
        score: f64,
    },
    /// A rebalance was applied.
    Rebalanced {
        /// Jobs that moved.
        n_moved: usize,
        /// Jobs that were left alone.
        n_skipped: usize,
        /// Evenness before.
        old_score: f64,
        /// Evenness after.
        new_score: f64,
    },
}

/// What an event is about. Readers may choose some kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// A job.
    Job,
    /// A run.
    Run,
    /// A condition.
    Condition,
    /// A node, or the store as a node sees it.
    Node,
    /// The score.
    Score,
    /// A rebalance.
    Rebalance,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [EventKind; 6] = [
        EventKind::Job,
        EventKind::Run,
        EventKind::Condition,
        EventKind::Node,
        EventKind::Score,
        EventKind::Rebalance,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Job => "job",
            EventKind::Run => "run",
            EventKind::Condition => "condition",
            EventKind::Node => "node",
            EventKind::Score => "score",
            EventKind::Rebalance => "rebalance",
        }
    }
}

impl FleetEvent {
    /// What it is about.
    pub fn kind(&self) -> EventKind {
        match self {
            FleetEvent::JobChanged(_) | FleetEvent::JobRemoved(_) => EventKind::Job,
            FleetEvent::RunStarted { .. } | FleetEvent::RunEnded { .. } => EventKind::Run,
            FleetEvent::ConditionChanged { .. } => EventKind::Condition,
            FleetEvent::NodesChanged | FleetEvent::Node(_) => EventKind::Node,
            FleetEvent::Scored { .. } => EventKind::Score,
            FleetEvent::Rebalanced { .. } => EventKind::Rebalance,
        }
    }

    /// The job that it is about, if it is about one.
    pub fn job(&self) -> Option<&JobKey> {
        match self {
            FleetEvent::JobChanged(key)
            | FleetEvent::JobRemoved(key)
            | FleetEvent::RunStarted { key, .. }
            | FleetEvent::RunEnded { key, .. }
            | FleetEvent::ConditionChanged { key, .. } => Some(key),
            FleetEvent::NodesChanged
            | FleetEvent::Node(_)
            | FleetEvent::Scored { .. }
            | FleetEvent::Rebalanced { .. } => None,
        }
    }

    /// What a notice means for readers of events, if anything.
    pub(super) fn of_notice(notice: &Arc<Notice>) -> Option<FleetEvent> {
        match &**notice {
            Notice::ConditionChanged { key, at, from, to } => {
                Some(FleetEvent::ConditionChanged { key: key.clone(), at: *at, from: *from, to: *to })
            }
            Notice::LedgerRebuilt { score, .. } => Some(FleetEvent::Scored { score: *score }),
            Notice::Rebalanced { n_moved, n_skipped, old_score, new_score } => {
                let (n_moved, n_skipped) = (*n_moved, *n_skipped);
                let (old_score, new_score) = (*old_score, *new_score);
                Some(FleetEvent::Rebalanced { n_moved, n_skipped, old_score, new_score })
            }
            Notice::SessionLost { .. }
            | Notice::SessionFenced { .. }
            | Notice::DrainChanged { .. }
            | Notice::StoreUnreachable { .. }
            | Notice::StoreFailing { .. }
            | Notice::StoreRecovered { .. }
            | Notice::ClockStepped { .. } => Some(FleetEvent::Node(Arc::clone(notice))),
            _ => None,
        }
    }
}

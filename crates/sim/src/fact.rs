//! What an observer who sees everything saw: the trace of a world, and all that checkers look at.
//!
//! Facts come in the order in which they happened. Their time is *real* time, which is unknown inside the
//! world.

use evenbeat_core::ids::{Fence, JobKey, NodeName, RunId, SessionId};
use evenbeat_core::job::Job;
use evenbeat_core::lease::Epoch;
use evenbeat_core::occurrence::Record;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Placement;
use evenbeat_core::time::{Duration, Timestamp};
use std::sync::Arc;

/// Real time: since the world began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RealTime(pub i64);

impl RealTime {
    /// How long after an earlier instant.
    pub fn since(self, earlier: RealTime) -> Duration {
        Duration::from_millis(self.0 - earlier.0)
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// When, in real time.
    pub at: RealTime,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    // Processes: the truth about what executes.
    /// The process tree of a run begins to execute.
    Begins {
        /// Which run.
        run: RunId,
        key: JobKey,
        /// Under which lease.
        fence: Fence,
        node: NodeName,
        /// What it takes up there.
        cost: u32,
    },
    /// It stops executing for now: frozen by its shim, or with its whole node.
    Halts {
        /// Which run.
        run: RunId,
    },
    /// It goes on.
    GoesOn {
        /// Which run.
        run: RunId,
    },
    /// Nothing of it will ever execute again.
    IsGone {
        /// Which run.
        run: RunId,
    },

    // The store: what was committed.
    /// A session was begun.
    Joined {
        session: SessionId,
        /// Of which node.
        node: NodeName,
    },
    /// A beat was committed.
    Beat {
        /// Whose.
        session: SessionId,
    },
    /// The store was read by a watcher.
    Watched {
        /// By which node.
        by: NodeName,
    },
    /// A session was fenced off by a watcher.
    Fenced {
        session: SessionId,
        /// By which node.
        by: NodeName,
    },
    /// A restarted node took over what an earlier session of its own had.
    Adopted {
        /// The earlier session.
        session: SessionId,
        /// By which node.
        by: NodeName,
    },
    /// A claim was granted.
    Granted {
        /// The run.
        run: RunId,
        key: JobKey,
        /// Its lease.
        fence: Fence,
        /// Whose.
        session: SessionId,
        epoch: Epoch,
        /// What it serves.
        due_at: Timestamp,
        /// Which attempt.
        attempt: u32,
        trigger: Trigger,
        /// The store's clock.
        store_now: Timestamp,
    },
    /// A worker won the start of a run that was published: from now on the run is its own.
    TakenUp {
        /// The run.
        run: RunId,
        /// The session of the worker.
        session: SessionId,
        /// The worker.
        worker: NodeName,
    },
    /// A run left the open phases.
    RunEnded {
        run: RunId,
        key: JobKey,
        /// How; none if it was taken back as never started.
        outcome: Option<Outcome>,
        /// Whether it was released because its owner is dead.
        is_release: bool,
    },
    /// Occurrences went on record.
    Recorded {
        key: JobKey,
        /// Which, and what they became.
        record: Record,
    },
    /// An epoch was opened.
    EpochOpened { epoch: Epoch },

    // People.
    /// A job was put, by its definition and its placement from now on.
    Put {
        /// The job.
        job: Arc<Job>,
        /// Where it lies on the time line; none if it is not placed.
        placement: Option<Placement>,
        /// Whether it is paused from now on.
        is_paused: bool,
        /// The store's clock.
        store_now: Timestamp,
    },
    /// A job was removed.
    Removed {
        key: JobKey,
        /// The store's clock.
        store_now: Timestamp,
    },
    /// A run of a job was requested.
    Triggered {
        /// Which job.
        key: JobKey,
        /// When it is due: now, or the instant of the past that it makes up for.
        due_at: Timestamp,
    },
    /// A cancel was requested.
    CancelAsked {
        /// Which run.
        run: RunId,
    },

    /// The scheduler of a node has learned that it is to take nothing new. A new life of it has to learn it again, which
    /// is a fact of its own.
    Drained {
        /// Which node.
        node: NodeName,
    },
    /// It has learned that it may again.
    Undrained {
        /// Which node.
        node: NodeName,
    },

    // Faults.
    /// The store failed over. What was committed after an instant is gone: runs, beats, edits.
    FailedOver {
        /// Commits after this are lost.
        kept_until: RealTime,
        /// The new epoch.
        epoch: Epoch,
    },
    /// A fault began; its name is one of [`crate::faults`].
    FaultBegan {
        /// Which kind.
        fault: &'static str,
    },
    /// From now on nothing is broken.
    Healed,
}

//! Events: the input of the engine.

use crate::ids::{JobKey, RunId, SessionId};
use crate::lease::{Epoch, Silent};
use crate::run::Outcome;
use crate::store::{Beat, Changes, Claims, EndAnswer, Fencing, RunRow, SettleAnswer, StoreDown, Watch};
use crate::time::{BootTime, Duration, Timestamp};

/// What time it is, read once for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// By the node's wall clock. A cluster uses the store's clock instead.
    pub wall: Timestamp,
    /// Since the node's machine was started; all that leases look at.
    pub boot: BootTime,
}

/// How a run went, by the node's boot clock, which never steps. The engine converts it to the time that occurrences go
/// by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOver {
    /// When it began to execute.
    pub started_at: BootTime,
    /// When the last of it had stopped executing.
    pub ended_at: BootTime,
    /// How it ended.
    pub outcome: Outcome,
    /// With which code, where there is one.
    pub exit_code: Option<i32>,
    /// How long it stood frozen.
    pub frozen_for: Duration,
}

/// One thing that happened. Every question that the engine asked is answered by exactly one event, if
/// only by an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The time that [`Engine::wake_at`](super::Engine::wake_at) named has come.
    Woke,
    /// The store may have changed: jobs, triggers, cancels.
    Nudged,
    /// A session has begun, and has taken over what its predecessor left behind.
    Joined {
        /// The new session.
        session: SessionId,
        /// When the request was sent.
        began_at: BootTime,
        /// The current epoch.
        epoch: Epoch,
        /// Whether it is open.
        is_open: bool,
        /// The store's clock.
        store_now: Timestamp,
        /// Runs that it has taken over. Of each, something still executes, or its end will follow, or it is
        /// published and waits for a worker.
        adopted: Vec<RunRow>,
    },
    /// The answer to a beat.
    Beaten {
        /// When it was begun, before anything was sent.
        began_at: BootTime,
        /// What came back.
        answer: Result<Beat, StoreDown>,
    },
    /// The answer to a look at all sessions.
    Watched(Result<Watch, StoreDown>),
    /// The answer to a fencing.
    Fenced {
        /// The sessions to fence off.
        silent: Vec<Silent>,
        /// What came back, in that order.
        answer: Result<Vec<Fencing>, StoreDown>,
    },
    /// The answer to the opening of an epoch.
    EpochOpened(Result<bool, StoreDown>),
    /// The answer to the question for changes.
    Changed(Result<Changes, StoreDown>),
    /// The answer to a batch of bids.
    Claimed {
        /// What was bid for, in order, with the run ids that were minted.
        claims: Vec<(JobKey, RunId)>,
        /// What came back.
        answer: Result<Claims, StoreDown>,
    },
    /// The answer to a batch of settlements.
    Settled {
        /// In the order of the answers.
        keys: Vec<JobKey>,
        /// What came back.
        answer: Result<Vec<SettleAnswer>, StoreDown>,
    },
    /// The answer to a batch of ends.
    EndAnswered {
        /// Of which runs, in order.
        runs: Vec<RunId>,
        /// What came back.
        answer: Result<Vec<EndAnswer>, StoreDown>,
    },
    /// A run executes.
    Started { run: RunId, at: BootTime },
    /// A run that was to be started never began: its lease was over before, or it was revoked.
    NotStarted { run: RunId },
    /// A run has ended, and nothing of it executes.
    Ended { run: RunId, over: RunOver },
    /// Whether the node is to finish its runs and take no new ones.
    Drain(bool),
}

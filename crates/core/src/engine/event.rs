//! What the engine is told.

use crate::ids::{JobKey, RunId, SessionId};
use crate::lease::{Epoch, Silent};
use crate::run::Outcome;
use crate::store::{Beat, Changes, Claims, EndAnswer, Fencing, RunRow, SettleAnswer, StoreDown, Watch};
use crate::time::{BootTime, Duration, Timestamp};

/// What time it is, read once for each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// By the clock on the node's wall. A cluster goes by the store's instead.
    pub wall: Timestamp,
    /// Since the node's machine was started; all that leases look at.
    pub boot: BootTime,
}

/// How a run went, as its node saw it: by the clock that never steps. What time that was for everybody else, the
/// engine works out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOver {
    /// When it began to execute.
    pub started_at: BootTime,
    /// When nothing of it executed any more.
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
    /// It is as late as the engine wanted to be woken, or later.
    Woke,
    /// Somebody says that the store has news: jobs, triggers, cancels.
    Nudged,
    /// A session has begun, and has taken over what its predecessor left behind.
    Joined {
        /// The new session.
        session: SessionId,
        /// When it was asked for.
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
        /// Who was to be fenced off.
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
        /// Of which jobs, in order.
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
    Started {
        /// Which.
        run: RunId,
        /// Since when.
        at: BootTime,
    },
    /// A run that was to be started never began: its lease was over before, or it was revoked.
    NotStarted {
        /// Which.
        run: RunId,
    },
    /// A run is over, and nothing of it executes any more.
    Ended {
        /// Which.
        run: RunId,
        /// How.
        over: RunOver,
    },
    /// The node shall finish what runs and take nothing new, or no longer so.
    Drain(bool),
}

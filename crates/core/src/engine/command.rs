//! What the engine wants done.

use std::sync::Arc;

use crate::ids::{Fence, RunId};
use crate::job::Job;
use crate::lease::{Epoch, Silent};
use crate::notice::Notice;
use crate::occurrence::Due;
use crate::run::Outcome;
use crate::store::{Bid, Cursor, End, Mark, Settle};
use crate::time::{BootTime, Timestamp};

/// One thing to do. Questions to the store are answered by an [event](super::Event) each, at the latest
/// after the time that one attempt may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Begin a new session, under an id that was never used, and take over what earlier ones of this node
    /// left behind.
    Join,
    /// Beat.
    Beat,
    /// Look at all sessions, and at runs whose owner is dead.
    Watch,
    /// Fence silent sessions off.
    Fence { epoch: Epoch, silent: Vec<Silent> },
    /// Open an epoch after its quarantine.
    OpenEpoch(Epoch),
    /// Ask what has changed.
    Changes(Option<Cursor>),
    /// Mint a run id for each bid that names none, and claim them.
    Claim {
        epoch: Epoch,
        /// In the order of urgency.
        bids: Vec<Bid>,
    },
    /// Write what time alone has changed.
    Settle {
        epoch: Epoch,
        /// Of which jobs.
        settles: Vec<Settle>,
    },
    /// End runs in the store.
    End { epoch: Epoch, ends: Vec<End> },
    /// Note how far runs have come. There is no answer, and losing a mark does no harm.
    Mark(Vec<Mark>),
    /// Start a run. If its job goes through a broker, publish the outbox instead: nothing executes on this node, and no
    /// event follows.
    Start(Box<Start>),
    /// Let every strict run of this session execute until then, and thaw those that are frozen. Runs that were revoked
    /// before this command stay revoked, so keep the order of commands for each run.
    Extend {
        /// On the node's own clock.
        until: BootTime,
    },
    /// End a run in good order: ask it, wait a moment, kill it.
    Stop {
        run: RunId,
        /// The outcome that it will have.
        outcome: Outcome,
        /// The limit that it exceeded, with its value: `max_allowed_duration 6s`.
        limit: Option<String>,
    },
    /// A run is no longer ours: freeze it at once and kill it. Record nothing of it.
    Revoke { run: RunId },
    /// The session has nothing left to do: end it.
    Leave,
    /// Log and report this.
    Notice(Notice),
}

/// All that is needed to start a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Its id.
    pub run: RunId,
    /// Its lease.
    pub fence: Fence,
    /// What to do.
    pub job: Arc<Job>,
    /// What it serves.
    pub due: Due,
    /// It must not execute beyond this without an extension; to be looked at right before it begins. None for a
    /// job that may run without one.
    pub lease_until: Option<BootTime>,
    /// By when it should be complete.
    pub deadline: Option<Timestamp>,
    /// When the last good run of its job started.
    pub last_good_start_at: Option<Timestamp>,
}

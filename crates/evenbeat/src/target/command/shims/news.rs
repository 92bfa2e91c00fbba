//! What becomes of runs, told to whoever started them.

use evenbeat_core::engine::RunOver;
use evenbeat_core::ids::RunId;
use evenbeat_core::time::BootTime;

use crate::target::command::last_word::Told;

/// One thing that happened to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum ShimNews {
    /// It executes.
    Started {
        /// Which.
        run: RunId,
        /// Since when.
        at: BootTime,
    },
    /// It never began, and never will.
    NotStarted {
        /// Which.
        run: RunId,
        /// For people.
        why: String,
    },
    /// Its lease is over, and nothing of it executes.
    Frozen {
        /// Which.
        run: RunId,
        /// Since when.
        at: BootTime,
    },
    /// Its lease was extended, and it goes on.
    Thawed {
        /// Which.
        run: RunId,
        /// Since when.
        at: BootTime,
    },
    /// It is over, and nothing of it executes any more.
    Ended {
        /// Which.
        run: RunId,
        /// For the engine.
        over: RunOver,
        /// For people.
        told: Box<Told>,
    },
    /// A run that was left behind by an earlier scheduler of this node, and is not ours any more, had ended by itself.
    /// What lies about of it stays until it is forgotten.
    LeftBehind {
        /// Which.
        run: RunId,
        /// As its shim saw it.
        over: RunOver,
        /// For people.
        told: Box<Told>,
    },
    /// It was killed, and something of it is still there. Its end follows when it is gone; until then its job must
    /// not run again.
    Unkillable {
        /// Which.
        run: RunId,
    },
}

impl ShimNews {
    /// The run that it is about.
    pub fn run(&self) -> RunId {
        match self {
            ShimNews::Started { run, .. }
            | ShimNews::NotStarted { run, .. }
            | ShimNews::Frozen { run, .. }
            | ShimNews::Thawed { run, .. }
            | ShimNews::Ended { run, .. }
            | ShimNews::LeftBehind { run, .. }
            | ShimNews::Unkillable { run } => *run,
        }
    }
}

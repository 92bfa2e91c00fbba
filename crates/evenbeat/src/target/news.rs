//! What executors report about runs: the same words for every target.

use evenbeat_core::engine::RunOver;
use evenbeat_core::ids::RunId;
use evenbeat_core::run::EndReason;
use evenbeat_core::time::{BootTime, Duration};
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;

/// Capacity of the channel for news of runs. A run with more to tell waits while it is full.
pub const NEWS_MAX: usize = 1_024;

/// Where executors send news. Bounded: each run has one task that tells its news in order and waits while the node is
/// busy. The node's own loop never sends here, so it cannot wait for itself.
pub type NewsSender = mpsc::Sender<RunNews>;

/// A bounded channel for news of runs.
pub fn news_channel() -> (NewsSender, mpsc::Receiver<RunNews>) {
    mpsc::channel(NEWS_MAX)
}

/// One thing that happened to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunNews {
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
        told: Box<EndDetails>,
    },
    /// A run that was left behind by an earlier scheduler of this node, and is not ours any more, had ended by itself.
    /// What lies about of it stays until it is forgotten.
    LeftBehind {
        /// Which.
        run: RunId,
        /// As its shim saw it.
        over: RunOver,
        /// For people.
        told: Box<EndDetails>,
    },
    /// It was killed, and something of it is still there. Its end follows when it is gone; until then its job must
    /// not run again.
    Unkillable {
        /// Which.
        run: RunId,
    },
}

impl RunNews {
    /// The run that it is about.
    pub fn run(&self) -> RunId {
        match self {
            RunNews::Started { run, .. }
            | RunNews::NotStarted { run, .. }
            | RunNews::Frozen { run, .. }
            | RunNews::Thawed { run, .. }
            | RunNews::Ended { run, .. }
            | RunNews::LeftBehind { run, .. }
            | RunNews::Unkillable { run } => *run,
        }
    }
}

/// What a run leaves for people, beside its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndDetails {
    /// The exit code of its first process; 128 and the signal if one ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended its first process.
    pub signal: Option<i32>,
    /// Why it ended, beyond its outcome.
    pub reason: Option<EndReason>,
    /// The limit that it exceeded, with its value.
    pub limit: Option<String>,
    /// Whether it was still there when its grace was over.
    pub ignored_term: bool,
    /// The names of processes that were still there after its first process had ended.
    pub left_behind: Vec<String>,
    /// The last line that it wrote to standard error.
    pub last_error_line: Option<String>,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// The JSON object that it wrote to its result file.
    pub result: Option<Map<String, Json>>,
    /// How many bytes it has written.
    pub output_bytes: u64,
    /// How many of them were not kept.
    pub left_out_bytes: u64,
    /// The largest memory that any process of it was seen to use; none if it ended before the first measurement.
    pub max_rss_kib: Option<u64>,
    /// How much processor time it took, of all processes that were waited for.
    pub cpu: Duration,
}

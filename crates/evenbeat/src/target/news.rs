//! What executors report about runs: the same for every target.

use evenbeat_core::engine::RunOver;
use evenbeat_core::ids::RunId;
use evenbeat_core::run::EndReason;
use evenbeat_core::time::{BootTime, Duration};
use serde_json::{Map, Value as Json};
use tokio::sync::mpsc;

/// Capacity of the channel for news of runs. Senders wait while it is full.
pub const NEWS_MAX: usize = 1_024;

/// Where executors send news. Bounded: each run has one task that sends its news in order and waits while the node is
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
    Started { run: RunId, at: BootTime },
    /// It never began, and never will.
    NotStarted { run: RunId, why: String },
    /// Its lease is over, and nothing of it executes.
    Frozen { run: RunId, at: BootTime },
    /// Its lease was extended, and it continues.
    Thawed { run: RunId, at: BootTime },
    /// It is over, and nothing of it executes.
    Ended {
        run: RunId,
        /// For the engine.
        over: RunOver,
        /// For people.
        told: Box<EndDetails>,
    },
    /// A run of an earlier scheduler of this node, which no longer belongs to us, had already ended. Its files stay
    /// until it is forgotten.
    LeftBehind {
        run: RunId,
        /// As its shim saw it.
        over: RunOver,
        /// For people.
        told: Box<EndDetails>,
    },
    /// It was killed, but some process of it is still alive. Its end follows when that is gone; until then its job must
    /// not run again.
    Unkillable { run: RunId },
}

impl RunNews {
    /// The run that this is about.
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

/// Details of the end of a run, for people.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndDetails {
    /// The exit code of its first process, or 128 plus the signal that ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended its first process.
    pub signal: Option<i32>,
    /// Why it ended, beyond its outcome.
    pub reason: Option<EndReason>,
    /// The limit that it exceeded, with its value.
    pub limit: Option<String>,
    /// Whether it was still alive at the end of its grace.
    pub ignored_term: bool,
    /// The names of processes that were still alive after its first process had ended.
    pub left_behind: Vec<String>,
    /// The last line that it wrote to standard error.
    pub last_error_line: Option<String>,
    /// The error message.
    pub error: Option<String>,
    /// The JSON object that it wrote to its result file.
    pub result: Option<Map<String, Json>>,
    /// Number of bytes that it wrote.
    pub output_bytes: u64,
    /// Number of bytes that were not kept.
    pub left_out_bytes: u64,
    /// The largest memory use of any of its processes. `None` if it ended before the first sample.
    pub max_rss_kib: Option<u64>,
    /// Processor time of all its processes that were waited for.
    pub cpu: Duration,
}

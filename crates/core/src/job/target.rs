//! How work is done: a process, an HTTP call, a message.
//!
//! These are descriptions; nothing here starts anything.

use std::collections::BTreeMap;

use crate::time::Duration;
use crate::value::Value;

/// How a job's work is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A process on the node.
    Command(CommandTarget),
    /// A call to an HTTP server.
    Http(HttpTarget),
    /// A message to a broker.
    Queue(QueueTarget),
}

impl Target {
    /// Whether its start message goes through the outbox to a broker, and a worker does the work.
    pub fn is_published(&self) -> bool {
        matches!(self, Target::Queue(_))
    }

    /// Whether its end is kept until it is on record, also if the node dies: a shim writes it down. How a call to a
    /// server ended, only the node knows.
    pub fn keeps_end(&self) -> bool {
        matches!(self, Target::Command(_))
    }

    /// The kind, in the word that files and pages use.
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Command(_) => "command",
            Target::Http(_) => "http",
            Target::Queue(_) => "queue",
        }
    }
}

/// A process (X1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandTarget {
    /// The program and its arguments; never empty. With `shell`, exactly one element.
    pub argv: Vec<String>,
    /// Whether a shell reads it. Needs a permission of its own where it is to run.
    pub shell: bool,
    /// The directory to start in.
    pub cwd: Option<String>,
    /// Variables set for it; everything else is cleared but a short allow-list.
    pub env: BTreeMap<String, String>,
    /// Further variables that it may inherit.
    pub env_pass: Vec<String>,
    /// Written to its standard input as JSON.
    pub stdin: Option<Value>,
    /// How long it may take to end after it is asked to.
    pub grace: Option<Duration>,
}

/// An HTTP call (X2).
#[derive(Clone, Debug, PartialEq)]
pub struct HttpTarget {
    /// Where the start message is posted to; `http` or `https`.
    pub url: String,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// How long to wait for an answer.
    pub timeout: Option<Duration>,
    /// Whether the call may be repeated after its body was sent.
    pub idempotent: bool,
}

/// A message to a broker (X3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueTarget {
    /// The broker's name in the configuration; the default one if none is named.
    pub broker: Option<String>,
    /// The topic; the configured one (`job.start`) if none is named.
    pub topic: Option<String>,
    /// Whether the message is wrapped as a `CloudEvents` document.
    pub cloudevents: bool,
}

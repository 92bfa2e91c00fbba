//! Where a node is in its life with the store: one session after another.
//!
//! ```text
//!   Out --> Joining --> In --> Left       draining, and nothing is left to do
//!              ^        |       |
//!              |        v       |         called back
//!              +------ Lost     |
//!              |   (runs ended) |
//!              +----------------+
//! ```

use super::session::Session;

/// The node's session, and whether it may be used.
#[derive(Debug, Default)]
pub(crate) enum Life {
    /// The node has no session and has not requested one.
    #[default]
    Out,
    /// A session has been requested.
    Joining,
    /// The session is in use.
    In(Session),
    /// Others have fenced the session off. The next one begins when nothing of it executes and no answer to it is
    /// outstanding.
    Lost(Session),
    /// The node has left. The session cannot be used again; a node that is called back begins another.
    Left(Session),
}

impl Life {
    /// The current or the last session. Answers to it still count.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Life::Out | Life::Joining => None,
            Life::In(session) | Life::Lost(session) | Life::Left(session) => Some(session),
        }
    }

    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        match self {
            Life::Out | Life::Joining => None,
            Life::In(session) | Life::Lost(session) | Life::Left(session) => Some(session),
        }
    }

    /// The session, unless it has left. Ends of runs are reported even by one that is lost.
    pub(crate) fn session_until_left(&self) -> Option<&Session> {
        if let Life::Left(_) = self { None } else { self.session() }
    }

    /// The store said that the session is dead. One that has left needs no successor. Where the store's own lock is
    /// the lease, the next session can begin at once.
    pub(crate) fn lose(&mut self) {
        *self = match std::mem::take(self) {
            Life::In(session) | Life::Lost(session) if session.lease.is_some() => Life::Lost(session),
            Life::Left(session) => Life::Left(session),
            Life::In(_) | Life::Lost(_) | Life::Out => Life::Out,
            Life::Joining => Life::Joining,
        };
    }
}

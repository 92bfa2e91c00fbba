//! Requests and answers.

use super::{AuditEntry, CounterKey, CounterLimit, JobNews, JobRow, RunRequest, RunRow, SessionRow, Version};
use crate::ids::{Fence, JobKey, RunId, SessionId};
use crate::job::{Job, JobState, RunEnd};
use crate::lease::{Epoch, Timings};
use crate::occurrence::{Due, Record};
use crate::run::{Outcome, RunReport};
use crate::time::Timestamp;
use std::sync::Arc;

/// The answer to a session that joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It is one of the cluster now.
    Welcome {
        /// The current epoch.
        epoch: Epoch,
        /// Whether it is open.
        is_open: bool,
        /// The store's clock.
        now: Timestamp,
    },
    /// All nodes must use the same timings; the cluster uses these.
    OtherTimings(Timings),
}

/// Which lives are over, besides those that are fenced off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lives {
    /// Those of the asker's node in its data directory, on this boot of its machine: it holds the directory's lock. What
    /// an earlier boot left behind, others see fall silent.
    OfThisBoot,
    /// Those of all nodes: the store has one process at a time, and the asker is it, so no other node watches.
    OfAllNodes,
}

/// The answer to a beat.
#[derive(Clone, Debug, PartialEq)]
pub enum Beat {
    /// The session lives.
    Alive {
        /// The current epoch.
        epoch: Epoch,
        /// Whether it is open.
        is_open: bool,
        /// The store's clock.
        now: Timestamp,
        /// Whether the session is to take nothing new.
        is_draining: bool,
        /// The open runs of the session, read after the beat was written.
        runs: Vec<RunRow>,
    },
    /// It was fenced off, or is not known at all: a failover may have lost its coming.
    Dead,
}

/// What a watcher sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The current epoch.
    pub epoch: Epoch,
    /// Whether it is open.
    pub is_open: bool,
    /// The store's clock.
    pub now: Timestamp,
    /// All sessions that are not dead.
    pub sessions: Vec<SessionRow>,
    /// Open runs of sessions that are dead.
    pub orphans: Vec<RunRow>,
}

/// What became of an attempt to fence a session off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fencing {
    /// It is dead now.
    Fenced,
    /// It has beaten since, or is dead already, or unknown: nothing was done.
    NotAsSeen,
    /// The epoch is not the current one, or not open: no session is fenced off in it.
    Closed,
}

/// A run that a node wants to open. If it names no id, the caller of the store mints one.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The id.
    pub run: RunId,
    /// What was decided.
    pub bid: Bid,
}

/// The decision to open a run, worked out from a job's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Bid {
    pub key: JobKey,
    /// The id that the run must have: that of the request which it serves first. None if a new one is minted.
    pub run: Option<RunId>,
    /// The version that everything here was worked out from.
    pub seen: Version,
    /// How many runs of the job may be open at once.
    pub max_open: u32,
    /// Not before this instant, by the store's own clock.
    pub not_before: Timestamp,
    /// What it serves.
    pub due: Due,
    /// The job's memory from now on.
    pub state: JobState,
    /// What goes on record with it.
    pub records: Vec<Record>,
    /// The counters it needs room in.
    pub takes: Vec<Take>,
    /// Whether its start message goes through the outbox.
    pub is_published: bool,
}

/// One counter that a claim needs room in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    pub counter: CounterKey,
    /// What it allows.
    pub limit: CounterLimit,
}

/// The answer to a batch of claims.
#[derive(Clone, Debug, PartialEq)]
pub enum Claims {
    /// One answer for each, in order.
    Answered(Vec<ClaimAnswer>),
    /// The epoch that was named is not the current one, or not open: nothing is claimed in it.
    Closed,
    /// The session was fenced off and owns nothing.
    SessionDead,
    /// The session is to take nothing new. Nothing was granted.
    Draining,
}

/// The answer to one claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimAnswer {
    /// The run is open; its fence is the row's.
    Granted(JobRow),
    /// The row has changed since, or the job has as many open runs as it may.
    Lost(JobRow),
    /// There is no such job.
    Gone,
    /// By the store's clock it is too early.
    NotYet {
        /// Until when.
        until: Timestamp,
        /// What the store's clock says.
        now: Timestamp,
    },
    /// A counter has no room.
    Limited {
        by: CounterKey,
        /// Until when at least, where time alone will make room.
        until: Option<Timestamp>,
    },
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which run.
    pub run: RunId,
    /// Under which lease.
    pub fence: Fence,
    pub kind: MarkKind,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// It began to execute then.
    Started(Timestamp),
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Which run.
    pub run: RunId,
    /// Under which lease.
    pub fence: Fence,
    /// Who asks.
    pub me: SessionId,
    pub key: JobKey,
    /// The version of the job that the rest was worked out from.
    pub seen: Version,
    /// Who says so, and what.
    pub by: EndBy,
    /// The job's memory from now on.
    pub state: JobState,
    /// What goes on record with it.
    pub records: Vec<Record>,
    /// What the run reported. The caller of the store fills it in; no decision depends on it.
    pub report: Option<Arc<RunReport>>,
}

/// Who ends a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EndBy {
    /// Its owner, when nothing of it executes.
    Owner(RunEnd),
    /// Its owner, before anything of it executed: the run is taken back as if it had never been.
    Unstarted,
    /// Any session, because its owner is dead; only in the open epoch. The outcome is `lost`.
    Release {
        /// The session that is dead.
        dead: SessionId,
        /// What is known of the end.
        end: RunEnd,
    },
}

/// The answer to the end of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum EndAnswer {
    /// The run is over, and its job free.
    Ended(JobRow),
    /// The job has changed since: nothing was written, think again from this row.
    Stale(JobRow),
    /// The run is not open under that lease: it was over before. The result of its owner is kept beside it.
    Late,
    /// A release of a run whose session is not dead, or in an epoch that is not open; or a run that
    /// executes was to be taken back. Nothing was written.
    Refused,
}

/// What time alone has changed about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Settle {
    /// Which job.
    pub key: JobKey,
    /// The version that the rest was worked out from.
    pub seen: Version,
    /// Its memory from now on.
    pub state: JobState,
    /// What goes on record.
    pub records: Vec<Record>,
}

/// The answer to it.
#[derive(Clone, Debug, PartialEq)]
pub enum SettleAnswer {
    /// Written.
    Settled(JobRow),
    /// The row has changed since.
    Stale(JobRow),
    /// There is no such job.
    Gone,
    /// The epoch is not the current, open one, or the asker is dead.
    Refused,
}

/// Whether a worker may run what was published.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerStart {
    /// It may; the run is its own.
    Won(Box<RunRow>),
    /// Another was first, or the run is over, or its lease is of an earlier epoch.
    Taken,
    /// The epoch is not open: another may have started it, and its start was lost. Ask again later.
    Closed,
}

/// A job as it should be from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct PutJob {
    /// The definition.
    pub job: Arc<Job>,
    /// The memory.
    pub state: JobState,
    /// What this was worked out from.
    pub seen: Seen,
    /// Whether people would call it another job than before: the revision grows.
    pub is_revision: bool,
    /// Whether the job is removed.
    pub is_deleted: bool,
    /// What goes on record with it.
    pub records: Vec<Record>,
    /// Who did it.
    pub audit: Option<AuditEntry>,
    /// The request for a run that is stored with it.
    pub request: Option<RunRequest>,
}

/// What an edit was worked out from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// There was no such job, or only the rest of a removed one.
    Nothing,
    /// This version of it.
    Version(Version),
}

/// The answer to an edit.
#[derive(Clone, Debug, PartialEq)]
pub enum PutAnswer {
    /// Written.
    Put(JobRow),
    /// The row is another by now: think again.
    Stale(JobRow),
    /// There is no such row at all.
    Gone,
    /// The request for a run was made before: nothing was written, and this is the earlier one.
    Repeated(RunRequest),
}

/// The answer to a request to cancel a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// Its owner will be told.
    Asked,
    /// It is over already.
    Over(Outcome),
    /// There is no such run.
    Unknown,
}

/// A position in the change feed. It is valid within one epoch, and only for the session that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub epoch: Epoch,
    pub position: u64,
}

/// What has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Changes {
    /// These; removed jobs among them.
    Rows {
        /// The jobs as they are now.
        rows: Vec<JobNews>,
        /// Where to go on.
        next: Cursor,
        /// Whether there was nothing more.
        is_last: bool,
    },
    /// The cursor is of another epoch, so a failover may have lost what it stands for, or the store no longer knows it.
    /// Start again without a cursor.
    Reset,
}

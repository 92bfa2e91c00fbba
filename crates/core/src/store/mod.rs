//! What is asked of a store, and what it answers (L1, L5, Q3).
//!
//! The store is the one place where nodes meet. It decides nothing: it compares what the asker has
//! seen with what is there, and writes all of a request or nothing of it. Everything it writes was
//! worked out by pure code from a row that it handed out before.
//!
//! # Rows and their numbers
//!
//! A [job's row](JobRow) holds the definition and the memory of a job, and four numbers:
//!
//! - its **version** grows with every change, and guards whatever was worked out from the row: a claim,
//!   an end, an edit. Who comes second gets the row as it is now, and thinks again. No version comes again, not even
//!   after a failover that loses commits.
//! - its **revision** grows only when people change the job, and guards what people are shown: an edit or
//!   a plan is not made stale by a run.
//! - its **fence** grows with every claim and every release. Of two leases the later has the greater, also
//!   over a failover that loses commits, because it never lies below the number of the epoch, shifted up.
//! - **`n_open`** counts the runs that are open. It changes only together with such a run.
//!
//! A [run's row](RunRow) decides about the run: it leaves the open phases exactly once, in the one
//! transaction that also frees its job and its counters. A result that comes after the run was given up is
//! kept beside it, and never counts as success.
//!
//! # One row, one writer
//!
//! Each duty of the [`Store`] is one transaction over a batch. Rows of a batch do not depend on each
//! other, and each gets its own answer. Losing a race is such an answer: `Err` is only for a store that did
//! not answer at all, and then it is unknown whether the request was done. So a caller must be able to
//! ask again: a claim that was granted and whose answer was lost shows up at the next beat, an end that is
//! sent twice is [late](EndAnswer::Late) the second time.
//!
//! # Time
//!
//! A store has a clock, and compares it with what may not happen before it; nodes ask it what time it
//! is whenever they beat. No lease looks at it.

mod ask;
mod plans;
mod rows;
mod trim;
mod views;

pub use ask::{
    Beat, Bid, Cancelled, Changes, Claim, ClaimAnswer, Claims, Cursor, End, EndAnswer, EndBy, Fencing,
    Joined, Lives, Mark, MarkKind, PutAnswer, PutJob, Seen, Settle, SettleAnswer, Take, Watch, WorkerStart,
};
pub use plans::{ApplyPlan, NewPlan, PLAN_LIFE, PLANS_MAX, PLANS_PER_CALLER, PlanAnswer, PlanId, PlanRow};
pub use rows::{
    AuditEntry, CounterKey, CounterLimit, CounterRow, IDEMPOTENCY_KEPT_FOR, Idempotency, JobNews, JobRow,
    LateResult, OutboxRow, OwnerPing, RecordRow, Revision, RunEnded, RunPhase, RunRequest, RunRow,
    SessionKind, SessionRow, SessionSpec, Version,
};
pub use trim::{Retention, Trimmed};
pub use views::{RunFilter, Views};

use crate::ids::{Fence, RunId, SessionId};
use crate::lease::{Epoch, Silent, Timings};

/// The store did not answer. It may or may not have done what was requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store did not answer: {0}")]
pub struct StoreDown(pub String);

/// How many rows one request may carry: a batch is one transaction, and others wait for it.
pub const BATCH_MAX: usize = 1_000;

/// Everything that is written. Two doors lead here: what people and workers say, and what the engine
/// decided.
pub trait Store {
    // Sessions.

    /// Begins a session. Refused if the cluster runs by other timings. The first session of all opens the
    /// first epoch.
    fn join(&mut self, session: &SessionSpec, timings: &Timings) -> Result<Joined, StoreDown>;

    /// A node that was restarted takes over what earlier lives left behind: they are fenced off, their open
    /// runs become this session's, run ids and fences unchanged. The caller holds a lock that says that those
    /// [`Lives`] are over. A life that others have fenced off is theirs to release. Returns all open runs of the
    /// session, so that it can be asked again.
    fn adopt(&mut self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown>;

    /// Raises the session's beat unless it is dead, and then, by a later look, reads its open runs.
    fn beat(&mut self, me: SessionId) -> Result<Beat, StoreDown>;

    /// Says whether a session still takes new runs. Every claim of a draining session is refused from then on; it
    /// may still end what it has.
    fn drain(&mut self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown>;

    /// Ends a session that has no open runs; false if it has some.
    fn leave(&mut self, me: SessionId) -> Result<bool, StoreDown>;

    /// Reads all living sessions, the epoch, and up to `most_runs` open runs of dead sessions.
    fn watch(&mut self, most_runs: usize) -> Result<Watch, StoreDown>;

    /// Marks sessions dead whose beat is still the one that was seen; only in the open epoch.
    fn fence(&mut self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown>;

    /// Notes since when a watcher has doubted sessions, for people to see (L2). A note holds until the session's next
    /// beat, and is made once for each beat that was the last one seen. Nothing that is decided depends on it.
    fn doubt(&mut self, silent: &[Silent]) -> Result<(), StoreDown>;

    /// Opens the current epoch after its quarantine; false if it is not the current one.
    fn open_epoch(&mut self, epoch: Epoch) -> Result<bool, StoreDown>;

    // Runs.

    /// Opens runs: each a compare-and-set on its job's version, within the limits of its counters.
    /// A claim that is asked again, under its run id, is granted again while its run is open and the job's
    /// latest; else it is lost.
    fn claim(&mut self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims, StoreDown>;

    /// Takes note of how far runs have come; false for those that are not open with that fence.
    fn mark(&mut self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown>;

    /// Ends runs: by their owner, or because their owner is dead. Frees jobs and counters with it. What the asker does
    /// not own is [late](EndAnswer::Late), whatever its fence: a worker may have taken it over.
    fn end(&mut self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown>;

    /// Writes what time alone has changed about jobs: occurrences that went on record without any run.
    fn settle(
        &mut self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown>;

    /// A worker wins or loses the start of a run that was published. From then on the run belongs to the
    /// worker's own session, which beats and is watched like any other. Only in the open epoch, and only under a lease
    /// of that epoch: a failover may have lost another's start, and the leases that were given out after it. The
    /// owner of such a run takes it back, and claims again. A start that is repeated by the session that has won it is won
    /// again. That does not count as a beat: a worker trusts its lease from its first request under this session, and then
    /// from its beats.
    fn start_on_worker(
        &mut self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown>;

    // Jobs.

    /// Writes jobs: new ones, edits, pauses, triggers, moves of a plan, removals. A removed job leaves its
    /// fence behind, and the same key goes on from it. Once that row was trimmed too, every new row begins with the
    /// greatest fence and version that were ever trimmed, so that neither repeats. A request for a run that repeats an
    /// earlier one of the same job writes nothing, whatever has become of the job.
    fn put_jobs(&mut self, puts: &[PutJob]) -> Result<Vec<PutAnswer>, StoreDown>;

    /// Keeps a plan for [`PLAN_LIFE`]; of one caller the last [`PLANS_PER_CALLER`], of all the last [`PLANS_MAX`].
    fn put_plan(&mut self, plan: &NewPlan) -> Result<(), StoreDown>;

    /// Writes the jobs of a plan as [`Store::put_jobs`] does, but all of them or none. A plan is applied once.
    fn apply_plan(&mut self, plan: &ApplyPlan) -> Result<PlanAnswer, StoreDown>;

    /// Asks the owners of runs to end them; they hear it at their next beat.
    fn cancel(&mut self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown>;

    /// A page of the jobs that changed since a cursor, oldest change first, each once. Without a cursor, a page of all
    /// jobs.
    fn changes(&mut self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown>;

    // Housekeeping.

    /// Recounts counters from the open runs, and returns those that were wrong, as they were.
    ///
    /// Claims that lie in the future were written by a clock that was ahead: they are set to now, so that no job
    /// waits for that time to come (T3).
    fn recount(&mut self) -> Result<Vec<CounterRow>, StoreDown>;

    /// Start messages that wait to be published, oldest first.
    fn outbox(&mut self, most: usize) -> Result<Vec<OutboxRow>, StoreDown>;

    /// Those messages have been published: their runs are `published`, and they are not sent again.
    fn published(&mut self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown>;

    /// Removes what is older than it need be, by the store's own clock.
    fn trim(&mut self, retention: &Retention) -> Result<Trimmed, StoreDown>;
}

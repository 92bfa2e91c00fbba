//! The first door for writing: what people say. Edits, pauses, triggers, cancels, moves of a plan; the engine learns of
//! them through the feed.
//!
//! Whatever is asked is worked out from the job's row as it is ([`evenbeat_core::edit`]), and written only if the row is
//! still that one; else it is worked out again. Every write leaves a line in the audit.

mod allowed;
mod apply;
mod audit;
mod backfill;
mod bulk;
mod error;
mod in_flight;
mod plan_summary;
mod limits;
mod plan_text;
mod preview;
mod rebalance;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenbeat_core::edit;
use evenbeat_core::ids::{ExtraId, JobKey, NodeName, RunId, SessionId};
use evenbeat_core::job::{Extra, Job, JobState, PausedBy};
use evenbeat_core::notice::Notice;
use evenbeat_core::occurrence::Due;
use evenbeat_core::repair::{self, Fault};
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::{
    Cancelled, Idempotency, JobRow, PutAnswer, PutJob, Revision, RunFilter, RunPhase, RunRequest,
    SessionKind, StoreDown,
};
use evenbeat_core::time::Timestamp;
use evenbeat_core::value::Value;
use tokio::time::Instant;

pub use allowed::{JobPolicy, Quota};
pub use apply::{ApplyOptions, ApplyResult, JobChange};
pub use audit::AuditChange;
pub use bulk::{BulkAction, BulkOutcome};
pub use error::IntakeError;
pub use limits::{RequestFault, backfill_range, pause_end, pause_reason};
pub use plan_summary::{ListedMove, PlanSummary};
pub use preview::DefinitionPreview;
use rebalance::Previews;
pub use rebalance::{PreviewLimits, RebalanceResult, StoredPlan};

use crate::clock::Clock;
use crate::fleet::Fleet;
use crate::mint::mint;
use crate::node::NodeHandle;
use crate::node::telemetry::Telemetry;
use crate::store::any::AnyStore;
use crate::store::query::PAGE_MAX;
use in_flight::KeysInFlight;

/// How often a change is retried after losing a race.
const N_TRIES: u32 = 10;

/// Number of open runs of one job that are looked at.
const OPEN_MAX: usize = 1_000;

/// How often the runs of a node that is being drained are looked at.
const STARTS_LOOK_EVERY: Duration = Duration::from_millis(50);

/// How many times at most.
const STARTS_LOOKS_MAX: u32 = 100;

/// Who asks: a token's name, a user of the machine, or the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor(pub String);

/// The door. Copies share everything.
#[derive(Clone, Debug)]
pub struct Intake {
    inner: Arc<IntakeState>,
}

#[derive(Debug)]
struct IntakeState {
    store: AnyStore,
    fleet: Fleet,
    node: NodeHandle,
    telemetry: Telemetry,
    allowed: JobPolicy,
    clock: Clock,
    in_flight: KeysInFlight,
    previews: Previews,
    preview_limits: PreviewLimits,
}

/// What a door needs.
#[derive(Debug)]
pub struct IntakeParts {
    /// Where the fleet is kept.
    pub store: AnyStore,
    /// The fleet as this process sees it.
    pub fleet: Fleet,
    /// The node that carries out what is written.
    pub node: NodeHandle,
    /// Logs, metrics and events.
    pub telemetry: Telemetry,
    /// What jobs may ask for.
    pub allowed: JobPolicy,
    /// How much a rebalance plan may take.
    pub preview_limits: PreviewLimits,
    /// What time it is.
    pub clock: Clock,
}

/// What is expected of a job before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    #[default]
    Any,
    /// It is not there.
    New,
    /// People see it as it was then.
    Revision(Revision),
}

impl Intake {
    /// A door to this store.
    pub fn new(parts: IntakeParts) -> Intake {
        let IntakeParts { store, fleet, node, telemetry, allowed, preview_limits, clock } = parts;
        let in_flight = KeysInFlight::default();
        let previews = Previews::default();
        let state = IntakeState {
            store,
            fleet,
            node,
            telemetry,
            allowed,
            clock,
            in_flight,
            previews,
            preview_limits,
        };
        Intake { inner: Arc::new(state) }
    }

    /// Creates a job, or gives it another definition.
    pub async fn put(&self, actor: &Actor, job: Arc<Job>, expect: Expect) -> Result<JobRow, IntakeError> {
        self.inner.allowed.check(&job)?;
        let mut seen = self.inner.store.job(&job.key).await?;
        for _ in 0..N_TRIES {
            expect.check(&job.key, seen.as_ref())?;
            let mut unwritten = self.unwritten();
            unwritten.add(&job.key, seen.as_ref());
            let put = self.work_out_put(job.clone(), seen.as_ref()).await?;
            let action = if seen.as_ref().is_some_and(|row| !row.is_deleted) { "edit" } else { "create" };
            let put = PutJob { audit: Some(audit::of_job(actor, action, "", seen.as_ref(), &put)), ..put };
            match self.write(put, unwritten).await? {
                Ok(row) => return Ok(row),
                Err(newer) => seen = newer,
            }
        }
        Err(IntakeError::TooBusy { key: job.key.clone() })
    }

    /// Starts nothing more of a job, until an instant if one is given.
    pub async fn pause(
        &self,
        actor: &Actor,
        key: &JobKey,
        reason: Option<String>,
        until: Option<Timestamp>,
    ) -> Result<JobRow, IntakeError> {
        // First the end of an earlier pause goes: whatever happens then, no pause ends too early.
        self.inner.store.clear_pause_end(key.clone(), Timestamp::MAX).await?;
        let detail = pause_detail(reason.as_deref(), until);
        let row = self.change(actor, "pause", &detail, key, |row, _, _| {
            edit::pause(row, PausedBy::Operator, reason.clone()).map_err(|it| refused(key, it))
        });
        let row = row.await?;
        self.note_pause_end(&row, until).await?;
        Ok(row)
    }

    /// Notes when the pause of a job ends automatically. Fails if someone else has changed the job since.
    async fn note_pause_end(&self, row: &JobRow, until: Option<Timestamp>) -> Result<(), IntakeError> {
        let Some(until) = until else { return Ok(()) };
        let key = row.job.key.clone();
        if self.inner.store.set_pause_end(key.clone(), row.revision, until).await? {
            return Ok(());
        }
        Err(IntakeError::TooBusy { key })
    }

    /// Resumes a job whose pause has ended.
    pub async fn end_pause(&self, key: &JobKey) -> Result<(), IntakeError> {
        let system = Actor("system".to_owned());
        let row = self.inner.store.job(key).await?.filter(|row| !row.is_deleted);
        let is_paused = row.is_some_and(|row| {
            row.state.pause.as_deref().is_some_and(|pause| pause.by == PausedBy::Operator)
        });
        if is_paused {
            match self.resume_paused(&system, key).await {
                Ok(_)
                | Err(
                    IntakeError::NoSuchJob { .. }
                    | IntakeError::Refused { refusal: edit::Refusal::NotPaused, .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        // Only now: a process that dies in between leaves it to the next one. A pause that began meanwhile ends later.
        Ok(self.inner.store.clear_pause_end(key.clone(), self.now()).await?)
    }

    /// Resumes a paused job, with a new placement.
    pub async fn resume(&self, actor: &Actor, key: &JobKey) -> Result<JobRow, IntakeError> {
        self.inner.store.clear_pause_end(key.clone(), Timestamp::MAX).await?;
        self.resume_paused(actor, key).await
    }

    async fn resume_paused(&self, actor: &Actor, key: &JobKey) -> Result<JobRow, IntakeError> {
        self.change(actor, "resume", "", key, |row, open, now| {
            let placement = self.place(&row.job, &row.state, now);
            let resumed = match edit::resume(row, open, placement.clone(), now) {
                // What waits because its next run cannot be goes on in the same way.
                Err(edit::Refusal::NotPaused) => {
                    edit::mend(row, placement, now).map_err(|_| edit::Refusal::NotPaused)
                }
                resumed => resumed,
            };
            resumed.map_err(|it| refused(key, it))
        })
        .await
    }

    /// Places a job again whose stored next run is impossible. None if nothing is wrong with it.
    pub async fn mend(&self, key: &JobKey) -> Result<Option<JobRow>, IntakeError> {
        let system = Actor("system".to_owned());
        let mended = self.change(&system, "mend", "", key, |row, _, now| {
            repair::fault(&row.job, &row.state, row.n_open, now)
                .ok_or_else(|| refused(key, edit::Refusal::Sound))?;
            let placement = self.place(&row.job, &row.state, now);
            edit::mend(row, placement, now).map_err(|it| refused(key, it))
        });
        match mended.await {
            Ok(row) => Ok(Some(row)),
            Err(
                IntakeError::Refused { refusal: edit::Refusal::Sound, .. } | IntakeError::NoSuchJob { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets jobs go on that were stamped by a clock that was ahead and has been set right. Returns how many there were;
    /// those that change at the same time are told again by the feed.
    pub async fn set_right(&self, keys: Arc<[JobKey]>) -> Result<usize, IntakeError> {
        let system = Actor("system".to_owned());
        let now = self.now();
        let mut puts = Vec::new();
        for row in self.inner.store.jobs_of(keys).await?.iter().filter(|row| !row.is_deleted) {
            let at = match repair::fault(&row.job, &row.state, row.n_open, now) {
                Some(Fault::ClockWasAhead(at)) => at,
                None if repair::was_carried_along(&row.job, &row.state, row.n_open, now) => {
                    row.state.next_run_at.unwrap_or(now)
                }
                _ => continue,
            };
            let Ok(mut put) = edit::set_right(row, now) else { continue };
            let detail = format!("the clock was ahead, by what was stored up to {at}");
            put.audit = Some(audit::of_job(&system, "mend", &detail, Some(row), &put));
            puts.push(put);
        }
        if puts.is_empty() {
            return Ok(0);
        }
        let mut n_repaired = 0;
        for answer in self.inner.store.put_jobs(puts).await? {
            if let PutAnswer::Put(row) = answer {
                n_repaired += 1;
                self.note(&row.job.key, Some(&row));
            }
        }
        self.inner.node.nudge();
        Ok(n_repaired)
    }

    /// Requests a run now, and returns the id of the request. A request that repeats an earlier one gets the earlier id,
    /// and no other run.
    pub async fn trigger(
        &self,
        actor: &Actor,
        key: &JobKey,
        idempotency: Option<Idempotency>,
        params: Option<BTreeMap<String, Value>>,
    ) -> Result<ExtraId, IntakeError> {
        let _in_flight = idempotency.map(|it| self.inner.in_flight.enter(it.key)).transpose()?;
        if let Some(asked) = idempotency
            && let Some(earlier) = self.inner.store.request_by_key(asked.key).await?
        {
            return repeated(asked, &earlier);
        }
        let id = ExtraId(mint(self.inner.clock.now()));
        let params = params.map(Arc::new);
        let detail = id.to_string();
        let changed = self.change(actor, "trigger", &detail, key, |row, _, now| {
            let extra = Extra { params: params.clone(), ..Extra::manual(id, now) };
            let put = edit::trigger(row, extra).map_err(|it| refused(key, it))?;
            Ok(PutJob { request: Some(RunRequest { id, idempotency }), ..put })
        });
        match (changed.await, idempotency) {
            // Another node was asked the same a moment ago.
            (Err(IntakeError::Repeated { earlier }), Some(asked)) => repeated(asked, &earlier),
            (changed, _) => changed.map(|_| id),
        }
    }

    /// Takes back a request for a run that has not begun.
    pub async fn withdraw(&self, actor: &Actor, key: &JobKey, id: ExtraId) -> Result<(), IntakeError> {
        let detail = format!("request {id}");
        let changed = self.change(actor, "cancel", &detail, key, |row, _, _| {
            edit::withdraw(row, id).map_err(|it| refused(key, it))
        });
        changed.await.map(|_| ())
    }

    /// Removes a job. What runs of it may end.
    pub async fn remove(&self, actor: &Actor, key: &JobKey, expect: Expect) -> Result<(), IntakeError> {
        self.change(actor, "delete", "", key, |row, _, _| {
            expect.check(key, Some(row))?;
            edit::remove(row).map_err(|it| refused(key, it))
        })
        .await?;
        Ok(())
    }

    /// Asks the owner of a run to end it.
    pub async fn cancel(&self, actor: &Actor, run: RunId) -> Result<Cancelled, IntakeError> {
        let cancelled = self.inner.store.cancel(vec![run]).await?;
        let cancelled = cancelled.first().copied().unwrap_or(Cancelled::Unknown);
        if cancelled == Cancelled::Asked {
            let job = self.inner.store.run(run).await?.map(|row| row.key.to_string());
            let after = Some(serde_json::json!({ "run": run.to_string() }));
            let (subject, detail) = (job.unwrap_or_default(), format!("run {run}"));
            self.append_audit(actor, AuditChange { action: "cancel", subject, detail, after, before: None })
                .await?;
            self.inner.telemetry.tell(Notice::CancelRequested { run, actor: actor.0.clone() });
            self.inner.node.nudge();
        }
        Ok(cancelled)
    }

    /// Says whether the living sessions of a node take new runs.
    pub async fn drain(
        &self,
        actor: &Actor,
        node: &NodeName,
        is_draining: bool,
    ) -> Result<usize, IntakeError> {
        let sessions = self.inner.store.sessions().await?;
        let mut n_told = 0;
        let theirs = |it: &&evenbeat_core::store::SessionRow| {
            !it.is_dead && it.spec.kind == SessionKind::Node && it.spec.node == *node
        };
        let theirs: Vec<SessionId> = sessions.iter().filter(theirs).map(|it| it.spec.id).collect();
        for session in &theirs {
            n_told += usize::from(self.inner.store.drain(*session, is_draining).await?);
        }
        if n_told == 0 {
            return Err(IntakeError::NoSuchNode { node: node.clone() });
        }
        let action = if is_draining { "drain" } else { "undrain" };
        let change = AuditChange {
            action,
            subject: format!("node {node}"),
            before: Some(serde_json::json!({ "draining": !is_draining })),
            after: Some(serde_json::json!({ "draining": is_draining })),
            ..AuditChange::default()
        };
        self.append_audit(actor, change).await?;
        let actor = actor.0.clone();
        self.inner.telemetry.tell(Notice::DrainChanged { node: node.clone(), is_draining, actor });
        self.inner.node.nudge();
        if is_draining {
            self.await_starts(&theirs).await?;
        }
        Ok(n_told)
    }

    /// Records a change of something that is not a job.
    pub async fn append_audit(&self, actor: &Actor, change: AuditChange) -> Result<(), StoreDown> {
        self.inner.store.append_audit(change.by(actor)).await
    }

    /// Waits until what these sessions had claimed has started or was given back, so that nothing starts after a
    /// drain was answered. Not for ever: a node that hangs must not hold up the drain.
    async fn await_starts(&self, sessions: &[SessionId]) -> Result<(), IntakeError> {
        for _ in 0..STARTS_LOOKS_MAX {
            let open = RunFilter { key: None, is_open: true };
            let open = self.inner.store.runs(open, None, PAGE_MAX).await?;
            if !open.iter().any(|run| run.phase == RunPhase::Claimed && sessions.contains(&run.session)) {
                break;
            }
            tokio::time::sleep(STARTS_LOOK_EVERY).await;
        }
        Ok(())
    }

    /// What jobs may ask for here.
    pub fn policy(&self) -> &JobPolicy {
        &self.inner.allowed
    }

    /// What time it is for the fleet.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.store_now()
    }

    /// Works out a change of a job that is there, from its row, what its open runs serve, and the time; and writes it.
    /// Again if another was quicker.
    async fn change(
        &self,
        actor: &Actor,
        action: &'static str,
        detail: &str,
        key: &JobKey,
        work_out: impl Fn(&JobRow, &[Due], Timestamp) -> Result<PutJob, IntakeError>,
    ) -> Result<JobRow, IntakeError> {
        let mut seen = self.inner.store.job(key).await?;
        for _ in 0..N_TRIES {
            let Some(row) = seen.filter(|row| !row.is_deleted) else {
                return Err(IntakeError::NoSuchJob { key: key.clone() });
            };
            let open = if row.n_open == 0 { Vec::new() } else { self.open_of(key).await? };
            let now = self.now();
            let mut unwritten = self.unwritten();
            unwritten.add(key, Some(&row));
            let put = work_out(&row, &open, now)?;
            let put = PutJob { audit: Some(audit::of_job(actor, action, detail, Some(&row), &put)), ..put };
            match self.write(put, unwritten).await? {
                Ok(row) => return Ok(row),
                Err(newer) => seen = newer,
            }
        }
        Err(IntakeError::TooBusy { key: key.clone() })
    }

    /// Writes one job. The inner error is the row that is there instead.
    async fn write(
        &self,
        put: PutJob,
        unwritten: LedgerRollback,
    ) -> Result<Result<JobRow, Option<JobRow>>, IntakeError> {
        let key = put.job.key.clone();
        let told = Notice::of_records(&key, &put.records);
        // If the store does not answer, the job may or may not have been written. The ledger goes back to what it was
        // before, and if it was written the feed tells.
        let answers = self.inner.store.put_jobs(vec![put]).await?;
        let written = match answers.into_iter().next() {
            Some(PutAnswer::Put(row)) => Ok(row),
            Some(PutAnswer::Stale(row)) => Err(Some(row)),
            Some(PutAnswer::Gone) | None => Err(None),
            Some(PutAnswer::Repeated(earlier)) => return Err(IntakeError::Repeated { earlier }),
        };
        unwritten.settle();
        self.note(&key, written.as_ref().map_or_else(Option::as_ref, Some));
        if written.is_ok() {
            self.inner.telemetry.tell_all(told);
        }
        self.inner.node.nudge();
        Ok(written)
    }

    fn unwritten(&self) -> LedgerRollback {
        LedgerRollback { intake: self.clone(), jobs: Vec::new() }
    }

    /// What the ledger believes of a job from now on.
    fn note(&self, key: &JobKey, row: Option<&JobRow>) {
        self.inner.fleet.note(key, row);
    }

    async fn work_out_put(&self, job: Arc<Job>, seen: Option<&JobRow>) -> Result<PutJob, IntakeError> {
        let now = self.now();
        let key = job.key.clone();
        let put = match seen.filter(|row| !row.is_deleted) {
            None => {
                let placement = self.place(&job, &JobState::new(now), now);
                edit::create(job, seen, placement, now)
            }
            Some(row) if edit::needs_placement(row, &job) => {
                let open = self.open_of(&job.key).await?;
                let placement = self.place(&job, &row.state, now);
                edit::edit(row, &open, job, placement, now)
            }
            Some(row) => edit::edit(row, &[], job, None, now),
        };
        put.map_err(|refusal| IntakeError::Refused { key, refusal })
    }

    /// Where a job goes, and at once on the ledger, so that the next one sees it there.
    fn place(&self, job: &Job, state: &JobState, now: Timestamp) -> Option<Placement> {
        if !job.enabled {
            return None;
        }
        let began = Instant::now();
        let mut ledger = self.inner.fleet.ledger();
        ledger.remove(&job.key);
        let (placement, spot) = ledger.place(&self.inner.allowed.placed_as(job), state, now)?;
        let mut placed = state.clone();
        placed.pause = None;
        placed.place(job, placement.clone());
        ledger.put(&job.key, job, &placed);
        let width = ledger.balance().width;
        drop(ledger);
        self.inner.telemetry.metrics().placed_within(began.elapsed());
        self.inner.telemetry.tell(Notice::placed(&job.key, &spot, width));
        Some(placement)
    }

    /// What the open runs of a job serve.
    async fn open_of(&self, key: &JobKey) -> Result<Vec<Due>, StoreDown> {
        let filter = RunFilter { key: Some(key.clone()), is_open: true };
        let runs = self.inner.store.runs(filter, None, OPEN_MAX).await?;
        Ok(runs.into_iter().map(|run| run.due).collect())
    }
}

/// Jobs whose new places are on the ledger and not yet in the store. Whatever keeps them from being written (an error,
/// an outage, a request that was given up) takes their load off the ledger again.
struct LedgerRollback {
    intake: Intake,
    jobs: Vec<(JobKey, Option<JobRow>)>,
}

impl LedgerRollback {
    /// A job that is about to be placed, and what the store has of it now.
    fn add(&mut self, key: &JobKey, row: Option<&JobRow>) {
        self.jobs.push((key.clone(), row.cloned()));
    }

    /// The store has answered: what the ledger believes of them is noted from its answers.
    fn settle(mut self) {
        self.jobs.clear();
    }
}

impl Drop for LedgerRollback {
    fn drop(&mut self) {
        for (key, row) in std::mem::take(&mut self.jobs) {
            self.intake.note(&key, row.as_ref());
        }
    }
}

impl Expect {
    fn check(self, key: &JobKey, row: Option<&JobRow>) -> Result<(), IntakeError> {
        let row = row.filter(|row| !row.is_deleted);
        match (self, row) {
            (Expect::Any, _) | (Expect::New, None) => Ok(()),
            (Expect::New, Some(_)) => Err(refused(key, edit::Refusal::Exists)),
            (Expect::Revision(_), None) => Err(IntakeError::NoSuchJob { key: key.clone() }),
            (Expect::Revision(seen), Some(row)) if row.revision == seen => Ok(()),
            (Expect::Revision(_), Some(row)) => {
                Err(IntakeError::OtherRevision { key: key.clone(), is: row.revision })
            }
        }
    }
}

/// The answer to a request that was made before.
fn repeated(asked: Idempotency, earlier: &RunRequest) -> Result<ExtraId, IntakeError> {
    if earlier.idempotency.is_some_and(|it| it.body == asked.body) {
        Ok(earlier.id)
    } else {
        Err(IntakeError::KeyReused)
    }
}

/// Why, and for how long, for people.
fn pause_detail(reason: Option<&str>, until: Option<Timestamp>) -> String {
    let until = until.map(|until| format!("until {until}"));
    [reason.map(str::to_owned), until].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn refused(key: &JobKey, refusal: edit::Refusal) -> IntakeError {
    IntakeError::Refused { key: key.clone(), refusal }
}

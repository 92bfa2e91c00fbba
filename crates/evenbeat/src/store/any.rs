//! The configured store, SQLite or PostgreSQL: the duties and views of the contract, without blocking.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{
    ApplyPlan, AuditEntry, Beat, Cancelled, Changes, Claim, Claims, CounterRow, Cursor, End, EndAnswer,
    Fencing, JobRow, Joined, Lives, Mark, NewPlan, OwnerPing, PlanAnswer, PlanId, PlanRow, PutAnswer, PutJob,
    RecordRow, Retention, Revision, RunFilter, RunRequest, RunRow, SessionRow, SessionSpec, Settle,
    SettleAnswer, Store, StoreDown, Trimmed, Views, Watch,
};
use evenbeat_core::time::{TimeWindow, Timestamp};

use super::postgres::PgStore;
use super::query::{
    AuditChainPage, AuditFilter, AuditPage, Count, CounterUse, JobFilter, JobPage, PlacedRow, RequestRow,
    RunName, RunPage, RunQuery, ScorePoint, SharedKind,
};
use super::run_times::{Member, MemberBy, RunOrder, RunTimes};
use super::spans::{GroupBy, GroupSpan, GroupTotal, JobSpan, SpanCursor};
use super::sqlite::SqliteStore;

/// A handle to a store. Clones share it.
#[derive(Clone, Debug)]
pub enum AnyStore {
    /// A file on this machine, for one process.
    Sqlite(SqliteStore),
    /// A server, for a cluster.
    Postgres(PgStore),
}

/// A write. With SQLite it runs on the writer thread, so it owns its arguments.
macro_rules! write {
    ($self:expr, |$tx:ident| $asked:expr, |$server:ident| $served:expr) => {
        match $self {
            AnyStore::Sqlite(file) => file.ask(move |$tx| $asked).await,
            // Boxed: the future has many steps and would bloat that of every caller.
            AnyStore::Postgres($server) => Box::pin($served).await,
        }
    };
}

/// A read. It does not wait for the writer.
macro_rules! look {
    ($self:expr, |$tx:ident| $looked:expr, |$server:ident| $served:expr) => {
        match $self {
            AnyStore::Sqlite(file) => file.look_async(move |$tx| $looked).await,
            AnyStore::Postgres($server) => $served.await,
        }
    };
}

pub(super) use {look, write};

/// The duties. [`Store`] says what each promises.
impl AnyStore {
    /// Whose earlier sessions a process may take over.
    pub fn lives(&self) -> Lives {
        match self {
            AnyStore::Sqlite(_) => Lives::OfAllNodes,
            AnyStore::Postgres(_) => Lives::OfThisBoot,
        }
    }

    /// Begins a session.
    pub async fn join(&self, session: SessionSpec, timings: Timings) -> Result<Joined, StoreDown> {
        write!(self, |tx| tx.join(&session, &timings), |server| server.join(&session, &timings))
    }

    /// Takes over the open runs of earlier sessions.
    pub async fn adopt(&self, me: SessionId) -> Result<Vec<RunRow>, StoreDown> {
        let lives = self.lives();
        write!(self, |tx| tx.adopt(me, lives), |server| server.adopt(me, lives))
    }

    /// Sends the session's heartbeat, and reads its open runs.
    pub async fn beat(&self, me: SessionId) -> Result<Beat, StoreDown> {
        write!(self, |tx| tx.beat(me), |server| server.beat(me))
    }

    /// Sets whether a session takes new runs.
    pub async fn drain(&self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.drain(session, is_draining), |server| server.drain(session, is_draining))
    }

    /// Ends a session that has no open runs.
    pub async fn leave(&self, me: SessionId) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.leave(me), |server| server.leave(me))
    }

    /// Reads all living sessions.
    pub async fn watch(&self, most_runs: usize) -> Result<Watch, StoreDown> {
        look!(self, |tx| tx.watch(most_runs), |server| server.watch(most_runs))
    }

    /// Marks silent sessions dead.
    pub async fn fence(&self, epoch: Epoch, silent: Vec<Silent>) -> Result<Vec<Fencing>, StoreDown> {
        write!(self, |tx| tx.fence(epoch, &silent), |server| server.fence(epoch, &silent))
    }

    /// Records since when sessions have been silent.
    pub async fn doubt(&self, silent: Vec<Silent>) -> Result<(), StoreDown> {
        write!(self, |tx| tx.doubt(&silent), |server| server.doubt(&silent))
    }

    /// Opens an epoch.
    pub async fn open_epoch(&self, epoch: Epoch) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.open_epoch(epoch), |server| server.open_epoch(epoch))
    }

    /// Opens runs.
    pub async fn claim(&self, me: SessionId, epoch: Epoch, claims: Vec<Claim>) -> Result<Claims, StoreDown> {
        write!(self, |tx| tx.claim(me, epoch, &claims), |server| server.claim(me, epoch, &claims))
    }

    /// Records that runs have started.
    pub async fn mark(&self, marks: Vec<Mark>) -> Result<Vec<bool>, StoreDown> {
        write!(self, |tx| tx.mark(&marks), |server| server.mark(&marks))
    }

    /// Ends runs, after recording which of them had started.
    pub async fn end(
        &self,
        epoch: Epoch,
        marks: Vec<Mark>,
        ends: Vec<End>,
    ) -> Result<Vec<EndAnswer>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.end_marked(epoch, &marks, &ends)).await,
            AnyStore::Postgres(server) => {
                if !marks.is_empty() {
                    server.mark(&marks).await?;
                }
                Box::pin(server.end(epoch, &ends)).await
            }
        }
    }

    /// Writes state that changed with time alone.
    pub async fn settle(
        &self,
        me: SessionId,
        epoch: Epoch,
        settles: Vec<Settle>,
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        write!(self, |tx| tx.settle(me, epoch, &settles), |server| server.settle(me, epoch, &settles))
    }

    /// Writes jobs.
    pub async fn put_jobs(&self, puts: Vec<PutJob>) -> Result<Vec<PutAnswer>, StoreDown> {
        write!(self, |tx| tx.put_jobs(&puts), |server| server.put_jobs(&puts))
    }

    /// Keeps a rebalance plan for a while.
    pub async fn put_plan(&self, plan: NewPlan) -> Result<(), StoreDown> {
        write!(self, |tx| tx.put_plan(&plan), |server| server.put_plan(&plan))
    }

    /// Writes the jobs of a plan, all of them or none.
    pub async fn apply_plan(&self, plan: ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        write!(self, |tx| tx.apply_plan(&plan), |server| server.apply_plan(&plan))
    }

    /// Asks the owners of runs to end them.
    pub async fn cancel(&self, runs: Vec<RunId>) -> Result<Vec<Cancelled>, StoreDown> {
        write!(self, |tx| tx.cancel(&runs), |server| server.cancel(&runs))
    }

    /// Adds an audit entry that is not about a job.
    pub async fn append_audit(&self, entry: AuditEntry) -> Result<(), StoreDown> {
        write!(self, |tx| tx.append_audit(&entry), |server| server.append_audit(&entry))
    }

    /// Chains audit entries that are not chained yet, some at a time. Returns how many.
    pub async fn chain_audit(&self) -> Result<usize, StoreDown> {
        write!(self, |tx| tx.chain_audit(), |server| server.chain_audit())
    }

    /// Checks that the store accepts writes.
    pub async fn probe(&self) -> Result<(), StoreDown> {
        write!(self, |tx| tx.probe(), |server| server.probe())
    }

    /// The jobs that changed since a cursor.
    pub async fn changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        look!(self, |tx| tx.changes(since, most), |server| server.changes(since, most))
    }

    /// Recounts all counters.
    pub async fn recount(&self) -> Result<Vec<CounterRow>, StoreDown> {
        write!(self, |tx| tx.recount(), |server| server.recount())
    }

    /// Removes what is older than the retention says.
    pub async fn trim(&self, retention: Retention) -> Result<Trimmed, StoreDown> {
        write!(self, |tx| tx.trim(&retention), |server| server.trim(&retention))
    }

    /// Stores a sample of the score, and removes older ones than `keep_since`.
    pub async fn put_score(&self, point: ScorePoint, keep_since: Timestamp) -> Result<(), StoreDown> {
        write!(self, |tx| tx.put_score(&point, keep_since), |server| server.put_score(&point, keep_since))
    }
}

/// The views. [`Views`] says what each shows.
impl AnyStore {
    /// One job.
    pub async fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |tx| tx.job(&wanted), |server| server.job(key))
    }

    /// Several jobs. Missing ones are left out.
    pub async fn jobs_of(&self, keys: Arc<[JobKey]>) -> Result<Vec<JobRow>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => {
                let look = move |tx: &super::sqlite::ReadTx<'_>| {
                    keys.iter().filter_map(|key| tx.job(key).transpose()).collect()
                };
                file.look_async(look).await
            }
            AnyStore::Postgres(server) => server.jobs_of(&keys).await,
        }
    }

    /// Jobs by key, after one of them.
    pub async fn jobs(&self, after: Option<JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        look!(self, |tx| tx.jobs(after.as_ref(), most), |server| server.jobs(after.as_ref(), most))
    }

    /// Runs, the latest first.
    pub async fn runs(
        &self,
        filter: RunFilter,
        before: Option<RunId>,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreDown> {
        look!(self, |tx| tx.runs(&filter, before, most), |server| server.runs(&filter, before, most))
    }

    /// The records of a job that begin before an instant, the latest first.
    pub async fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |tx| tx.records(&wanted, before, most), |server| server.records(key, before, most))
    }

    /// All sessions.
    pub async fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        look!(self, |tx| tx.sessions(), |server| server.sessions())
    }

    /// The last heartbeats of the owners of open runs.
    pub async fn owner_pings(&self, runs: Vec<RunId>) -> Result<Vec<OwnerPing>, StoreDown> {
        look!(self, |tx| tx.owner_pings(&runs), |server| server.owner_pings(&runs))
    }

    /// All counters.
    pub async fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        look!(self, |tx| tx.counters(), |server| server.counters())
    }

    /// A rebalance plan that can still be applied.
    pub async fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        look!(self, |tx| tx.plan(id), |server| server.plan(id))
    }

    /// What a rebalance needs of jobs, by key, after one of them.
    pub async fn placed_jobs(&self, after: Option<JobKey>, most: usize) -> Result<Vec<PlacedRow>, StoreDown> {
        look!(self, |tx| tx.placed_jobs(after.as_ref(), most), |server| server
            .placed_jobs(after.as_ref(), most))
    }

    /// The audit entries.
    pub async fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        look!(self, |tx| tx.audit(most), |server| server.audit(most))
    }

    /// A page of the audit entries that match a filter, the latest first.
    pub async fn list_audit(
        &self,
        filter: AuditFilter,
        before: Option<u64>,
        most: usize,
    ) -> Result<AuditPage, StoreDown> {
        look!(self, |tx| tx.list_audit(&filter, before, most), |server| server
            .list_audit(&filter, before, most))
    }

    /// The chain of audit entries after one of its links.
    pub async fn audit_chain(&self, after: u64, most: usize) -> Result<AuditChainPage, StoreDown> {
        look!(self, |tx| tx.audit_chain(after, most), |server| server.audit_chain(after, most))
    }

    /// The number of jobs that match a filter, as far as that is quickly counted.
    pub async fn count_jobs(&self, filter: JobFilter) -> Result<Count, StoreDown> {
        look!(self, |tx| tx.count_jobs(&filter), |server| server.count_jobs(&filter))
    }

    /// A page of the jobs that match a filter.
    pub async fn list_jobs(
        &self,
        filter: JobFilter,
        after: Option<JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        look!(self, |tx| tx.list_jobs(&filter, after.as_ref(), most), |server| server.list_jobs(
            &filter,
            after.as_ref(),
            most
        ))
    }

    /// A page of ended runs.
    pub async fn list_runs(
        &self,
        query: RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        look!(self, |tx| tx.list_runs(&query, before, most), |server| server.list_runs(&query, before, most))
    }

    /// When runs that ended in a window ran, up to `most` of them.
    pub async fn ended_run_times(
        &self,
        window: TimeWindow,
        order: RunOrder,
        most: usize,
    ) -> Result<Vec<RunTimes>, StoreDown> {
        look!(self, |tx| tx.ended_run_times(window, order, most), |server| server
            .ended_run_times(window, order, most))
    }

    /// Since when open runs run, up to `most` of them.
    pub async fn open_run_times(&self, most: usize) -> Result<Vec<RunTimes>, StoreDown> {
        look!(self, |tx| tx.open_run_times(most), |server| server.open_run_times(most))
    }

    /// Jobs with their site or the value of a label, group after group, up to `most` of them.
    pub async fn members(&self, by: MemberBy, most: usize) -> Result<Vec<Member>, StoreDown> {
        look!(self, |tx| tx.members(&by, most), |server| server.members(&by, most))
    }

    /// The names of labels that jobs have, up to `most` of them.
    pub async fn label_names(&self, most: usize) -> Result<Vec<String>, StoreDown> {
        look!(self, |tx| tx.label_names(most), |server| server.label_names(most))
    }

    /// The latest ended runs of several jobs, at most `most` of each: by job, the latest first.
    pub async fn latest_runs(
        &self,
        keys: Arc<[JobKey]>,
        most: usize,
    ) -> Result<BTreeMap<JobKey, Vec<RunRow>>, StoreDown> {
        let runs = look!(self, |tx| tx.latest_runs(&keys, most), |server| server.latest_runs(&keys, most))?;
        let mut by_job: BTreeMap<JobKey, Vec<RunRow>> = BTreeMap::new();
        for run in runs {
            by_job.entry(run.key.clone()).or_default().push(run);
        }
        for runs in by_job.values_mut() {
            runs.sort_by_key(|it| std::cmp::Reverse(it.run));
        }
        Ok(by_job)
    }

    /// The number of open runs of each session that has any.
    pub async fn open_runs_by_session(&self) -> Result<BTreeMap<SessionId, u64>, StoreDown> {
        look!(self, |tx| tx.open_runs_by_session(), |server| server.open_runs_by_session())
    }

    /// One run, open or ended.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreDown> {
        look!(self, |tx| tx.run(run), |server| server.run(run))
    }

    /// The request with this idempotency key, while it is kept.
    pub async fn request_by_key(&self, key: u128) -> Result<Option<RunRequest>, StoreDown> {
        look!(self, |tx| tx.request_by_key(key), |server| server.request_by_key(key))
    }

    /// A request for a run, while it is kept.
    pub async fn request(&self, id: ExtraId) -> Result<Option<RequestRow>, StoreDown> {
        look!(self, |tx| tx.request(id), |server| server.request(id))
    }

    /// The latest run of a request.
    pub async fn latest_attempt(&self, key: &JobKey, id: ExtraId) -> Result<Option<RunRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |tx| tx.latest_attempt(&wanted, id), |server| server.latest_attempt(key, id))
    }

    /// Runs and requests with ids from `from` to `to`, both included: at most `most` of them, the latest first.
    pub async fn runs_between(&self, from: RunId, to: RunId, most: usize) -> Result<Vec<RunName>, StoreDown> {
        let mut found =
            look!(self, |tx| tx.runs_between(from, to, most), |server| server.runs_between(from, to, most))?;
        // A run and the request that it served first have one id.
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.dedup();
        found.truncate(most);
        Ok(found)
    }

    /// Adds spans, and ends those that are there without an end.
    pub async fn put_spans(&self, spans: Vec<JobSpan>) -> Result<(), StoreDown> {
        write!(self, |tx| tx.put_spans(&spans), |server| server.put_spans(&spans))
    }

    /// Removes spans that ended before an instant.
    pub async fn trim_spans(&self, before: Timestamp) -> Result<(), StoreDown> {
        write!(self, |tx| tx.trim_spans(before), |server| server.trim_spans(before))
    }

    /// All spans that go on.
    pub async fn open_spans(&self) -> Result<Vec<JobSpan>, StoreDown> {
        look!(self, |tx| tx.open_spans(), |server| server.open_spans())
    }

    /// The spans of a job that go on or ended after an instant.
    pub async fn spans_of(&self, key: JobKey, since: Timestamp) -> Result<Vec<JobSpan>, StoreDown> {
        look!(self, |tx| tx.spans_of(&key, since), |server| server.spans_of(&key, since))
    }

    pub(super) async fn group_totals(
        &self,
        by: GroupBy,
        window: TimeWindow,
    ) -> Result<Vec<GroupTotal>, StoreDown> {
        look!(self, |tx| tx.group_totals(&by, window), |server| server.group_totals(&by, window))
    }

    pub(super) async fn labelled_jobs(&self, name: String) -> Result<Vec<(i64, Arc<str>)>, StoreDown> {
        look!(self, |tx| tx.labelled_jobs(&name), |server| server.labelled_jobs(&name))
    }

    pub(super) async fn group_spans(
        &self,
        window: TimeWindow,
        after: Option<SpanCursor>,
        most: usize,
    ) -> Result<Vec<GroupSpan>, StoreDown> {
        look!(self, |tx| tx.group_spans(window, after, most), |server| server
            .group_spans(window, after, most))
    }

    /// The samples of the score since an instant.
    pub async fn scores(&self, since: Timestamp, most: usize) -> Result<Vec<ScorePoint>, StoreDown> {
        look!(self, |tx| tx.scores(since, most), |server| server.scores(since, most))
    }

    /// The sites, tenants or pools that jobs name, at most `most`.
    pub async fn shared_names(&self, kind: SharedKind, most: usize) -> Result<Vec<String>, StoreDown> {
        look!(self, |tx| tx.shared_names(kind, most), |server| server.shared_names(kind, most))
    }

    /// The number of open runs by site, tenant or pool.
    pub async fn open_runs_by(&self, kind: SharedKind) -> Result<BTreeMap<String, u64>, StoreDown> {
        look!(self, |tx| tx.open_runs_by(kind), |server| server.open_runs_by(kind))
    }

    /// How much the counters of sites or tenants were used.
    pub async fn counter_uses(
        &self,
        kind: SharedKind,
        names: Vec<String>,
    ) -> Result<BTreeMap<String, CounterUse>, StoreDown> {
        look!(self, |tx| tx.counter_uses(kind, &names), |server| server.counter_uses(kind, &names))
    }

    /// When the store last heard of each session.
    pub async fn sessions_seen(&self) -> Result<BTreeMap<SessionId, Timestamp>, StoreDown> {
        look!(self, |tx| tx.sessions_seen(), |server| server.sessions_seen())
    }

    /// Sets when the pause of a job ends, if the job is still the one with this revision.
    pub async fn set_pause_end(
        &self,
        key: JobKey,
        revision: Revision,
        ends_at: Timestamp,
    ) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.set_pause_end(&key, revision, ends_at), |server| server
            .set_pause_end(&key, revision, ends_at))
    }

    /// Forgets when the pause of a job ends, if it ends then or earlier.
    pub async fn clear_pause_end(&self, key: JobKey, up_to: Timestamp) -> Result<(), StoreDown> {
        write!(self, |tx| tx.clear_pause_end(&key, up_to), |server| server.clear_pause_end(&key, up_to))
    }

    /// Jobs whose pause has ended, the earliest first.
    pub async fn ended_pauses(&self, most: usize) -> Result<Vec<JobKey>, StoreDown> {
        look!(self, |tx| tx.ended_pauses(most), |server| server.ended_pauses(most))
    }

    /// When the pauses of these jobs end, where they do.
    pub async fn pause_ends(&self, keys: Vec<JobKey>) -> Result<BTreeMap<JobKey, Timestamp>, StoreDown> {
        look!(self, |tx| tx.pause_ends(&keys), |server| server.pause_ends(&keys))
    }
}

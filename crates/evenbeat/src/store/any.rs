//! The store that was configured, whichever it is: the same duties and the same views, asked without blocking.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{
    ApplyPlan, AuditEntry, Beat, Cancelled, Changes, Claim, Claims, CounterRow, Cursor, End, EndAnswer,
    Fencing, JobRow, Joined, Lives, Mark, NewPlan, OwnerPing, PlanAnswer, PlanId, PlanRow, PutAnswer, PutJob,
    RecordRow, Retention, RunFilter, RunRequest, RunRow, SessionRow, SessionSpec, Settle, SettleAnswer,
    Store, StoreDown, Trimmed, Views, Watch,
};
use evenbeat_core::time::Timestamp;

use super::postgres::PgStore;
use super::query::{JobFilter, JobPage, RequestRow, RunName, RunPage, RunQuery, ScorePoint};
use super::sqlite::SqliteStore;

/// A store. Copies share it.
#[derive(Clone, Debug)]
pub enum AnyStore {
    /// A file of this machine, for one process.
    Sqlite(SqliteStore),
    /// A server, for a cluster.
    Postgres(PgStore),
}

/// What changes something goes to the writer's desk of a file, with a copy of what was asked.
macro_rules! write {
    ($self:expr, |$desk:ident| $asked:expr, |$server:ident| $served:expr) => {
        match $self {
            AnyStore::Sqlite(file) => file.ask(move |$desk| $asked).await,
            // What a server is asked takes many steps, each with its own room: not on the stack of whoever asks.
            AnyStore::Postgres($server) => Box::pin($served).await,
        }
    };
}

/// What only reads does not wait for the writer.
macro_rules! look {
    ($self:expr, |$reader:ident| $looked:expr, |$server:ident| $served:expr) => {
        match $self {
            AnyStore::Sqlite(file) => file.look_async(move |$reader| $looked).await,
            AnyStore::Postgres($server) => $served.await,
        }
    };
}

/// The duties; what each promises is said in [`Store`].
impl AnyStore {
    /// Which earlier lives a process that has this store to itself may take over from.
    pub fn lives(&self) -> Lives {
        match self {
            AnyStore::Sqlite(_) => Lives::OfAllNodes,
            AnyStore::Postgres(_) => Lives::OfThisBoot,
        }
    }

    /// Begins a session.
    pub async fn join(&self, session: SessionSpec, timings: Timings) -> Result<Joined, StoreDown> {
        write!(self, |desk| desk.join(&session, &timings), |server| server.join(&session, &timings))
    }

    /// Takes over what earlier lives left behind.
    pub async fn adopt(&self, me: SessionId) -> Result<Vec<RunRow>, StoreDown> {
        let lives = self.lives();
        write!(self, |desk| desk.adopt(me, lives), |server| server.adopt(me, lives))
    }

    /// Raises the session's beat, and reads its open runs.
    pub async fn beat(&self, me: SessionId) -> Result<Beat, StoreDown> {
        write!(self, |desk| desk.beat(me), |server| server.beat(me))
    }

    /// Says whether a session still takes new runs.
    pub async fn drain(&self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        write!(self, |desk| desk.drain(session, is_draining), |server| server.drain(session, is_draining))
    }

    /// Ends a session that has no open runs.
    pub async fn leave(&self, me: SessionId) -> Result<bool, StoreDown> {
        write!(self, |desk| desk.leave(me), |server| server.leave(me))
    }

    /// Reads all living sessions.
    pub async fn watch(&self, most_runs: usize) -> Result<Watch, StoreDown> {
        look!(self, |reader| reader.watch(most_runs), |server| server.watch(most_runs))
    }

    /// Marks silent sessions dead.
    pub async fn fence(&self, epoch: Epoch, silent: Vec<Silent>) -> Result<Vec<Fencing>, StoreDown> {
        write!(self, |desk| desk.fence(epoch, &silent), |server| server.fence(epoch, &silent))
    }

    /// Notes since when sessions are doubted.
    pub async fn doubt(&self, silent: Vec<Silent>) -> Result<(), StoreDown> {
        write!(self, |desk| desk.doubt(&silent), |server| server.doubt(&silent))
    }

    /// Opens an epoch.
    pub async fn open_epoch(&self, epoch: Epoch) -> Result<bool, StoreDown> {
        write!(self, |desk| desk.open_epoch(epoch), |server| server.open_epoch(epoch))
    }

    /// Opens runs.
    pub async fn claim(&self, me: SessionId, epoch: Epoch, claims: Vec<Claim>) -> Result<Claims, StoreDown> {
        write!(self, |desk| desk.claim(me, epoch, &claims), |server| server.claim(me, epoch, &claims))
    }

    /// Takes note of how far runs have come.
    pub async fn mark(&self, marks: Vec<Mark>) -> Result<Vec<bool>, StoreDown> {
        write!(self, |desk| desk.mark(&marks), |server| server.mark(&marks))
    }

    /// Ends runs, after noting how far they had come.
    pub async fn end(
        &self,
        epoch: Epoch,
        marks: Vec<Mark>,
        ends: Vec<End>,
    ) -> Result<Vec<EndAnswer>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |desk| desk.end_marked(epoch, &marks, &ends)).await,
            AnyStore::Postgres(server) => {
                if !marks.is_empty() {
                    server.mark(&marks).await?;
                }
                Box::pin(server.end(epoch, &ends)).await
            }
        }
    }

    /// Writes what time alone has changed.
    pub async fn settle(
        &self,
        me: SessionId,
        epoch: Epoch,
        settles: Vec<Settle>,
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        write!(self, |desk| desk.settle(me, epoch, &settles), |server| server.settle(me, epoch, &settles))
    }

    /// Writes jobs.
    pub async fn put_jobs(&self, puts: Vec<PutJob>) -> Result<Vec<PutAnswer>, StoreDown> {
        write!(self, |desk| desk.put_jobs(&puts), |server| server.put_jobs(&puts))
    }

    /// Keeps a rebalance plan for a while.
    pub async fn put_plan(&self, plan: NewPlan) -> Result<(), StoreDown> {
        write!(self, |desk| desk.put_plan(&plan), |server| server.put_plan(&plan))
    }

    /// Writes the jobs of a plan, all of them or none.
    pub async fn apply_plan(&self, plan: ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        write!(self, |desk| desk.apply_plan(&plan), |server| server.apply_plan(&plan))
    }

    /// Asks the owners of runs to end them.
    pub async fn cancel(&self, runs: Vec<RunId>) -> Result<Vec<Cancelled>, StoreDown> {
        write!(self, |desk| desk.cancel(&runs), |server| server.cancel(&runs))
    }

    /// Adds to the audit what was done to something else than a job.
    pub async fn append_audit(&self, entry: AuditEntry) -> Result<(), StoreDown> {
        write!(self, |desk| desk.append_audit(&entry), |server| server.append_audit(&entry))
    }

    /// Writes something, to see whether that can be done.
    pub async fn probe(&self) -> Result<(), StoreDown> {
        write!(self, |desk| desk.probe(), |server| server.probe())
    }

    /// The jobs that changed since a cursor.
    pub async fn changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        look!(self, |reader| reader.changes(since, most), |server| server.changes(since, most))
    }

    /// Counts counters anew.
    pub async fn recount(&self) -> Result<Vec<CounterRow>, StoreDown> {
        write!(self, |desk| desk.recount(), |server| server.recount())
    }

    /// Removes what is older than it need be.
    pub async fn trim(&self, retention: Retention) -> Result<Trimmed, StoreDown> {
        write!(self, |desk| desk.trim(&retention), |server| server.trim(&retention))
    }

    /// Notes how evenly the fleet is spread, and forgets what was noted before an instant.
    pub async fn put_score(&self, point: ScorePoint, keep_since: Timestamp) -> Result<(), StoreDown> {
        write!(self, |desk| desk.put_score(&point, keep_since), |server| server.put_score(&point, keep_since))
    }
}

/// The views; what each shows is said in [`Views`].
impl AnyStore {
    /// One job.
    pub async fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |reader| reader.job(&wanted), |server| server.job(key))
    }

    /// Several jobs; those that are not there are left out.
    pub async fn jobs_of(&self, keys: Arc<[JobKey]>) -> Result<Vec<JobRow>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => {
                let look = move |reader: &super::sqlite::Reader<'_>| {
                    keys.iter().filter_map(|key| reader.job(key).transpose()).collect()
                };
                file.look_async(look).await
            }
            AnyStore::Postgres(server) => server.jobs_of(&keys).await,
        }
    }

    /// Jobs by key, after one of them.
    pub async fn jobs(&self, after: Option<JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        look!(self, |reader| reader.jobs(after.as_ref(), most), |server| server.jobs(after.as_ref(), most))
    }

    /// Runs, the latest first.
    pub async fn runs(
        &self,
        filter: RunFilter,
        before: Option<RunId>,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreDown> {
        look!(self, |reader| reader.runs(&filter, before, most), |server| server.runs(&filter, before, most))
    }

    /// The records of a job that begin before an instant, the latest first.
    pub async fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |reader| reader.records(&wanted, before, most), |server| server
            .records(key, before, most))
    }

    /// All sessions.
    pub async fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        look!(self, |reader| reader.sessions(), |server| server.sessions())
    }

    /// The last signs of life of the owners of open runs.
    pub async fn owner_pings(&self, runs: Vec<RunId>) -> Result<Vec<OwnerPing>, StoreDown> {
        look!(self, |reader| reader.owner_pings(&runs), |server| server.owner_pings(&runs))
    }

    /// All counters.
    pub async fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        look!(self, |reader| reader.counters(), |server| server.counters())
    }

    /// A rebalance plan that can still be applied.
    pub async fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        look!(self, |reader| reader.plan(id), |server| server.plan(id))
    }

    /// Who changed what.
    pub async fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        look!(self, |reader| reader.audit(most), |server| server.audit(most))
    }

    /// Some jobs.
    pub async fn list_jobs(
        &self,
        filter: JobFilter,
        after: Option<JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        look!(self, |reader| reader.list_jobs(&filter, after.as_ref(), most), |server| server.list_jobs(
            &filter,
            after.as_ref(),
            most
        ))
    }

    /// Some runs that are over.
    pub async fn list_runs(
        &self,
        query: RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        look!(self, |reader| reader.list_runs(&query, before, most), |server| server
            .list_runs(&query, before, most))
    }

    /// How many runs are open, by the session that owns them. Sessions without any are left out.
    pub async fn open_runs_by_session(&self) -> Result<BTreeMap<SessionId, u64>, StoreDown> {
        look!(self, |reader| reader.open_runs_by_session(), |server| server.open_runs_by_session())
    }

    /// One run, open or over.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreDown> {
        look!(self, |reader| reader.run(run), |server| server.run(run))
    }

    /// The request that was made with this idempotency key, while it is kept.
    pub async fn request_by_key(&self, key: u128) -> Result<Option<RunRequest>, StoreDown> {
        look!(self, |reader| reader.request_by_key(key), |server| server.request_by_key(key))
    }

    /// A request for a run, while it is kept.
    pub async fn request(&self, id: ExtraId) -> Result<Option<RequestRow>, StoreDown> {
        look!(self, |reader| reader.request(id), |server| server.request(id))
    }

    /// The latest run of a request.
    pub async fn latest_attempt(&self, key: &JobKey, id: ExtraId) -> Result<Option<RunRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |reader| reader.latest_attempt(&wanted, id), |server| server.latest_attempt(key, id))
    }

    /// Runs and requests whose ids lie between two, both included; at most so many, the latest first.
    pub async fn runs_between(&self, from: RunId, to: RunId, most: usize) -> Result<Vec<RunName>, StoreDown> {
        let mut found = look!(self, |reader| reader.runs_between(from, to, most), |server| server
            .runs_between(from, to, most))?;
        // A run and the request that it served first have one id.
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.dedup();
        found.truncate(most);
        Ok(found)
    }

    /// How evenly the fleet was spread since an instant.
    pub async fn scores(&self, since: Timestamp, most: usize) -> Result<Vec<ScorePoint>, StoreDown> {
        look!(self, |reader| reader.scores(since, most), |server| server.scores(since, most))
    }
}

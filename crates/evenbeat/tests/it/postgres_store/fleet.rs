//! A small fleet in a database of its own, and short ways to ask for it.

use std::sync::Arc;

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Job, JobState, RunEnd, Target};
use evenbeat_core::lease::{Epoch, Silent, Timings, TimingsSpec};
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::{
    Bid, Claim, ClaimAnswer, Claims, CounterKey, CounterLimit, End, EndBy, Fencing, JobRow, Joined,
    PutAnswer, PutJob, RunRow, Seen, SessionKind, SessionSpec, Store, Take, Views,
};
use evenbeat_core::time::{Duration, Timestamp};

use crate::support::postgres::{Database, Way};

pub(crate) struct Fleet {
    pub(crate) store: BlockingStore,
    pub(crate) epoch: Epoch,
    pub(crate) now: Timestamp,
    pub(crate) me: SessionId,
    pub(crate) database: Database,
}

impl Fleet {
    pub(crate) fn new() -> Fleet {
        let database = Database::new();
        let mut store = database.store(Way::Direct);
        let me = SessionId(1);
        let (epoch, now) = join(&mut store, me);
        Fleet { store, epoch, now, me, database }
    }

    pub(crate) fn join(&mut self, id: u128) -> SessionId {
        join(&mut self.store, SessionId(id));
        SessionId(id)
    }

    pub(crate) fn create(&mut self, name: &str) -> JobRow {
        create(&mut self.store, &[new_job(name, self.now)]).remove(0)
    }

    /// A new job with an open run of this session.
    pub(crate) fn open(&mut self, session: SessionId, name: &str, run: u128) -> RunRow {
        let row = self.create(name);
        let claim = claim(run, &row, self.now, Vec::new());
        let answer = self.store.claim(session, self.epoch, &[claim]).unwrap();
        assert!(
            matches!(&answer, Claims::Answered(it) if matches!(it[..], [ClaimAnswer::Granted(_)])),
            "{answer:?}"
        );
        self.run(run)
    }

    pub(crate) fn run(&self, run: u128) -> RunRow {
        let found = self.store.runtime.block_on(self.store.store.run(RunId(run))).unwrap();
        found.expect("the run is there")
    }

    pub(crate) fn row(&self, name: &str) -> JobRow {
        self.store.job(&name.parse().unwrap()).unwrap().expect("the job is there")
    }

    pub(crate) fn beat_of(&self, session: SessionId) -> u64 {
        self.store.sessions().unwrap().iter().find(|it| it.spec.id == session).unwrap().beat
    }

    pub(crate) fn fence(&mut self, session: SessionId, beat: u64) -> Fencing {
        self.store.fence(self.epoch, &[Silent { session, beat }]).unwrap()[0]
    }

    pub(crate) fn release(&self, run: &RunRow) -> End {
        let by = EndBy::Release { dead: run.session, end: run_end(Outcome::Lost, self.now) };
        end(run, &self.row(run.key.as_str()), by)
    }
}

pub(crate) fn join(store: &mut BlockingStore, id: SessionId) -> (Epoch, Timestamp) {
    let session = SessionSpec {
        id,
        node: format!("n{}", id.0).parse().unwrap(),
        name: "main".to_owned(),
        boot_id: id.0,
        home: 0,
        kind: SessionKind::Node,
        pools: [("default".parse().unwrap(), 4)].into(),
        zone_data: String::new(),
    };
    let timings = Timings::new(TimingsSpec::DEFAULT).unwrap();
    match store.join(&session, &timings).unwrap() {
        Joined::Welcome { epoch, now, .. } => (epoch, now),
        other @ Joined::OtherTimings(_) => panic!("not welcome: {other:?}"),
    }
}

pub(crate) fn new_job(name: &str, now: Timestamp) -> PutJob {
    let key: JobKey = name.parse().unwrap();
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    let schedule = Schedule::Every { interval: Duration::from_hours(1), finish_within: None };
    PutJob {
        job: Arc::new(Job::new(key, Target::Command(command), schedule)),
        state: JobState::new(now),
        seen: Seen::Nothing,
        is_revision: true,
        is_deleted: false,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

pub(crate) fn again(row: &JobRow) -> PutJob {
    PutJob {
        job: row.job.clone(),
        state: row.state.clone(),
        seen: Seen::Version(row.version),
        is_revision: false,
        is_deleted: row.is_deleted,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

pub(crate) fn create(store: &mut BlockingStore, puts: &[PutJob]) -> Vec<JobRow> {
    let written = |answer| match answer {
        PutAnswer::Put(row) => row,
        other => panic!("not written: {other:?}"),
    };
    store.put_jobs(puts).unwrap().into_iter().map(written).collect()
}

pub(crate) fn claim(run: u128, row: &JobRow, now: Timestamp, takes: Vec<Take>) -> Claim {
    let due = Due {
        due_at: now,
        attempt: 0,
        trigger: Trigger::Scheduler,
        serves: Serves::Pending,
        losses: 0,
        last_outcome: None,
        params: None,
    };
    let bid = Bid {
        key: row.job.key.clone(),
        run: None,
        seen: row.version,
        max_open: 1,
        not_before: now,
        due,
        state: row.state.clone(),
        records: Vec::new(),
        takes,
        is_published: false,
    };
    Claim { run: RunId(run), bid }
}

pub(crate) fn at_most(most: u32, site: &str) -> Take {
    let limit = CounterLimit { max_open: Some(most), ..CounterLimit::default() };
    Take { counter: CounterKey::Site(site.parse().unwrap()), limit }
}

pub(crate) fn run_end(outcome: Outcome, at: Timestamp) -> RunEnd {
    RunEnd {
        run: RunId(0),
        started_at: at,
        ended_at: at,
        outcome,
        exit_code: Some(0),
        frozen_for: Duration::from_secs(0),
    }
}

pub(crate) fn end(run: &RunRow, row: &JobRow, by: EndBy) -> End {
    End {
        run: run.run,
        fence: run.fence,
        me: run.session,
        key: run.key.clone(),
        seen: row.version,
        by,
        state: row.state.clone(),
        records: Vec::new(),
        report: None,
    }
}

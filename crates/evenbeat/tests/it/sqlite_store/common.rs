//! Files of their own for tests, and stores in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Job, JobState, RunEnd, Target};
use evenbeat_core::lease::{Epoch, Timings, TimingsSpec};
use evenbeat_core::missed::RecordRange;
use evenbeat_core::occurrence::{Due, Record, RecordKind, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::{
    Bid, Claim, ClaimAnswer, Claims, End, EndAnswer, EndBy, JobRow, Joined, PutAnswer, PutJob, Seen,
    SessionKind, SessionSpec, Store,
};
use evenbeat_core::time::{Duration, Timestamp};

pub(crate) struct Sqlite;

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static N_FOLDERS: AtomicU32 = AtomicU32::new(0);
        let no = N_FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sqlite-{}-{no}", std::process::id()));
        sweep();
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Removes what processes that are gone have left.
fn sweep() {
    for entry in std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let process = name.strip_prefix("sqlite-").and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An empty store. Its folder outlives it, and goes when a later test begins.
pub(crate) fn fresh() -> SqliteStore {
    let folder = std::mem::ManuallyDrop::new(Folder::new());
    SqliteStore::open(folder.file("store.db"), Options::default()).unwrap()
}

/// The same by this clock.
pub(crate) fn fresh_by(clock: &TestClock) -> SqliteStore {
    let folder = std::mem::ManuallyDrop::new(Folder::new());
    SqliteStore::open(folder.file("store.db"), clock.options()).unwrap()
}

/// A clock that stands still until it is set.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub(crate) fn at(now: Timestamp) -> TestClock {
        TestClock(Arc::new(AtomicI64::new(now.as_millis())))
    }

    pub(crate) fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::Relaxed);
    }

    pub(crate) fn options(&self) -> Options {
        let millis = Arc::clone(&self.0);
        let clock = Arc::new(move || Timestamp::from_millis(millis.load(Ordering::Relaxed)));
        Options { clock, ..Options::default() }
    }
}

pub(crate) const HOUR: Duration = Duration::from_hours(1);

pub(crate) fn noon() -> Timestamp {
    "2026-02-04T12:00:00Z".parse().unwrap()
}

pub(crate) fn key(text: &str) -> JobKey {
    text.parse().unwrap()
}

pub(crate) fn job(text: &str) -> Job {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    Job::new(key(text), Target::Command(command), Schedule::Every { interval: HOUR, finish_within: None })
}

pub(crate) fn new_job(job: Job) -> PutJob {
    PutJob {
        job: Arc::new(job),
        state: JobState::new(noon()),
        seen: Seen::Nothing,
        is_revision: true,
        is_deleted: false,
        records: Vec::new(),
        audit: None,
        request: None,
    }
}

pub(crate) fn record(first: Timestamp) -> Record {
    Record { range: RecordRange { first, last: first + HOUR, count: 2 }, what: RecordKind::MissedLate }
}

#[track_caller]
pub(crate) fn put(store: &mut SqliteStore, put: PutJob) -> JobRow {
    match store.put_jobs(&[put]).unwrap().remove(0) {
        PutAnswer::Put(row) => row,
        other => panic!("not written: {other:?}"),
    }
}

pub(crate) fn node(id: u128) -> SessionSpec {
    SessionSpec {
        id: SessionId(id),
        node: "n1".parse().unwrap(),
        name: "main".to_owned(),
        boot_id: 1,
        home: 0,
        kind: SessionKind::Node,
        pools: [("default".parse().unwrap(), 4)].into(),
        zone_data: String::new(),
    }
}

pub(crate) fn join(store: &mut SqliteStore, id: u128) -> Epoch {
    let timings = Timings::new(TimingsSpec::DEFAULT).unwrap();
    match store.join(&node(id), &timings).unwrap() {
        Joined::Welcome { epoch, .. } => epoch,
        other @ Joined::OtherTimings(_) => panic!("not welcome: {other:?}"),
    }
}

pub(crate) fn claim_of(row: &JobRow, run: u128) -> Claim {
    let due = Due {
        due_at: noon(),
        attempt: 1,
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
        max_open: 10,
        not_before: noon() - HOUR,
        due,
        state: row.state.clone(),
        records: Vec::new(),
        takes: Vec::new(),
        is_published: false,
    };
    Claim { run: RunId(run), bid }
}

#[track_caller]
pub(crate) fn open_run(store: &mut SqliteStore, me: u128, row: &JobRow, run: u128) -> JobRow {
    let epoch = join(store, me);
    match store.claim(SessionId(me), epoch, &[claim_of(row, run)]).unwrap() {
        Claims::Answered(mut answers) => match answers.remove(0) {
            ClaimAnswer::Granted(row) => row,
            other => panic!("not granted: {other:?}"),
        },
        other => panic!("no claim was looked at: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn end_run(
    store: &mut SqliteStore,
    me: u128,
    row: &JobRow,
    run: u128,
    outcome: Outcome,
    ended_at: Timestamp,
) -> JobRow {
    let epoch = join(store, me);
    let end = RunEnd {
        run: RunId(run),
        started_at: ended_at,
        ended_at,
        outcome,
        exit_code: Some(0),
        frozen_for: Duration::ZERO,
    };
    let end = End {
        run: RunId(run),
        fence: row.fence,
        me: SessionId(me),
        key: row.job.key.clone(),
        seen: row.version,
        by: EndBy::Owner(end),
        state: row.state.clone(),
        records: Vec::new(),
        report: None,
    };
    match store.end(epoch, &[end]).unwrap().remove(0) {
        EndAnswer::Ended(row) => row,
        other => panic!("not ended: {other:?}"),
    }
}

//! A process that dies at its n-th write, and a file that is full at its n-th page: whatever was answered is
//! there, nothing else is, and the store goes on.
//!
//! A limit on the size of files ends a process in the middle of the very write that goes beyond it: the first part of
//! it is in the file, the rest is not. `EVENBEAT_DEATHS=1000` for the long form.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use evenbeat::testing::store::sqlite::{Health, Options, SqliteStore};
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    ClaimAnswer, Claims, End, EndAnswer, EndBy, JobRow, Lives, PutJob, RunFilter, RunPhase, RunRow, Store,
    StoreDown, Views,
};
use evenbeat_core::time::Duration;
use evenbeat_sim::differential::check_totals;

use crate::sqlite_store::common::{Folder, claim_of, job, join, new_job, noon, put, record};

const N_JOBS: usize = 5;
const N_OPEN: usize = 3;
/// So that the file grows by a page or two with each.
const N_RECORDS: usize = 40;
const PAGE_BYTES: u64 = 4_096;
/// A page in the log, with its heading.
const FRAME_BYTES: u64 = PAGE_BYTES + 24;
/// How SIGKILL and SIGXFSZ are told on Linux.
const SIGKILL: i32 = 9;
const SIGXFSZ: i32 = 25;

/// Set for the process that dies: the file that it writes to, and how long its log may get.
const WRITES_TO: &str = "EVENBEAT_TEST_NTH_WRITE_TO";
const LOG_MAX_BYTES: &str = "EVENBEAT_TEST_LOG_MAX_BYTES";

fn n_rounds() -> u64 {
    std::env::var("EVENBEAT_DEATHS").map_or(20, |it| it.parse().expect("EVENBEAT_DEATHS is like 1000"))
}

/// What the store has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Claimed(RunId),
    Ended(RunId),
}

/// One after the other, for ever: claims of all jobs in turn, and the ends of what was claimed a little earlier.
struct Stream {
    store: SqliteStore,
    me: SessionId,
    epoch: Epoch,
    rows: BTreeMap<JobKey, JobRow>,
    open: VecDeque<(RunId, JobKey)>,
    n_runs: u128,
}

impl Stream {
    fn new(mut store: SqliteStore, me: SessionId) -> Stream {
        let epoch = join(&mut store, me.0);
        let jobs = store.jobs(None, N_JOBS).unwrap();
        let rows = jobs.into_iter().map(|row| (row.job.key.clone(), row)).collect();
        Stream { store, me, epoch, rows, open: VecDeque::new(), n_runs: 0 }
    }

    /// Until the store does not answer any more.
    fn write(&mut self, mut tell: impl FnMut(Answered)) -> StoreDown {
        let mut step = || {
            self.claim(&mut tell)?;
            if N_OPEN < self.open.len() { self.end(&mut tell) } else { Ok(()) }
        };
        loop {
            if let Err(down) = step() {
                return down;
            }
        }
    }

    fn claim(&mut self, tell: &mut impl FnMut(Answered)) -> Result<(), StoreDown> {
        self.n_runs += 1;
        let run = RunId(self.me.0 << 32 | self.n_runs);
        let key: JobKey = format!("job{}", self.n_runs % N_JOBS as u128).parse().unwrap();
        let mut claim = claim_of(&self.rows[&key], run.0);
        claim.bid.records = vec![record(noon()); N_RECORDS];
        let Claims::Answered(mut answers) = self.store.claim(self.me, self.epoch, &[claim])? else {
            panic!("the session lives, and the epoch is open")
        };
        let ClaimAnswer::Granted(row) = answers.remove(0) else { panic!("nobody else claims") };
        tell(Answered::Claimed(run));
        self.open.push_back((run, key.clone()));
        self.rows.insert(key, row);
        Ok(())
    }

    fn end(&mut self, tell: &mut impl FnMut(Answered)) -> Result<(), StoreDown> {
        let Some((run, key)) = self.open.pop_front() else { return Ok(()) };
        let row = &self.rows[&key];
        let end = end_of(run, row, self.me);
        let EndAnswer::Ended(row) = self.store.end(self.epoch, &[end])?.remove(0) else {
            panic!("nobody else ends")
        };
        tell(Answered::Ended(run));
        self.rows.insert(key, row);
        Ok(())
    }
}

fn end_of(run: RunId, row: &JobRow, me: SessionId) -> End {
    let end = RunEnd {
        run,
        started_at: noon(),
        ended_at: noon(),
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        frozen_for: Duration::ZERO,
    };
    End {
        run,
        fence: row.fence,
        me,
        key: row.job.key.clone(),
        seen: row.version,
        by: EndBy::Owner(end),
        state: row.state.clone(),
        records: Vec::new(),
        report: None,
    }
}

/// A file that lives through one death after the other.
struct Survivor {
    folder: Folder,
    /// Who writes in this round.
    n_rounds: u128,
}

impl Survivor {
    fn new() -> Survivor {
        let survivor = Survivor { folder: Folder::new(), n_rounds: 0 };
        let mut store = survivor.open(Options::default());
        for no in 0..N_JOBS {
            // Large enough that a short log is never longer than the file.
            let records = vec![record(noon()); 1_000];
            put(&mut store, PutJob { records, ..new_job(job(&format!("job{no}"))) });
        }
        store.close().unwrap();
        survivor
    }

    fn open(&self, options: Options) -> SqliteStore {
        SqliteStore::open(self.folder.file("store.db"), options).unwrap()
    }

    fn n_bytes(&self) -> u64 {
        fs::metadata(self.folder.file("store.db")).unwrap().len()
    }

    fn begin(&mut self) -> SessionId {
        self.n_rounds += 1;
        SessionId(self.n_rounds << 1)
    }

    /// The next process takes over what is open, and ends it.
    fn go_on(&self, me: SessionId) {
        let mut store = self.open(Options::default());
        let next = SessionId(me.0 + 1);
        let epoch = join(&mut store, next.0);
        let adopted = store.adopt(next, Lives::OfAllNodes).unwrap();
        assert_eq!(adopted.len(), runs_of(&store, next).len());
        for run in adopted {
            let row = store.job(&run.key).unwrap().unwrap();
            let end = End { fence: run.fence, ..end_of(run.run, &row, next) };
            let answers = store.end(epoch, &[end]).unwrap();
            assert!(matches!(answers[..], [EndAnswer::Ended(_)]), "{answers:?}");
        }
        assert_eq!(check_totals(&store), Ok(()));
        assert_eq!(store.runs(&RunFilter { key: None, is_open: true }, None, 10).unwrap(), []);
        store.close().unwrap();
    }
}

/// All that was answered is there, and besides it at most the one request that nobody heard an answer to.
#[track_caller]
fn check(store: &SqliteStore, me: SessionId, answered: &[Answered], n_unheard: usize) {
    assert_eq!(store.check().unwrap().findings, [] as [String; 0]);
    assert_eq!(check_totals(store), Ok(()));
    let runs = runs_of(store, me);
    for it in answered {
        let (Answered::Claimed(run) | Answered::Ended(run)) = it;
        let found = runs.get(run).unwrap_or_else(|| panic!("{it:?} was answered and is lost"));
        if matches!(it, Answered::Ended(_)) {
            assert_eq!(found.phase, RunPhase::Ended(Outcome::Succeeded), "{it:?} was answered and is lost");
        }
    }
    let n_there = runs.len() + runs.values().filter(|it| !it.phase.is_open()).count();
    let n_more = n_there - answered.len();
    assert!(n_more <= n_unheard, "{n_more} things are there that were not answered");
}

fn runs_of(store: &SqliteStore, me: SessionId) -> BTreeMap<RunId, RunRow> {
    const MANY: usize = 1_000_000;
    let all = store.runs(&RunFilter::default(), None, MANY).unwrap();
    all.into_iter().filter(|it| it.session == me).map(|it| (it.run, it)).collect()
}

/// How a process dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// Killed when so many answers were heard.
    AfterAnswers(u64),
    /// In the write that makes a file longer than this.
    InWrite { size_max_bytes: u64, log_max_bytes: u64 },
}

/// The process that dies: this test once more, which says what was answered.
fn write_until_dead(me: SessionId, path: &Path) {
    let log_max_bytes = std::env::var(LOG_MAX_BYTES).unwrap().parse().unwrap();
    let store = SqliteStore::open(path, Options { log_max_bytes, ..Options::default() }).unwrap();
    let down = Stream::new(store, me).write(|it| match it {
        Answered::Claimed(run) => println!("\nclaimed {}", run.0),
        Answered::Ended(run) => println!("\nended {}", run.0),
    });
    panic!("it should have died: {down}");
}

/// Comes back when the process is dead, with all that it has heard.
fn live_and_die(test: &str, path: &Path, me: SessionId, death: Death) -> (Vec<Answered>, ExitStatus) {
    let (limit, log_max_bytes) = match death {
        Death::AfterAnswers(_) => ("unlimited".to_owned(), Options::default().log_max_bytes),
        Death::InWrite { size_max_bytes, log_max_bytes } => (size_max_bytes.to_string(), log_max_bytes),
    };
    let mut writer = Command::new("prlimit")
        .args(["--core=0", &format!("--fsize={limit}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(WRITES_TO, format!("{} {}", me.0, path.display()))
        .env(LOG_MAX_BYTES, log_max_bytes.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answered = Vec::new();
    for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let run = |run: &str| RunId(run.parse().unwrap());
        match line.split_once(' ') {
            Some(("claimed", it)) => answered.push(Answered::Claimed(run(it))),
            Some(("ended", it)) => answered.push(Answered::Ended(run(it))),
            _ => continue,
        }
        if matches!(death, Death::AfterAnswers(n) if n == answered.len() as u64) {
            writer.kill().unwrap();
        }
    }
    (answered, writer.wait().unwrap())
}

/// One death after the other, each in the file that the last one left.
#[track_caller]
fn check_deaths(test: &str, signal: i32, death: impl Fn(u64, &Survivor) -> Death) {
    if let Ok(told) = std::env::var(WRITES_TO) {
        let (me, path) = told.split_once(' ').unwrap();
        return write_until_dead(SessionId(me.parse().unwrap()), Path::new(path));
    }
    let mut survivor = Survivor::new();
    let mut n_heard = 0;
    for round in 0..n_rounds() {
        let (me, death) = (survivor.begin(), death(round, &survivor));
        let (answered, status) = live_and_die(test, &survivor.folder.file("store.db"), me, death);
        assert_eq!(status.signal(), Some(signal), "{death:?}: {status}");
        n_heard += answered.len();
        let store = survivor.open(Options::default());
        check(&store, me, &answered, 1);
        store.close().unwrap();
        survivor.go_on(me);
    }
    assert!(n_rounds() < n_heard as u64, "{n_heard} answers are too few to show anything");
}

#[test]
fn killed_after_any_answer() {
    check_deaths("sqlite_store::nth_write::killed_after_any_answer", SIGKILL, |round, _| {
        Death::AfterAnswers(1 + round * 7 % 61)
    });
}

/// At each page that goes into the log, and in the middle of it.
#[test]
fn killed_in_any_write_to_the_log() {
    // The index of the log has this size from the beginning.
    const INDEX_BYTES: u64 = 32 * 1024;
    check_deaths("sqlite_store::nth_write::killed_in_any_write_to_the_log", SIGXFSZ, |round, _| {
        Death::InWrite {
            size_max_bytes: INDEX_BYTES + (round * 7 % 100) * FRAME_BYTES + round * 997 % FRAME_BYTES,
            log_max_bytes: u64::MAX,
        }
    });
}

/// The log begins anew before it is as long as the file: only the file itself gets too long.
#[test]
fn killed_while_the_log_is_carried_over() {
    const LOG_MAX_BYTES: u64 = 64 * 1024;
    check_deaths(
        "sqlite_store::nth_write::killed_while_the_log_is_carried_over",
        SIGXFSZ,
        |round, survivor| {
            assert!(2 * LOG_MAX_BYTES < survivor.n_bytes());
            Death::InWrite {
                size_max_bytes: survivor.n_bytes() + (round % 8) * PAGE_BYTES + round * 991 % PAGE_BYTES,
                log_max_bytes: LOG_MAX_BYTES,
            }
        },
    );
}

#[test]
fn full_at_any_page() {
    let mut survivor = Survivor::new();
    for round in 0..n_rounds() {
        let me = survivor.begin();
        let size_max_bytes = Some(survivor.n_bytes() + (1 + round % 40) * PAGE_BYTES);
        let mut stream = Stream::new(survivor.open(Options { size_max_bytes, ..Options::default() }), me);
        let mut answered = Vec::new();
        let down = stream.write(|it| answered.push(it));
        assert!(down.0.contains("no room"), "{down}");
        assert!(matches!(stream.store.health(), Health::ReadOnly { .. }), "{:?}", stream.store.health());
        check(&stream.store, me, &answered, 0);
        stream.store.close().unwrap();
        survivor.go_on(me);
    }
}

//! The same requests, the same answers as the reference; and whichever call fails, the books balance.

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    ClaimAnswer, Claims, End, EndBy, JobRow, Joined, PutAnswer, PutJob, RunFilter, SessionKind, SessionSpec,
    Store, Version, Views,
};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_sim::differential::{TestStore, compare, fail_each_call};
use evenbeat_sim::reference::ReferenceStore;
use tokio_postgres::Client;

use crate::postgres_store::fleet::{at_most, claim, new_job, run_end};

use crate::support::postgres::{Database, Way, runtime};
use crate::support::stories::stories;

/// A store whose clock the test sets.
struct Clocked {
    store: BlockingStore,
    clock: Client,
    _database: Database,
}

impl Clocked {
    fn empty() -> Clocked {
        let database = Database::new();
        let clock = database.connect();
        let set_up = "CREATE TABLE test_clock (at bigint);
                      INSERT INTO test_clock VALUES (0);
                      CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
                          AS 'SELECT at FROM test_clock'";
        runtime().block_on(clock.batch_execute(set_up)).unwrap();
        Clocked { store: database.store(Way::Direct), clock, _database: database }
    }
}

impl TestStore for Clocked {
    type Store = BlockingStore;

    fn store(&mut self) -> &mut BlockingStore {
        &mut self.store
    }

    fn views(&self) -> &BlockingStore {
        &self.store
    }

    fn set_now(&mut self, now: Timestamp) {
        let set = format!("UPDATE test_clock SET at = {}", now.as_millis());
        runtime().block_on(self.clock.batch_execute(&set)).unwrap();
    }

    fn fail_over(&mut self) {
        self.store.runtime.block_on(self.store.store.new_epoch()).unwrap();
    }
}

#[test]
fn it_answers_like_the_reference() {
    let (n_seeds, n_requests) = stories(8, 200);
    let (mut n_short, mut n_long) = (0, 0);
    for seed in 0..n_seeds {
        let mut clocked = Clocked::empty();
        compare(&mut clocked, seed, n_requests).unwrap_or_else(|difference| panic!("{difference}"));
        let ways = clocked.store.store.path_counts();
        (n_short, n_long) = (n_short + ways.n_short, n_long + ways.n_long);
    }
    println!("{n_short} claims and ends on the short way, {n_long} on the long one");
    assert!(20 <= n_short && 20 <= n_long, "{n_short} on the short way, {n_long} on the long one");
}

#[test]
fn whichever_call_fails_the_books_balance() {
    assert_eq!(fail_each_call(1, 12, Clocked::empty), Ok(24));
}

/// One batch of everything: plain, from an old version, too early, without room, asked again, a job named twice, one that
/// is not there, a start message, and a record; and then the ends of what was granted.
fn mixed_day(store: &mut impl Store, now: Timestamp) -> Vec<String> {
    let me = SessionId(1);
    let spec = SessionSpec {
        id: me,
        node: "n1".parse().unwrap(),
        name: "main".to_owned(),
        boot_id: 1,
        home: 0,
        kind: SessionKind::Node,
        pools: [("default".parse().unwrap(), 4)].into(),
        zone_data: String::new(),
    };
    let mut heard = Vec::new();
    let Joined::Welcome { epoch, .. } =
        store.join(&spec, &Timings::new(TimingsSpec::DEFAULT).unwrap()).unwrap()
    else {
        panic!("welcome")
    };
    let puts: Vec<PutJob> = ('a'..='j').map(|name| new_job(&name.to_string(), now)).collect();
    let mut rows: Vec<JobRow> = Vec::new();
    for answer in store.put_jobs(&puts).unwrap() {
        let PutAnswer::Put(row) = answer else { panic!("{answer:?}") };
        rows.push(row);
    }
    let plain = |run: u128, row: &JobRow| claim(run, row, now, Vec::new());
    let first = [plain(1, &rows[0]), plain(2, &rows[1])];
    heard.push(format!("{:?}", store.claim(me, epoch, &first).unwrap()));
    let mut early = plain(11, &rows[2]);
    early.bid.not_before = now + Duration::from_mins(1);
    let mut old = plain(12, &rows[3]);
    old.bid.seen = Version(7);
    let mut nowhere = plain(13, &rows[4]);
    nowhere.bid.key = "nowhere".parse().unwrap();
    let mut published = plain(14, &rows[4]);
    published.bid.is_published = true;
    let mut second_of_two = plain(16, &rows[5]);
    second_of_two.bid.max_open = 2;
    let batch = [
        plain(10, &rows[9]),
        first[1].clone(),
        early,
        claim(20, &rows[6], now, vec![at_most(1, "shop")]),
        plain(15, &rows[5]),
        old,
        claim(21, &rows[7], now, vec![at_most(1, "shop")]),
        nowhere,
        published,
        second_of_two,
        plain(17, &rows[8]),
        first[0].clone(),
    ];
    for _ in 0..2 {
        heard.push(format!("{:?}", store.claim(me, epoch, &batch).unwrap()));
    }
    let Claims::Answered(answers) = store.claim(me, epoch, &batch).unwrap() else { panic!("open") };
    let by = EndBy::Owner(run_end(Outcome::Failed, now));
    let mut ends = Vec::new();
    for (claim, answer) in batch.iter().zip(answers) {
        if let ClaimAnswer::Granted(row) = answer {
            ends.push(End {
                run: claim.run,
                fence: row.fence,
                me,
                key: row.job.key.clone(),
                seen: row.version,
                by,
                state: row.state.clone(),
                records: Vec::new(),
                report: None,
            });
        }
    }
    ends[0].seen = Version(7);
    ends[1].me = SessionId(2);
    for _ in 0..2 {
        heard.push(format!("{:?}", store.end(epoch, &ends).unwrap()));
    }
    heard.push(format!("{:?}", store.outbox(10).unwrap()));
    heard.push(format!("{:?}", store.recount().unwrap()));
    heard
}

#[test]
fn a_mixed_batch_is_answered_like_the_reference() {
    let now = Timestamp::from_millis(1_800_000_000_000);
    let mut clocked = Clocked::empty();
    clocked.set_now(now);
    let mut reference = ReferenceStore::new(now);
    let (expected, found) = (mixed_day(&mut reference, now), mixed_day(&mut clocked.store, now));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(found, expected);
    }
    let runs = |store: &dyn Views| format!("{:?}", store.runs(&RunFilter::default(), None, 100).unwrap());
    assert_eq!(runs(&clocked.store), runs(&reference));
    let jobs = |store: &dyn Views| format!("{:?}", store.jobs(None, 100).unwrap());
    assert_eq!(jobs(&clocked.store), jobs(&reference));
    let ways = clocked.store.store.path_counts();
    assert!(6 <= ways.n_short && 6 <= ways.n_long, "{ways:?}");
}

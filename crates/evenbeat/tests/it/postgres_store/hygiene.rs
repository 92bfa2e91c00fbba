//! What a busy fleet leaves behind in the server: rows that are changed in place, a small table of sessions, no
//! deadlock, and no notification; also while somebody looks at the database as it was long ago.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::thread;

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::{JobKey, SessionId};
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{Beat, ClaimAnswer, Claims, EndAnswer, EndBy, JobRow, Store};
use evenbeat_core::time::Timestamp;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::postgres_store::cluster::until;
use crate::postgres_store::fleet::{at_most, claim, create, end, join, new_job, run_end};
use crate::support::postgres::{Database, Way, runtime};

const N_NODES: u32 = 2;
const N_BATCHES: u32 = 150;
const N_JOBS: u32 = 10;

struct Node {
    store: BlockingStore,
    me: SessionId,
    epoch: Epoch,
    now: Timestamp,
    rows: BTreeMap<JobKey, JobRow>,
    n_runs: u128,
}

impl Node {
    /// With jobs of its own, all at one site.
    fn new(database: &Database, no: u32) -> Node {
        let (mut store, me) = (database.store(Way::Direct), SessionId(u128::from(no) + 1));
        let (epoch, now) = join(&mut store, me);
        let puts: Vec<_> = (0..N_JOBS).map(|job| new_job(&format!("job-{no}-{job}"), now)).collect();
        let rows = create(&mut store, &puts).into_iter().map(|row| (row.job.key.clone(), row)).collect();
        Node { store, me, epoch, now, rows, n_runs: 0 }
    }

    /// Claims every job, beats, and ends what it has.
    fn batch(&mut self) {
        let mut claims = Vec::new();
        for row in self.rows.values() {
            self.n_runs += 1;
            let takes = vec![at_most(N_NODES * N_JOBS, "one")];
            claims.push(claim(self.me.0 << 64 | self.n_runs, row, self.now, takes));
        }
        let Claims::Answered(answers) = self.store.claim(self.me, self.epoch, &claims).unwrap() else {
            panic!("the epoch is open")
        };
        for answer in answers {
            let ClaimAnswer::Granted(row) = answer else { panic!("{answer:?}") };
            self.rows.insert(row.job.key.clone(), row);
        }
        let Beat::Alive { runs, .. } = self.store.beat(self.me).unwrap() else { panic!("it lives") };
        let by = EndBy::Owner(run_end(Outcome::Succeeded, self.now));
        let ends: Vec<_> = runs.iter().map(|run| end(run, &self.rows[&run.key], by)).collect();
        assert_eq!(ends.len(), self.rows.len());
        for answer in self.store.end(self.epoch, &ends).unwrap() {
            let EndAnswer::Ended(row) = answer else { panic!("{answer:?}") };
            self.rows.insert(row.job.key.clone(), row);
        }
    }
}

/// All nodes at once. They go when they are done, and their servers' processes tell what they did at the latest then.
fn work(nodes: Vec<Node>) {
    let work = |mut node: Node| {
        thread::spawn(move || {
            for _ in 0..N_BATCHES {
                node.batch();
            }
        })
    };
    let working: Vec<_> = nodes.into_iter().map(work).collect();
    for it in working {
        it.join().unwrap();
    }
}

fn nodes(database: &Database) -> Vec<Node> {
    (0..N_NODES).map(|no| Node::new(database, no)).collect()
}

fn number(client: &Client, sql: &str) -> i64 {
    runtime().block_on(client.query_one(sql, &[])).unwrap().get(0)
}

/// How many of a hundred changes of a table were made in place, once all of them have been counted.
fn percent_in_place(client: &Client, table: &str, n_changes: u32) -> i64 {
    let count = |what: &str| {
        number(client, &format!("SELECT {what} FROM pg_stat_user_tables WHERE relname = '{table}'"))
    };
    until("all changes are counted", || count("n_tup_upd") == i64::from(n_changes));
    count("n_tup_hot_upd * 100 / n_tup_upd")
}

fn check_no_deadlock(client: &Client) {
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(number(client, sql), 0, "deadlocks");
}

#[test]
fn rows_that_change_often_are_changed_in_place() {
    let database = Database::new();
    work(nodes(&database));
    let client = database.connect();
    let (n_claimed_and_ended, n_beaten) = (N_NODES * N_BATCHES * N_JOBS * 2, N_NODES * N_BATCHES);
    for (table, n_changes) in [("memory", n_claimed_and_ended), ("session", n_beaten)] {
        let percent = percent_in_place(&client, table, n_changes);
        assert!(90 <= percent, "{percent}% of {n_changes} changes of `{table}`");
    }
    check_no_deadlock(&client);
}

#[test]
fn who_looks_at_how_it_was_long_ago_keeps_nobody_from_working() {
    const SESSIONS_MAX_BYTES: i64 = 1024 * 1024;
    let database = Database::new();
    let nodes = nodes(&database);
    let old = database.connect();
    let look = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM memory";
    runtime().block_on(old.batch_execute(look)).unwrap();
    work(nodes);
    let client = database.connect();
    percent_in_place(&client, "session", N_NODES * N_BATCHES);
    check_no_deadlock(&client);
    let n_bytes = number(&client, "SELECT pg_total_relation_size('session')");
    assert!(n_bytes < SESSIONS_MAX_BYTES, "{n_bytes} bytes of sessions");
    let n_seen = number(&old, "SELECT sum(version)::bigint FROM memory");
    assert!(n_seen < number(&client, "SELECT sum(version)::bigint FROM memory"), "it still sees how it was");
}

/// Whoever notifies commits one after the other with all who do (FC-30).
#[test]
fn claims_beats_and_ends_notify_nobody() {
    let database = Database::new();
    let nodes = nodes(&database);
    let address = database.address(Way::Direct);
    let (listener, mut connection) = runtime().block_on(tokio_postgres::connect(&address, NoTls)).unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    runtime().spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(it) = message {
                drop(tell.send(it.payload().to_owned()));
            }
        }
    });
    runtime().block_on(listener.batch_execute("LISTEN evenbeat")).unwrap();
    work(nodes);
    // They come in the order of commits: the first is this one.
    let client = database.connect();
    runtime().block_on(client.batch_execute("NOTIFY evenbeat, 'from the test'")).unwrap();
    assert_eq!(runtime().block_on(told.recv()).as_deref(), Some("from the test"));
    // Of all databases of the server: others may be about to hear something.
    until("nothing waits to be heard", || {
        let sql = "SELECT (pg_notification_queue_usage() > 0)::int::bigint";
        number(&client, sql) == 0
    });
}

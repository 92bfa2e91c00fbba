//! Whoever comes in between while runs are opened and ended: nobody waits in a circle, and who waited sees what was done
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};

use evenbeat_core::ids::{RunId, SessionId};
use evenbeat_core::job::{CommandTarget, Target};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Claim, ClaimAnswer, Claims, End, EndAnswer, EndBy, JobRow, Mark, MarkKind, PutJob, RunPhase, Store, Views,
};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Client;

use crate::postgres_store::fencing::until_waiting;
use crate::postgres_store::fleet::{Fleet, claim, create, end, join, new_job, run_end};
use crate::postgres_store::ways::{answered, end_of, execute, number, owner_end, ways};
use crate::support::postgres::{Way, runtime};

fn end_in_background(fleet: &Fleet, ends: Vec<End>) -> JoinHandle<Vec<EndAnswer>> {
    let (mut store, epoch) = (fleet.store.clone(), fleet.epoch);
    thread::spawn(move || store.end(epoch, &ends).unwrap())
}

fn claim_in_background(fleet: &Fleet, claims: Vec<Claim>) -> JoinHandle<Vec<ClaimAnswer>> {
    let (mut store, me, epoch) = (fleet.store.clone(), fleet.me, fleet.epoch);
    thread::spawn(move || answered(store.claim(me, epoch, &claims).unwrap()))
}

const N_STORES: usize = 2;
const N_JOBS: usize = 40;
const N_ROUNDS: usize = 60;

/// Two nodes claim the same jobs at once, one from the front and one from the back, and somebody marks and wants to
/// cancel the same runs while they end.
#[test]
fn batches_that_cross_each_other_never_wait_in_a_circle() {
    let mut fleet = Fleet::new();
    let puts: Vec<PutJob> = (0..N_JOBS).map(|no| new_job(&format!("job{no:02}"), fleet.now)).collect();
    let first = create(&mut fleet.store, &puts);
    let barrier = Arc::new(Barrier::new(N_STORES));
    let (now, epoch) = (fleet.now, fleet.epoch);
    let nodes: Vec<_> = (0..N_STORES)
        .map(|idx| {
            let mut store = fleet.database.store(Way::Direct);
            let me = SessionId(idx as u128 + 100);
            join(&mut store, me);
            let (barrier, first) = (Arc::clone(&barrier), first.clone());
            thread::spawn(move || {
                let mut n_granted = 0;
                let mut rows = first;
                for round in 0..N_ROUNDS {
                    barrier.wait();
                    let id = |no: usize| {
                        // Ids have nothing to do with the order of keys.
                        let mixed = (no * 17 + round) % N_JOBS;
                        (round * N_JOBS + mixed) as u128 | (idx as u128 + 1) << 64
                    };
                    let mut claims: Vec<Claim> = rows
                        .iter()
                        .enumerate()
                        .map(|(no, row)| claim(id(no), row, now, Vec::new()))
                        .collect();
                    if idx == 1 {
                        claims.reverse();
                    }
                    let mut held: BTreeMap<RunId, JobRow> = BTreeMap::new();
                    for (claim, answer) in
                        claims.iter().zip(answered(store.claim(me, epoch, &claims).unwrap()))
                    {
                        match answer {
                            ClaimAnswer::Granted(row) => drop(held.insert(claim.run, row)),
                            ClaimAnswer::Lost(_) => {}
                            other => panic!("{other:?}"),
                        }
                    }
                    n_granted += held.len();
                    let runs: Vec<RunId> = held.keys().copied().collect();
                    let (mut other, wanted) = (store.clone(), runs.clone());
                    let meddler = thread::spawn(move || {
                        other.cancel(&wanted).unwrap();
                    });
                    let marks: Vec<Mark> = held
                        .iter()
                        .map(|(run, row)| Mark { run: *run, fence: row.fence, kind: MarkKind::Started(now) })
                        .collect();
                    store.mark(&marks).unwrap();
                    let by = EndBy::Owner(run_end(Outcome::Succeeded, now));
                    let ends: Vec<End> = held.iter().map(|(run, row)| end_of(*run, me, row, by)).collect();
                    for answer in store.end(epoch, &ends).unwrap() {
                        assert!(matches!(answer, EndAnswer::Ended(_)), "{answer:?}");
                    }
                    meddler.join().unwrap();
                    barrier.wait();
                    rows = store.jobs(None, N_JOBS).unwrap();
                }
                let ways = store.store.path_counts();
                (n_granted, ways.n_short)
            })
        })
        .collect();
    let done: Vec<(usize, u64)> = nodes.into_iter().map(|it| it.join().unwrap()).collect();
    // In each round each job was free once, and went to the one or the other.
    assert_eq!(done.iter().map(|it| it.0).sum::<usize>(), N_JOBS * N_ROUNDS);
    let n_short: u64 = done.iter().map(|it| it.1).sum();
    assert!((N_JOBS * N_ROUNDS) as u64 <= n_short, "{n_short} on the short way");
    let client = fleet.database.connect();
    assert_eq!(number(&client, "SELECT count(DISTINCT id) FROM run"), N_JOBS * N_ROUNDS);
    assert_eq!(number(&client, "SELECT count(*) FROM run"), N_JOBS * N_ROUNDS);
    assert_eq!(number(&client, "SELECT count(*) FROM run WHERE started_at IS NULL"), 0, "marks are kept");
    assert_eq!(number(&client, "SELECT count(*) FROM open_run"), 0);
    assert_eq!(number(&client, "SELECT sum(n_open)::bigint FROM memory"), 0);
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(number(&client, sql), 0, "deadlocks");
}

/// What nobody has locked.
fn free(watcher: &Client, sql: &str) -> Vec<String> {
    let rows = runtime().block_on(watcher.query(sql, &[])).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Somebody is in the way of the second of three: the first is locked already, and the third not yet. Ids have nothing to
/// do with the order of keys.
#[test]
fn jobs_are_locked_by_key_and_then_runs_by_id() {
    const JOBS: &str = "SELECT j.key FROM job j JOIN memory m ON m.job_id = j.id ORDER BY j.key \
                        FOR UPDATE OF m SKIP LOCKED";
    const RUNS: &str = "SELECT right(id::text, 1) FROM open_run ORDER BY id FOR UPDATE SKIP LOCKED";
    const HOLD_B: &str =
        "BEGIN; SELECT FROM memory m WHERE job_id = (SELECT id FROM job WHERE key = 'b') FOR UPDATE";
    let mut fleet = Fleet::new();
    let rows = create(&mut fleet.store, &["a", "b", "c"].map(|name| new_job(name, fleet.now)));
    let (client, watcher) = (fleet.database.connect(), fleet.database.connect());
    let claims = [(2, 2), (3, 0), (1, 1)].map(|(run, no)| claim(run, &rows[no], fleet.now, Vec::new()));
    execute(&client, HOLD_B);
    let claiming = claim_in_background(&fleet, claims.to_vec());
    until_waiting(&watcher, 1);
    assert_eq!(free(&watcher, JOBS), ["c"]);
    execute(&client, "ROLLBACK");
    let ends: Vec<End> = claims
        .iter()
        .zip(claiming.join().unwrap())
        .map(|(claim, answer)| match answer {
            ClaimAnswer::Granted(row) => end_of(claim.run, fleet.me, &row, owner_end(&fleet)),
            other => panic!("{other:?}"),
        })
        .collect();
    execute(&client, &format!("BEGIN; SELECT FROM open_run WHERE id = '{}' FOR UPDATE", uuid(2)));
    let ending = end_in_background(&fleet, ends);
    until_waiting(&watcher, 1);
    assert_eq!(free(&watcher, JOBS), [""; 0]);
    assert_eq!(free(&watcher, RUNS), ["3"]);
    execute(&client, "ROLLBACK");
    let claims: Vec<Claim> = (4..)
        .zip(ending.join().unwrap())
        .map(|(run, answer)| match answer {
            EndAnswer::Ended(row) => claim(run, &row, fleet.now, Vec::new()),
            other => panic!("{other:?}"),
        })
        .collect();
    let granted = answered(fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap());
    let ends: Vec<End> = claims
        .iter()
        .zip(granted)
        .map(|(claim, answer)| match answer {
            ClaimAnswer::Granted(row) => end_of(claim.run, fleet.me, &row, owner_end(&fleet)),
            other => panic!("{other:?}"),
        })
        .collect();
    execute(&client, HOLD_B);
    let ending = end_in_background(&fleet, ends);
    until_waiting(&watcher, 1);
    assert_eq!(free(&watcher, JOBS), ["c"]);
    execute(&client, "ROLLBACK");
    let answers = ending.join().unwrap();
    assert!(answers.iter().all(|it| matches!(it, EndAnswer::Ended(_))), "{answers:?}");
    assert_eq!(ways(&fleet.store, &mut (0, 0)), (12, 0));
}

/// A definition that is written while a claim waits for the row.
#[test]
fn a_claim_that_waited_for_an_edit_is_lost_to_it() {
    let mut fleet = Fleet::new();
    let row = fleet.create("a");
    let client = fleet.database.connect();
    execute(
        &client,
        "BEGIN; UPDATE memory SET version = version + 1; \
         UPDATE job SET definition = replace(definition, '\"true\"', '\"false\"')",
    );
    let claiming = claim_in_background(&fleet, vec![claim(1, &row, fleet.now, Vec::new())]);
    let watcher = fleet.database.connect();
    until_waiting(&watcher, 1);
    execute(&client, "COMMIT");
    let answers = claiming.join().unwrap();
    let [ClaimAnswer::Lost(found)] = &answers[..] else { panic!("{answers:?}") };
    let command = |row: &JobRow| match &row.job.target {
        Target::Command(CommandTarget { argv, .. }) => argv.join(" "),
        other => panic!("{other:?}"),
    };
    assert_eq!((command(&row), command(found)), ("true".to_owned(), "false".to_owned()));
    assert_eq!(*found, fleet.row("a"));
    // Whoever only holds the row is waited for, and nothing is lost.
    execute(&client, "BEGIN; SELECT FROM memory FOR UPDATE");
    let claiming = claim_in_background(&fleet, vec![claim(2, found, fleet.now, Vec::new())]);
    until_waiting(&watcher, 1);
    execute(&client, "ROLLBACK");
    let answers = claiming.join().unwrap();
    assert!(matches!(&answers[..], [ClaimAnswer::Granted(row)] if command(row) == "false"), "{answers:?}");
}

/// A run that changes hands after the statement that ends it has begun.
#[test]
fn an_end_that_waited_while_its_run_was_taken_over_writes_nothing() {
    let mut fleet = Fleet::new();
    let heir = fleet.join(2);
    let runs = [fleet.open(fleet.me, "a", 1), fleet.open(fleet.me, "b", 2)];
    let before = (fleet.row("a"), fleet.row("b"));
    let by = owner_end(&fleet);
    let ends = vec![end(&runs[0], &before.0, by), end(&runs[1], &before.1, by)];
    let (client, watcher) = (fleet.database.connect(), fleet.database.connect());
    let take = format!("BEGIN; UPDATE open_run SET session_id = '{}' WHERE id = '{}'", uuid(heir.0), uuid(2));
    execute(&client, &take);
    let ending = end_in_background(&fleet, ends);
    until_waiting(&watcher, 1);
    execute(&client, "COMMIT");
    assert_eq!(ending.join().unwrap(), [EndAnswer::Ended(fleet.row("a")), EndAnswer::Late]);
    assert_eq!(fleet.row("b"), before.1);
    assert_eq!((fleet.run(1).phase, fleet.run(2).session), (RunPhase::Ended(Outcome::Succeeded), heir));
    assert_eq!(number(&watcher, "SELECT count(*) FROM run"), 1);
}

/// A mark that comes in while the end waits goes into history with the run.
#[test]
fn an_end_that_waited_for_a_mark_keeps_it() {
    let mut fleet = Fleet::new();
    let run = fleet.open(fleet.me, "a", 1);
    let (client, watcher) = (fleet.database.connect(), fleet.database.connect());
    execute(&client, "BEGIN; UPDATE open_run SET phase = 'running', started_at = 77");
    let ending = end_in_background(&fleet, vec![end(&run, &fleet.row("a"), owner_end(&fleet))]);
    until_waiting(&watcher, 1);
    execute(&client, "COMMIT");
    assert!(matches!(ending.join().unwrap()[..], [EndAnswer::Ended(_)]));
    assert_eq!(fleet.run(1).started_at.map(Timestamp::as_millis), Some(77));
    assert_eq!(ways(&fleet.store, &mut (0, 0)), (2, 0));
}

/// Nobody claims under an epoch that is over: a new one waits for claims that have begun.
#[test]
fn a_new_epoch_waits_for_claims_that_have_begun() {
    let mut fleet = Fleet::new();
    let row = fleet.create("a");
    let (client, watcher) = (fleet.database.connect(), fleet.database.connect());
    execute(&client, "BEGIN; SELECT FROM memory FOR UPDATE");
    let claiming = claim_in_background(&fleet, vec![claim(1, &row, fleet.now, Vec::new())]);
    until_waiting(&watcher, 1);
    let store = fleet.store.clone();
    let reigning = thread::spawn(move || store.runtime.block_on(store.store.new_epoch()).unwrap());
    until_waiting(&watcher, 2);
    execute(&client, "ROLLBACK");
    let answers = claiming.join().unwrap();
    assert!(matches!(answers[..], [ClaimAnswer::Granted(_)]), "{answers:?}");
    let epoch = reigning.join().unwrap();
    assert!(fleet.epoch < epoch);
    assert_eq!(fleet.run(1).fence.0 >> 32, fleet.epoch.0);
    let late = claim(2, &fleet.row("a"), fleet.now, Vec::new());
    assert_eq!(fleet.store.claim(fleet.me, fleet.epoch, &[late]).unwrap(), Claims::Closed);
}

fn uuid(id: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(id)
}

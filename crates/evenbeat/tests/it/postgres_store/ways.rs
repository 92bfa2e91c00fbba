//! Runs are opened and ended by one statement where nothing is out of the ordinary, and in a longer way else: whoever
//! comes in between, both leave things as they should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Claim, ClaimAnswer, Claims, End, EndAnswer, EndBy, JobRow, PutJob, RunFilter, Store, Views,
};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Client;

use crate::postgres_store::cluster::until;
use crate::postgres_store::fleet::{Fleet, again, claim, create, end, join, new_job, run_end};
use crate::support::postgres::{Database, Way, runtime};

pub(crate) fn execute(client: &Client, sql: &str) {
    runtime().block_on(client.batch_execute(sql)).unwrap();
}

pub(crate) fn number(client: &Client, sql: &str) -> usize {
    let row = runtime().block_on(client.query_one(sql, &[])).unwrap();
    usize::try_from(row.get::<_, i64>(0)).unwrap()
}

/// How many went the short way and how many the long one, since the last time.
pub(crate) fn ways(store: &BlockingStore, last: &mut (u64, u64)) -> (u64, u64) {
    let now = store.store.path_counts();
    let since = (now.n_short - last.0, now.n_long - last.1);
    *last = (now.n_short, now.n_long);
    since
}

pub(crate) fn answered(answer: Claims) -> Vec<ClaimAnswer> {
    match answer {
        Claims::Answered(answers) => answers,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn owner_end(fleet: &Fleet) -> EndBy {
    EndBy::Owner(run_end(Outcome::Succeeded, fleet.now))
}

/// By whoever was granted the run, from the row that it was told then.
pub(crate) fn end_of(run: RunId, me: SessionId, row: &JobRow, by: EndBy) -> End {
    End {
        run,
        fence: row.fence,
        me,
        key: row.job.key.clone(),
        seen: row.version,
        by,
        state: row.state.clone(),
        records: Vec::new(),
        report: None,
    }
}

#[test]
fn a_plain_cycle_takes_the_short_way_directly_and_behind_a_pooler() {
    for way in [Way::Direct, Way::PgBouncer] {
        let mut fleet = Fleet::new();
        let mut store = fleet.database.store(way);
        let rows = create(&mut fleet.store, &["a", "b", "c"].map(|name| new_job(name, fleet.now)));
        let claims: Vec<Claim> =
            (1..).zip(rows.iter().rev()).map(|(run, row)| claim(run, row, fleet.now, Vec::new())).collect();
        let granted = answered(store.claim(fleet.me, fleet.epoch, &claims).unwrap());
        let expected: Vec<ClaimAnswer> =
            ["c", "b", "a"].map(|name| ClaimAnswer::Granted(fleet.row(name))).into();
        assert_eq!(granted, expected);
        let ends: Vec<End> = (1..)
            .zip(["c", "b", "a"])
            .map(|(run, name)| end(&fleet.run(run), &fleet.row(name), owner_end(&fleet)))
            .collect();
        let ended = store.end(fleet.epoch, &ends).unwrap();
        let expected: Vec<EndAnswer> = ["c", "b", "a"].map(|name| EndAnswer::Ended(fleet.row(name))).into();
        assert_eq!(ended, expected);
        assert_eq!(ways(&store, &mut (0, 0)), (6, 0), "{way:?}");
    }
}

/// Only what does not match goes the long way, and each answer stands at its place.
#[test]
fn a_batch_goes_both_ways() {
    let mut fleet = Fleet::new();
    let rows = create(&mut fleet.store, &["a", "b", "c", "d"].map(|name| new_job(name, fleet.now)));
    let plain = |run: u128, row: &JobRow| claim(run, row, fleet.now, Vec::new());
    let twice = [plain(3, &rows[2]), plain(4, &rows[2])];
    let mut gone = plain(5, &rows[3]);
    gone.bid.key = "e".parse().unwrap();
    let claims = [
        twice[0].clone(),
        plain(2, &rows[1]),
        gone,
        plain(1, &rows[0]),
        twice[1].clone(),
        plain(6, &rows[3]),
    ];
    let mut seen = (0, 0);
    let answers = answered(fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap());
    let granted = |name: &str| ClaimAnswer::Granted(fleet.row(name));
    let lost = ClaimAnswer::Lost(fleet.row("c"));
    assert_eq!(answers, [granted("c"), granted("b"), ClaimAnswer::Gone, granted("a"), lost, granted("d")]);
    assert_eq!(ways(&fleet.store, &mut seen), (3, 3));
    // Asked again, all of it: nothing is as it was seen, and the runs are known.
    let again = answered(fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap());
    assert_eq!(again, answers);
    assert_eq!(ways(&fleet.store, &mut seen), (0, 6));

    let by = owner_end(&fleet);
    let mut ends: Vec<End> = [(1, "a"), (2, "b"), (3, "c"), (6, "d")]
        .map(|(run, name)| end(&fleet.run(run), &fleet.row(name), by))
        .into();
    ends[1].seen = rows[1].version;
    let answers = fleet.store.end(fleet.epoch, &ends[..2]).unwrap();
    assert_eq!(answers, [EndAnswer::Ended(fleet.row("a")), EndAnswer::Stale(fleet.row("b"))]);
    assert_eq!(ways(&fleet.store, &mut seen), (1, 1));
    // A lease that never was undoes the whole statement.
    ends[2].fence.0 += 1;
    let answers = fleet.store.end(fleet.epoch, &ends[2..]).unwrap();
    assert_eq!(answers, [EndAnswer::Late, EndAnswer::Ended(fleet.row("d"))]);
    assert_eq!(ways(&fleet.store, &mut seen), (0, 2));
    assert_eq!((fleet.row("b").n_open, fleet.row("c").n_open), (1, 1));
}

/// A large batch is asked in parts, and nobody notices.
#[test]
fn each_answer_of_a_large_batch_stands_at_its_place() {
    const N: usize = 600;
    let mut fleet = Fleet::new();
    let puts: Vec<PutJob> = (0..N).map(|no| new_job(&format!("job{no:03}"), fleet.now)).collect();
    let rows = create(&mut fleet.store, &puts);
    let mut claims: Vec<Claim> =
        (1..).zip(rows.iter().rev()).map(|(run, row)| claim(run, row, fleet.now, Vec::new())).collect();
    claims[300].bid.seen.0 += 1;
    let mut store = fleet.database.store(Way::Direct);
    let answers = answered(store.claim(fleet.me, fleet.epoch, &claims).unwrap());
    let mut ends = Vec::new();
    for (place, (claim, answer)) in claims.iter().zip(answers).enumerate() {
        match answer {
            ClaimAnswer::Granted(row) if place != 300 => {
                assert_eq!((&row.job.key, row.n_open), (&claim.bid.key, 1));
                assert_eq!(row.state.owner.as_ref().map(|it| it.tag), Some(claim.run));
                ends.push(end_of(claim.run, fleet.me, &row, owner_end(&fleet)));
            }
            ClaimAnswer::Lost(row) if place == 300 => assert_eq!(row.job.key, claim.bid.key),
            other => panic!("{other:?}"),
        }
    }
    for (end, answer) in ends.iter().zip(store.end(fleet.epoch, &ends).unwrap()) {
        let EndAnswer::Ended(row) = answer else { panic!("{answer:?}") };
        assert_eq!((&row.job.key, row.n_open), (&end.key, 0));
    }
    assert_eq!(ways(&store, &mut (0, 0)), (2 * (N as u64 - 1), 1));
    let client = fleet.database.connect();
    assert_eq!(number(&client, "SELECT count(DISTINCT id) FROM run"), N - 1);
}

/// An edit by another handle between a claim and the end of its run.
#[test]
fn an_end_tells_the_definition_that_another_has_written() {
    let mut fleet = Fleet::new();
    let run = fleet.open(fleet.me, "a", 1);
    let seen = fleet.row("a");
    let mut other = fleet.database.store(Way::Direct);
    let mut job = (*seen.job).clone();
    job.labels.insert("team".to_owned(), "prices".to_owned());
    let edit = PutJob { job: Arc::new(job.clone()), is_revision: true, ..again(&seen) };
    create(&mut other, &[edit]);
    let edited = fleet.row("a");
    let stale = fleet.store.end(fleet.epoch, &[end(&run, &seen, owner_end(&fleet))]).unwrap();
    assert_eq!(stale, [EndAnswer::Stale(edited.clone())]);
    let ended = fleet.store.end(fleet.epoch, &[end(&run, &edited, owner_end(&fleet))]).unwrap();
    assert_eq!(ended, [EndAnswer::Ended(fleet.row("a"))]);
    assert_eq!((&*fleet.row("a").job, fleet.row("a").revision), (&job, edited.revision));
}

/// An id that is open and one that is over, whoever opened or ended it, each with a bid that would else be granted.
#[test]
fn an_id_that_was_used_opens_nothing_more() {
    let mut fleet = Fleet::new();
    let over = fleet.open(fleet.me, "a", 1);
    fleet.store.end(fleet.epoch, &[end(&over, &fleet.row("a"), owner_end(&fleet))]).unwrap();
    fleet.open(fleet.me, "b", 2);
    let rows = create(&mut fleet.store, &["c", "d", "e"].map(|name| new_job(name, fleet.now)));
    let claims = [(1, 0), (2, 1), (3, 2)].map(|(run, no)| claim(run, &rows[no], fleet.now, Vec::new()));
    let lost = |no: usize| ClaimAnswer::Lost(rows[no].clone());
    let mut other = fleet.database.store(Way::Direct);
    for no in [0, 1] {
        let used = answered(other.claim(fleet.me, fleet.epoch, &claims[no..=no]).unwrap());
        assert_eq!(used, [lost(no)]);
    }
    let same_job = claim(1, &fleet.row("a"), fleet.now, Vec::new());
    let used = answered(other.claim(fleet.me, fleet.epoch, &[same_job]).unwrap());
    assert_eq!(used, [ClaimAnswer::Lost(fleet.row("a"))]);
    let answers = answered(fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap());
    assert_eq!(answers, [lost(0), lost(1), ClaimAnswer::Granted(fleet.row("e"))]);
    let open = fleet.store.runs(&RunFilter { key: None, is_open: true }, None, 10).unwrap();
    let keys: Vec<&JobKey> = open.iter().map(|it| &it.key).collect();
    assert_eq!(keys, [&"e".parse::<JobKey>().unwrap(), &"b".parse().unwrap()]);
}

/// Ids as nodes draw them: history is looked at from when they were drawn, and only an id that is in it is lost.
#[test]
fn an_id_that_is_over_is_found_among_those_drawn_at_the_same_time() {
    let mut fleet = Fleet::new();
    let drawn = |no: u128| u128::try_from(fleet.now.as_millis()).unwrap() << 80 | 7 << 76 | 2 << 62 | no;
    let rows = create(&mut fleet.store, &["a", "b", "c"].map(|name| new_job(name, fleet.now)));
    let claims = |runs: [u128; 3]| {
        let claim = |(run, row)| claim(drawn(run), row, fleet.now, Vec::new());
        runs.into_iter().zip(&rows).map(claim).collect::<Vec<Claim>>()
    };
    let over = claims([2, 3, 4]).remove(0);
    fleet.store.claim(fleet.me, fleet.epoch, std::slice::from_ref(&over)).unwrap();
    let ended = end_of(over.run, fleet.me, &fleet.row("a"), owner_end(&fleet));
    fleet.store.end(fleet.epoch, &[ended]).unwrap();
    let mut other = fleet.database.store(Way::Direct);
    // The run that is over was drawn between these two.
    let around = [claims([0, 1, 0]).remove(1), claims([0, 0, 3]).remove(2)];
    let answers = answered(other.claim(fleet.me, fleet.epoch, &around).unwrap());
    assert_eq!(answers, ["b", "c"].map(|name| ClaimAnswer::Granted(fleet.row(name))));
    assert_eq!(ways(&other, &mut (0, 0)), (2, 0));
    let again = claim(over.run.0, &fleet.row("a"), fleet.now, Vec::new());
    let answers = answered(other.claim(fleet.me, fleet.epoch, &[again]).unwrap());
    assert_eq!(answers, [ClaimAnswer::Lost(fleet.row("a"))]);
}

/// The first answer makes the handle know the removed job.
#[test]
fn a_removed_job_stays_lost() {
    let mut fleet = Fleet::new();
    let row = fleet.create("a");
    let removed = create(&mut fleet.store, &[PutJob { is_deleted: true, ..again(&row) }]).remove(0);
    for run in 1..4 {
        let claims = [claim(run, &removed, fleet.now, Vec::new())];
        let answers = answered(fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap());
        assert_eq!(answers, [ClaimAnswer::Lost(removed.clone())]);
    }
}

/// Claims these jobs, ends the runs, and tells the jobs as they are then.
fn cycle(
    store: &mut BlockingStore,
    me: SessionId,
    epoch: Epoch,
    now: Timestamp,
    rows: &[JobRow],
) -> Vec<JobRow> {
    static N_RUNS: AtomicU64 = AtomicU64::new(0);
    let id = || u128::from(N_RUNS.fetch_add(1, Ordering::Relaxed)) + 1;
    let claims: Vec<Claim> = rows.iter().map(|row| claim(id(), row, now, Vec::new())).collect();
    let by = EndBy::Owner(run_end(Outcome::Succeeded, now));
    let mut ends = Vec::new();
    for (claim, answer) in claims.iter().zip(answered(store.claim(me, epoch, &claims).unwrap())) {
        let ClaimAnswer::Granted(row) = answer else { panic!("{answer:?}") };
        ends.push(end_of(claim.run, me, &row, by));
    }
    let freed = |answer: EndAnswer| match answer {
        EndAnswer::Ended(row) => row,
        other => panic!("{other:?}"),
    };
    store.end(epoch, &ends).unwrap().into_iter().map(freed).collect()
}

/// However small the tables were when the server made its plans, no table is read from one end to the other.
#[test]
fn rows_are_found_by_the_right_index() {
    const TABLES: &str = "relname IN ('job', 'memory', 'open_run', 'outbox')";
    const RIGHT: &str =
        "indexrelname IN ('job_key_key', 'memory_pkey', 'open_run_pkey', 'outbox_run_id_key')";
    const N_CYCLES: usize = 8;
    for way in [Way::Direct, Way::PgBouncer] {
        let database = Database::new();
        let client = database.connect();
        let me = SessionId(1);
        let (epoch, now, mut rows) = {
            let mut store = database.store(Way::Direct);
            let (epoch, now) = join(&mut store, me);
            // All that the server will know of jobs: there are none.
            execute(&client, "VACUUM ANALYZE");
            let rows = create(&mut store, &["a", "b", "c"].map(|name| new_job(name, now)));
            let rows = cycle(&mut store, me, epoch, now, &rows);
            // And of open runs: there were some, and now there are none.
            execute(&client, "ANALYZE open_run");
            (epoch, now, rows)
        };
        // What was done until here is counted when its connections are gone.
        let others = "SELECT count(*) FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
        until("the store is gone", || number(&client, others) == 0);
        let count = |what: &str| {
            number(&client, &format!("SELECT sum({what})::bigint FROM pg_stat_user_tables WHERE {TABLES}"))
        };
        let wrong =
            format!("SELECT sum(idx_scan)::bigint FROM pg_stat_user_indexes WHERE {TABLES} AND NOT {RIGHT}");
        let (n_seq_scans, n_updates) = (count("seq_scan"), count("n_tup_upd"));
        let n_wrong = number(&client, &wrong);
        let mut store = database.store(way);
        for _ in 0..N_CYCLES {
            rows = cycle(&mut store, me, epoch, now, &rows);
        }
        assert_eq!(ways(&store, &mut (0, 0)), (48, 0), "{way:?}");
        drop(store);
        until("all that was done is counted", || count("n_tup_upd") == n_updates + 2 * 3 * N_CYCLES);
        assert_eq!(count("seq_scan"), n_seq_scans, "{way:?}");
        assert_eq!(
            number(&client, &wrong),
            n_wrong,
            "{way:?}: by an index that does not begin with the column"
        );
    }
}

//! Servers that hang, go away, or only let us read.

use std::thread;
use std::time::Duration;

use evenbeat::testing::store::postgres::{BlockingStore, PgConfig};
use evenbeat_core::ids::RunId;
use evenbeat_core::lease::Silent;
use evenbeat_core::store::{Beat, Claims, Fencing, Retention, RunFilter, Store, StoreDown, Views};

use crate::postgres_store::fleet::{Fleet, claim, join, new_job};
use crate::postgres_store::proxy::Proxy;
use crate::support::postgres::{Database, Way, runtime, store};

const SHORT: Duration = Duration::from_millis(300);

#[track_caller]
fn check_given_up<T: std::fmt::Debug>(what: &str, answer: Result<T, StoreDown>) {
    let text = answer.unwrap_err().to_string();
    assert!(text.contains("no answer from PostgreSQL within 300 ms"), "{what}: {text}");
}

#[test]
fn every_call_to_a_server_that_hangs_ends_and_the_next_one_recovers() {
    let database = Database::new();
    let address = database.address(Way::Direct);
    let proxy = Proxy::before(&address);
    let config: PgConfig = proxy.address(&address).parse().unwrap();
    let mut patient = database.store(Way::Direct);
    let me = evenbeat_core::ids::SessionId(1);
    let (epoch, now) = join(&mut patient, me);
    let row = crate::postgres_store::fleet::create(&mut patient, &[new_job("a", now)]).remove(0);
    let mut store = store(config.with_deadline(SHORT));
    // A busy machine may take longer than so short a deadline: what counts is that it comes to an answer.
    let beats_again = |store: &mut BlockingStore| {
        let beat = (0..100).find_map(|_| store.beat(me).ok());
        assert!(matches!(beat, Some(Beat::Alive { .. })), "{beat:?}");
    };
    beats_again(&mut store);
    proxy.hang(true);
    check_given_up("beat", store.beat(me));
    check_given_up("claim", store.claim(me, epoch, &[claim(1, &row, now, Vec::new())]));
    check_given_up("end", store.end(epoch, &[]));
    check_given_up("put", store.put_jobs(&[new_job("b", now)]));
    check_given_up("settle", store.settle(me, epoch, &[]));
    check_given_up("changes", store.changes(None, 10));
    check_given_up("watch", store.watch(10));
    check_given_up("cancel", store.cancel(&[RunId(1)]));
    check_given_up("job", store.job(&row.job.key));
    check_given_up("runs", store.runs(&RunFilter::default(), None, 10));
    proxy.hang(false);
    beats_again(&mut store);
    let found = (0..100).find_map(|_| store.job(&row.job.key).ok()).flatten();
    assert_eq!(found.map(|it| it.job), Some(row.job));
}

type Call = fn(&mut BlockingStore) -> Result<(), StoreDown>;

/// A server that takes longer to greet than a call may take would never be reached, if each call began anew.
#[test]
fn a_connection_that_took_too_long_for_one_call_serves_the_next() {
    let database = Database::new();
    let address = database.address(Way::Direct);
    let me = evenbeat_core::ids::SessionId(1);
    join(&mut database.store(Way::Direct), me);
    let calls: [(&str, Call); 4] = [
        ("beat", |store| store.beat(evenbeat_core::ids::SessionId(1)).map(drop)),
        ("watch", |store| store.watch(10).map(drop)),
        ("cancel", |store| store.cancel(&[RunId(1)]).map(drop)),
        ("runs", |store| store.runs(&RunFilter::default(), None, 10).map(drop)),
    ];
    for (what, call) in calls {
        let proxy = Proxy::before(&address);
        let config: PgConfig = proxy.address(&address).parse().unwrap();
        let mut store = store(config.with_deadline(SHORT));
        proxy.let_through(0);
        for _ in 0..3 {
            check_given_up(what, call(&mut store));
        }
        // Three calls, and one connection that was left behind by the first: it is the second or the third. All that come
        // after them hang.
        proxy.let_through(3);
        assert!((0..30).any(|_| call(&mut store).is_ok()), "{what}");
    }
}

/// A node that stands still does not read what it has asked for. Its session is locked meanwhile, and must not be for
/// ever: others want to fence it off.
#[test]
fn whoever_has_stopped_reading_holds_no_lock_for_long() {
    let mut fleet = Fleet::new();
    let row = fleet.create("a");
    let claims = [claim(1, &row, fleet.now, Vec::new())];
    assert!(matches!(fleet.store.claim(fleet.me, fleet.epoch, &claims).unwrap(), Claims::Answered(_)));
    let address = fleet.database.address(Way::Direct);
    let proxy = Proxy::before(&address);
    let config: PgConfig = proxy.address(&address).parse().unwrap();
    // Long enough that the server comes to send its answer.
    let mut stopped = store(config.with_deadline(SHORT * 4));
    assert!((0..100).any(|_| stopped.beat(fleet.me).is_ok()));
    let beat = fleet.store.watch(0).unwrap().sessions.iter().find(|it| it.spec.id == fleet.me).unwrap().beat;
    // More than lies between a server and who does not read.
    let many = "DO $$ DECLARE it open_run; BEGIN \
                  SELECT * INTO it FROM open_run; \
                  FOR n IN 1..40000 LOOP it.id = gen_random_uuid(); INSERT INTO open_run VALUES (it.*); END LOOP; \
                END $$";
    runtime().block_on(fleet.database.connect().batch_execute(many)).unwrap();
    proxy.stop_reading();
    assert!(stopped.beat(fleet.me).is_err());
    let silent = [Silent { session: fleet.me, beat }];
    assert_eq!(fleet.store.fence(fleet.epoch, &silent), Ok(vec![Fencing::Fenced]));
}

/// whatever waits in the pool, the beat goes on, and so does the watch over others.
#[test]
fn the_beat_and_the_watch_go_on_while_the_pool_is_starved() {
    let database = Database::new();
    let config = database.config(Way::Direct).with_connections(2);
    let mut beating = store(config);
    let me = evenbeat_core::ids::SessionId(1);
    let (_, now) = join(&mut beating, me);
    let rows = crate::postgres_store::fleet::create(&mut beating, &[new_job("a", now), new_job("b", now)]);
    let blocker = database.connect();
    runtime().block_on(blocker.batch_execute("BEGIN; SELECT FROM memory FOR UPDATE")).unwrap();
    let waiting: Vec<_> = rows
        .iter()
        .map(|row| {
            let (mut store, put) = (beating.clone(), crate::postgres_store::fleet::again(row));
            thread::spawn(move || store.put_jobs(&[put]))
        })
        .collect();
    crate::postgres_store::fencing::until_waiting(&database.connect(), 2);
    for n_beats in 1..=5 {
        let answer = beating.beat(me).unwrap();
        assert!(matches!(answer, Beat::Alive { .. }), "{answer:?}");
        let seen = "SELECT beat FROM session";
        let row = runtime().block_on(database.connect().query_one(seen, &[])).unwrap();
        assert_eq!(row.get::<_, i64>(0), n_beats);
        assert_eq!(beating.watch(10).unwrap().sessions.len(), 1);
    }
    runtime().block_on(blocker.batch_execute("ROLLBACK")).unwrap();
    for put in waiting {
        put.join().unwrap().unwrap();
    }
}

#[test]
fn a_server_that_was_restarted_serves_the_next_call() {
    let mut fleet = Fleet::new();
    let admin = fleet.database.connect();
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for n in 0..10 {
        runtime().block_on(admin.query(end_all, &[])).unwrap();
        let row = fleet.create(&format!("job{n}"));
        let (me, epoch) = (fleet.me, fleet.epoch);
        let claims = [claim(n + 1, &row, fleet.now, Vec::new())];
        assert!(matches!(fleet.store.claim(me, epoch, &claims).unwrap(), Claims::Answered(_)));
        let answer = fleet.store.beat(me).unwrap();
        assert!(matches!(&answer, Beat::Alive { runs, .. } if runs.len() as u128 == n + 1), "{answer:?}");
    }
}

#[test]
fn a_server_that_only_lets_us_read_is_down() {
    let fleet = Fleet::new();
    let admin = fleet.database.connect();
    let name: String = runtime().block_on(admin.query_one("SELECT current_database()", &[])).unwrap().get(0);
    let read_only = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    runtime().block_on(admin.batch_execute(&read_only)).unwrap();
    let mut fresh = fleet.database.store(Way::Direct);
    for down in [fresh.beat(fleet.me).unwrap_err(), fresh.put_jobs(&[]).unwrap_err()] {
        assert!(down.to_string().contains("only lets us read"), "{down}");
    }
}

#[test]
fn a_server_that_is_not_there_is_down_and_not_asked_all_the_time() {
    let config: PgConfig = "postgres://evenbeat@127.0.0.1:1/nothing".parse().unwrap();
    let mut away = store(config);
    let first = away.cancel(&[]).unwrap_err().to_string();
    assert!(first.contains("error connecting to server"), "{first}");
    let second = away.cancel(&[]).unwrap_err().to_string();
    assert!(second.contains("(asked 1 times, again in "), "{second}");
}

#[test]
fn tables_of_another_program_are_refused() {
    let database = Database::new();
    let admin = database.connect();
    let migrate = || {
        let store = database.store(Way::Direct);
        store.runtime.block_on(store.store.migrate())
    };
    assert_eq!(migrate(), Ok(0), "they are up to date");
    runtime().block_on(admin.batch_execute("UPDATE migration SET checksum = 'x'")).unwrap();
    let text = migrate().unwrap_err().to_string();
    assert!(text.contains("was not made by a release of this program"), "{text}");
    let newer = "INSERT INTO migration (no, name, checksum, applied_at) VALUES (99, 'later', 'y', 0)";
    runtime().block_on(admin.batch_execute(newer)).unwrap();
    let text = migrate().unwrap_err().to_string();
    assert!(text.contains("newer version than this program (step 99, `later`"), "{text}");
}

#[test]
fn nodes_that_start_at_once_migrate_once() {
    let database = Database::new();
    let admin = database.connect();
    let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
    runtime().block_on(admin.batch_execute(empty)).unwrap();
    let migrating: Vec<_> = (0..4)
        .map(|_| {
            let store = database.store(Way::Direct);
            thread::spawn(move || store.runtime.block_on(store.store.migrate()).unwrap())
        })
        .collect();
    let mut steps: Vec<usize> = migrating.into_iter().map(|it| it.join().unwrap()).collect();
    steps.sort_unstable();
    assert!(steps[..3] == [0, 0, 0] && 0 < steps[3], "one of them takes all steps: {steps:?}");
    let day = evenbeat_core::time::Duration::from_days(1);
    let retention = Retention::new(day, day, day, 1);
    database.store(Way::Direct).trim(&retention).unwrap();
}

//! The feed where only a server with many writers can go wrong.

use evenbeat_core::store::{Changes, Cursor, PutJob, Store};

use crate::postgres_store::fleet::{Fleet, again, create, new_job};
use crate::support::postgres::runtime;

fn ask(fleet: &mut Fleet, since: Option<Cursor>, most: usize) -> (Vec<String>, Cursor, bool) {
    match fleet.store.changes(since, most).unwrap() {
        Changes::Rows { rows, next, is_last } => {
            (rows.iter().map(|it| it.key.to_string()).collect(), next, is_last)
        }
        Changes::Reset => panic!("the cursor is known"),
    }
}

/// What a transaction of the store would write, left open.
const SLOW: &str = "BEGIN; \
     UPDATE memory SET version = version + 1 WHERE job_id = (SELECT id FROM job WHERE key = 'slow'); \
     INSERT INTO change SELECT pg_current_xact_id(), id, now_ms() FROM job WHERE key = 'slow'";

#[test]
fn a_slow_transaction_is_not_missed_and_nothing_comes_twice() {
    let mut fleet = Fleet::new();
    for name in ["slow", "quick", "other"] {
        fleet.create(name);
    }
    let (_, cursor, _) = ask(&mut fleet, None, 100);
    let (one, two) = (fleet.database.connect(), fleet.database.connect());
    runtime().block_on(one.batch_execute(SLOW)).unwrap();
    // A later transaction commits first.
    let quick = SLOW.replace("slow", "quick") + "; COMMIT";
    runtime().block_on(two.batch_execute(&quick)).unwrap();
    let (keys, cursor, _) = ask(&mut fleet, Some(cursor), 100);
    assert_eq!(keys, ["quick"]);
    let (keys, cursor, _) = ask(&mut fleet, Some(cursor), 100);
    assert_eq!(keys, [""; 0]);
    runtime().block_on(one.batch_execute("COMMIT")).unwrap();
    fleet.store.put_jobs(&[again(&fleet.row("other"))]).unwrap();
    let (keys, cursor, _) = ask(&mut fleet, Some(cursor), 100);
    assert_eq!(keys, ["slow", "other"]);
    assert_eq!(ask(&mut fleet, Some(cursor), 100).0, [""; 0]);
}

#[test]
fn a_slow_transaction_that_began_before_the_first_load_is_not_missed() {
    let mut fleet = Fleet::new();
    fleet.create("slow");
    let one = fleet.database.connect();
    runtime().block_on(one.batch_execute(SLOW)).unwrap();
    let (keys, cursor, _) = ask(&mut fleet, None, 100);
    assert_eq!(keys, ["slow"], "as it was before");
    runtime().block_on(one.batch_execute("COMMIT")).unwrap();
    assert_eq!(ask(&mut fleet, Some(cursor), 100).0, ["slow"]);
}

#[test]
fn pages_keep_to_what_was_there_when_the_first_was_asked_for() {
    let mut fleet = Fleet::new();
    let names: Vec<String> = (0..6).map(|n| format!("job{n}")).collect();
    let puts: Vec<PutJob> = names.iter().map(|name| new_job(name, fleet.now)).collect();
    create(&mut fleet.store, &puts);
    let (_, cursor, _) = ask(&mut fleet, None, 100);
    for name in &names {
        let row = fleet.row(name);
        fleet.store.put_jobs(&[again(&row)]).unwrap();
    }
    let (first, next, is_last) = ask(&mut fleet, Some(cursor), 4);
    assert_eq!((first, is_last), (names[..4].to_vec(), false));
    let row = fleet.row("job0");
    fleet.store.put_jobs(&[again(&row)]).unwrap();
    let (second, last, is_last) = ask(&mut fleet, Some(next), 4);
    assert_eq!((second, is_last), (names[4..].to_vec(), true));
    assert_eq!(ask(&mut fleet, Some(last), 4).0, ["job0"], "what changed meanwhile comes after");
    assert_eq!(ask(&mut fleet, Some(cursor), 4).0.len(), 4, "an answer that was lost is asked for again");
}

fn filled(n_jobs: usize) -> (Fleet, Vec<String>) {
    let mut fleet = Fleet::new();
    let names: Vec<String> = (0..n_jobs).map(|n| format!("job{n}")).collect();
    let puts: Vec<PutJob> = names.iter().map(|name| new_job(name, fleet.now)).collect();
    create(&mut fleet.store, &puts);
    (fleet, names)
}

/// Pages are read before they are asked for: what changes in between must come all the same.
#[test]
fn a_load_that_reads_ahead_misses_nothing() {
    let (mut fleet, names) = filled(9);
    let (mut loaded, mut cursor, _) = ask(&mut fleet, None, 2);
    for name in ["job0", "job5", "job8"] {
        let row = fleet.row(name);
        fleet.store.put_jobs(&[again(&row)]).unwrap();
    }
    while loaded.len() < names.len() {
        let (page, next, _) = ask(&mut fleet, Some(cursor), 2);
        assert!(!page.is_empty(), "{loaded:?} are not all");
        loaded.extend(page);
        cursor = next;
    }
    assert_eq!(loaded, names);
    let (news, cursor, is_last) = ask(&mut fleet, Some(cursor), 10);
    assert_eq!((news, is_last), (vec!["job0".to_owned(), "job5".to_owned(), "job8".to_owned()], true));
    assert_eq!(ask(&mut fleet, Some(cursor), 10).0, [""; 0]);
}

#[test]
fn a_load_goes_on_in_pages_of_another_size_and_from_an_earlier_place() {
    let (mut fleet, names) = filled(9);
    let (_, first, _) = ask(&mut fleet, None, 2);
    let (_, second, _) = ask(&mut fleet, Some(first), 2);
    assert_eq!(ask(&mut fleet, Some(second), 3).0, names[4..7]);
    assert_eq!(ask(&mut fleet, Some(first), 2).0, names[2..4], "an answer that was lost is asked for again");
    let (page, last, is_last) = ask(&mut fleet, Some(second), 100);
    assert_eq!((page.as_slice(), is_last), (&names[4..], true));
    assert_eq!(ask(&mut fleet, Some(last), 100).0, [""; 0]);
}

#[test]
fn a_load_ends_with_its_epoch() {
    let (mut fleet, _) = filled(9);
    let (_, first, _) = ask(&mut fleet, None, 2);
    let (_, second, _) = ask(&mut fleet, Some(first), 2);
    runtime().block_on(fleet.store.store.new_epoch()).unwrap();
    assert_eq!(fleet.store.changes(Some(second), 2).unwrap(), Changes::Reset);
}

#[test]
fn an_unknown_cursor_begins_anew() {
    let mut fleet = Fleet::new();
    let (_, cursor, _) = ask(&mut fleet, None, 100);
    let unknown = Cursor { position: cursor.position + 1, ..cursor };
    assert_eq!(fleet.store.changes(Some(unknown), 100).unwrap(), Changes::Reset);
}

//! How long a place in the feed is remembered, and what it stands for.

use evenbeat::testing::store::sqlite::SqliteStore;
use evenbeat_core::store::{Changes, Cursor, Seen, Store, Views};
use evenbeat_core::time::Duration;

use crate::sqlite_store::common::{Folder, HOUR, TestClock, job, join, key, new_job, noon, put};

/// The keys that a look shows, and where to go on; none if the reader must begin anew.
fn look(store: &mut SqliteStore, since: Option<Cursor>, most: usize) -> Option<(Vec<String>, Cursor, bool)> {
    match store.changes(since, most).unwrap() {
        Changes::Rows { rows, next, is_last } => {
            Some((rows.iter().map(|row| row.key.to_string()).collect(), next, is_last))
        }
        Changes::Reset => None,
    }
}

fn touch(store: &mut SqliteStore, name: &str) {
    let version = store.job(&key(name)).unwrap().unwrap().version;
    let mut again = new_job(job(name));
    again.seen = Seen::Version(version);
    put(store, again);
}

#[test]
fn what_changes_while_all_is_read_shows_afterwards() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(folder.file("store.db"), TestClock::at(noon()).options()).unwrap();
    for name in ["a", "b", "c"] {
        put(&mut store, new_job(job(name)));
    }
    let (keys, cursor, is_last) = look(&mut store, None, 2).unwrap();
    assert_eq!((keys.as_slice(), is_last), (["a".to_owned(), "b".to_owned()].as_slice(), false));
    touch(&mut store, "a");
    put(&mut store, new_job(job("d")));
    let (keys, cursor, is_last) = look(&mut store, Some(cursor), 10).unwrap();
    assert_eq!((keys.as_slice(), is_last), (["c".to_owned(), "d".to_owned()].as_slice(), false));
    let (keys, _, is_last) = look(&mut store, Some(cursor), 10).unwrap();
    assert_eq!((keys.as_slice(), is_last), (["a".to_owned(), "d".to_owned()].as_slice(), true));
}

#[test]
fn a_reader_that_was_away_for_too_long_begins_anew() {
    let folder = Folder::new();
    let clock = TestClock::at(noon());
    let mut store = SqliteStore::open(folder.file("store.db"), clock.options()).unwrap();
    put(&mut store, new_job(job("a")));
    let (_, early, _) = look(&mut store, None, 10).unwrap();
    for _ in 0..200 {
        touch(&mut store, "a");
    }
    let (_, late, _) = look(&mut store, Some(early), 1_000).unwrap();
    clock.set(noon() + HOUR + Duration::from_mins(1));
    for _ in 0..100 {
        touch(&mut store, "a");
    }
    assert_eq!(look(&mut store, Some(early), 10), None);
    let (keys, _, is_last) = look(&mut store, Some(late), 1_000).unwrap();
    assert_eq!((keys.as_slice(), is_last), (["a".to_owned()].as_slice(), true));
}

#[test]
fn a_page_is_of_so_many_changes_and_tells_each_job_once() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(folder.file("store.db"), TestClock::at(noon()).options()).unwrap();
    for name in ["a", "b", "c"] {
        put(&mut store, new_job(job(name)));
    }
    let (_, mut cursor, _) = look(&mut store, None, 10).unwrap();
    for name in ["a", "b", "a", "c", "c", "c", "c", "b"] {
        touch(&mut store, name);
    }
    let mut pages = Vec::new();
    loop {
        let (keys, next, is_last) = look(&mut store, Some(cursor), 3).unwrap();
        cursor = next;
        pages.push(keys.concat());
        if is_last {
            break;
        }
    }
    assert_eq!(pages, ["ba", "c", "cb"]);
    assert_eq!(look(&mut store, Some(cursor), 3), Some((Vec::new(), cursor, true)));
}

#[test]
fn a_place_of_an_earlier_life_means_nothing() {
    let folder = Folder::new();
    let clock = TestClock::at(noon());
    let mut store = SqliteStore::open(folder.file("store.db"), clock.options()).unwrap();
    join(&mut store, 1);
    put(&mut store, new_job(job("a")));
    let (_, cursor, _) = look(&mut store, None, 10).unwrap();
    store.close().unwrap();
    clock.set(noon() + Duration::from_secs(1));
    let mut store = SqliteStore::open(folder.file("store.db"), clock.options()).unwrap();
    look(&mut store, None, 10).unwrap();
    assert_eq!(look(&mut store, Some(cursor), 10), None);
}

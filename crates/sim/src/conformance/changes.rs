//! The feed: how nodes hear of what others wrote.

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Bid, Changes, Cursor, JobNews, Settle, Store, Version, Views};

use super::Backend;
use super::fixture::{Fixture, MANY};
use super::sample::{again, new_job, removed, served};

fn ask<S: Store + Views>(
    fixture: &mut Fixture<S>,
    since: Option<Cursor>,
    most: usize,
) -> (Vec<JobNews>, Cursor, bool) {
    match fixture.store.changes(since, most).unwrap() {
        Changes::Rows { rows, next, is_last } => (rows, next, is_last),
        Changes::Reset => panic!("the cursor is of this epoch"),
    }
}

fn keys(rows: &[JobNews]) -> Vec<&str> {
    rows.iter().map(|row| row.key.as_str()).collect()
}

pub(super) fn without_a_cursor_there_are_all_rows<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (rows, next, is_last) = ask(&mut fixture, None, MANY);
    assert_eq!((rows, next.epoch, is_last), (Vec::new(), fixture.epoch, true));
    for name in ["a", "b", "c"] {
        fixture.create(name);
    }
    fixture.put(removed(&fixture.row("b")));
    let (mut rows, _, is_last) = ask(&mut fixture, None, MANY);
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(rows, ["a", "b", "c"].map(|name| fixture.row(name).news()), "removed ones too");
    assert!(is_last);
}

pub(super) fn after_the_last_change_there_is_nothing<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.create("a");
    let (_, next, _) = ask(&mut fixture, None, MANY);
    let (rows, same, is_last) = ask(&mut fixture, Some(next), MANY);
    assert_eq!((rows, same, is_last), (Vec::new(), next, true));
    fixture.create("b");
    assert_eq!(keys(&ask(&mut fixture, Some(same), MANY).0), ["b"]);
}

pub(super) fn a_row_appears_once_at_its_latest_change<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    for name in ["a", "b", "c"] {
        fixture.create(name);
    }
    let (_, cursor, _) = ask(&mut fixture, None, MANY);
    for name in ["c", "a", "b", "a"] {
        fixture.put(again(&fixture.row(name)));
    }
    let (rows, _, _) = ask(&mut fixture, Some(cursor), MANY);
    assert_eq!(keys(&rows), ["c", "b", "a"], "oldest change first");
    assert_eq!(rows[2], fixture.row("a").news(), "as it is now");
}

pub(super) fn changes_come_in_pages<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        fixture.create(name);
    }
    let (mut seen, mut cursor, mut n_pages) = (Vec::new(), None, 0);
    loop {
        let (rows, next, is_last) = ask(&mut fixture, cursor, 2);
        assert!(rows.len() <= 2);
        seen.extend(rows.iter().map(|row| row.key.to_string()));
        n_pages += 1;
        if is_last {
            break;
        }
        cursor = Some(next);
    }
    seen.sort();
    assert_eq!((seen, n_pages), (names.map(str::to_owned).to_vec(), 3));
}

pub(super) fn every_way_to_change_a_row_shows<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.create("a");
    let mut cursor = ask(&mut fixture, None, MANY).1;
    let mut shown = |fixture: &mut Fixture<B::Store>, what: &str| {
        let (rows, next, _) = ask(fixture, Some(cursor), MANY);
        assert_eq!(rows, [fixture.row("a").news()], "{what}");
        cursor = next;
    };
    let bid = fixture.bid(&fixture.row("a"));
    let run = fixture.claim(bid);
    shown(&mut fixture, "a claim");
    fixture.succeed(&run);
    shown(&mut fixture, "an end");
    let row = fixture.row("a");
    let settle = Settle { key: run.key, seen: row.version, state: served(&row.state), records: Vec::new() };
    fixture.store.settle(fixture.me, fixture.epoch, &[settle]).unwrap();
    shown(&mut fixture, "a settling");
    fixture.put(again(&fixture.row("a")));
    shown(&mut fixture, "an edit");
    fixture.put(removed(&fixture.row("a")));
    shown(&mut fixture, "a removal");
    fixture.create("a");
    shown(&mut fixture, "a return");
}

pub(super) fn what_was_refused_is_no_change<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let (_, cursor, _) = ask(&mut fixture, None, MANY);
    let bid = Bid { seen: Version(0), ..fixture.bid(&row) };
    fixture.ask_claim(bid);
    fixture.ask_put(new_job("a", fixture.now));
    assert_eq!(ask(&mut fixture, Some(cursor), MANY).0, []);
}

pub(super) fn a_cursor_of_another_epoch_is_reset<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.create("a");
    let (_, cursor, _) = ask(&mut fixture, None, MANY);
    let other = Cursor { epoch: Epoch(cursor.epoch.0 + 1), ..cursor };
    assert_eq!(fixture.store.changes(Some(other), MANY).unwrap(), Changes::Reset);
}

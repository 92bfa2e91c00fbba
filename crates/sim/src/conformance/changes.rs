//! The feed: how nodes hear of what others wrote.

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Bid, Changes, Cursor, JobNews, Settle, Store, Version, Views};

use super::Backend;
use super::desk::{Desk, MANY};
use super::sample::{again, new_job, removed, served};

fn ask<S: Store + Views>(
    desk: &mut Desk<S>,
    since: Option<Cursor>,
    most: usize,
) -> (Vec<JobNews>, Cursor, bool) {
    match desk.store.changes(since, most).unwrap() {
        Changes::Rows { rows, next, is_last } => (rows, next, is_last),
        Changes::Reset => panic!("the cursor is of this epoch"),
    }
}

fn keys(rows: &[JobNews]) -> Vec<&str> {
    rows.iter().map(|row| row.key.as_str()).collect()
}

pub(super) fn without_a_cursor_there_are_all_rows<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (rows, next, is_last) = ask(&mut desk, None, MANY);
    assert_eq!((rows, next.epoch, is_last), (Vec::new(), desk.epoch, true));
    for name in ["a", "b", "c"] {
        desk.create(name);
    }
    desk.put(removed(&desk.row("b")));
    let (mut rows, _, is_last) = ask(&mut desk, None, MANY);
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(rows, ["a", "b", "c"].map(|name| desk.row(name).news()), "removed ones too");
    assert!(is_last);
}

pub(super) fn after_the_last_change_there_is_nothing<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.create("a");
    let (_, next, _) = ask(&mut desk, None, MANY);
    let (rows, same, is_last) = ask(&mut desk, Some(next), MANY);
    assert_eq!((rows, same, is_last), (Vec::new(), next, true));
    desk.create("b");
    assert_eq!(keys(&ask(&mut desk, Some(same), MANY).0), ["b"]);
}

pub(super) fn a_row_appears_once_at_its_latest_change<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    for name in ["a", "b", "c"] {
        desk.create(name);
    }
    let (_, cursor, _) = ask(&mut desk, None, MANY);
    for name in ["c", "a", "b", "a"] {
        desk.put(again(&desk.row(name)));
    }
    let (rows, _, _) = ask(&mut desk, Some(cursor), MANY);
    assert_eq!(keys(&rows), ["c", "b", "a"], "oldest change first");
    assert_eq!(rows[2], desk.row("a").news(), "as it is now");
}

pub(super) fn changes_come_in_pages<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        desk.create(name);
    }
    let (mut seen, mut cursor, mut n_pages) = (Vec::new(), None, 0);
    loop {
        let (rows, next, is_last) = ask(&mut desk, cursor, 2);
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
    let mut desk = Desk::at(backend);
    desk.create("a");
    let mut cursor = ask(&mut desk, None, MANY).1;
    let mut shown = |desk: &mut Desk<B::Store>, what: &str| {
        let (rows, next, _) = ask(desk, Some(cursor), MANY);
        assert_eq!(rows, [desk.row("a").news()], "{what}");
        cursor = next;
    };
    let bid = desk.bid(&desk.row("a"));
    let run = desk.claim(bid);
    shown(&mut desk, "a claim");
    desk.succeed(&run);
    shown(&mut desk, "an end");
    let row = desk.row("a");
    let settle = Settle { key: run.key, seen: row.version, state: served(&row.state), records: Vec::new() };
    desk.store.settle(desk.me, desk.epoch, &[settle]).unwrap();
    shown(&mut desk, "a settling");
    desk.put(again(&desk.row("a")));
    shown(&mut desk, "an edit");
    desk.put(removed(&desk.row("a")));
    shown(&mut desk, "a removal");
    desk.create("a");
    shown(&mut desk, "a return");
}

pub(super) fn what_was_refused_is_no_change<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let (_, cursor, _) = ask(&mut desk, None, MANY);
    let bid = Bid { seen: Version(0), ..desk.bid(&row) };
    desk.ask_claim(bid);
    desk.ask_put(new_job("a", desk.now));
    assert_eq!(ask(&mut desk, Some(cursor), MANY).0, []);
}

pub(super) fn a_cursor_of_another_epoch_is_reset<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.create("a");
    let (_, cursor, _) = ask(&mut desk, None, MANY);
    let other = Cursor { epoch: Epoch(cursor.epoch.0 + 1), ..cursor };
    assert_eq!(desk.store.changes(Some(other), MANY).unwrap(), Changes::Reset);
}

//! What goes with time, what stays, and how it is listed.

use evenbeat_core::ids::RunId;
use evenbeat_core::occurrence::{Record, RecordKind};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{EndBy, PutJob, Retention, RunFilter, Store, Trimmed, Views};
use evenbeat_core::time::Timestamp;

use super::Backend;
use super::desk::{Desk, MANY};
use super::sample::{HOUR, again, key, node, record, removed, run_end};

/// Everything that ended or was written before this may go.
fn all_before(at: Timestamp) -> Retention {
    Retention { runs_before: at, records_before: at, most: MANY }
}

pub(super) fn old_runs_go_and_open_ones_stay<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (old, young, open) = (desk.open("a"), desk.open("b"), desk.open("c"));
    desk.end(&old, EndBy::Owner(run_end(Outcome::Succeeded, desk.now - HOUR)));
    desk.end(&young, EndBy::Owner(run_end(Outcome::Failed, desk.now)));
    let trimmed = desk.store.trim(&all_before(desk.now)).unwrap();
    assert_eq!(trimmed, Trimmed { n_runs: 1, ..Trimmed::default() });
    assert_eq!(desk.run(old.run), None);
    assert!(desk.run(young.run).is_some(), "what ended at that instant did not end before it");
    let trimmed = desk.store.trim(&all_before(desk.now + HOUR + HOUR)).unwrap();
    assert_eq!(trimmed.n_runs, 1);
    assert_eq!(desk.run(open.run), Some(open));
}

pub(super) fn so_many_rows_go_at_most<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    for name in ["a", "b", "c"] {
        let run = desk.open(name);
        desk.succeed(&run);
        desk.put(PutJob { records: vec![record(desk.now)], ..again(&desk.row(name)) });
        let other = desk.join(&node(run.run.0 + 10, "n2"));
        assert!(desk.store.leave(other).unwrap());
    }
    let retention = Retention { most: 2, ..all_before(desk.now + HOUR + HOUR) };
    let trimmed = desk.store.trim(&retention).unwrap();
    assert_eq!(trimmed, Trimmed { n_runs: 2, n_records: 2, n_sessions: 2 });
    let trimmed = desk.store.trim(&retention).unwrap();
    assert_eq!(trimmed, Trimmed { n_runs: 1, n_records: 1, n_sessions: 1 });
}

pub(super) fn old_records_go<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    desk.put(PutJob { records: vec![record(desk.now - HOUR)], ..again(&row) });
    assert_eq!(desk.store.trim(&all_before(desk.now - HOUR)).unwrap().n_records, 0, "by when it was written");
    assert_eq!(desk.store.trim(&all_before(desk.now + HOUR + HOUR)).unwrap().n_records, 1);
    assert_eq!(desk.records("a"), []);
}

pub(super) fn a_dead_session_goes_with_its_last_run<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let (open, over) = (desk.open_as(other, "a"), desk.open_as(other, "b"));
    desk.succeed(&over);
    desk.kill(other);
    let later = all_before(desk.now + HOUR + HOUR);
    assert_eq!(desk.store.trim(&all_before(desk.now - HOUR)).unwrap(), Trimmed::default());
    assert_eq!(desk.store.trim(&later).unwrap(), Trimmed { n_runs: 1, ..Trimmed::default() });
    assert!(desk.session(other).is_dead, "an open run still names it");
    desk.end(&open, desk.release(other));
    assert_eq!(desk.store.trim(&later).unwrap(), Trimmed { n_runs: 1, n_records: 0, n_sessions: 1 });
    let left: Vec<_> = desk.store.sessions().unwrap().iter().map(|it| it.spec.id).collect();
    assert_eq!(left, [desk.me], "who lives stays");
}

pub(super) fn fences_stay_for_ever<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let row = desk.succeed(&run);
    let tombstone = desk.put(removed(&row));
    desk.store.trim(&all_before(desk.now + HOUR + HOUR)).unwrap();
    assert_eq!(desk.row("a"), tombstone);
    let row = desk.create("a");
    let bid = desk.bid(&row);
    assert!(run.fence < desk.claim(bid).fence);
}

pub(super) fn runs_are_listed_latest_first<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let first = desk.open("a");
    desk.succeed(&first);
    let bid = desk.bid(&desk.row("a"));
    let second = desk.claim(bid);
    let third = desk.open("b");
    let listed = |name: Option<&str>, is_open, before, most| -> Vec<RunId> {
        let filter = RunFilter { key: name.map(key), is_open };
        desk.store.runs(&filter, before, most).unwrap().iter().map(|it| it.run).collect()
    };
    assert_eq!(listed(None, false, None, MANY), [third.run, second.run, first.run]);
    assert_eq!(listed(None, false, None, 2), [third.run, second.run]);
    assert_eq!(listed(None, false, Some(second.run), MANY), [first.run]);
    assert_eq!(listed(Some("a"), false, None, MANY), [second.run, first.run]);
    assert_eq!(listed(Some("a"), true, None, MANY), [second.run]);
    assert_eq!(listed(Some("c"), false, None, MANY), []);
}

pub(super) fn records_are_listed_latest_first<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let (old, new) = (record(desk.now - HOUR), record(desk.now));
    let again_old = Record { what: RecordKind::SkippedOverlap, ..old };
    let oldest = record(desk.now - HOUR - HOUR);
    let row = desk.put(PutJob { records: vec![new], ..again(&row) });
    desk.put(PutJob { records: vec![old, oldest, again_old], ..again(&row) });
    let row = desk.create("b");
    desk.put(PutJob { records: vec![new], ..again(&row) });
    let listed = |before, most| {
        let page = desk.store.records(&key("a"), before, most).unwrap();
        page.into_iter().map(|it| it.record).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, MANY), [new, again_old, old, oldest], "by occurrence, and only of this job");
    assert_eq!(listed(None, 1), [new]);
    assert_eq!(listed(None, 2), [new, again_old, old], "those of one occurrence are on one page");
    assert_eq!(listed(None, 3), [new, again_old, old]);
    assert_eq!(listed(Some(new.range.first), 1), [again_old, old]);
    assert_eq!(listed(Some(old.range.first), 1), [oldest]);
    assert_eq!(listed(Some(oldest.range.first), 1), []);
}

//! What goes with time, what stays, and how it is listed.

use evenbeat_core::ids::RunId;
use evenbeat_core::occurrence::{Record, RecordKind};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{AuditEntry, EndBy, PutJob, Retention, RunFilter, Store, Trimmed, Version, Views};
use evenbeat_core::time::Duration;

use super::Backend;
use super::fixture::{Fixture, MANY};
use super::sample::{HOUR, NO_FENCE, again, key, new_job, node, record, removed, run_end};

/// Keeps everything for this long.
fn keep(length: Duration) -> Retention {
    Retention { runs: length, records: length, audit: length, tombstones: length, most: MANY }
}

/// Keeps nothing: the cases do not wait, so what was written a moment ago must be old enough too.
fn keep_nothing() -> Retention {
    keep(-HOUR)
}

pub(super) fn old_runs_go_and_open_ones_stay<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (old, young, open) = (fixture.open("a"), fixture.open("b"), fixture.open("c"));
    fixture.end(&old, EndBy::Owner(run_end(Outcome::Succeeded, fixture.now - HOUR * 3)));
    fixture.end(&young, EndBy::Owner(run_end(Outcome::Failed, fixture.now - HOUR)));
    let trimmed = fixture.store.trim(&keep(HOUR * 2)).unwrap();
    assert_eq!(trimmed, Trimmed { n_runs: 1, ..Trimmed::default() });
    assert_eq!(fixture.run(old.run), None);
    assert!(fixture.run(young.run).is_some(), "it ended an hour ago, and two are kept");
    let trimmed = fixture.store.trim(&keep_nothing()).unwrap();
    assert_eq!(trimmed.n_runs, 1);
    assert_eq!(fixture.run(open.run), Some(open));
}

pub(super) fn so_many_rows_go_at_most<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    for name in ["a", "b", "c"] {
        let run = fixture.open(name);
        fixture.succeed(&run);
        let audit = Some(entry(name));
        fixture.put(PutJob { records: vec![record(fixture.now)], audit, ..again(&fixture.row(name)) });
        let row = fixture.create(&format!("removed-{name}"));
        fixture.put(removed(&row));
        let other = fixture.join(&node(run.run.0 + 10, "n2"));
        assert!(fixture.store.leave(other).unwrap());
    }
    let all_kinds =
        |n: usize| Trimmed { n_runs: n, n_records: n, n_audit: n, n_tombstones: n, n_sessions: n };
    let retention = Retention { most: 2, ..keep_nothing() };
    assert_eq!(fixture.store.trim(&retention).unwrap(), all_kinds(2));
    assert_eq!(fixture.store.trim(&retention).unwrap(), all_kinds(1));
    assert_eq!(fixture.store.trim(&retention).unwrap(), all_kinds(0));
}

pub(super) fn old_records_go<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    fixture.put(PutJob { records: vec![record(fixture.now - HOUR * 3)], ..again(&row) });
    assert_eq!(fixture.store.trim(&keep(HOUR)).unwrap().n_records, 0, "by when it was written");
    assert_eq!(fixture.store.trim(&keep_nothing()).unwrap().n_records, 1);
    assert_eq!(fixture.records("a"), []);
}

pub(super) fn old_audit_entries_go<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.put(PutJob { audit: Some(entry("create")), ..new_job("a", fixture.now) });
    assert_eq!(fixture.store.trim(&keep(HOUR)).unwrap().n_audit, 0);
    assert_eq!(fixture.store.audit(MANY).unwrap(), [entry("create")]);
    assert_eq!(fixture.store.trim(&keep_nothing()).unwrap().n_audit, 1);
    assert_eq!(fixture.store.audit(MANY).unwrap(), []);
    fixture.put(PutJob { audit: Some(entry("pause")), ..again(&row) });
    assert_eq!(fixture.store.audit(MANY).unwrap(), [entry("pause")]);
}

fn entry(action: &str) -> AuditEntry {
    AuditEntry { actor: "ann".to_owned(), action: action.to_owned(), ..AuditEntry::default() }
}

pub(super) fn a_dead_session_goes_with_its_last_run<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let (open, over) = (fixture.open_as(other, "a"), fixture.open_as(other, "b"));
    fixture.succeed(&over);
    fixture.kill(other);
    assert_eq!(fixture.store.trim(&keep(HOUR)).unwrap(), Trimmed::default());
    assert_eq!(fixture.store.trim(&keep_nothing()).unwrap(), Trimmed { n_runs: 1, ..Trimmed::default() });
    assert!(fixture.session(other).is_dead, "an open run still names it");
    fixture.end(&open, fixture.release(other));
    let trimmed = fixture.store.trim(&keep_nothing()).unwrap();
    assert_eq!(trimmed, Trimmed { n_runs: 1, n_sessions: 1, ..Trimmed::default() });
    let left: Vec<_> = fixture.store.sessions().unwrap().iter().map(|it| it.spec.id).collect();
    assert_eq!(left, [fixture.me], "who lives stays");
}

pub(super) fn a_removed_job_goes_with_its_history<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let row = fixture.succeed(&run);
    fixture.put(PutJob { records: vec![record(fixture.now)], ..removed(&row) });
    let living = fixture.create("b");
    let at_once = |fixture: &mut Fixture<B::Store>, runs, records| {
        let retention = Retention { runs, records, ..keep_nothing() };
        fixture.store.trim(&retention).unwrap().n_tombstones
    };
    let young = Retention { tombstones: HOUR, ..keep_nothing() };
    assert_eq!(at_once(&mut fixture, HOUR * 9, HOUR * 9), 0, "a run and a record are left");
    assert_eq!(at_once(&mut fixture, HOUR * 9, -HOUR), 0, "a run is left");
    assert_eq!(fixture.store.trim(&young).unwrap().n_tombstones, 0, "it was removed a moment ago");
    assert_eq!(fixture.row("a").fence, run.fence);
    assert_eq!(at_once(&mut fixture, -HOUR, -HOUR), 1);
    assert_eq!(fixture.store.job(&key("a")).unwrap(), None);
    assert_eq!(fixture.row("b"), living);
    fixture.put(again(&living));
}

pub(super) fn a_removed_job_with_an_open_run_stays<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let tombstone = fixture.put(removed(&fixture.row("a")));
    assert_eq!(fixture.store.trim(&keep_nothing()).unwrap(), Trimmed::default());
    assert_eq!(fixture.row("a"), tombstone);
    fixture.succeed(&run);
    assert_eq!(fixture.store.trim(&keep_nothing()).unwrap().n_tombstones, 1);
}

pub(super) fn a_key_whose_tombstone_was_trimmed_goes_on_with_greater_fences<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let mut last = (NO_FENCE, Version(0));
    for _ in 0..3 {
        let row = fixture.create("a");
        assert!(last.1 < row.version, "no version comes again");
        let bid = fixture.bid(&row);
        let run = fixture.claim(bid);
        assert!(last.0 < run.fence, "{:?} after {:?}", run.fence, last.0);
        let row = fixture.succeed(&run);
        let tombstone = fixture.put(removed(&row));
        last = (tombstone.fence, tombstone.version);
        assert_eq!(fixture.store.trim(&keep_nothing()).unwrap().n_tombstones, 1);
        assert_eq!(fixture.store.job(&key("a")).unwrap(), None);
    }
}

pub(super) fn runs_are_listed_latest_first<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let first = fixture.open("a");
    fixture.succeed(&first);
    let bid = fixture.bid(&fixture.row("a"));
    let second = fixture.claim(bid);
    let third = fixture.open("b");
    let listed = |name: Option<&str>, is_open, before, most| -> Vec<RunId> {
        let filter = RunFilter { key: name.map(key), is_open };
        fixture.store.runs(&filter, before, most).unwrap().iter().map(|it| it.run).collect()
    };
    assert_eq!(listed(None, false, None, MANY), [third.run, second.run, first.run]);
    assert_eq!(listed(None, false, None, 2), [third.run, second.run]);
    assert_eq!(listed(None, false, Some(second.run), MANY), [first.run]);
    assert_eq!(listed(Some("a"), false, None, MANY), [second.run, first.run]);
    assert_eq!(listed(Some("a"), true, None, MANY), [second.run]);
    assert_eq!(listed(Some("c"), false, None, MANY), []);
}

pub(super) fn records_are_listed_latest_first<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let (old, new) = (record(fixture.now - HOUR), record(fixture.now));
    let again_old = Record { what: RecordKind::SkippedOverlap, ..old };
    let oldest = record(fixture.now - HOUR - HOUR);
    let row = fixture.put(PutJob { records: vec![new], ..again(&row) });
    fixture.put(PutJob { records: vec![old, oldest, again_old], ..again(&row) });
    let row = fixture.create("b");
    fixture.put(PutJob { records: vec![new], ..again(&row) });
    let listed = |before, most| {
        let page = fixture.store.records(&key("a"), before, most).unwrap();
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

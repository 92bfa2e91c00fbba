//! Jobs: what people write, and what time alone changes.

use std::sync::Arc;

use evenbeat_core::ids::ExtraId;
use evenbeat_core::job::Job;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{
    AuditEntry, Idempotency, JobRow, PutAnswer, PutJob, RunRequest, Seen, Settle, SettleAnswer, Store,
    Version, Views,
};

use super::Backend;
use super::desk::{Desk, MANY};
use super::sample::{
    NO_FENCE, STRANGER, again, begun, key, new_job, node, record, removed, rich_job, rich_state, served,
};

pub(super) fn a_new_job_is_written<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let put = new_job("a", desk.now);
    let row = desk.put(put.clone());
    let expected = JobRow {
        job: put.job,
        state: put.state,
        revision: row.revision,
        version: row.version,
        fence: NO_FENCE,
        n_open: 0,
        is_deleted: false,
    };
    assert_eq!(row, expected);
    assert_eq!(desk.row("a"), row);
    assert_eq!(desk.store.job(&key("b")).unwrap(), None);
}

pub(super) fn definition_and_memory_come_back_as_they_were<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (job, state) = (rich_job("a", desk.now), rich_state(desk.now));
    desk.put(PutJob { job: job.clone(), state: state.clone(), ..new_job("a", desk.now) });
    let row = desk.row("a");
    assert_eq!((&*row.job, &row.state), (&*job, &state));
}

pub(super) fn a_key_that_is_taken_is_not_created_again<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    assert_eq!(desk.ask_put(new_job("a", desk.now)), PutAnswer::Stale(row.clone()));
    assert_eq!(desk.row("a"), row);
}

pub(super) fn an_edit_from_an_old_version_is_stale<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let seen = desk.create("a");
    let row = desk.put(again(&seen));
    assert!(seen.version < row.version, "also when nothing is another");
    for version in [seen.version, Version(row.version.0 + 1)] {
        let put = PutJob { seen: Seen::Version(version), ..again(&row) };
        assert_eq!(desk.ask_put(put), PutAnswer::Stale(row.clone()));
    }
    assert_eq!(desk.row("a"), row);
}

pub(super) fn an_edit_of_nothing_is_gone<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let put = PutJob { seen: Seen::Version(Version(1)), ..new_job("a", desk.now) };
    assert_eq!(desk.ask_put(put), PutAnswer::Gone);
    assert_eq!(desk.store.job(&key("a")).unwrap(), None);
}

pub(super) fn a_revision_is_what_people_would_call_another_job<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let first = desk.create("a");
    let same = desk.put(PutJob { is_revision: false, ..again(&first) });
    assert_eq!(same.revision, first.revision);
    let other = desk.put(PutJob { is_revision: true, ..again(&same) });
    assert!(same.revision < other.revision);
    let bid = desk.bid(&other);
    let run = desk.claim(bid);
    assert_eq!(desk.succeed(&run).revision, other.revision, "a run does not make an edit stale");
}

pub(super) fn people_do_not_write_the_owner<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.open("a");
    let row = desk.row("a");
    let mut put = again(&row);
    put.state.owner = None;
    assert_eq!(desk.put(put).state.owner, row.state.owner);
    let mut put = new_job("b", desk.now);
    put.state.owner = row.state.owner;
    assert_eq!(desk.put(put).state.owner, None);
}

pub(super) fn a_removed_job_leaves_its_row_behind<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let row = desk.succeed(&run);
    let tombstone = desk.put(removed(&row));
    assert_eq!((tombstone.is_deleted, tombstone.fence), (true, row.fence));
    assert!(row.version < tombstone.version);
    assert_eq!(desk.row("a"), tombstone);
    assert_eq!(desk.store.jobs(None, MANY).unwrap(), []);
}

pub(super) fn a_job_that_comes_back_goes_on_from_its_tombstone<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let tombstone = desk.put(removed(&desk.row("a")));
    let row = desk.put(PutJob { is_revision: false, ..new_job("a", desk.now) });
    assert!(!row.is_deleted);
    assert_eq!(row.fence, tombstone.fence);
    assert_eq!(row.n_open, 1, "a run of the removed job is still open");
    assert_eq!(row.state.owner.as_ref().map(|it| it.tag), Some(run.run));
    assert!(tombstone.version < row.version);
    assert!(tombstone.revision < row.revision, "it is another job by any name");
    let row = desk.succeed(&run);
    let bid = desk.bid(&row);
    assert!(run.fence < desk.claim(bid).fence);
}

pub(super) fn a_tombstone_may_be_named_by_its_version<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let tombstone = desk.put(removed(&row));
    let by_version = |version| PutJob { seen: Seen::Version(version), ..new_job("a", desk.now) };
    let (old, new) = (by_version(row.version), by_version(tombstone.version));
    assert_eq!(desk.ask_put(old), PutAnswer::Stale(tombstone));
    assert!(!desk.put(new).is_deleted);
}

pub(super) fn a_removal_leaves_open_runs_open<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let row = desk.put(removed(&desk.row("a")));
    assert_eq!((row.n_open, row.state.owner.is_some()), (1, true));
    assert_eq!(desk.beat(desk.me), Some(vec![run]));
}

pub(super) fn who_changed_what_is_written_with_the_change<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let entry = |action: &str| {
        let detail = "every 1h".to_owned();
        Some(AuditEntry { actor: "ann".to_owned(), action: action.to_owned(), detail })
    };
    let row = desk.put(PutJob { audit: entry("put"), ..new_job("a", desk.now) });
    let refused = PutJob { audit: entry("refused"), ..new_job("a", desk.now) };
    assert!(matches!(desk.ask_put(refused), PutAnswer::Stale(_)));
    let row = desk.put(PutJob { audit: None, ..again(&row) });
    desk.put(PutJob { audit: entry("pause"), ..again(&row) });
    let audit = desk.store.audit(MANY).unwrap();
    assert_eq!(audit, [entry("put").unwrap(), entry("pause").unwrap()], "oldest first");
    assert_eq!(desk.store.audit(1).unwrap().len(), 1);
}

fn request(id: u128, key: u128, body: u128) -> RunRequest {
    RunRequest { id: ExtraId(id), idempotency: Some(Idempotency { key, body }) }
}

pub(super) fn a_repeated_request_for_a_run_is_recognised<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let first = request(1, 10, 100);
    let row = desk.put(PutJob { request: Some(first), ..again(&row) });
    let repeated = PutAnswer::Repeated(first);
    for again_under in [row.version, Version(0)] {
        let put =
            PutJob { seen: Seen::Version(again_under), request: Some(request(2, 10, 101)), ..again(&row) };
        assert_eq!(desk.ask_put(put), repeated, "the earlier one, whatever the job and the body are now");
    }
    assert_eq!(desk.row("a"), row, "and nothing was written");
    let row = desk.put(PutJob { request: Some(request(3, 11, 100)), ..again(&row) });
    let without_key = Some(RunRequest { id: ExtraId(4), idempotency: None });
    desk.put(PutJob { request: without_key, ..again(&row) });
    let other = desk.create("b");
    desk.put(PutJob { request: Some(request(5, 12, 100)), ..again(&other) });
}

pub(super) fn a_request_of_an_old_version_is_not_stored<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let stale = PutJob { seen: Seen::Version(Version(0)), request: Some(request(1, 10, 100)), ..again(&row) };
    assert_eq!(desk.ask_put(stale), PutAnswer::Stale(row.clone()));
    desk.put(PutJob { request: Some(request(2, 10, 100)), ..again(&row) });
}

pub(super) fn what_goes_on_record_with_an_edit_is_kept<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let put = PutJob { records: vec![record(desk.now)], ..again(&row) };
    desk.put(put.clone());
    assert!(matches!(desk.ask_put(put), PutAnswer::Stale(_)));
    let kept: Vec<_> = desk.records("a").into_iter().map(|it| it.record).collect();
    assert_eq!(kept, [record(desk.now)]);
}

pub(super) fn edits_of_a_batch_are_answered_one_by_one<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let gone = PutJob { seen: Seen::Version(Version(1)), ..new_job("c", desk.now) };
    let puts = [again(&row), again(&row), gone, new_job("b", desk.now)];
    let answers = desk.store.put_jobs(&puts).unwrap();
    let (a, b) = (desk.row("a"), desk.row("b"));
    assert_eq!(answers, [PutAnswer::Put(a.clone()), PutAnswer::Stale(a), PutAnswer::Gone, PutAnswer::Put(b)]);
}

pub(super) fn jobs_are_listed_by_key<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    for name in ["b", "a@x", "B", "a", "a.b"] {
        desk.create(name);
    }
    desk.put(removed(&desk.row("a.b")));
    let listed = |after: Option<&str>, most| -> Vec<String> {
        let jobs = desk.store.jobs(after.map(key).as_ref(), most).unwrap();
        jobs.iter().map(|it| it.job.key.to_string()).collect()
    };
    assert_eq!(listed(None, MANY), ["B", "a", "a@x", "b"]);
    assert_eq!(listed(None, 2), ["B", "a"]);
    assert_eq!(listed(Some("a"), 1), ["a@x"]);
    assert_eq!(listed(Some("a.b"), MANY), ["a@x", "b"], "after a key that is not listed");
}

fn settle_of(row: &JobRow) -> Settle {
    Settle { key: row.job.key.clone(), seen: row.version, state: served(&row.state), records: Vec::new() }
}

pub(super) fn time_alone_changes_a_memory<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let settle = Settle { records: vec![record(desk.now)], ..settle_of(&row) };
    let answers = desk.store.settle(desk.me, desk.epoch, &[settle]).unwrap();
    let settled = desk.row("a");
    assert_eq!(answers, [SettleAnswer::Settled(settled.clone())]);
    let expected = JobRow { state: served(&row.state), version: settled.version, ..row.clone() };
    assert_eq!(settled, expected);
    assert!(row.version < settled.version);
    assert_eq!(desk.records("a").len(), 1);
}

pub(super) fn settling_leaves_the_owner_alone<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.open("a");
    let row = desk.row("a");
    let mut settle = settle_of(&row);
    settle.state.owner = None;
    desk.store.settle(desk.me, desk.epoch, &[settle]).unwrap();
    let settled = desk.row("a");
    assert_eq!((settled.state.owner, settled.n_open), (row.state.owner, 1));
    assert_eq!(settled.state.n_served, row.state.n_served + 1);
}

pub(super) fn settling_from_an_old_version_is_stale<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let settle = Settle { records: vec![record(desk.now)], ..settle_of(&row) };
    let edited = desk.put(again(&row));
    let answers = desk.store.settle(desk.me, desk.epoch, &[settle]).unwrap();
    assert_eq!(answers, [SettleAnswer::Stale(edited.clone())]);
    assert_eq!((desk.row("a"), desk.records("a")), (edited, Vec::new()));
}

pub(super) fn settling_what_is_not_there<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let tombstone = desk.put(removed(&row));
    let never_was = Settle { key: key("b"), ..settle_of(&row) };
    let settles = [settle_of(&tombstone), never_was];
    let answers = desk.store.settle(desk.me, desk.epoch, &settles).unwrap();
    assert_eq!(answers, [SettleAnswer::Stale(tombstone), SettleAnswer::Gone]);
}

pub(super) fn the_dead_settle_nothing_and_nobody_does_in_another_epoch<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let row = desk.create("a");
    let dead = desk.join(&node(2, "n2"));
    desk.kill(dead);
    let next = Epoch(desk.epoch.0 + 1);
    for (session, epoch) in [(dead, desk.epoch), (STRANGER, desk.epoch), (desk.me, next)] {
        let answers = desk.store.settle(session, epoch, &[settle_of(&row), settle_of(&row)]).unwrap();
        assert_eq!(answers, [SettleAnswer::Refused, SettleAnswer::Refused]);
    }
    assert_eq!(desk.row("a"), row);
    // Others are not kept from it.
    let job: Arc<Job> = row.job.clone();
    desk.put(PutJob { job, state: begun(&row.state), ..again(&row) });
}

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
use super::fixture::{Fixture, MANY};
use super::sample::{
    NO_FENCE, STRANGER, again, begun, key, new_job, node, record, removed, rich_job, rich_state, served,
};

pub(super) fn a_new_job_is_written<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let put = new_job("a", fixture.now);
    let row = fixture.put(put.clone());
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
    assert_eq!(fixture.row("a"), row);
    assert_eq!(fixture.store.job(&key("b")).unwrap(), None);
}

pub(super) fn definition_and_memory_come_back_as_they_were<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (job, state) = (rich_job("a", fixture.now), rich_state(fixture.now));
    fixture.put(PutJob { job: job.clone(), state: state.clone(), ..new_job("a", fixture.now) });
    let row = fixture.row("a");
    assert_eq!((&*row.job, &row.state), (&*job, &state));
}

pub(super) fn a_key_that_is_taken_is_not_created_again<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    assert_eq!(fixture.ask_put(new_job("a", fixture.now)), PutAnswer::Stale(row.clone()));
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn an_edit_from_an_old_version_is_stale<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let seen = fixture.create("a");
    let row = fixture.put(again(&seen));
    assert!(seen.version < row.version, "also when nothing is another");
    for version in [seen.version, Version(row.version.0 + 1)] {
        let put = PutJob { seen: Seen::Version(version), ..again(&row) };
        assert_eq!(fixture.ask_put(put), PutAnswer::Stale(row.clone()));
    }
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn an_edit_of_nothing_is_gone<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let put = PutJob { seen: Seen::Version(Version(1)), ..new_job("a", fixture.now) };
    assert_eq!(fixture.ask_put(put), PutAnswer::Gone);
    assert_eq!(fixture.store.job(&key("a")).unwrap(), None);
}

pub(super) fn a_revision_is_what_people_would_call_another_job<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let first = fixture.create("a");
    let same = fixture.put(PutJob { is_revision: false, ..again(&first) });
    assert_eq!(same.revision, first.revision);
    let other = fixture.put(PutJob { is_revision: true, ..again(&same) });
    assert!(same.revision < other.revision);
    let bid = fixture.bid(&other);
    let run = fixture.claim(bid);
    assert_eq!(fixture.succeed(&run).revision, other.revision, "a run does not make an edit stale");
}

pub(super) fn people_do_not_write_the_owner<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open("a");
    let row = fixture.row("a");
    let mut put = again(&row);
    put.state.owner = None;
    assert_eq!(fixture.put(put).state.owner, row.state.owner);
    let mut put = new_job("b", fixture.now);
    put.state.owner = row.state.owner;
    assert_eq!(fixture.put(put).state.owner, None);
}

pub(super) fn a_removed_job_leaves_its_row_behind<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let row = fixture.succeed(&run);
    let tombstone = fixture.put(removed(&row));
    assert_eq!((tombstone.is_deleted, tombstone.fence), (true, row.fence));
    assert!(row.version < tombstone.version);
    assert_eq!(fixture.row("a"), tombstone);
    assert_eq!(fixture.store.jobs(None, MANY).unwrap(), []);
}

pub(super) fn a_job_that_comes_back_goes_on_from_its_tombstone<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let tombstone = fixture.put(removed(&fixture.row("a")));
    let row = fixture.put(PutJob { is_revision: false, ..new_job("a", fixture.now) });
    assert!(!row.is_deleted);
    assert_eq!(row.fence, tombstone.fence);
    assert_eq!(row.n_open, 1, "a run of the removed job is still open");
    assert_eq!(row.state.owner.as_ref().map(|it| it.tag), Some(run.run));
    assert!(tombstone.version < row.version);
    assert!(tombstone.revision < row.revision, "it is another job by any name");
    let row = fixture.succeed(&run);
    let bid = fixture.bid(&row);
    assert!(run.fence < fixture.claim(bid).fence);
}

pub(super) fn a_tombstone_may_be_named_by_its_version<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let tombstone = fixture.put(removed(&row));
    let by_version = |version| PutJob { seen: Seen::Version(version), ..new_job("a", fixture.now) };
    let (old, new) = (by_version(row.version), by_version(tombstone.version));
    assert_eq!(fixture.ask_put(old), PutAnswer::Stale(tombstone));
    assert!(!fixture.put(new).is_deleted);
}

pub(super) fn a_removal_leaves_open_runs_open<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let row = fixture.put(removed(&fixture.row("a")));
    assert_eq!((row.n_open, row.state.owner.is_some()), (1, true));
    assert_eq!(fixture.beat(fixture.me), Some(vec![run]));
}

pub(super) fn who_changed_what_is_written_with_the_change<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let entry = |action: &str| {
        let detail = "every 1h".to_owned();
        Some(AuditEntry {
            actor: "ann".to_owned(),
            action: action.to_owned(),
            subject: "a".to_owned(),
            detail,
            before: (action == "pause").then(|| "{\"paused_by\":null}".to_owned()),
            after: Some("{\"paused_by\":\"operator\"}".to_owned()),
        })
    };
    let row = fixture.put(PutJob { audit: entry("put"), ..new_job("a", fixture.now) });
    let refused = PutJob { audit: entry("refused"), ..new_job("a", fixture.now) };
    assert!(matches!(fixture.ask_put(refused), PutAnswer::Stale(_)));
    let row = fixture.put(PutJob { audit: None, ..again(&row) });
    fixture.put(PutJob { audit: entry("pause"), ..again(&row) });
    let audit = fixture.store.audit(MANY).unwrap();
    assert_eq!(audit, [entry("put").unwrap(), entry("pause").unwrap()], "oldest first");
    assert_eq!(fixture.store.audit(1).unwrap().len(), 1);
}

fn request(id: u128, key: u128, body: u128) -> RunRequest {
    RunRequest { id: ExtraId(id), idempotency: Some(Idempotency { key, body }) }
}

pub(super) fn a_repeated_request_for_a_run_is_recognised<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let first = request(1, 10, 100);
    let row = fixture.put(PutJob { request: Some(first), ..again(&row) });
    let repeated = PutAnswer::Repeated(first);
    for again_under in [row.version, Version(0)] {
        let put =
            PutJob { seen: Seen::Version(again_under), request: Some(request(2, 10, 101)), ..again(&row) };
        assert_eq!(fixture.ask_put(put), repeated, "the earlier one, whatever the job and the body are now");
    }
    assert_eq!(fixture.row("a"), row, "and nothing was written");
    let row = fixture.put(PutJob { request: Some(request(3, 11, 100)), ..again(&row) });
    let without_key = Some(RunRequest { id: ExtraId(4), idempotency: None });
    fixture.put(PutJob { request: without_key, ..again(&row) });
    let other = fixture.create("b");
    fixture.put(PutJob { request: Some(request(5, 12, 100)), ..again(&other) });
}

pub(super) fn a_request_of_an_old_version_is_not_stored<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let stale = PutJob { seen: Seen::Version(Version(0)), request: Some(request(1, 10, 100)), ..again(&row) };
    assert_eq!(fixture.ask_put(stale), PutAnswer::Stale(row.clone()));
    fixture.put(PutJob { request: Some(request(2, 10, 100)), ..again(&row) });
}

pub(super) fn what_goes_on_record_with_an_edit_is_kept<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let put = PutJob { records: vec![record(fixture.now)], ..again(&row) };
    fixture.put(put.clone());
    assert!(matches!(fixture.ask_put(put), PutAnswer::Stale(_)));
    let kept: Vec<_> = fixture.records("a").into_iter().map(|it| it.record).collect();
    assert_eq!(kept, [record(fixture.now)]);
}

pub(super) fn edits_of_a_batch_are_answered_one_by_one<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let gone = PutJob { seen: Seen::Version(Version(1)), ..new_job("c", fixture.now) };
    let puts = [again(&row), again(&row), gone, new_job("b", fixture.now)];
    let answers = fixture.store.put_jobs(&puts).unwrap();
    let (a, b) = (fixture.row("a"), fixture.row("b"));
    assert_eq!(answers, [PutAnswer::Put(a.clone()), PutAnswer::Stale(a), PutAnswer::Gone, PutAnswer::Put(b)]);
}

pub(super) fn jobs_are_listed_by_key<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    for name in ["b", "a@x", "B", "a", "a.b"] {
        fixture.create(name);
    }
    fixture.put(removed(&fixture.row("a.b")));
    let listed = |after: Option<&str>, most| -> Vec<String> {
        let jobs = fixture.store.jobs(after.map(key).as_ref(), most).unwrap();
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
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let settle = Settle { records: vec![record(fixture.now)], ..settle_of(&row) };
    let answers = fixture.store.settle(fixture.me, fixture.epoch, &[settle]).unwrap();
    let settled = fixture.row("a");
    assert_eq!(answers, [SettleAnswer::Settled(settled.clone())]);
    let expected = JobRow { state: served(&row.state), version: settled.version, ..row.clone() };
    assert_eq!(settled, expected);
    assert!(row.version < settled.version);
    assert_eq!(fixture.records("a").len(), 1);
}

pub(super) fn settling_leaves_the_owner_alone<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.open("a");
    let row = fixture.row("a");
    let mut settle = settle_of(&row);
    settle.state.owner = None;
    fixture.store.settle(fixture.me, fixture.epoch, &[settle]).unwrap();
    let settled = fixture.row("a");
    assert_eq!((settled.state.owner, settled.n_open), (row.state.owner, 1));
    assert_eq!(settled.state.n_served, row.state.n_served + 1);
}

pub(super) fn settling_from_an_old_version_is_stale<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let settle = Settle { records: vec![record(fixture.now)], ..settle_of(&row) };
    let edited = fixture.put(again(&row));
    let answers = fixture.store.settle(fixture.me, fixture.epoch, &[settle]).unwrap();
    assert_eq!(answers, [SettleAnswer::Stale(edited.clone())]);
    assert_eq!((fixture.row("a"), fixture.records("a")), (edited, Vec::new()));
}

pub(super) fn settling_what_is_not_there<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let tombstone = fixture.put(removed(&row));
    let never_was = Settle { key: key("b"), ..settle_of(&row) };
    let settles = [settle_of(&tombstone), never_was];
    let answers = fixture.store.settle(fixture.me, fixture.epoch, &settles).unwrap();
    assert_eq!(answers, [SettleAnswer::Stale(tombstone), SettleAnswer::Gone]);
}

pub(super) fn the_dead_settle_nothing_and_nobody_does_in_another_epoch<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let row = fixture.create("a");
    let dead = fixture.join(&node(2, "n2"));
    fixture.kill(dead);
    let next = Epoch(fixture.epoch.0 + 1);
    for (session, epoch) in [(dead, fixture.epoch), (STRANGER, fixture.epoch), (fixture.me, next)] {
        let answers = fixture.store.settle(session, epoch, &[settle_of(&row), settle_of(&row)]).unwrap();
        assert_eq!(answers, [SettleAnswer::Refused, SettleAnswer::Refused]);
    }
    assert_eq!(fixture.row("a"), row);
    // Others are not kept from it.
    let job: Arc<Job> = row.job.clone();
    fixture.put(PutJob { job, state: begun(&row.state), ..again(&row) });
}

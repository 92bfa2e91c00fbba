//! Ends: a run leaves the open phases once, and frees what it held.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{Fence, SessionId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::{EndDetail, EndReason, Outcome, RunReport};
use evenbeat_core::store::{
    Bid, End, EndAnswer, EndBy, LateResult, Mark, MarkKind, PutAnswer, RunEnded, RunPhase, RunRow, Store,
    Views,
};
use evenbeat_core::time::Duration;
use evenbeat_core::value::Value;

use super::Backend;
use super::desk::{Desk, MANY};
use super::sample::{HOUR, UNKNOWN_RUN, again, key, node, record, removed, run_end, served, worker};

pub(super) fn an_owner_ends_its_run<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    for (name, outcome) in [
        ("a", Outcome::Succeeded),
        ("b", Outcome::Failed),
        ("c", Outcome::TimedOut),
        ("d", Outcome::Blackout),
        ("e", Outcome::Cancelled),
        ("f", Outcome::Unknown),
    ] {
        let run = desk.open(name);
        let before = desk.row(name);
        let row = desk.end(&run, desk.owned(outcome));
        assert_eq!(row, desk.row(name), "the answer is the row");
        assert_eq!((row.n_open, row.fence, row.revision), (0, before.fence, before.revision));
        assert!(before.version < row.version);
        assert_eq!(row.state.n_served, before.state.n_served + 1, "the memory is the new one");
        let end = run_end(outcome, desk.now);
        let ended = RunEnded { ended_at: end.ended_at, exit_code: end.exit_code, frozen_for: end.frozen_for };
        let (phase, started_at) = (RunPhase::Ended(outcome), Some(end.started_at));
        let expected = RunRow { phase, started_at, ended: Some(ended), ..run.clone() };
        assert_eq!(desk.run(run.run), Some(expected));
        assert_eq!(desk.beat(desk.me), Some(Vec::new()));
    }
}

pub(super) fn what_a_run_told_of_itself_stays_with_it<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let told = RunReport {
        error: Some("no such page: `ü\"'\\`".to_owned()),
        result: BTreeMap::from([
            ("pages_processed".to_owned(), Value::Int(42)),
            ("share".to_owned(), Value::Float(0.1)),
            ("of".to_owned(), Value::List(vec![Value::Text("a".to_owned()), Value::Null])),
        ]),
        end: EndDetail {
            signal: Some(9),
            reason: Some(EndReason::TimeLimit),
            limit: Some("max_allowed_duration 6s".to_owned()),
            ignored_term: true,
            left_behind: vec!["sleep".to_owned(), "a \"b\"".to_owned()],
            output_cut: 1 << 40,
            last_error_line: Some("ValueError: 'ü' \\ \u{1b}[0m".to_owned()),
        },
    };
    let only_end = RunReport { error: None, result: BTreeMap::new(), ..told.clone() };
    let reports = [("a", Some(Arc::new(told))), ("b", None), ("c", Some(Arc::new(only_end)))];
    for (name, report) in reports {
        let run = desk.open(name);
        let end = End { report: report.clone(), ..desk.end_of(&run, desk.owned(Outcome::Failed)) };
        let EndAnswer::Ended(_) = desk.ask_end(end) else { panic!("ended") };
        assert_eq!(desk.run(run.run).map(|it| it.report), Some(report));
    }
}

pub(super) fn the_last_end_leaves_no_owner<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let mut end = desk.end_of(&run, desk.owned(Outcome::Succeeded));
    end.state = served(&desk.row("a").state);
    assert!(end.state.owner.is_some(), "worked out from a row with an owner");
    let EndAnswer::Ended(row) = desk.ask_end(end) else { panic!("ended") };
    assert_eq!(row.state.owner, None);
}

pub(super) fn a_job_is_owned_while_any_of_its_runs_is_open<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    desk.create("a");
    let runs = [(); 2].map(|()| {
        let bid = Bid { max_open: 2, ..desk.bid(&desk.row("a")) };
        desk.claim(bid)
    });
    let mut end = desk.end_of(&runs[0], desk.owned(Outcome::Succeeded));
    end.state.owner = None;
    let EndAnswer::Ended(row) = desk.ask_end(end) else { panic!("ended") };
    assert_eq!((row.n_open, row.state.owner.is_some()), (1, true));
    let row = desk.succeed(&runs[1]);
    assert_eq!((row.n_open, row.state.owner), (0, None));
}

pub(super) fn an_end_that_is_sent_twice_is_late<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let end = desk.end_of(&run, desk.owned(Outcome::Succeeded));
    assert!(matches!(desk.ask_end(end.clone()), EndAnswer::Ended(_)));
    let (row, ended) = (desk.row("a"), desk.run(run.run));
    assert_eq!(desk.ask_end(end.clone()), EndAnswer::Late);
    let fresh = End { seen: row.version, by: desk.owned(Outcome::Failed), ..end };
    assert_eq!(desk.ask_end(fresh), EndAnswer::Late, "also when worked out anew");
    assert_eq!((desk.row("a"), desk.run(run.run)), (row, ended));
}

pub(super) fn only_its_owner_ends_a_run<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open_published("a");
    let won = desk.win(&run, &worker(9));
    for by in [desk.owned(Outcome::Failed), EndBy::Unstarted] {
        let end = End { me: desk.me, ..desk.end_of(&run, by) };
        assert_eq!(desk.store.end(desk.epoch, &[end]).unwrap(), [EndAnswer::Late], "the worker has it now");
    }
    assert_eq!(desk.run(run.run), Some(won));
    assert_eq!(desk.succeed(&run).n_open, 0);
}

pub(super) fn an_end_under_another_fence_is_late<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let row = desk.row("a");
    for fence in [Fence(run.fence.0 - 1), Fence(run.fence.0 + 1)] {
        let end = End { fence, ..desk.end_of(&run, desk.owned(Outcome::Succeeded)) };
        assert_eq!(desk.ask_end(end), EndAnswer::Late);
    }
    assert_eq!((desk.row("a"), desk.run(run.run)), (row, Some(run)));
}

pub(super) fn an_end_of_another_jobs_run_is_late<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (run, other) = (desk.open("a"), desk.open("b"));
    let end = End { run: run.run, fence: run.fence, ..desk.end_of(&other, desk.owned(Outcome::Succeeded)) };
    assert_eq!(desk.ask_end(end), EndAnswer::Late);
    assert_eq!((desk.run(run.run), desk.run(other.run)), (Some(run), Some(other)));
}

pub(super) fn an_end_of_a_run_that_never_was_is_late<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let end = End { run: UNKNOWN_RUN, ..desk.end_of(&run, desk.owned(Outcome::Succeeded)) };
    assert_eq!(desk.ask_end(end), EndAnswer::Late);
    assert_eq!(desk.run(UNKNOWN_RUN), None);
}

pub(super) fn an_end_from_an_old_version_is_stale_and_the_run_stays_open<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let end = End { records: vec![record(desk.now)], ..desk.end_of(&run, desk.owned(Outcome::Succeeded)) };
    let edited = desk.put(again(&desk.row("a")));
    assert_eq!(desk.ask_end(end.clone()), EndAnswer::Stale(edited.clone()));
    assert_eq!((desk.row("a"), desk.run(run.run)), (edited.clone(), Some(run)));
    assert_eq!(desk.records("a"), []);
    let thought_again = End { seen: edited.version, ..end };
    assert!(matches!(desk.ask_end(thought_again), EndAnswer::Ended(_)));
}

pub(super) fn a_run_that_never_started_leaves_no_trace<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open_published("a");
    let before = desk.row("a");
    let row = desk.end(&run, EndBy::Unstarted);
    assert_eq!(desk.run(run.run), None);
    assert_eq!((row.n_open, row.state.owner.clone()), (0, None));
    assert_eq!(row.fence, before.fence, "its fence is not given out again");
    assert_eq!(desk.store.outbox(MANY).unwrap(), []);
    let end = End { seen: row.version, ..desk.end_of(&run, EndBy::Unstarted) };
    assert_eq!(desk.ask_end(end), EndAnswer::Late);
    let bid = desk.bid(&row);
    assert!(run.fence < desk.claim(bid).fence);
}

pub(super) fn a_run_that_executes_cannot_be_taken_back<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let started = Mark { run: run.run, fence: run.fence, kind: MarkKind::Started(desk.now) };
    assert_eq!(desk.store.mark(&[started]).unwrap(), [true]);
    let end = desk.end_of(&run, EndBy::Unstarted);
    assert_eq!(desk.ask_end(end), EndAnswer::Refused);
    assert_eq!(desk.row("a").n_open, 1);
}

pub(super) fn a_dead_owners_run_is_released_as_lost<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    // Whatever the end calls itself: the outcome of a release is `lost`.
    let by = EndBy::Release { dead: other, end: run_end(Outcome::Succeeded, desk.now) };
    let row = desk.end(&run, by);
    assert_eq!((row.n_open, row.state.owner.clone()), (0, None));
    assert!(run.fence < row.fence, "what the dead still do is under an older fence");
    assert_eq!(desk.run(run.run).map(|it| it.phase), Some(RunPhase::Ended(Outcome::Lost)));
    assert_eq!(desk.store.watch(MANY).unwrap().orphans, []);
    let bid = desk.bid(&row);
    assert!(row.fence < desk.claim(bid).fence);
}

pub(super) fn a_living_owners_run_is_not_released<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    let row = desk.row("a");
    let end = desk.end_of(&run, desk.release(other));
    assert_eq!(desk.ask_end(end), EndAnswer::Refused);
    assert_eq!((desk.row("a"), desk.run(run.run)), (row, Some(run)));
}

pub(super) fn a_release_names_the_owner_that_is_dead<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (owner, dead) = (desk.join(&node(2, "n2")), desk.join(&node(3, "n3")));
    let run = desk.open_as(owner, "a");
    desk.kill(dead);
    let end = desk.end_of(&run, desk.release(dead));
    assert_eq!(desk.ask_end(end), EndAnswer::Refused);
    assert_eq!(desk.beat(owner), Some(vec![run]));
}

pub(super) fn nobody_releases_in_another_epoch<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    let end = desk.end_of(&run, desk.release(other));
    for epoch in [Epoch(desk.epoch.0 + 1), Epoch(desk.epoch.0 - 1)] {
        assert_eq!(desk.store.end(epoch, std::slice::from_ref(&end)).unwrap(), [EndAnswer::Refused]);
    }
    assert_eq!(desk.run(run.run), Some(run));
}

pub(super) fn a_release_that_is_sent_twice_is_late<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    let row = desk.end(&run, desk.release(other));
    let end = End { seen: row.version, ..desk.end_of(&run, desk.release(other)) };
    assert_eq!(desk.ask_end(end), EndAnswer::Late);
    let phase = desk.run(run.run).map(|it| (it.phase, it.late));
    assert_eq!(phase, Some((RunPhase::Ended(Outcome::Lost), None)), "a release is nobody's result");
    assert_eq!(desk.row("a"), row);
}

pub(super) fn an_owner_may_end_its_run_until_it_is_released<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    let row = desk.succeed(&run);
    assert_eq!(row.n_open, 0);
    assert_eq!(desk.run(run.run).map(|it| it.phase), Some(RunPhase::Ended(Outcome::Succeeded)));
}

pub(super) fn a_result_after_the_loss_is_superseded<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    let row = desk.end(&run, desk.release(other));
    let lost = desk.run(run.run).unwrap();
    let result = RunEnd { exit_code: Some(7), ..run_end(Outcome::Failed, desk.now + HOUR) };
    let report = Some(Arc::new(RunReport { error: Some("broke".to_owned()), ..RunReport::default() }));
    let end = End { report: report.clone(), ..desk.end_of(&run, EndBy::Owner(result)) };
    assert_eq!(desk.ask_end(end), EndAnswer::Late);
    let late = LateResult { outcome: Outcome::Failed, ended_at: desk.now + HOUR };
    let ended = lost.ended.map(|it| RunEnded { exit_code: Some(7), ..it });
    let phase = RunPhase::Ended(Outcome::Superseded);
    let expected = RunRow { phase, late: Some(late), ended, report, ..lost };
    assert_eq!(desk.run(run.run), Some(expected), "kept beside what was known");
    assert_eq!(desk.row("a"), row, "and the job knows nothing of it");
}

pub(super) fn a_run_that_is_over_has_started<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let (ended, lost) = (desk.open("a"), desk.open_as(other, "b"));
    desk.succeed(&ended);
    desk.kill(other);
    desk.end(&lost, desk.release(other));
    for run in [ended.run, lost.run] {
        let run = desk.run(run).unwrap();
        assert!(run.started_at.is_some(), "{run:?}");
    }
}

pub(super) fn only_the_first_late_result_is_kept<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    desk.end(&run, desk.release(other));
    let of_another_lease =
        End { fence: Fence(run.fence.0 + 1), ..desk.end_of(&run, desk.owned(Outcome::Succeeded)) };
    assert_eq!(desk.ask_end(of_another_lease), EndAnswer::Late);
    assert_eq!(desk.run(run.run).unwrap().late, None);
    for outcome in [Outcome::Failed, Outcome::Succeeded] {
        let end = desk.end_of(&run, desk.owned(outcome));
        assert_eq!(desk.ask_end(end), EndAnswer::Late);
        assert_eq!(desk.run(run.run).unwrap().late.map(|it| it.outcome), Some(Outcome::Failed));
    }
}

pub(super) fn a_result_that_came_before_the_loss_is_not_late<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let other = desk.join(&node(2, "n2"));
    let run = desk.open_as(other, "a");
    desk.kill(other);
    // Not the owner's, while the run is open, and in the same batch as what ends it.
    let of_nobody = End { me: SessionId(4_711), ..desk.end_of(&run, desk.owned(Outcome::Failed)) };
    let release = desk.end_of(&run, desk.release(other));
    let mut answers = desk.store.end(desk.epoch, &[of_nobody, release]).unwrap();
    assert!(matches!(answers.pop(), Some(EndAnswer::Ended(_))), "{answers:?}");
    assert_eq!(answers, [EndAnswer::Late]);
    let phase = desk.run(run.run).map(|it| (it.phase, it.late));
    assert_eq!(phase, Some((RunPhase::Ended(Outcome::Lost), None)));
}

pub(super) fn the_end_of_a_removed_jobs_run_does_not_bring_it_back<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    desk.put(removed(&desk.row("a")));
    let row = desk.succeed(&run);
    assert_eq!((row.is_deleted, row.n_open), (true, 0));
    assert_eq!(desk.store.jobs(None, MANY).unwrap(), []);
}

pub(super) fn what_goes_on_record_with_an_end_is_kept<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let run = desk.open("a");
    let end = End { records: vec![record(desk.now)], ..desk.end_of(&run, desk.owned(Outcome::Succeeded)) };
    assert!(matches!(desk.ask_end(end), EndAnswer::Ended(_)));
    let kept: Vec<_> = desk.records("a").into_iter().map(|it| (it.key, it.record)).collect();
    assert_eq!(kept, [(key("a"), record(desk.now))]);
}

pub(super) fn ends_of_a_batch_are_answered_one_by_one<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let [ended, stale, refused, late] = ["a", "b", "c", "d"].map(|name| desk.open(name));
    let ends = [
        desk.end_of(&ended, desk.owned(Outcome::Failed)),
        desk.end_of(&stale, desk.owned(Outcome::Succeeded)),
        desk.end_of(&refused, desk.release(desk.me)),
        End { run: UNKNOWN_RUN, ..desk.end_of(&late, EndBy::Unstarted) },
        desk.end_of(&late, EndBy::Unstarted),
        desk.end_of(&late, EndBy::Unstarted),
    ];
    let PutAnswer::Put(edited) = desk.ask_put(again(&desk.row("b"))) else { panic!("put") };
    let answers = desk.store.end(desk.epoch, &ends).unwrap();
    assert_eq!(
        answers,
        [
            EndAnswer::Ended(desk.row("a")),
            EndAnswer::Stale(edited),
            EndAnswer::Refused,
            EndAnswer::Late,
            EndAnswer::Ended(desk.row("d")),
            EndAnswer::Late,
        ]
    );
}

pub(super) fn a_start_is_marked_once_and_under_its_fence<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    let (run, over) = (desk.open("a"), desk.open("b"));
    desk.succeed(&over);
    let started = |run: &RunRow| Mark { run: run.run, fence: run.fence, kind: MarkKind::Started(desk.now) };
    let other_fence = Mark { fence: Fence(run.fence.0 + 1), ..started(&run) };
    let marks = [other_fence, started(&run), started(&over), Mark { run: UNKNOWN_RUN, ..started(&run) }];
    let version = desk.row("a").version;
    let over_since = desk.run(over.run).unwrap().started_at;
    assert_eq!(desk.store.mark(&marks).unwrap(), [false, true, false, false]);
    let marked = desk.run(run.run).unwrap();
    assert_eq!((marked.phase, marked.started_at), (RunPhase::Running, Some(desk.now)));
    assert_eq!(desk.row("a").version, version, "how far a run is does not change its job");
    assert_eq!(desk.run(over.run).unwrap().started_at, over_since);
    let later = Mark { kind: MarkKind::Started(desk.now + HOUR), ..marks[1] };
    assert_eq!(desk.store.mark(&[later]).unwrap(), [true]);
    assert_eq!(desk.run(run.run).unwrap().started_at, Some(desk.now), "it began once");
}

pub(super) fn a_run_does_not_begin_after_its_end<B: Backend>(backend: &B) {
    let mut desk = Desk::at(backend);
    // A clock was set back between the two, or two readings of it are a millisecond apart.
    for (key, late) in [("a", Duration::from_millis(1)), ("b", HOUR)] {
        let run = desk.open(key);
        let kind = MarkKind::Started(desk.now + late);
        assert_eq!(desk.store.mark(&[Mark { run: run.run, fence: run.fence, kind }]).unwrap(), [true]);
        desk.end(&run, desk.owned(Outcome::Succeeded));
        let ended = desk.run(run.run).unwrap();
        assert_eq!(ended.started_at, ended.ended.map(|it| it.ended_at));
        assert_eq!(ended.started_at, Some(desk.now));
    }
}

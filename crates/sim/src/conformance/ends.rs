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
use super::fixture::{Fixture, MANY};
use super::sample::{HOUR, UNKNOWN_RUN, again, key, node, record, removed, run_end, served, worker};

pub(super) fn an_owner_ends_its_run<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    for (name, outcome) in [
        ("a", Outcome::Succeeded),
        ("b", Outcome::Failed),
        ("c", Outcome::TimedOut),
        ("d", Outcome::Blackout),
        ("e", Outcome::Cancelled),
        ("f", Outcome::Unknown),
    ] {
        let run = fixture.open(name);
        let before = fixture.row(name);
        let row = fixture.end(&run, fixture.owned(outcome));
        assert_eq!(row, fixture.row(name), "the answer is the row");
        assert_eq!((row.n_open, row.fence, row.revision), (0, before.fence, before.revision));
        assert!(before.version < row.version);
        assert_eq!(row.state.n_served, before.state.n_served + 1, "the memory is the new one");
        let end = run_end(outcome, fixture.now);
        let ended = RunEnded { ended_at: end.ended_at, exit_code: end.exit_code, frozen_for: end.frozen_for };
        let (phase, started_at) = (RunPhase::Ended(outcome), Some(end.started_at));
        let expected = RunRow { phase, started_at, ended: Some(ended), ..run.clone() };
        assert_eq!(fixture.run(run.run), Some(expected));
        assert_eq!(fixture.beat(fixture.me), Some(Vec::new()));
    }
}

pub(super) fn what_a_run_told_of_itself_stays_with_it<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
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
        let run = fixture.open(name);
        let end = End { report: report.clone(), ..fixture.end_of(&run, fixture.owned(Outcome::Failed)) };
        let EndAnswer::Ended(_) = fixture.ask_end(end) else { panic!("ended") };
        assert_eq!(fixture.run(run.run).map(|it| it.report), Some(report));
    }
}

pub(super) fn the_last_end_leaves_no_owner<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let mut end = fixture.end_of(&run, fixture.owned(Outcome::Succeeded));
    end.state = served(&fixture.row("a").state);
    assert!(end.state.owner.is_some(), "worked out from a row with an owner");
    let EndAnswer::Ended(row) = fixture.ask_end(end) else { panic!("ended") };
    assert_eq!(row.state.owner, None);
}

pub(super) fn a_job_is_owned_while_any_of_its_runs_is_open<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    fixture.create("a");
    let runs = [(); 2].map(|()| {
        let bid = Bid { max_open: 2, ..fixture.bid(&fixture.row("a")) };
        fixture.claim(bid)
    });
    let mut end = fixture.end_of(&runs[0], fixture.owned(Outcome::Succeeded));
    end.state.owner = None;
    let EndAnswer::Ended(row) = fixture.ask_end(end) else { panic!("ended") };
    assert_eq!((row.n_open, row.state.owner.is_some()), (1, true));
    let row = fixture.succeed(&runs[1]);
    assert_eq!((row.n_open, row.state.owner), (0, None));
}

pub(super) fn an_end_that_is_sent_twice_is_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let end = fixture.end_of(&run, fixture.owned(Outcome::Succeeded));
    assert!(matches!(fixture.ask_end(end.clone()), EndAnswer::Ended(_)));
    let (row, ended) = (fixture.row("a"), fixture.run(run.run));
    assert_eq!(fixture.ask_end(end.clone()), EndAnswer::Late);
    let fresh = End { seen: row.version, by: fixture.owned(Outcome::Failed), ..end };
    assert_eq!(fixture.ask_end(fresh), EndAnswer::Late, "also when worked out anew");
    assert_eq!((fixture.row("a"), fixture.run(run.run)), (row, ended));
}

pub(super) fn only_its_owner_ends_a_run<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    let won = fixture.win(&run, &worker(9));
    for by in [fixture.owned(Outcome::Failed), EndBy::Unstarted] {
        let end = End { me: fixture.me, ..fixture.end_of(&run, by) };
        assert_eq!(
            fixture.store.end(fixture.epoch, &[end]).unwrap(),
            [EndAnswer::Late],
            "the worker has it now"
        );
    }
    assert_eq!(fixture.run(run.run), Some(won));
    assert_eq!(fixture.succeed(&run).n_open, 0);
}

pub(super) fn an_end_under_another_fence_is_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let row = fixture.row("a");
    for fence in [Fence(run.fence.0 - 1), Fence(run.fence.0 + 1)] {
        let end = End { fence, ..fixture.end_of(&run, fixture.owned(Outcome::Succeeded)) };
        assert_eq!(fixture.ask_end(end), EndAnswer::Late);
    }
    assert_eq!((fixture.row("a"), fixture.run(run.run)), (row, Some(run)));
}

pub(super) fn an_end_of_another_jobs_run_is_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (run, other) = (fixture.open("a"), fixture.open("b"));
    let end =
        End { run: run.run, fence: run.fence, ..fixture.end_of(&other, fixture.owned(Outcome::Succeeded)) };
    assert_eq!(fixture.ask_end(end), EndAnswer::Late);
    assert_eq!((fixture.run(run.run), fixture.run(other.run)), (Some(run), Some(other)));
}

pub(super) fn an_end_of_a_run_that_never_was_is_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let end = End { run: UNKNOWN_RUN, ..fixture.end_of(&run, fixture.owned(Outcome::Succeeded)) };
    assert_eq!(fixture.ask_end(end), EndAnswer::Late);
    assert_eq!(fixture.run(UNKNOWN_RUN), None);
}

pub(super) fn an_end_from_an_old_version_is_stale_and_the_run_stays_open<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let end =
        End { records: vec![record(fixture.now)], ..fixture.end_of(&run, fixture.owned(Outcome::Succeeded)) };
    let edited = fixture.put(again(&fixture.row("a")));
    assert_eq!(fixture.ask_end(end.clone()), EndAnswer::Stale(edited.clone()));
    assert_eq!((fixture.row("a"), fixture.run(run.run)), (edited.clone(), Some(run)));
    assert_eq!(fixture.records("a"), []);
    let thought_again = End { seen: edited.version, ..end };
    assert!(matches!(fixture.ask_end(thought_again), EndAnswer::Ended(_)));
}

pub(super) fn a_run_that_never_started_leaves_no_trace<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open_published("a");
    let before = fixture.row("a");
    let row = fixture.end(&run, EndBy::Unstarted);
    assert_eq!(fixture.run(run.run), None);
    assert_eq!((row.n_open, row.state.owner.clone()), (0, None));
    assert_eq!(row.fence, before.fence, "its fence is not given out again");
    assert_eq!(fixture.store.outbox(MANY).unwrap(), []);
    let end = End { seen: row.version, ..fixture.end_of(&run, EndBy::Unstarted) };
    assert_eq!(fixture.ask_end(end), EndAnswer::Late);
    let bid = fixture.bid(&row);
    assert!(run.fence < fixture.claim(bid).fence);
}

pub(super) fn a_run_that_executes_cannot_be_taken_back<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let started = Mark { run: run.run, fence: run.fence, kind: MarkKind::Started(fixture.now) };
    assert_eq!(fixture.store.mark(&[started]).unwrap(), [true]);
    let end = fixture.end_of(&run, EndBy::Unstarted);
    assert_eq!(fixture.ask_end(end), EndAnswer::Refused);
    assert_eq!(fixture.row("a").n_open, 1);
}

pub(super) fn a_dead_owners_run_is_released_as_lost<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    // Whatever the end calls itself: the outcome of a release is `lost`.
    let by = EndBy::Release { dead: other, end: run_end(Outcome::Succeeded, fixture.now) };
    let row = fixture.end(&run, by);
    assert_eq!((row.n_open, row.state.owner.clone()), (0, None));
    assert!(run.fence < row.fence, "what the dead still do is under an older fence");
    assert_eq!(fixture.run(run.run).map(|it| it.phase), Some(RunPhase::Ended(Outcome::Lost)));
    assert_eq!(fixture.store.watch(MANY).unwrap().orphans, []);
    let bid = fixture.bid(&row);
    assert!(row.fence < fixture.claim(bid).fence);
}

pub(super) fn a_living_owners_run_is_not_released<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    let row = fixture.row("a");
    let end = fixture.end_of(&run, fixture.release(other));
    assert_eq!(fixture.ask_end(end), EndAnswer::Refused);
    assert_eq!((fixture.row("a"), fixture.run(run.run)), (row, Some(run)));
}

pub(super) fn a_release_names_the_owner_that_is_dead<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (owner, dead) = (fixture.join(&node(2, "n2")), fixture.join(&node(3, "n3")));
    let run = fixture.open_as(owner, "a");
    fixture.kill(dead);
    let end = fixture.end_of(&run, fixture.release(dead));
    assert_eq!(fixture.ask_end(end), EndAnswer::Refused);
    assert_eq!(fixture.beat(owner), Some(vec![run]));
}

pub(super) fn nobody_releases_in_another_epoch<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    let end = fixture.end_of(&run, fixture.release(other));
    for epoch in [Epoch(fixture.epoch.0 + 1), Epoch(fixture.epoch.0 - 1)] {
        assert_eq!(fixture.store.end(epoch, std::slice::from_ref(&end)).unwrap(), [EndAnswer::Refused]);
    }
    assert_eq!(fixture.run(run.run), Some(run));
}

pub(super) fn a_release_that_is_sent_twice_is_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    let row = fixture.end(&run, fixture.release(other));
    let end = End { seen: row.version, ..fixture.end_of(&run, fixture.release(other)) };
    assert_eq!(fixture.ask_end(end), EndAnswer::Late);
    let phase = fixture.run(run.run).map(|it| (it.phase, it.late));
    assert_eq!(phase, Some((RunPhase::Ended(Outcome::Lost), None)), "a release is nobody's result");
    assert_eq!(fixture.row("a"), row);
}

pub(super) fn an_owner_may_end_its_run_until_it_is_released<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    let row = fixture.succeed(&run);
    assert_eq!(row.n_open, 0);
    assert_eq!(fixture.run(run.run).map(|it| it.phase), Some(RunPhase::Ended(Outcome::Succeeded)));
}

pub(super) fn a_result_after_the_loss_is_superseded<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    let row = fixture.end(&run, fixture.release(other));
    let lost = fixture.run(run.run).unwrap();
    let result = RunEnd { exit_code: Some(7), ..run_end(Outcome::Failed, fixture.now + HOUR) };
    let report = Some(Arc::new(RunReport { error: Some("broke".to_owned()), ..RunReport::default() }));
    let end = End { report: report.clone(), ..fixture.end_of(&run, EndBy::Owner(result)) };
    assert_eq!(fixture.ask_end(end), EndAnswer::Late);
    let late = LateResult { outcome: Outcome::Failed, ended_at: fixture.now + HOUR };
    let ended = lost.ended.map(|it| RunEnded { exit_code: Some(7), ..it });
    let phase = RunPhase::Ended(Outcome::Superseded);
    let expected = RunRow { phase, late: Some(late), ended, report, ..lost };
    assert_eq!(fixture.run(run.run), Some(expected), "kept beside what was known");
    assert_eq!(fixture.row("a"), row, "and the job knows nothing of it");
}

pub(super) fn a_run_that_is_over_has_started<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let (ended, lost) = (fixture.open("a"), fixture.open_as(other, "b"));
    fixture.succeed(&ended);
    fixture.kill(other);
    fixture.end(&lost, fixture.release(other));
    for run in [ended.run, lost.run] {
        let run = fixture.run(run).unwrap();
        assert!(run.started_at.is_some(), "{run:?}");
    }
}

pub(super) fn only_the_first_late_result_is_kept<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    fixture.end(&run, fixture.release(other));
    let of_another_lease =
        End { fence: Fence(run.fence.0 + 1), ..fixture.end_of(&run, fixture.owned(Outcome::Succeeded)) };
    assert_eq!(fixture.ask_end(of_another_lease), EndAnswer::Late);
    assert_eq!(fixture.run(run.run).unwrap().late, None);
    for outcome in [Outcome::Failed, Outcome::Succeeded] {
        let end = fixture.end_of(&run, fixture.owned(outcome));
        assert_eq!(fixture.ask_end(end), EndAnswer::Late);
        assert_eq!(fixture.run(run.run).unwrap().late.map(|it| it.outcome), Some(Outcome::Failed));
    }
}

pub(super) fn a_result_that_came_before_the_loss_is_not_late<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let other = fixture.join(&node(2, "n2"));
    let run = fixture.open_as(other, "a");
    fixture.kill(other);
    // Not the owner's, while the run is open, and in the same batch as what ends it.
    let of_nobody = End { me: SessionId(4_711), ..fixture.end_of(&run, fixture.owned(Outcome::Failed)) };
    let release = fixture.end_of(&run, fixture.release(other));
    let mut answers = fixture.store.end(fixture.epoch, &[of_nobody, release]).unwrap();
    assert!(matches!(answers.pop(), Some(EndAnswer::Ended(_))), "{answers:?}");
    assert_eq!(answers, [EndAnswer::Late]);
    let phase = fixture.run(run.run).map(|it| (it.phase, it.late));
    assert_eq!(phase, Some((RunPhase::Ended(Outcome::Lost), None)));
}

pub(super) fn the_end_of_a_removed_jobs_run_does_not_bring_it_back<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    fixture.put(removed(&fixture.row("a")));
    let row = fixture.succeed(&run);
    assert_eq!((row.is_deleted, row.n_open), (true, 0));
    assert_eq!(fixture.store.jobs(None, MANY).unwrap(), []);
}

pub(super) fn what_goes_on_record_with_an_end_is_kept<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let run = fixture.open("a");
    let end =
        End { records: vec![record(fixture.now)], ..fixture.end_of(&run, fixture.owned(Outcome::Succeeded)) };
    assert!(matches!(fixture.ask_end(end), EndAnswer::Ended(_)));
    let kept: Vec<_> = fixture.records("a").into_iter().map(|it| (it.key, it.record)).collect();
    assert_eq!(kept, [(key("a"), record(fixture.now))]);
}

pub(super) fn ends_of_a_batch_are_answered_one_by_one<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let [ended, stale, refused, late] = ["a", "b", "c", "d"].map(|name| fixture.open(name));
    let ends = [
        fixture.end_of(&ended, fixture.owned(Outcome::Failed)),
        fixture.end_of(&stale, fixture.owned(Outcome::Succeeded)),
        fixture.end_of(&refused, fixture.release(fixture.me)),
        End { run: UNKNOWN_RUN, ..fixture.end_of(&late, EndBy::Unstarted) },
        fixture.end_of(&late, EndBy::Unstarted),
        fixture.end_of(&late, EndBy::Unstarted),
    ];
    let PutAnswer::Put(edited) = fixture.ask_put(again(&fixture.row("b"))) else { panic!("put") };
    let answers = fixture.store.end(fixture.epoch, &ends).unwrap();
    assert_eq!(
        answers,
        [
            EndAnswer::Ended(fixture.row("a")),
            EndAnswer::Stale(edited),
            EndAnswer::Refused,
            EndAnswer::Late,
            EndAnswer::Ended(fixture.row("d")),
            EndAnswer::Late,
        ]
    );
}

pub(super) fn a_start_is_marked_once_and_under_its_fence<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    let (run, over) = (fixture.open("a"), fixture.open("b"));
    fixture.succeed(&over);
    let started =
        |run: &RunRow| Mark { run: run.run, fence: run.fence, kind: MarkKind::Started(fixture.now) };
    let other_fence = Mark { fence: Fence(run.fence.0 + 1), ..started(&run) };
    let marks = [other_fence, started(&run), started(&over), Mark { run: UNKNOWN_RUN, ..started(&run) }];
    let version = fixture.row("a").version;
    let over_since = fixture.run(over.run).unwrap().started_at;
    assert_eq!(fixture.store.mark(&marks).unwrap(), [false, true, false, false]);
    let marked = fixture.run(run.run).unwrap();
    assert_eq!((marked.phase, marked.started_at), (RunPhase::Running, Some(fixture.now)));
    assert_eq!(fixture.row("a").version, version, "how far a run is does not change its job");
    assert_eq!(fixture.run(over.run).unwrap().started_at, over_since);
    let later = Mark { kind: MarkKind::Started(fixture.now + HOUR), ..marks[1] };
    assert_eq!(fixture.store.mark(&[later]).unwrap(), [true]);
    assert_eq!(fixture.run(run.run).unwrap().started_at, Some(fixture.now), "it began once");
}

pub(super) fn a_run_does_not_begin_after_its_end<B: Backend>(backend: &B) {
    let mut fixture = Fixture::at(backend);
    // A clock was set back between the two, or two readings of it are a millisecond apart.
    for (key, late) in [("a", Duration::from_millis(1)), ("b", HOUR)] {
        let run = fixture.open(key);
        let kind = MarkKind::Started(fixture.now + late);
        assert_eq!(fixture.store.mark(&[Mark { run: run.run, fence: run.fence, kind }]).unwrap(), [true]);
        fixture.end(&run, fixture.owned(Outcome::Succeeded));
        let ended = fixture.run(run.run).unwrap();
        assert_eq!(ended.started_at, ended.ended.map(|it| it.ended_at));
        assert_eq!(ended.started_at, Some(fixture.now));
    }
}

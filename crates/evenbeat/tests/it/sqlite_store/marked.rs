//! Runs that end before anybody has noted that they began: told of both at once, the store comes to the same as when it
//! is told of one after the other.

use evenbeat::testing::store::sqlite::SqliteStore;
use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{End, EndAnswer, EndBy, JobRow, Mark, MarkKind, RunRow, Store, Version};
use evenbeat_core::time::{Duration, Timestamp};

use crate::sqlite_store::common::{HOUR, TestClock, fresh_by, job, join, new_job, noon, open_run, put};

const RUN: RunId = RunId(7);

fn mark(row: &JobRow, at: Timestamp) -> Mark {
    Mark { run: RUN, fence: row.fence, kind: MarkKind::Started(at) }
}

fn end(row: &JobRow) -> End {
    let over = RunEnd {
        run: RUN,
        started_at: noon(),
        ended_at: noon() + HOUR,
        outcome: Outcome::Succeeded,
        exit_code: Some(0),
        frozen_for: Duration::ZERO,
    };
    End {
        run: RUN,
        fence: row.fence,
        me: SessionId(1),
        key: row.job.key.clone(),
        seen: row.version,
        by: EndBy::Owner(over),
        state: row.state.clone(),
        records: Vec::new(),
        report: None,
    }
}

/// A story of one run, told in one of two ways; what was answered, and what is stored.
fn told(
    story: impl Fn(&mut SqliteStore, &JobRow) -> (Vec<Mark>, Vec<End>),
    is_at_once: bool,
) -> (Vec<EndAnswer>, Option<RunRow>) {
    let mut store = fresh_by(&TestClock::at(noon()));
    let row = put(&mut store, new_job(job("a")));
    let row = open_run(&mut store, 1, &row, RUN.0);
    let (marks, ends) = story(&mut store, &row);
    let epoch = join(&mut store, 1);
    let answers = if is_at_once {
        store.ask_and_wait(move |tx| tx.end_marked(epoch, &marks, &ends)).unwrap()
    } else {
        store.mark(&marks).unwrap();
        store.end(epoch, &ends).unwrap()
    };
    (answers, store.look(|tx| tx.run(RUN)).unwrap())
}

#[track_caller]
fn check(
    expected: Option<Timestamp>,
    story: impl Fn(&mut SqliteStore, &JobRow) -> (Vec<Mark>, Vec<End>),
) -> EndAnswer {
    let (answers, run) = told(&story, true);
    assert_eq!((&answers, &run), (&told(&story, false).0, &told(&story, false).1));
    assert_eq!(run.unwrap().started_at, expected);
    answers.into_iter().next().unwrap()
}

#[test]
fn a_run_that_is_marked_and_ended_at_once_is_as_one_that_was_marked_before() {
    let second = Duration::from_secs(1);
    let answer = check(Some(noon() + second), |_, row| (vec![mark(row, noon() + second)], vec![end(row)]));
    assert!(matches!(answer, EndAnswer::Ended(_)), "{answer:?}");
    // What nobody marked began when its end says.
    check(Some(noon()), |_, row| (vec![], vec![end(row)]));
    // The first mark stays.
    check(Some(noon()), |store, row| {
        assert_eq!(store.mark(&[mark(row, noon())]), Ok(vec![true]));
        (vec![mark(row, noon() + second)], vec![end(row)])
    });
    // A mark of another lease says nothing.
    check(Some(noon()), |_, row| {
        let other = Mark { fence: Fence(row.fence.0 + 1), ..mark(row, noon() + second) };
        (vec![other], vec![end(row)])
    });
}

#[test]
fn a_mark_is_noted_where_the_end_is_not() {
    let stale = check(Some(noon()), |_, row| {
        (vec![mark(row, noon())], vec![End { seen: Version(row.version.0 + 1), ..end(row) }])
    });
    assert!(matches!(stale, EndAnswer::Stale(_)), "{stale:?}");
    let refused = check(Some(noon()), |_, row| {
        (vec![mark(row, noon())], vec![End { by: EndBy::Unstarted, ..end(row) }])
    });
    assert_eq!(refused, EndAnswer::Refused, "what executes cannot be as if it had never been");
    let late =
        check(Some(noon()), |_, row| (vec![mark(row, noon())], vec![End { me: SessionId(2), ..end(row) }]));
    assert_eq!(late, EndAnswer::Late);
}

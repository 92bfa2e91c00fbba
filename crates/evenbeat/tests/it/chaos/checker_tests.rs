//! The checker itself: a good history is good, and each way to doctor one is found.

use std::collections::BTreeMap;

use crate::chaos::checker::findings;
use crate::chaos::history::{History, JobBook, Line, Record, Run, Stretch};

/// A job every second: a good run, a lost one with its retry, two occurrences on record, one run that was asked for.
fn good() -> History {
    let stretches = vec![Stretch { first: 10_000, every: 1_000, ended: None, is_removed: false }];
    let book =
        JobBook { stretches, pending: Some(15_000), asked: vec!["wish".to_owned()], ..JobBook::default() };
    let runs = vec![
        run(1, 10_000, "succeeded", 1),
        run(2, 11_000, "lost", 1),
        Run { trigger: "retry".to_owned(), ..run(3, 11_000, "succeeded", 2) },
        Run {
            asked: Some("wish".to_owned()),
            trigger: "manual".to_owned(),
            ..run(4, 12_345, "succeeded", 1)
        },
        run(5, 14_000, "failed", 1),
    ];
    let lines = vec![
        line(true, 1),
        line(false, 1),
        line(true, 2),
        line(true, 3),
        line(false, 3),
        line(true, 4),
        line(false, 4),
        line(true, 5),
    ];
    let records = vec![record(12_000, 13_000, 2)];
    let books = BTreeMap::from([("w".to_owned(), book)]);
    History { books, runs, records, lines, ..History::default() }
}

fn run(fence: u64, due: i64, status: &str, attempt: u64) -> Run {
    Run {
        id: format!("run{fence}"),
        job: "w".to_owned(),
        due,
        trigger: "scheduler".to_owned(),
        asked: None,
        attempt,
        fence,
        status: status.to_owned(),
        is_open: false,
        claimed: due + 5,
    }
}

fn line(is_start: bool, fence: u64) -> Line {
    let boot_nanos = fence * 10 + u64::from(!is_start);
    Line { job: "w".to_owned(), is_start, run: format!("run{fence}"), fence, boot_nanos }
}

fn record(first: i64, last: i64, count: i64) -> Record {
    Record { job: "w".to_owned(), first, last, count }
}

#[track_caller]
fn check(doctor: impl FnOnce(&mut History), expected: &[&str]) {
    let mut history = good();
    doctor(&mut history);
    assert_eq!(findings(&history), expected);
}

fn drop_line(history: &mut History, is_start: bool, fence: u64) {
    history.lines.retain(|line| (line.is_start, line.fence) != (is_start, fence));
}

fn book(history: &mut History) -> &mut JobBook {
    history.books.get_mut("w").unwrap()
}

#[test]
fn a_good_history_is_good() {
    check(|_| {}, &[]);
}

#[test]
fn two_at_once_are_found() {
    check(|it| it.conflicts.push("w: conflict".to_owned()), &["two at once: w: conflict"]);
}

#[test]
fn what_executed_is_on_record() {
    check(
        |it| it.lines.push(Line { run: "other".to_owned(), fence: 9, boot_nanos: 99, ..line(true, 9) }),
        &["w: run other executed and is not on record"],
    );
    check(|it| it.torn.push("w: \"sta\"".to_owned()), &["torn: w: \"sta\""]);
}

#[test]
fn what_is_on_record_as_good_executed() {
    let unproved = "w: run run3 is on record as good and did not execute to its end";
    check(|it| drop_line(it, false, 3), &[unproved]);
    let no_start = "w: the end of run run3 follows no start of it";
    check(|it| drop_line(it, true, 3), &[no_start, unproved]);
    // One that was lost need not have come to its end.
    check(|it| drop_line(it, true, 2), &[]);
}

#[test]
fn no_run_executes_twice() {
    check(
        |it| {
            it.lines.insert(2, Line { boot_nanos: 12, ..line(true, 1) });
            it.lines.insert(3, Line { boot_nanos: 13, ..line(false, 1) });
        },
        &["w: run run1 executed twice", "w: fence 1 came after fence 1"],
    );
}

#[test]
fn fences_grow_and_are_those_on_record() {
    check(
        |it| {
            for line in &mut it.lines {
                line.fence = if line.fence == 3 { 1 } else { line.fence };
            }
        },
        &[
            "w: run run3 executed under fence 1, not 3",
            "w: run run3 executed under fence 1, not 3",
            "w: fence 1 came after fence 2",
        ],
    );
    check(
        |it| it.runs[4].fence = 4,
        &["w: run run5 executed under fence 5, not 4", "w: fence 4 was given out twice"],
    );
}

#[test]
fn notes_are_in_order() {
    check(|it| it.lines[4].boot_nanos = 1, &["w: run run3 noted something before what came before it"]);
}

#[test]
fn every_occurrence_has_one_fate() {
    check(
        |it| it.records.clear(),
        &[
            "w: lost: what was due at 12000 has no run and no record",
            "w: lost: what was due at 13000 has no run and no record",
        ],
    );
    check(
        |it| it.records.push(record(14_000, 14_000, 1)),
        &["w: double: what was due at 14000 has more than one fate"],
    );
    check(
        |it| it.records.push(record(13_000, 13_000, 1)),
        &["w: double: what was due at 13000 has more than one fate"],
    );
    check(|it| it.records[0].count = 3, &["w: 3 on record from 12000 to 13000, where 2 were due"]);
    check(
        |it| it.runs[1].status = "succeeded".to_owned(),
        &[
            "w: run run2 is on record as good and did not execute to its end",
            "w: double: what was due at 11000 was served well twice",
        ],
    );
}

#[test]
fn what_came_due_during_a_run_that_was_asked_for_may_be_on_record_already() {
    check(|it| it.records.push(record(17_000, 17_000, 1)), &[]);
    check(
        |it| it.records.push(record(17_001, 17_001, 1)),
        &["w: 1 on record from 17001 to 17001, where 0 were due"],
    );
}

#[test]
fn nothing_is_served_that_was_not_due() {
    check(
        |it| it.runs[4].due = 13_999,
        &[
            "w: lost: what was due at 14000 has no run and no record",
            "w: a run served 13999, when nothing was due",
        ],
    );
    check(
        |it| it.runs[4].due = 16_000,
        &[
            "early: run run5 of w, due 16000",
            "w: lost: what was due at 14000 has no run and no record",
            "w: a run served 16000, when nothing was due",
        ],
    );
}

#[test]
fn nothing_is_stuck_or_early() {
    check(
        |it| (it.runs[4].is_open, it.runs[4].status) = (true, "running".to_owned()),
        &["stuck: run run5 of w is still running"],
    );
    check(|it| it.runs[0].claimed = 9_999, &["early: run run1 of w, due 10000"]);
}

#[test]
fn wishes_come_once_or_wait() {
    check(|it| book(it).asked.push("more".to_owned()), &["w: 1 wishes got no run, and 0 wait"]);
    check(|it| (book(it).asked.push("more".to_owned()), book(it).n_waiting = 1).1, &[]);
    check(
        |it| it.runs[4] = Run { asked: it.runs[3].asked.clone(), ..it.runs[4].clone() },
        &[
            "w: what was asked for as wish came twice",
            "w: lost: what was due at 14000 has no run and no record",
        ],
    );
}

#[test]
fn a_stretch_ends_where_another_begins() {
    let split = |between: (i64, i64)| {
        move |it: &mut History| {
            let second = Stretch { first: 14_000, every: 1_000, ended: None, is_removed: false };
            book(it).stretches[0].ended = Some(between);
            book(it).stretches.push(second);
        }
    };
    check(split((13_500, 13_600)), &[]);
    check(
        |it| {
            split((13_000, 13_000))(it);
            it.records[0] = record(12_000, 12_000, 1);
        },
        &[],
    );
    check(
        |it| {
            split((14_000, 14_000))(it);
            book(it).stretches[0].is_removed = true;
            it.records.clear();
            it.runs.pop();
            it.lines.pop();
            book(it).stretches[1].first = 15_000;
        },
        &[],
    );
    check(
        |it| {
            split((13_001, 13_002))(it);
            it.records[0] = record(12_000, 12_000, 1);
        },
        &["w: lost: what was due at 13000 has no run and no record"],
    );
}

#[test]
fn what_waited_for_a_run_that_was_asked_for_goes_with_its_job() {
    // The wish was claimed at 12,350; the job was removed at 16,500, and is there again.
    let removed = |records: Vec<Record>| {
        move |it: &mut History| {
            let second = Stretch { first: 20_000, every: 1_000, ended: None, is_removed: false };
            let first = &mut book(it).stretches[0];
            (first.ended, first.is_removed) = (Some((16_500, 16_500)), true);
            book(it).stretches.push(second);
            book(it).pending = Some(20_000);
            it.records = records;
            it.runs.pop();
            it.lines.pop();
        }
    };
    check(removed(vec![record(13_000, 15_000, 3)]), &[]);
    check(removed(vec![record(12_000, 12_000, 1), record(14_000, 15_000, 2)]), &[]);
    let lost = |point: i64| format!("w: lost: what was due at {point} has no run and no record");
    // One of two waited.
    check(removed(vec![record(14_000, 15_000, 2)]), &[&lost(13_000)]);
    // When the wish was claimed, the next one was due at 13,000.
    check(removed(vec![record(12_000, 13_000, 2), record(15_000, 15_000, 1)]), &[&lost(14_000)]);
    // What has a run after it did not wait.
    check(
        |it| {
            removed(vec![record(12_000, 12_000, 1), record(15_000, 15_000, 1)])(it);
            it.runs.push(run(5, 14_000, "failed", 1));
            it.lines.push(line(true, 5));
        },
        &[&lost(13_000)],
    );
    // Nobody had asked for anything.
    check(
        |it| {
            removed(vec![record(13_000, 15_000, 3)])(it);
            it.runs.retain(|run| run.asked.is_none());
            it.lines.retain(|line| line.fence != 4);
            book(it).asked.clear();
        },
        &[&lost(12_000)],
    );
}

#[test]
fn a_rhythm_that_begins_before_the_test_hears_of_it_is_not_mixed_with_the_one_before() {
    let late = |count: i64| {
        move |it: &mut History| {
            let second = Stretch { first: 13_300, every: 1_000, ended: None, is_removed: false };
            book(it).stretches[0].ended = Some((12_500, 14_600));
            book(it).stretches.push(second);
            book(it).pending = Some(16_300);
            it.records = vec![record(12_000, 12_000, 1), record(13_300, 14_300, count)];
            it.runs[4] = run(5, 15_300, "failed", 1);
        }
    };
    check(late(2), &[]);
    check(late(4), &["w: 4 on record from 13300 to 14300, where 3 were due"]);
    check(
        |it| {
            late(2)(it);
            it.records.push(record(14_300, 14_300, 1));
        },
        &["w: double: what was due at 14300 has more than one fate"],
    );
}

//! Small agendas, written out.

use std::sync::Arc;

use super::{Agenda, Source, at, build, is_dense, key, on_the_day, shown, window};
use crate::schedule::Rhythm;
use crate::time::{Duration, TimeWindow, Timestamp};

/// Jobs as `key: time time …`, in a window `[start, end)` of 2026-02-04.
#[track_caller]
fn check(jobs: &[&str], (start, end): (&str, &str), expected: &[&str]) {
    let jobs: Vec<_> = jobs
        .iter()
        .map(|line| {
            let (name, times) = line.split_once(": ").unwrap();
            let instants: Vec<Timestamp> = times.split(' ').map(on_the_day).collect();
            (key(name.trim_start_matches('~')), name.starts_with('~'), instants)
        })
        .collect();
    let sources: Vec<Source> = jobs
        .iter()
        .map(|(key, is_estimate, instants)| {
            let source = Source::from_occurrences(key, instants);
            if *is_estimate { source.estimated() } else { source }
        })
        .collect();
    let agenda = build(&sources, window(start, end));
    let found: Vec<String> = agenda.all().iter().map(shown).collect();
    assert_eq!(found, expected);
    assert_eq!(agenda.len(), expected.len());
    assert_eq!(agenda.is_empty(), expected.is_empty());
}

const HOUR: (&str, &str) = ("10:00:00", "11:00:00");
/// Few enough seconds to be dense with a handful of occurrences.
const THREE_SECONDS: (&str, &str) = ("10:00:00", "10:00:03");

#[test]
fn ties_are_broken_by_key_bytewise() {
    let jobs = ["b: 10:00:01", "a@x: 10:00:01", "a: 10:00:01", "B: 10:00:01", "a.b: 10:00:01"];
    let expected = ["10:00:01 B", "10:00:01 a", "10:00:01 a.b", "10:00:01 a@x", "10:00:01 b"];
    check(&jobs, HOUR, &expected);
    check(&jobs, THREE_SECONDS, &expected);
}

#[test]
fn the_instant_comes_before_the_key() {
    let jobs = ["a: 10:00:01.002 10:00:02", "b: 10:00:01.001 10:00:01.002", "c: 10:00:01"];
    let expected = ["10:00:01 c", "10:00:01.001 b", "10:00:01.002 a", "10:00:01.002 b", "10:00:02 a"];
    check(&jobs, HOUR, &expected);
    check(&jobs, THREE_SECONDS, &expected);
}

#[test]
fn input_may_be_unsorted_and_what_is_said_twice_counts_once() {
    let jobs = ["b: 10:00:02 10:00:01.5 10:00:02 10:00:00", "a: 10:00:02 10:00:02", "b: 10:00:00 10:00:01"];
    let expected = ["10:00:00 b", "10:00:01 b", "10:00:01.5 b", "10:00:02 a", "10:00:02 b"];
    check(&jobs, HOUR, &expected);
    check(&jobs, THREE_SECONDS, &expected);
}

#[test]
fn estimates_are_marked_job_by_job() {
    let jobs = ["~a: 10:00:01", "b: 10:00:01", "~c: 10:00:00 10:00:02"];
    check(&jobs, HOUR, &["10:00:00 ~c", "10:00:01 ~a", "10:00:01 b", "10:00:02 ~c"]);
    // Partly known and partly expected counts as expected.
    check(&["a: 10:00:01", "~a: 10:00:02"], HOUR, &["10:00:01 ~a", "10:00:02 ~a"]);
}

#[test]
fn the_start_of_the_window_is_inside_and_its_end_is_not() {
    let jobs = ["a: 09:59:59.999 10:00:00 10:00:00.499 10:00:00.5 10:00:02.499 10:00:02.5 10:00:03"];
    check(
        &jobs,
        THREE_SECONDS,
        &["10:00:00 a", "10:00:00.499 a", "10:00:00.5 a", "10:00:02.499 a", "10:00:02.5 a"],
    );
    check(&jobs, ("10:00:00.5", "10:00:02.5"), &["10:00:00.5 a", "10:00:02.499 a"]);
    check(&jobs, ("10:00:00.5", "10:00:00.501"), &["10:00:00.5 a"]);
}

#[test]
fn an_empty_or_reversed_window_gives_an_empty_agenda() {
    check(&["a: 10:00:00 10:00:01"], ("10:00:00", "10:00:00"), &[]);
    check(&["a: 10:00:00 10:00:01"], ("10:00:01", "10:00:00"), &[]);
    check(&["a: 10:00:00 10:00:01"], ("12:00:00", "13:00:00"), &[]);
    check(&[], HOUR, &[]);
    assert_eq!(Agenda::empty(window("10:00:00", "11:00:00")).peek(Timestamp::MIN), None);
}

/// What `between` and `peek` find, in a dense and in a sparse agenda of the same occurrences.
#[track_caller]
fn check_between(start: &str, end: &str, expected: &[&str]) {
    let key = key("a");
    let instants = ["10:00:00.5", "10:00:01", "10:00:01.25", "10:00:04"].map(on_the_day);
    let sources = [Source::from_occurrences(&key, &instants)];
    for (window_end, is_dense_here) in [("10:00:04.001", false), ("10:00:02", true)] {
        let agenda = build(&sources, window("10:00:00", window_end));
        assert_eq!(is_dense(&agenda), is_dense_here);
        let expected: Vec<&str> = expected.iter().copied().filter(|it| *it < window_end).collect();
        let slice = agenda.between(on_the_day(start), on_the_day(end));
        assert_eq!(slice.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(slice.len(), expected.len());
        assert_eq!(slice.iter().len(), expected.len());
        assert_eq!(slice.is_empty(), expected.is_empty());
        assert_eq!(slice.first().map(shown).as_deref(), expected.first().copied());
        assert_eq!(slice.last().map(shown).as_deref(), expected.last().copied());
    }
}

#[test]
fn a_question_is_half_open_and_clipped_to_the_window() {
    check_between("00:00:00", "23:00:00", &["10:00:00.5 a", "10:00:01 a", "10:00:01.25 a", "10:00:04 a"]);
    check_between("10:00:00", "10:00:01", &["10:00:00.5 a"]);
    check_between("10:00:00.5", "10:00:01.001", &["10:00:00.5 a", "10:00:01 a"]);
    check_between("10:00:00.501", "10:00:01.25", &["10:00:01 a"]);
    check_between("10:00:01", "10:00:01", &[]);
    check_between("10:00:02", "10:00:00", &[]);
    check_between("12:00:00", "13:00:00", &[]);
    check_between("08:00:00", "10:00:00", &[]);
}

#[test]
fn a_long_silence_is_passed_over() {
    let key = key("a");
    // A rush in the first second makes the day dense; then nothing until the last one.
    let mut instants: Vec<Timestamp> =
        (0..90_000).map(|n| at("2026-02-04T00:00:00Z") + Duration::from_millis(n % 1_000)).collect();
    let minutely: Vec<_> = (0..100).map(|n| format!("{n:03}").parse().unwrap()).collect();
    instants.push(on_the_day("23:59:59.999"));
    let mut sources = vec![Source::from_occurrences(&key, &instants)];
    sources.extend(minutely.iter().map(|key| Source::from_occurrences(key, &instants)));
    let agenda = build(&sources, TimeWindow::starting_at(on_the_day("00:00:00"), Duration::from_days(1)));
    assert!(is_dense(&agenda));
    assert_eq!(agenda.len(), 101 * 1_001);
    let last: Vec<String> =
        agenda.between(on_the_day("00:00:01"), Timestamp::MAX).iter().map(shown).collect();
    assert_eq!(last.len(), 101);
    assert_eq!(last.first().unwrap(), "23:59:59.999 000");
    for start in ["00:00:01", "00:00:02.5", "11:30:00", "23:59:58", "23:59:59.999"] {
        assert_eq!(agenda.peek(on_the_day(start)).map(shown).as_deref(), Some("23:59:59.999 000"));
    }
    assert_eq!(agenda.between(Timestamp::MIN, Timestamp::MAX).last().map(shown).unwrap(), "23:59:59.999 a");
}

#[test]
fn the_next_agenda_begins_where_this_one_ends() {
    let key = key("a");
    let rhythm = Rhythm::grid(on_the_day("10:00:00.25"), Duration::from_millis(1_500));
    let sources = [Source::from_rhythm(&key, rhythm)];
    let whole = build(&sources, window("10:00:00", "10:10:00"));
    let mut joined = Vec::new();
    for (start, end) in
        [("10:00:00", "10:03:01.75"), ("10:03:01.75", "10:03:01.751"), ("10:03:01.751", "10:10:00")]
    {
        joined.extend(build(&sources, window(start, end)).all().iter().map(shown));
    }
    assert_eq!(joined, whole.all().iter().map(shown).collect::<Vec<_>>());
    assert_eq!(joined.len(), 400);
}

#[test]
fn agendas_of_the_same_jobs_share_their_keys() {
    let (a, b) = (key("a"), key("b"));
    let daily = Rhythm::grid(on_the_day("10:00:00"), Duration::from_days(1));
    let sources = [Source::from_rhythm(&b, daily.clone()), Source::from_rhythm(&a, daily.clone())];
    let first = build(&sources, window("09:00:00", "11:00:00"));
    let second = first.rebuild(&sources, window("10:00:00", "12:00:00")).unwrap();
    assert!(Arc::ptr_eq(&first.roster, &second.roster));
    assert_eq!(second.all().iter().map(shown).collect::<Vec<_>>(), ["10:00:00 a", "10:00:00 b"]);

    let fewer = first.rebuild(&sources[..1], window("10:00:00", "12:00:00")).unwrap();
    assert_eq!(fewer.all().iter().map(shown).collect::<Vec<_>>(), ["10:00:00 b"]);
    let [source_b, source_a] = sources;
    let marked = first.rebuild(&[source_a.estimated(), source_b], window("10:00:00", "12:00:00")).unwrap();
    assert_eq!(marked.all().iter().map(shown).collect::<Vec<_>>(), ["10:00:00 ~a", "10:00:00 b"]);
}

#[test]
fn the_ends_of_the_calendar_are_ordinary() {
    let key = key("a");
    let edges = [
        Timestamp::MIN,
        Timestamp::MIN + Duration::from_millis(1),
        Timestamp::MAX - Duration::from_millis(1),
    ];
    let sources = [Source::from_occurrences(&key, &edges)];
    let first_day = TimeWindow::starting_at(Timestamp::MIN, Duration::from_days(1));
    let agenda = build(&sources, first_day);
    assert_eq!(agenda.all().iter().map(|it| it.at).collect::<Vec<_>>(), edges[..2]);
    assert_eq!(agenda.peek(Timestamp::MIN).map(|it| it.at), Some(Timestamp::MIN));
    let last_day = TimeWindow::new(Timestamp::MAX - Duration::from_days(1), Timestamp::MAX);
    let agenda = build(&sources, last_day);
    assert_eq!(agenda.all().iter().map(|it| it.at).collect::<Vec<_>>(), edges[2..]);
    assert_eq!(agenda.peek(Timestamp::MAX), None);
}

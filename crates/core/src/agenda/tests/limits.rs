//! How much fits, what is said when it does not, and what it costs.

use super::super::build::check_n_jobs;
use super::super::table::Word;
use super::{Agenda, Source, at, build, is_dense, key};
use crate::schedule::Rhythm;
use crate::time::{Duration, TimeWindow};

const START: &str = "2026-02-04T10:00:00.750Z";

/// `n_jobs` times an interval over a length: the number of occurrences, or the error.
#[track_caller]
fn check(n_jobs: usize, every: &str, length: &str, expected: &str) {
    let key = key("a");
    let rhythm = Rhythm::grid(at(START), every.parse().unwrap());
    let sources = vec![Source::from_rhythm(&key, rhythm); n_jobs];
    let window = TimeWindow::starting_at(at(START), length.parse().unwrap());
    let found = match Agenda::build(&sources, window) {
        Ok(agenda) => agenda.len().to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected);
}

#[test]
fn limits_are_refused_with_a_way_out() {
    check(1, "1h", "31d", "744");
    check(
        1,
        "1h",
        "31d1ms",
        "a window of 31d1ms is longer than the 31 days of an agenda (ask for a shorter window)",
    );
    check(
        1,
        "1ms",
        "31d",
        "2678400000 occurrences are more than the 64000000 of an agenda (ask for a shorter window)",
    );
    // The window is looked at before anything is counted in it.
    check(
        1,
        "1ms",
        "100d",
        "a window of 100d is longer than the 31 days of an agenda (ask for a shorter window)",
    );
    // No job alone has too many.
    check(
        8,
        "1ms",
        "8000001ms",
        "64000008 occurrences are more than the 64000000 of an agenda (ask for a shorter window)",
    );
}

#[test]
fn a_fleet_of_too_many_jobs_is_refused() {
    assert_eq!(check_n_jobs(4_194_304), Ok(()));
    assert_eq!(
        check_n_jobs(4_194_305).unwrap_err().to_string(),
        "4194305 jobs are more than the 4194304 of an agenda (ask for a part of the fleet)"
    );
}

#[test]
fn nothing_is_too_much_for_an_empty_window() {
    let key = key("a");
    let sources = vec![Source::from_rhythm(&key, Rhythm::grid(at(START), Duration::from_millis(1))); 9];
    let far = at(START) + Duration::from_days(400);
    assert!(build(&sources, TimeWindow::new(far, at(START))).is_empty());
    assert!(build(&sources, TimeWindow::new(far, far)).is_empty());
}

#[test]
fn the_most_jobs_still_have_numbers_of_their_own() {
    // The last job of the largest fleet, at the last millisecond of a second.
    let word = Word::new(999, (1 << 22) - 1);
    assert_eq!((word.millis(), word.job_idx()), (999, (1 << 22) - 1));
    assert!(Word::new(998, (1 << 22) - 1) < Word::new(999, 0));
}

/// Bytes of an agenda of one interval; expected are those of its occurrences alone.
#[track_caller]
fn check_bytes(every: &str, length: &str, expected: (usize, bool)) {
    let key = key("a");
    let rhythm = Rhythm::grid(at(START), every.parse().unwrap());
    let window = TimeWindow::starting_at(at(START), length.parse().unwrap());
    let agenda = build(&[Source::from_rhythm(&key, rhythm)], window);
    assert_eq!((agenda.bytes() - size_of::<Agenda>(), is_dense(&agenda)), expected);
    assert!(agenda.bytes() <= 8 * agenda.len() + size_of::<Agenda>(), "{} bytes", agenda.bytes());
}

#[test]
fn an_occurrence_takes_eight_bytes_or_less() {
    // Two occurrences a second in 61 seconds (the window begins and ends within one).
    check_bytes("500ms", "1m", (4 * 120 + 4 * 62, true));
    // One a second, and the window is one second wider than it has occurrences.
    check_bytes("1s", "1m", (8 * 60, false));
    // As many occurrences as seconds, and one more.
    check_bytes("999ms", "10m", (8 * 601, false));
    check_bytes("998ms", "10m", (4 * 602 + 4 * 602, true));
    check_bytes("1h", "31d", (8 * 744, false));
    check_bytes("10ms", "1h", (4 * 360_000 + 4 * 3_602, true));
    check_bytes("1w", "1d", (8, false));
    assert!(Agenda::empty(TimeWindow::starting_at(at(START), Duration::from_days(31))).bytes() <= 128);
}

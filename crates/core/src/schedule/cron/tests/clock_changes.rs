//! Gaps and folds, case by case.

use super::super::DstNote;
use super::{all_in, at, plan};
use crate::civil::{DAY_S, Date, day_of};
use crate::time::TimeWindow;
use crate::zone::Zone;

/// The occurrences of a window given in UTC, as local time with its offset, and what is noted.
#[track_caller]
fn check(zone: &str, text: &str, from: &str, to: &str, expected: &[&str]) {
    let zone = Zone::named(zone).unwrap();
    let plan = plan(text);
    let shown: Vec<String> = all_in(&plan, &zone, TimeWindow::new(at(from), at(to)))
        .into_iter()
        .map(|it| {
            let local = zone.local(it);
            let second = local.second_of_day;
            let note = match plan.dst_note(&zone, it) {
                Some(DstNote::MovedOutOfGap { skipped_local_s }) => {
                    let second = skipped_local_s.rem_euclid(DAY_S);
                    format!(" for {:02}:{:02}", second / 3600, second / 60 % 60)
                }
                Some(DstNote::FirstOfTwo) => " first".to_owned(),
                Some(DstNote::SecondOfTwo) => " second".to_owned(),
                None => String::new(),
            };
            let (day, hour, minute) = (local.date.day, second / 3600, second / 60 % 60);
            let (offset_h, offset_m) = (local.offset_s / 3600, local.offset_s / 60 % 60);
            format!("{day:02} {hour:02}:{minute:02}{offset_h:+03}:{:02}{note}", offset_m.abs())
        })
        .collect();
    assert_eq!(shown, expected, "{text}");
}

/// Around the spring change of 2026 in Berlin: 29 March, 02:00 to 03:00.
#[track_caller]
fn check_spring(text: &str, expected: &[&str]) {
    check("Europe/Berlin", text, "2026-03-28T23:00:00Z", "2026-03-29T04:00:00Z", expected);
}

/// Around the autumn change of 2026 in Berlin: 25 October, 03:00 to 02:00.
#[track_caller]
fn check_autumn(text: &str, expected: &[&str]) {
    check("Europe/Berlin", text, "2026-10-24T22:00:00Z", "2026-10-25T03:00:00Z", expected);
}

#[test]
fn a_wall_clock_time_in_a_gap_runs_once_right_after_it() {
    check_spring("30 2 * * *", &["29 03:00+02:00 for 02:30"]);
    check_spring("15,45 2 * * *", &["29 03:00+02:00 for 02:15"]);
    check_spring("0-59 2 * * *", &["29 03:00+02:00 for 02:00"]);
    check_spring("0 2,3 * * *", &["29 03:00+02:00 for 02:00"]);
    check_spring("30 1-3 * * *", &["29 01:30+01:00", "29 03:00+02:00 for 02:30", "29 03:30+02:00"]);
    check_spring("0 3 * * *", &["29 03:00+02:00"]);
    check_spring("59 1 * * *", &["29 01:59+01:00"]);
    check_spring("*/20 30 2 * * *", &["29 03:00+02:00 for 02:30"]);
    // Only the day that was skipped counts.
    check_spring("30 2 28 * *", &[]);
    check_spring("30 2 29 * *", &["29 03:00+02:00 for 02:30"]);
}

#[test]
fn elapsed_time_gets_nothing_extra_after_a_gap() {
    check_spring("*/30 2 * * *", &[]);
    check_spring("30 */2 * * *", &["29 00:30+01:00", "29 04:30+02:00"]);
    check_spring(
        "30 * * * *",
        &["29 00:30+01:00", "29 01:30+01:00", "29 03:30+02:00", "29 04:30+02:00", "29 05:30+02:00"],
    );
}

#[test]
fn a_wall_clock_time_in_a_fold_runs_the_first_time() {
    check_autumn("30 2 * * *", &["25 02:30+02:00 first"]);
    check_autumn("15,45 2 * * *", &["25 02:15+02:00 first", "25 02:45+02:00 first"]);
    check_autumn("0 2,3 * * *", &["25 02:00+02:00 first", "25 03:00+01:00"]);
    check_autumn("0 1-3 * * *", &["25 01:00+02:00", "25 02:00+02:00 first", "25 03:00+01:00"]);
}

#[test]
fn elapsed_time_runs_in_both_passes_of_a_fold_in_order() {
    check_autumn(
        "*/30 2 * * *",
        &["25 02:00+02:00 first", "25 02:30+02:00 first", "25 02:00+01:00 second", "25 02:30+01:00 second"],
    );
    check_autumn(
        "30 * * * *",
        &[
            "25 00:30+02:00",
            "25 01:30+02:00",
            "25 02:30+02:00 first",
            "25 02:30+01:00 second",
            "25 03:30+01:00",
        ],
    );
}

#[test]
fn a_day_that_never_was_runs_once_at_its_end() {
    let check_apia = |text, expected: &[&str]| {
        check("Pacific/Apia", text, "2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z", expected);
    };
    check_apia("30 2 * * *", &["29 02:30-10:00", "31 00:00+14:00 for 02:30", "31 02:30+14:00"]);
    check_apia("30 2,14 30 * *", &["31 00:00+14:00 for 02:30"]);
    check_apia("0 0 * * *", &["29 00:00-10:00", "31 00:00+14:00 for 00:00"]);
    check_apia("0 0 * * FRI", &["31 00:00+14:00 for 00:00"]);
    check_apia("0 */12 * * *", &["29 00:00-10:00", "29 12:00-10:00", "31 00:00+14:00", "31 12:00+14:00"]);
}

#[test]
fn gaps_at_midnight_of_half_an_hour_and_of_two_hours() {
    // Santiago skips from midnight to one on 6 September 2026.
    let santiago = |text, expected: &[&str]| {
        check("America/Santiago", text, "2026-09-06T00:00:00Z", "2026-09-06T12:00:00Z", expected);
    };
    santiago("0 0 * * *", &["06 01:00-03:00 for 00:00"]);
    santiago("30 0 6 * *", &["06 01:00-03:00 for 00:30"]);
    santiago("59 23 * * *", &["05 23:59-04:00"]);
    santiago("*/30 0 * * *", &[]);
    // Lord Howe skips from 02:00 to 02:30 on 4 October 2026, and repeats 01:30 to 02:00 on 5 April.
    let lord_howe = "Australia/Lord_Howe";
    let (from, to) = ("2026-10-03T14:00:00Z", "2026-10-03T18:00:00Z");
    check(lord_howe, "15 2 * * *", from, to, &["04 02:30+11:00 for 02:15"]);
    check(lord_howe, "30 2 * * *", from, to, &["04 02:30+11:00"]);
    check(lord_howe, "45 2 * * *", from, to, &["04 02:45+11:00"]);
    let (from, to) = ("2026-04-04T13:00:00Z", "2026-04-04T17:00:00Z");
    check(lord_howe, "45 1 * * *", from, to, &["05 01:45+11:00 first"]);
    check(
        lord_howe,
        "45 * * * *",
        from,
        to,
        &["05 00:45+11:00", "05 01:45+11:00 first", "05 01:45+10:30 second", "05 02:45+10:30"],
    );
    // Troll station jumps by two hours, Chatham lies 45 minutes past the hour.
    let (from, to) = ("2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z");
    check("Antarctica/Troll", "0,30 1-2 * * *", from, to, &["29 03:00+02:00 for 01:00"]);
    let (from, to) = ("2026-09-26T12:00:00Z", "2026-09-26T16:00:00Z");
    check("Pacific/Chatham", "0 3 * * *", from, to, &["27 03:45+13:45 for 03:00"]);
}

/// Windows and `next_after` that begin in the middle of things know what came before.
#[test]
fn a_window_may_begin_inside_of_a_fold_or_at_the_end_of_a_gap() {
    let berlin = Zone::named("Europe/Berlin").unwrap();
    let next = |text, after| plan(text).next_after(&berlin, at(after)).unwrap().to_string();
    assert_eq!(next("30 2 * * *", "2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
    assert_eq!(next("30 2 * * *", "2026-10-25T01:10:00Z"), "2026-10-26T01:30:00Z");
    assert_eq!(next("30 2 * * *", "2026-10-25T00:29:59.999Z"), "2026-10-25T00:30:00Z");
    assert_eq!(next("30 2 * * *", "2026-03-29T00:59:59.999Z"), "2026-03-29T01:00:00Z");
    assert_eq!(next("30 2 * * *", "2026-03-29T01:00:00Z"), "2026-03-30T00:30:00Z");
    check("Europe/Berlin", "30 2 * * *", "2026-10-25T01:00:00Z", "2026-10-25T23:00:00Z", &[]);
    check(
        "Europe/Berlin",
        "30 2 * * *",
        "2026-03-29T01:00:00Z",
        "2026-03-29T01:00:00.001Z",
        &["29 03:00+02:00 for 02:30"],
    );
    check("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00:00.001Z", "2026-03-29T23:00:00Z", &[]);
}

#[test]
fn notes_are_for_occurrences_near_a_change_only() {
    let berlin = Zone::named("Europe/Berlin").unwrap();
    let note = |text, instant| plan(text).dst_note(&berlin, at(instant));
    assert_eq!(note("30 2 * * *", "2026-07-01T00:30:00Z"), None);
    assert_eq!(note("30 2 * * *", "2026-10-25T01:30:00Z"), None, "the second pass is no occurrence");
    assert_eq!(note("30 * * * *", "2026-10-25T01:31:00Z"), None, "no occurrence at all");
    assert_eq!(note("30 * * * *", "2026-10-25T01:30:00.001Z"), None, "no occurrence at all");
    let skipped_local_s = day_of(Date { year: 2026, month: 3, day: 29 }) * DAY_S + 9_000;
    assert_eq!(note("30 2 * * *", "2026-03-29T01:00:00Z"), Some(DstNote::MovedOutOfGap { skipped_local_s }));
}

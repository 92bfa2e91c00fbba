//! What can be written, and which values it means.

use super::super::local::Month;
use super::super::times::Bits;
use super::super::{CronExpr, CronRule, CronText};
use super::{at, plan};
use crate::civil::{Date, day_of};
use crate::time::Duration;
use crate::zone::Zone;

fn listed(set: u64) -> String {
    Bits(set).map(|it| it.to_string()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check_minutes(field: &str, expected: &str) {
    assert_eq!(listed(plan(&format!("{field} 0 * * *")).minutes), expected);
    assert_eq!(listed(plan(&format!("{field} 0 0 * * *")).seconds), expected, "as seconds");
}

#[track_caller]
fn check_hours(field: &str, expected: &str) {
    assert_eq!(listed(plan(&format!("0 {field} * * *")).hours.into()), expected);
}

#[track_caller]
fn check_months(field: &str, expected: &str) {
    assert_eq!(listed(plan(&format!("0 0 1 {field} *")).months.into()), expected);
}

#[track_caller]
fn check_weekdays(field: &str, expected: &str) {
    assert_eq!(listed(plan(&format!("0 0 * * {field}")).weekdays.into()), expected);
}

/// The days of a month, given as `2026-02`, that the two day fields mean.
#[track_caller]
fn check_days(day_of_month: &str, day_of_week: &str, month: &str, expected: &str) {
    let (year, month) = month.split_once('-').unwrap();
    let date = Date { year: year.parse().unwrap(), month: month.parse().unwrap(), day: 1 };
    let plan = plan(&format!("0 0 {day_of_month} * {day_of_week}"));
    assert_eq!(listed(plan.days_in(&Month::of_day(day_of(date))).into()), expected);
}

#[test]
fn numbers_lists_ranges_and_steps() {
    check_minutes("0", "0");
    check_minutes("05", "5");
    check_minutes("59,0,30", "0 30 59");
    check_minutes("10-13", "10 11 12 13");
    check_minutes("7-7", "7");
    check_minutes("*/15", "0 15 30 45");
    check_minutes("*/60", "0");
    check_minutes("3-20/5", "3 8 13 18");
    check_minutes("50/4", "50 54 58");
    check_minutes("1-3,30/20,5", "1 2 3 5 30 50");
    check_minutes("*,5", &(0..60).map(|it| it.to_string()).collect::<Vec<_>>().join(" "));
}

#[test]
fn ranges_wrap_around_and_keep_counting() {
    check_hours("22-2", "0 1 2 22 23");
    check_hours("22-2/2", "0 2 22");
    check_hours("21-3/4", "1 21");
    check_minutes("58-1", "0 1 58 59");
    check_months("NOV-FEB", "1 2 11 12");
    check_months("11-2/2", "1 11");
    check_days("30-2", "*", "2026-01", "1 2 30 31");
    check_days("29-4/2", "*", "2026-01", "2 4 29 31");
}

#[test]
fn names_in_any_case() {
    check_months("jan,Feb,DEC", "1 2 12");
    check_months("MAR-5", "3 4 5");
    check_months("JAN-DEC/4", "1 5 9");
    check_weekdays("sun,Mon,SAT", "0 1 6");
    check_weekdays("MON-FRI", "1 2 3 4 5");
    check_weekdays("mon-fri/2", "1 3 5");
    check_weekdays("FRI-MON", "0 1 5 6");
    check_weekdays("FRI-SUN", "0 5 6");
}

#[test]
fn sunday_is_0_and_7() {
    check_weekdays("0", "0");
    check_weekdays("7", "0");
    check_weekdays("5-7", "0 5 6");
    check_weekdays("0-7", "0 1 2 3 4 5 6");
    check_weekdays("7-2", "0 1 2");
    check_weekdays("7-7", "0");
    check_weekdays("7-0", "0");
    check_weekdays("5-7/2", "0 5");
    check_weekdays("6-1", "0 1 6");
    check_weekdays("*/2", "0 2 4 6");
    // The field ends with 7, so that a step can end on Sunday.
    check_weekdays("1/2", "0 1 3 5");
    check_weekdays("SUN-7", "0 1 2 3 4 5 6");
}

#[test]
fn last_days_of_a_month() {
    check_days("L", "*", "2026-02", "28");
    check_days("l", "*", "2028-02", "29");
    check_days("L", "*", "2026-12", "31");
    check_days("L-3", "*", "2026-02", "25");
    check_days("L-30", "*", "2026-01", "1");
    check_days("L-30", "*", "2026-04", "");
    check_days("1,L-1,L", "*", "2026-04", "1 29 30");
    // 31 January 2026 is a Saturday, 31 May a Sunday, 30 June a Tuesday.
    check_days("LW", "*", "2026-01", "30");
    check_days("lw", "*", "2026-05", "29");
    check_days("LW", "*", "2026-06", "30");
}

#[test]
fn the_workday_nearest_to_a_day_stays_in_its_month() {
    // 15 August 2026 is a Saturday, 15 February a Sunday, 15 April a Wednesday.
    check_days("15W", "*", "2026-08", "14");
    check_days("15w", "*", "2026-02", "16");
    check_days("15W", "*", "2026-04", "15");
    // The 1st is a Saturday in August 2026 and a Sunday in February.
    check_days("1W", "*", "2026-08", "3");
    check_days("1W", "*", "2026-02", "2");
    // The 31st is a Sunday in May 2026 and a Saturday in January; April has none.
    check_days("31W", "*", "2026-05", "29");
    check_days("31W", "*", "2026-01", "30");
    check_days("31W", "*", "2026-04", "");
    check_days("1W,15W,20", "*", "2026-08", "3 14 20");
}

#[test]
fn weekdays_counted_within_a_month() {
    // February 2026 begins on a Sunday and has 28 days: each weekday four times.
    check_days("*", "5#3", "2026-02", "20");
    check_days("*", "FRI#1", "2026-02", "6");
    check_days("*", "SUN#5", "2026-02", "");
    check_days("*", "SUN#5", "2026-03", "29");
    check_days("*", "7#1,0#2", "2026-02", "1 8");
    check_days("*", "5L", "2026-02", "27");
    check_days("*", "fril", "2026-01", "30");
    check_days("*", "7L", "2026-05", "31");
    check_days("?", "MON#1,WEDL,6", "2026-02", "2 7 14 21 25 28");
}

#[test]
fn days_match_either_field_unless_one_begins_with_a_star() {
    // In February 2026 Saturdays are 7, 14, 21, 28 and Sundays 1, 8, 15, 22.
    check_days("13", "6", "2026-02", "7 13 14 21 28");
    check_days("*", "6", "2026-02", "7 14 21 28");
    check_days("13", "*", "2026-02", "13");
    check_days("*/2", "0,6", "2026-02", "1 7 15 21");
    check_days("1-31/2", "0,6", "2026-02", "1 3 5 7 8 9 11 13 14 15 17 19 21 22 23 25 27 28");
    check_days("1-7", "*/6", "2026-02", "1 7");
    check_days("?", "6", "2026-02", "7 14 21 28");
    check_days("13", "?", "2026-02", "13");
    check_days("1-31", "6", "2026-02", &(1..=28).map(|it| it.to_string()).collect::<Vec<_>>().join(" "));
    check_days("L", "FRI#2", "2026-02", "13 28");
}

#[test]
fn nicknames_stand_for_fields() {
    for (nickname, fields) in [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@Midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@MONTHLY", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" @annually ", "0 0 1 1 *"),
    ] {
        assert_eq!(plan(nickname), plan(fields), "{nickname}");
        assert_eq!(CronExpr::parse(nickname).unwrap().as_str(), nickname.trim());
    }
}

#[test]
fn wall_clock_means_that_minute_and_hour_begin_with_no_star() {
    for (text, expected) in [
        ("30 2 * * *", true),
        ("0,30 1-3 * * *", true),
        ("0-59 0-23 * * *", true),
        ("* 0 2 * * *", true),
        ("*/5 30 2 * * *", true),
        ("*/30 2 * * *", false),
        ("30 * * * *", false),
        ("30 */2 * * *", false),
        ("0 *,3 * * * *", false),
        ("@hourly", false),
        ("@daily", true),
    ] {
        assert_eq!(plan(text).is_wall_clock(), expected, "{text}");
    }
}

#[test]
fn a_text_may_name_its_zone_and_an_interval() {
    let text: CronText = "  CRON_TZ=Europe/Berlin  30 2 * * *".parse().unwrap();
    let zone = text.zone.unwrap();
    assert_eq!((zone.name.as_str(), zone.span), ("Europe/Berlin", 10..23));
    assert_eq!(text.rule, CronRule::Cron(CronExpr::parse("30 2 * * *").unwrap()));

    let text: CronText = "TZ=UTC @every 1h30m".parse().unwrap();
    let zone = text.zone.unwrap();
    assert_eq!((zone.name.as_str(), zone.span), ("UTC", 3..6));
    assert_eq!(text.rule, CronRule::Every(Duration::from_mins(90)));

    let text: CronText = "@EVERY 1 s".parse().unwrap();
    assert_eq!((text.zone, text.rule), (None, CronRule::Every(Duration::from_secs(1))));
}

#[test]
fn the_text_is_kept_with_single_spaces() {
    let expr = CronExpr::parse("\t0   6 *  * mon-FRI\n").unwrap();
    assert_eq!(expr.as_str(), "0 6 * * mon-FRI");
    assert_eq!(expr.to_string(), "0 6 * * mon-FRI");
    assert_eq!(expr.as_str().parse(), Ok(expr));
}

#[test]
fn what_never_happens_is_known_and_what_is_rare_is_found() {
    let next = |text: &str, after: &str| {
        plan(text).next_after(&Zone::utc(), at(after)).map_or("never".to_owned(), |it| it.to_string())
    };
    assert_eq!(next("0 0 30 2 *", "2026-01-01T00:00:00Z"), "never");
    assert_eq!(next("0 0 31 4,6,9,11 *", "2026-01-01T00:00:00Z"), "never");
    assert_eq!(next("0 0 L-30 2 *", "2026-01-01T00:00:00Z"), "never");
    assert_eq!(next("0 0 * 2 SUN#5", "2026-01-01T00:00:00Z"), "2032-02-29T00:00:00Z");
    assert_eq!(next("0 0 29 2 *", "2097-01-01T00:00:00Z"), "2104-02-29T00:00:00Z");
    // A leap day on one weekday can be 40 years away: 2088 and then 2128, for 2100 has none.
    assert_eq!(next("0 0 29 2 */7", "2088-03-01T00:00:00Z"), "2128-02-29T00:00:00Z");
    assert_eq!(next("* * * * *", "9999-12-29T23:59:00Z"), "9999-12-30T00:00:00Z");
    assert_eq!(next("* * * * *", "9999-12-30T00:00:00Z"), "never");
}

/// In Berlin the last Sunday of March has no hour from 2 to 3, by the rule in force.
#[test]
fn what_only_ever_falls_into_gaps_never_happens() {
    let berlin = Zone::named("Europe/Berlin").unwrap();
    assert_eq!(plan("* 2 * 3 SUNL").next_after(&berlin, at("2026-01-01T00:00:00Z")), None);
    let wall_clock = plan("0-59 2 * 3 SUNL").next_after(&berlin, at("2026-01-01T00:00:00Z"));
    assert_eq!(wall_clock, Some(at("2026-03-29T01:00:00Z")));
}

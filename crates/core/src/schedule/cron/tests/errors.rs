//! What cannot be written: the message, and the letters that it is about.

use super::super::{CronError, CronExpr, CronText};

/// `marked` is the text with the letters in question between angle brackets.
#[track_caller]
fn check(marked: &str, expected: &str) {
    check_as(|text| text.parse::<CronText>().map(|_| ()), marked, expected);
}

#[track_caller]
fn check_expr(marked: &str, expected: &str) {
    check_as(|text| CronExpr::parse(text).map(|_| ()), marked, expected);
}

#[track_caller]
fn check_as(parse: impl Fn(&str) -> Result<(), CronError>, marked: &str, expected: &str) {
    let start = marked.find('<').unwrap();
    let end = marked.find('>').unwrap() - 1;
    let text = marked.replace(['<', '>'], "");
    let error = parse(&text).expect_err(&text);
    assert_eq!(error.to_string(), expected, "for {text:?}");
    assert_eq!(error.span(), start..end, "for {text:?}");
}

#[test]
fn the_number_of_fields() {
    let empty = "the cron expression is empty (write five fields such as `0 6 * * *`, or `@daily`)";
    check("<>", empty);
    check("TZ=UTC<>", empty);
    let count = |n: usize| {
        format!(
            "a cron expression has five fields (minute, hour, day of month, month, day of week) or six (seconds first), not {n}"
        )
    };
    check(" <* * * *> ", &count(4));
    check("<hourly>", &count(1));
    check("<0 0 0 * * * * *>", &count(8));
    check("CRON_TZ=UTC <* * *>", &count(3));
    check(
        "0 0 0 * * * <2030>",
        "a year field is not supported (leave it out and limit the job with `starts_at` and `ends_at`)",
    );
    let long = format!("<{} * * * *>", "1,".repeat(125));
    check(&long, "a cron expression of 258 bytes is longer than the 256 allowed (split it into two jobs)");
}

#[test]
fn lists() {
    let message =
        |field: &str| format!("the {field} field has nothing on one side of a comma (remove the comma)");
    check("1,<,>2 * * * *", &message("minute"));
    check("<,>1 * * * *", &message("minute"));
    check("0 1<,> * * *", &message("hour"));
    check("0 0 * * <,>", &message("day-of-week"));
}

#[test]
fn numbers_and_names() {
    check("<60> * * * *", "`60` is out of range for the minute field (0 to 59)");
    check("0 <24> * * *", "`24` is out of range for the hour field (0 to 23; midnight is 0)");
    check("0 0 <0> * *", "`0` is out of range for the day-of-month field (1 to 31)");
    check("0 0 1-<32> * *", "`32` is out of range for the day-of-month field (1 to 31)");
    check("0 0 * <13> *", "`13` is out of range for the month field (1 to 12)");
    check("0 0 * * <8>", "`8` is out of range for the day-of-week field (0 to 7)");
    check("0 0 * * 1,<999999999999>", "`999999999999` is out of range for the day-of-week field (0 to 7)");
    check("<60> 0 0 * * *", "`60` is out of range for the second field (0 to 59)");
    check("0 0 <32>W * *", "`32` is out of range for the day-of-month field (1 to 31)");
    check("0 0 * <JAM> *", "`JAM` is not a month (did you mean `JAN`?)");
    check("0 0 * <January> *", "`January` is not a month (did you mean `JAN`?)");
    check("0 0 * * mon-<fryday>", "`fryday` is not a day-of-week (write `SUN` to `SAT` or 0 to 7)");
    check("0 0 * * <Thursday>", "`Thursday` is not a day-of-week (did you mean `THU`?)");
    let malformed = |text: &str, field: &str, last: u8| {
        format!(
            "`{text}` is not valid in the {field} field (write a number from 0 to {last}, a range `a-b`, a step `*/n` or a list of them)"
        )
    };
    check("<x> * * * *", &malformed("x", "minute", 59));
    check("<MON> * * * *", &malformed("MON", "minute", 59));
    check("0 <1.5> * * *", &malformed("1.5", "hour", 23));
    check("0 1-<2-3> * * *", &malformed("2-3", "hour", 23));
    check("<**> * * * *", &malformed("**", "minute", 59));
    check("0 <*>-5 * * *", &malformed("*", "hour", 23));
    check("<é> * * * *", &malformed("é", "minute", 59));
    check("0 <+1> * * *", &malformed("+1", "hour", 23));
}

#[test]
fn ranges_and_steps() {
    check("<5-> * * * *", "range `5-` in the minute field lacks an end (write both, as in `0-59`)");
    check("0 <-5> * * *", "range `-5` in the hour field lacks an end (write both, as in `0-23`)");
    check("</15> * * * *", "step `/15` in the minute field has no range (write `*/15`)");
    let not_number = |text: &str| {
        format!("step `{text}` in the minute field is not a number (write `*/2` for every second value)")
    };
    check("<*/> * * * *", &not_number("*/"));
    check("<*/x> * * * *", &not_number("*/x"));
    check("<*/2/3> * * * *", &not_number("*/2/3"));
    check(
        "*/<0> * * * *",
        "a step of 0 in the minute field never moves on (write `*/1` or `*` for every value)",
    );
    check(
        "0 1-5/<00> * * *",
        "a step of 0 in the hour field never moves on (write `*/1` or `*` for every value)",
    );
    check(
        "*/<90> * * * *",
        "step `90` is larger than the minute field, which has 60 values (for an interval of any length, write `@every 90m`)",
    );
    check(
        "0 0 * * */<8>",
        "step `8` is larger than the day-of-week field, which has 7 values (for an interval of any length, write `@every 90m`)",
    );
    check(
        "*/<99999999999> * * * *",
        "step `99999999999` is larger than the minute field, which has 60 values (for an interval of any length, write `@every 90m`)",
    );
}

#[test]
fn question_marks() {
    check("<?> * * * *", "`?` stands for any day and cannot be used in the minute field (write `*`)");
    check("0 0 1 <?> *", "`?` stands for any day and cannot be used in the month field (write `*`)");
    check(
        "0 0 <?/2> * *",
        "`?` must be the whole day-of-month field, not a part of `?/2` (write `*` instead)",
    );
    check(
        "0 0 * * <1,?>",
        "`?` must be the whole day-of-week field, not a part of `1,?` (write `*` instead)",
    );
}

#[test]
fn last_days_workdays_and_counted_weekdays() {
    check(
        "0 0 * * 1,<L>",
        "`L` alone is unclear in the day-of-week field (write `5L` or `FRIL` for the last Friday of the month, `6` for Saturday)",
    );
    let last = |text: &str, field: &str| {
        format!(
            "`{text}` cannot be used here in the {field} field (the last day of the month is `L` in the day-of-month field, the last Friday `FRIL` in the day-of-week field, both without range or step)"
        )
    };
    check("<L> * * * *", &last("L", "minute"));
    check("0 0 <5L> * *", &last("5L", "day-of-month"));
    check("0 0 * * <L5>", &last("L5", "day-of-week"));
    check("0 0 * * <5L>/2", &last("5L", "day-of-week"));
    for offset in ["L-0", "L-31", "L-", "L-x", "L-3W"] {
        check(
            &format!("0 0 <{offset}> * *"),
            &format!("`{offset}` is not a day before the end of the month (write `L-1` to `L-30`)"),
        );
    }
    let workday = |text: &str, field: &str| {
        format!(
            "`{text}` cannot be used in the {field} field (`W` follows one day of the month: write `15W` or `LW` in the day-of-month field)"
        )
    };
    check("0 0 <1-15W> * *", &workday("1-15W", "day-of-month"));
    check("0 0 <W> * *", &workday("W", "day-of-month"));
    check("0 <15W> * * *", &workday("15W", "hour"));
    check("0 0 * * <5W>", &workday("5W", "day-of-week"));
    let nth = |text: &str| {
        format!(
            "`{text}` counts a weekday that no month has (write `FRI#1` to `FRI#5`, or `FRIL` for the last)"
        )
    };
    for text in ["5#0", "5#6", "FRI#", "5#x", "5#1/2"] {
        check(&format!("0 0 * * <{text}>"), &nth(text));
    }
    check("0 0 * * <9>#1", "`9` is out of range for the day-of-week field (0 to 7)");
    check("0 0 * * <9>L", "`9` is out of range for the day-of-week field (0 to 7)");
    check(
        "0 0 <5#3> * *",
        "`5#3` cannot be used in the day-of-month field (the third Friday is `FRI#3` in the day-of-week field)",
    );
}

#[test]
fn hashed_terms() {
    for text in ["H5", "H-5", "H(", "H(5)", "H(0-29", "H(0-29)5", "H()"] {
        check(
            &format!("<{text}> * * * *"),
            &format!("`{text}` is not a form of `H` (write `H`, `H/15`, `H(0-29)` or `H(0-29)/10`)"),
        );
    }
    check(
        "0 <H(22-2)> * * *",
        "the range of `H(22-2)` runs backwards; with `H` it cannot wrap around (write the smaller end first)",
    );
    check("H(0-<60>) * * * *", "`60` is out of range for the minute field (0 to 59)");
    check(
        "H/<0> * * * *",
        "a step of 0 in the minute field never moves on (write `*/1` or `*` for every value)",
    );
    check(
        "0 H/<25> * * *",
        "step `25` is larger than the hour field, which has 24 values (for an interval of any length, write `@every 90m`)",
    );
    check(
        "H,H,H,H,H H,H,H,<H> * * *",
        "a cron expression has more than 8 `H` (write fixed values for some of them)",
    );
}

#[test]
fn nicknames_and_intervals() {
    check("<@dialy>", "`@dialy` is not a nickname (did you mean `@daily`?)");
    check(
        "<@whenever>",
        "`@whenever` is not a nickname (there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and `@every 15m`)",
    );
    check("@daily <5> 3", "`5` after `@daily` has no meaning (a nickname stands alone)");
    check("<@reboot>", "`@reboot` is not supported (for a single run right away, write `at = \"now\"`)");
    check("<@every>", "`@every` needs a duration: the duration is empty (write `15m`, `2h` or `1d`)");
    check(
        "TZ=UTC @every <15>",
        "`@every` needs a duration: duration `15` has no unit (write `15s`, `15m` or `15h`)",
    );
    check("@every <500ms>", "`@every 500ms` is shorter than the minimum of 1s");
    check_expr(
        " <@every 15m>",
        "`@every` is an interval, not a cron expression (write it as `every = \"15m\"`)",
    );
}

#[test]
fn zones() {
    check("<CRON_TZ=> * * * * *", "`CRON_TZ=` has no zone (write `CRON_TZ=Europe/Berlin`)");
    check("<TZ=> * * * * *", "`TZ=` has no zone (write `CRON_TZ=Europe/Berlin`)");
    check_expr(
        "<TZ=Europe/Berlin> 0 0 * * *",
        "`TZ=Europe/Berlin` is not part of a cron expression (write the zone as `tz = \"Europe/Berlin\"`)",
    );
}

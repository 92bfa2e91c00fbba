//! Agendas of cron jobs in UTC, against another implementation of cron.

use std::collections::BTreeSet;

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{Source, build};
use crate::ids::JobKey;
use crate::schedule::Rhythm;
use crate::schedule::cron::CronExpr;
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::Zone;

/// A field without what the two read differently: no ranges that wrap around.
fn field(first: u32, last: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => (first..=last).prop_map(|it| it.to_string()),
        1 => (2..=(last - first) / 2 + 1).prop_map(|step| format!("*/{step}")),
        1 => (first..=last, first..=last).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (first..=last, first..=last).prop_map(|(a, b)| if a == b { a.to_string() } else { format!("{a},{b}") }),
    ]
}

/// Nor `*/n` in the fields of days, where it decides between "and" and "or".
fn day_field(first: u32, last: u32) -> impl Strategy<Value = String> {
    field(first, last).prop_map(|it| if it.starts_with("*/") { "*".to_owned() } else { it })
}

fn expression() -> impl Strategy<Value = String> {
    (field(0, 59), field(0, 23), day_field(1, 28), field(1, 12), day_field(0, 6))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

fn by_croner(text: &str, window: TimeWindow) -> Vec<Timestamp> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let before = (window.start() - Duration::from_millis(1)).to_jiff().to_zoned(TimeZone::UTC);
    parser
        .parse(text)
        .unwrap()
        .iter_after(before)
        .map(|it| Timestamp::from_second(it.timestamp().as_second()))
        .take_while(|it| *it < window.end())
        .collect()
}

proptest! {
    // Twenty cases of about twenty expressions each.
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn in_utc_croner_has_the_same_agenda(
        texts in prop::collection::btree_set(expression(), 15..25),
        // 2020 to 2040.
        start_s in 1_577_836_800_i64..2_208_988_800,
        n_hours in 1..60_i64,
    ) {
        let window = TimeWindow::starting_at(Timestamp::from_second(start_s), Duration::from_hours(n_hours));
        let zone = Zone::utc();
        let keys: Vec<JobKey> = (0..texts.len()).map(|n| format!("job{n}").parse().unwrap()).collect();
        let rhythms = texts.iter().map(|text| Rhythm::cron(CronExpr::parse(text).unwrap().plan().unwrap(), &zone));
        let sources: Vec<Source> =
            keys.iter().zip(rhythms).map(|(key, rhythm)| Source::from_rhythm(key, rhythm)).collect();
        let agenda = build(&sources, window);
        let theirs: BTreeSet<(Timestamp, &JobKey)> = keys
            .iter()
            .zip(&texts)
            .flat_map(|(key, text)| by_croner(text, window).into_iter().map(move |at| (at, key)))
            .collect();
        let ours: Vec<(Timestamp, &JobKey)> = agenda.all().iter().map(|it| (it.at, it.job)).collect();
        prop_assert_eq!(ours, Vec::from_iter(theirs), "{:?}", texts);
    }
}

//! In UTC, against two other implementations, wherever their rules are ours ([`Dialect`] says where
//! they are not).

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::plan;
use super::spec::{Dialect, any_spec};
use crate::time::{Duration, Timestamp};
use crate::zone::Zone;

const N_COMPARED: usize = 12;
/// The peers give up after some years; ours must then find nothing nearby either.
const HORIZON: Duration = Duration::from_days(8 * 365);

fn ours(text: &str, after: Timestamp) -> Vec<Timestamp> {
    let plan = plan(text);
    std::iter::successors(Some(after), |it| plan.next_after(&Zone::utc(), *it))
        .skip(1)
        .take_while(|it| *it < after + HORIZON)
        .take(N_COMPARED)
        .collect()
}

fn of_jiff(at: jiff::Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second())
}

fn any_instant() -> impl Strategy<Value = Timestamp> {
    // 2000 to 2100.
    (946_684_800_i64..4_102_444_800).prop_map(Timestamp::from_second)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn croner_agrees(spec in any_spec(Dialect::Croner), after in any_instant()) {
        let text = spec.to_string();
        let found = ours(&text, after);
        let parser = CronParser::builder()
            .seconds(Seconds::Optional)
            .year(Year::Disallowed)
            .sloppy_ranges(true)
            .build();
        let start = after.to_jiff().to_zoned(TimeZone::UTC);
        let theirs: Vec<Timestamp> = parser
            .parse(&text)
            .unwrap()
            .iter_after(start)
            .map(|it| of_jiff(it.timestamp()))
            .take_while(|it| *it < after + HORIZON)
            .take(N_COMPARED)
            .collect();
        prop_assert_eq!(found, theirs, "`{}`", text);
    }

    #[test]
    fn cronexpr_agrees(spec in any_spec(Dialect::Cronexpr), after in any_instant()) {
        let text = spec.to_string();
        let found = ours(&text, after);
        let theirs: Vec<Timestamp> = cronexpr::parse_crontab(&format!("{text} UTC"))
            .unwrap()
            .iter_after(after.to_jiff())
            .unwrap()
            .map_while(Result::ok)
            .map(|it| of_jiff(it.timestamp()))
            .take_while(|it| *it < after + HORIZON)
            .take(N_COMPARED)
            .collect();
        // It gives up earlier than we do, and then what it found is where ours begins.
        prop_assert!(found.starts_with(&theirs), "`{}`: {:?} and {:?}", text, found, theirs);
        let gave_up_after = theirs.last().copied().unwrap_or(after) + Duration::from_days(4 * 365);
        let is_complete = theirs.len() == found.len() || found.iter().all(|it| {
            theirs.contains(it) || gave_up_after < *it
        });
        prop_assert!(is_complete, "`{}`: {:?} and {:?}", text, found, theirs);
    }
}

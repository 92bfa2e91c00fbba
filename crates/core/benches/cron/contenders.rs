//! The three that are measured, behind one interface that costs none of them anything.

use std::hint::black_box;

use croner::{Cron, Direction};
use cronexpr::{Crontab, MakeTimestamp};
use evenbeat_core::schedule::cron::{CronExpr, CronPlan};
use evenbeat_core::time::{TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;
use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// What can read, ask and expand expressions. Zones and instants are prepared beforehand, in the
/// form that the contender likes best.
pub(crate) trait Contender: Sized {
    type Zone;
    type Instant;

    fn zone(name: &str) -> Self::Zone;
    fn instant(zone: &Self::Zone, second: i64) -> Self::Instant;
    /// The expression as this contender has it written, in the zone of this name.
    fn text(expression: &str, zone_name: &str) -> String;
    fn parse(text: &str) -> Self;
    /// The first occurrence after an instant, if there is one.
    fn next_after(&self, zone: &Self::Zone, after: &Self::Instant) -> Option<i64>;
    /// How many occurrences lie in a half-open window, each of them produced.
    fn expand(&self, zone: &Self::Zone, start_s: i64, end_s: i64) -> u64;
}

pub(crate) struct Ours(CronPlan);

impl Contender for Ours {
    type Zone = Zone;
    type Instant = Timestamp;

    fn zone(name: &str) -> Zone {
        Zone::named(name).expect("a zone of the bundled database")
    }

    fn instant(_: &Zone, second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    fn text(expression: &str, _: &str) -> String {
        expression.to_owned()
    }

    fn parse(text: &str) -> Ours {
        Ours(CronExpr::parse(text).ok().and_then(|expr| expr.plan()).expect("an expression with fields"))
    }

    fn next_after(&self, zone: &Zone, after: &Timestamp) -> Option<i64> {
        self.0.next_after(zone, *after).map(Timestamp::as_second)
    }

    fn expand(&self, zone: &Zone, start_s: i64, end_s: i64) -> u64 {
        let window = TimeWindow::new(Timestamp::from_second(start_s), Timestamp::from_second(end_s));
        let mut n_occurrences = 0;
        self.0.for_each_in(zone, window, |at| {
            black_box(at);
            n_occurrences += 1;
        });
        n_occurrences
    }
}

pub(crate) struct Croner(Cron);

impl Contender for Croner {
    type Zone = TimeZone;
    type Instant = Zoned;

    fn zone(name: &str) -> TimeZone {
        TimeZoneDatabase::bundled().get(name).expect("a zone of the bundled database")
    }

    fn instant(zone: &TimeZone, second: i64) -> Zoned {
        jiff::Timestamp::from_second(second).expect("an instant of this century").to_zoned(zone.clone())
    }

    fn text(expression: &str, _: &str) -> String {
        expression.to_owned()
    }

    fn parse(text: &str) -> Croner {
        Croner(text.parse().expect("an expression that all three accept"))
    }

    fn next_after(&self, _: &TimeZone, after: &Zoned) -> Option<i64> {
        let inclusive = false;
        self.0.find_next_occurrence(after, inclusive).ok().map(|at| at.timestamp().as_second())
    }

    fn expand(&self, zone: &TimeZone, start_s: i64, end_s: i64) -> u64 {
        count_until(
            end_s,
            self.0
                .iter_from(Self::instant(zone, start_s), Direction::Forward)
                .map(|at| at.timestamp().as_second()),
        )
    }
}

pub(crate) struct Cronexpr(Crontab);

impl Contender for Cronexpr {
    /// Its zone is part of the expression.
    type Zone = ();
    type Instant = MakeTimestamp;

    fn zone(_: &str) {}

    fn instant((): &(), second: i64) -> MakeTimestamp {
        MakeTimestamp::from_second(second).expect("an instant of this century")
    }

    fn text(expression: &str, zone_name: &str) -> String {
        format!("{expression} {zone_name}")
    }

    fn parse(text: &str) -> Cronexpr {
        Cronexpr(cronexpr::parse_crontab(text).expect("an expression that all three accept"))
    }

    fn next_after(&self, (): &(), after: &MakeTimestamp) -> Option<i64> {
        self.0.find_next(*after).ok().map(|at| at.timestamp().as_second())
    }

    fn expand(&self, zone: &(), start_s: i64, end_s: i64) -> u64 {
        // It iterates over what is strictly later.
        let Ok(occurrences) = self.0.iter_after(Self::instant(zone, start_s - 1)) else { return 0 };
        count_until(end_s, occurrences.map_while(Result::ok).map(|at| at.timestamp().as_second()))
    }
}

fn count_until(end_s: i64, occurrences: impl Iterator<Item = i64>) -> u64 {
    let mut n_occurrences = 0;
    for second in occurrences.take_while(|second| *second < end_s) {
        black_box(second);
        n_occurrences += 1;
    }
    n_occurrences
}

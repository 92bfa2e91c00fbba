//! Blackouts for tests, in a line: `22:00-06:00 mon tue; 12:00-13:00`.

use super::{BlackoutPeriod, Blackouts, Weekdays};

pub(super) fn blackouts(written: &str) -> Blackouts {
    Blackouts::new(periods(written)).unwrap()
}

pub(super) fn periods(written: &str) -> Vec<BlackoutPeriod> {
    written.split(';').filter(|text| !text.is_empty()).map(period).collect()
}

fn period(text: &str) -> BlackoutPeriod {
    let mut words = text.split_whitespace();
    let (start, end) = words.next().unwrap().split_once('-').unwrap();
    let days: Vec<&str> = words.collect();
    let days = if days.is_empty() { Weekdays::ALL } else { Weekdays::from_names(&days).unwrap() };
    BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), days).unwrap()
}

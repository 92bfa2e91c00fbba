//! Made-up fleets, and what a patient person would say about them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Source, at};
use crate::ids::JobKey;
use crate::schedule::Rhythm;
use crate::schedule::cron::CronExpr;
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::Zone;

/// Instants around which windows lie: on the days of clock changes, and before the epoch.
const AROUND: [&str; 6] = [
    "2026-03-29T01:00:00Z",
    "2026-10-25T01:00:00Z",
    "2026-03-08T07:00:00Z",
    "2026-04-04T15:00:00Z",
    "2026-02-04T10:00:00Z",
    "1969-12-31T23:59:59Z",
];
const ZONES: [&str; 5] =
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham", "UTC"];
const CRONS: [&str; 9] = [
    "*/5 * * * *",
    "30 2 * * *",
    "0,15,30 1-3 * * *",
    "* * * * *",
    "*/7 * * * * *",
    "0 0 * * *",
    "10 */2 * * 6,0",
    "30 1 * * *",
    "59 23 L * *",
];
/// Prefixes of each other, upper case, and signs that sort before and after letters.
const KEYS: [&str; 12] = ["a", "a.b", "a@x", "a@x.y", "aa", "B", "b", "b-1", "b_1", "b:1", "0", "b1"];
/// No job has more occurrences than this in its window.
const N_EACH_MAX: i64 = 1_500;

#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) jobs: Vec<MadeUpFleet>,
    pub(super) window: TimeWindow,
}

#[derive(Clone, Debug)]
pub(super) struct MadeUpFleet {
    key: JobKey,
    when: MadeUpWhen,
    bounds: Option<(Timestamp, Timestamp)>,
    is_estimate: bool,
}

#[derive(Clone, Debug)]
enum MadeUpWhen {
    Every { anchor_at: Timestamp, interval: Duration },
    Cron { text: &'static str, zone: Zone },
    Once(Timestamp),
    Instants(Vec<Timestamp>),
}

impl MadeUpFleet {
    fn rhythm(&self) -> Option<Rhythm<'_>> {
        let rhythm = match &self.when {
            MadeUpWhen::Every { anchor_at, interval } => Rhythm::grid(*anchor_at, *interval),
            MadeUpWhen::Cron { text, zone } => {
                Rhythm::cron(CronExpr::parse(text).unwrap().plan().unwrap(), zone)
            }
            MadeUpWhen::Once(at) => Rhythm::single(*at),
            MadeUpWhen::Instants(_) => return None,
        };
        Some(match self.bounds {
            Some((start, end)) => rhythm.starting_at(start).ending_at(Some(end)),
            None => rhythm,
        })
    }

    fn source(&self) -> Source<'_> {
        let source = match (&self.when, self.rhythm()) {
            (MadeUpWhen::Instants(instants), _) => Source::from_occurrences(&self.key, instants),
            (_, Some(rhythm)) => Source::from_rhythm(&self.key, rhythm),
            (_, None) => panic!("{self:?} has no instants"),
        };
        if self.is_estimate { source.estimated() } else { source }
    }

    /// One question after the other, from the start of the window on.
    fn asked_one_by_one(&self, window: TimeWindow) -> Vec<Timestamp> {
        let Some(rhythm) = self.rhythm() else {
            let MadeUpWhen::Instants(instants) = &self.when else { return Vec::new() };
            return instants.iter().copied().filter(|at| window.contains(*at)).collect();
        };
        let before = window.start() - Duration::from_millis(1);
        std::iter::successors(rhythm.next_after(before), |at| rhythm.next_after(*at))
            .take_while(|at| *at < window.end())
            .collect()
    }
}

/// An instant, a job, and whether it is an estimate.
pub(super) type Expected<'a> = (Timestamp, &'a str, bool);

impl Fleet {
    pub(super) fn sources(&self) -> Vec<Source<'_>> {
        self.jobs.iter().map(MadeUpFleet::source).collect()
    }

    /// Everything, by asking each job and sorting what it says.
    pub(super) fn occurrences(&self) -> Vec<Expected<'_>> {
        let is_estimate = |key: &JobKey| self.jobs.iter().any(|it| it.key == *key && it.is_estimate);
        let of_job = |job: &'_ MadeUpFleet| job.asked_one_by_one(self.window);
        let mut all: Vec<Expected> = self
            .jobs
            .iter()
            .flat_map(|job| of_job(job).into_iter().map(|at| (at, job.key.as_str(), is_estimate(&job.key))))
            .collect();
        all.sort_by(|one, other| (one.0, one.1.as_bytes()).cmp(&(other.0, other.1.as_bytes())));
        all.dedup();
        all
    }
}

pub(super) fn any_fleet() -> impl Strategy<Value = Fleet> {
    any_window().prop_flat_map(|window| {
        let jobs = prop_oneof![1 => vec(any_job(window), 0..4), 3 => vec(any_job(window), 4..20)];
        jobs.prop_map(move |jobs| Fleet { jobs, window })
    })
}

fn any_window() -> impl Strategy<Value = TimeWindow> {
    let length_ms = prop_oneof![
        1 => 0..2_000_i64,
        3 => 1_000..600_000_i64,
        3 => 600_000..7_200_000_i64,
        2 => 7_200_000..300_000_000_i64,
    ];
    (prop::sample::select(AROUND.as_slice()), 0..1_000_i64, length_ms).prop_map(
        |(around, share, length_ms)| {
            // So that what happens there lies anywhere in the window.
            let before = Duration::from_millis(length_ms * share / 1_000);
            TimeWindow::starting_at(at(around) - before, Duration::from_millis(length_ms))
        },
    )
}

fn any_job(window: TimeWindow) -> impl Strategy<Value = MadeUpFleet> {
    let length_ms = window.length().as_millis();
    let interval_ms_min = length_ms / N_EACH_MAX + 1;
    let interval = prop_oneof![
        3 => (1..2_000_i64).prop_map(move |n| (interval_ms_min / 1_000 + n) * 1_000),
        1 => Just((interval_ms_min / 1_000 + 1) * 1_000),
        2 => interval_ms_min..interval_ms_min + 5_000,
    ];
    let near = (-1_000_i64..length_ms + 1_000)
        .prop_map(move |offset_ms| window.start() + Duration::from_millis(offset_ms));
    let anchor = (-100_000_000_i64..length_ms.max(1))
        .prop_map(move |offset_ms| window.start() + Duration::from_millis(offset_ms));
    let zone = prop::sample::select(ZONES.as_slice()).prop_map(|name| Zone::named(name).unwrap());
    let when = prop_oneof![
        6 => (anchor, interval).prop_map(|(anchor_at, interval_ms)| MadeUpWhen::Every {
            anchor_at,
            interval: Duration::from_millis(interval_ms),
        }),
        4 => (prop::sample::select(CRONS.as_slice()), zone)
            .prop_map(|(text, zone)| MadeUpWhen::Cron { text, zone }),
        1 => near.clone().prop_map(MadeUpWhen::Once),
        2 => vec(near.clone(), 0..60).prop_map(MadeUpWhen::Instants),
    ];
    let bounds = prop::option::weighted(0.3, (near.clone(), near));
    (prop::sample::select(KEYS.as_slice()), when, bounds, prop::bool::weighted(0.2)).prop_map(
        |(key, when, bounds, is_estimate)| MadeUpFleet {
            key: key.parse().unwrap(),
            when,
            bounds,
            is_estimate,
        },
    )
}

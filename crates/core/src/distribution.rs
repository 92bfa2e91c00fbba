//! How evenly starts are spread over a window, in numbers (A11).

use crate::schedule::Rhythm;
use crate::slot::{JobLoad, Slot, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};

/// From this score on, a distribution needs no attention.
pub const SCORE_ACCEPTABLE: f64 = 0.8;

/// The longest window that is looked at: 31 days.
pub const WINDOW_HOURS_MAX: u32 = 31 * 24;

/// Starts over a window from the current slot on, by slot, hour and minute.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// What was looked at: whole hours from the beginning of the current slot.
    pub window: TimeWindow,
    /// How wide its slots are.
    pub width: SlotWidth,
    /// Starts in each slot.
    pub slots: Vec<u32>,
    /// Starts in each hour: hours from now, not of the day.
    pub hours: Vec<u32>,
    /// Starts in each minute.
    pub minutes: Vec<u32>,
    /// Jobs with a start in the window.
    pub n_jobs: usize,
    /// All starts in the window.
    pub n_runs: u64,
    /// Jobs whose next run should have started by now.
    pub n_overdue: usize,
    /// Jobs whose next run lies behind the window.
    pub n_beyond: usize,
}

/// The window cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a window of {hours} hours is not between 1 and {WINDOW_HOURS_MAX}")]
pub struct WindowHoursError {
    /// What was asked for.
    pub hours: u32,
}

impl Distribution {
    /// The starts of these loads from `now` on.
    pub fn of<'a>(
        now: Timestamp,
        window_hours: u32,
        width: SlotWidth,
        loads: impl IntoIterator<Item = &'a JobLoad>,
    ) -> Result<Distribution, WindowHoursError> {
        Distribution::of_rhythms(now, window_hours, width, loads.into_iter().map(JobLoad::rhythm))
    }

    /// The same, of occurrences without what they weigh.
    pub fn of_rhythms<'a>(
        now: Timestamp,
        window_hours: u32,
        width: SlotWidth,
        rhythms: impl IntoIterator<Item = Rhythm<'a>>,
    ) -> Result<Distribution, WindowHoursError> {
        if !(1..=WINDOW_HOURS_MAX).contains(&window_hours) {
            return Err(WindowHoursError { hours: window_hours });
        }
        let start = Slot::of(now, width).start(width);
        let window = TimeWindow::starting_at(start, Duration::from_hours(i64::from(window_hours)));
        let n_hours = usize::try_from(window_hours).unwrap_or(0);
        let mut found = Distribution {
            window,
            width,
            slots: vec![0; n_hours * width.n_an_hour()],
            hours: vec![0; n_hours],
            minutes: vec![0; n_hours * 60],
            n_jobs: 0,
            n_runs: 0,
            n_overdue: 0,
            n_beyond: 0,
        };
        let ahead = TimeWindow::new(now, window.end());
        for rhythm in rhythms {
            let first = rhythm.first();
            found.n_overdue += usize::from(first.is_some_and(|first| first < now));
            found.n_beyond += usize::from(first.is_some_and(|first| window.end() <= first));
            let n_before = found.n_runs;
            rhythm.for_each_in(ahead, |at| found.count(at));
            found.n_jobs += usize::from(n_before < found.n_runs);
        }
        Ok(found)
    }

    fn count(&mut self, at: Timestamp) {
        let minute = usize::try_from((at - self.window.start()).as_millis() / 60_000).unwrap_or(usize::MAX);
        let minutes_a_slot = usize::from(self.width.as_mins());
        let cells = [
            self.minutes.get_mut(minute),
            self.slots.get_mut(minute / minutes_a_slot),
            self.hours.get_mut(minute / 60),
        ];
        for cell in cells.into_iter().flatten() {
            *cell += 1;
        }
        self.n_runs += 1;
    }

    /// Evenness from 0 to 1: the smaller of the score of the slots and that of the hours. Slots alone
    /// would call a day with a busy noon even; hours alone a fleet that fires at :00.
    pub fn score(&self) -> f64 {
        evenness(&self.slots).min(evenness(&self.hours))
    }

    /// The busiest hour, counted from now, and its starts; the earliest of several.
    pub fn peak_hour(&self) -> (usize, u32) {
        peak_of(&self.hours)
    }

    /// The busiest slot, counted from now, and its starts; the earliest of several.
    pub fn peak_slot(&self) -> (usize, u32) {
        peak_of(&self.slots)
    }

    /// The most starts of any minute.
    pub fn peak_minute(&self) -> u32 {
        peak_of(&self.minutes).1
    }

    /// When the slot with this number begins.
    pub fn slot_start(&self, slot_idx: usize) -> Timestamp {
        self.window.start() + self.width.length() * i64::try_from(slot_idx).unwrap_or(0)
    }

    /// When the hour with this number begins.
    pub fn hour_start(&self, hour_idx: usize) -> Timestamp {
        self.window.start() + Duration::from_hours(i64::try_from(hour_idx).unwrap_or(0))
    }

    /// What to do about it, in a sentence.
    pub fn suggestion(&self) -> &'static str {
        if SCORE_ACCEPTABLE <= self.score() {
            "Distribution is acceptable"
        } else {
            "Distribution degraded, consider rebalancing"
        }
    }
}

/// How even counts are: 1 for the best that whole numbers allow, 0 where the deviation exceeds that
/// by the mean.
pub fn evenness(counts: &[u32]) -> f64 {
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if total == 0 {
        return 1.0;
    }
    let n = to_f64(counts.len() as u64);
    let mean = to_f64(total) / n;
    let variance = counts.iter().map(|count| (f64::from(*count) - mean).powi(2)).sum::<f64>() / n;
    // `total` items over n cells: r of them must hold one more than the others.
    let rest = to_f64(total % counts.len() as u64);
    let best = (rest * (n - rest)).sqrt() / n;
    (1.0 - (variance.sqrt() - best).max(0.0) / mean).max(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of starts in a month stay far below 2^53")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

fn peak_of(counts: &[u32]) -> (usize, u32) {
    let mut peak = (0, 0);
    for (idx, count) in counts.iter().enumerate() {
        if peak.1 < *count {
            peak = (idx, *count);
        }
    }
    peak
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slot::RunWork;

    fn now() -> Timestamp {
        "2026-02-04T10:07:30Z".parse().unwrap()
    }

    fn daily(hour: i64) -> JobLoad {
        let start = Slot::of(now(), SlotWidth::DEFAULT).plus(1).start(SlotWidth::DEFAULT);
        JobLoad::every(start + Duration::from_hours(hour), Duration::from_days(1), RunWork::default())
    }

    fn of(loads: &[JobLoad]) -> Distribution {
        Distribution::of(now(), 24, SlotWidth::DEFAULT, loads).unwrap()
    }

    #[track_caller]
    fn check_score(loads: &[JobLoad], expected: f64) {
        let score = of(loads).score();
        assert!((score - expected).abs() < 0.005, "{score} is not {expected}");
    }

    #[test]
    fn the_score_says_how_even_starts_are() {
        check_score(&[], 1.0);
        let spread: Vec<JobLoad> = (0..12).map(|it| daily(it * 2)).collect();
        check_score(&spread, 1.0);
        let clustered: Vec<JobLoad> = (0..12).map(|it| daily(it % 3)).collect();
        check_score(&clustered, 0.0);
        // By hours alone, twenty hourly jobs at :00 would be perfect.
        let at_zero: Vec<JobLoad> = (0..20)
            .map(|_| {
                JobLoad::every(
                    "2026-02-04T11:00:00Z".parse().unwrap(),
                    Duration::from_hours(1),
                    RunWork::default(),
                )
            })
            .collect();
        let on_the_hour = "2026-02-04T11:00:00Z".parse().unwrap();
        let found = Distribution::of(on_the_hour, 24, SlotWidth::DEFAULT, &at_zero).unwrap();
        assert!((evenness(&found.hours) - 1.0).abs() < 1e-9);
        assert!(found.score() < 0.005, "{}", found.score());
    }

    #[test]
    fn jobs_and_starts_are_counted_from_now() {
        let loads = [
            JobLoad::every(
                "2026-02-04T10:00:00Z".parse().unwrap(),
                Duration::from_mins(15),
                RunWork::default(),
            ),
            daily(3),
            JobLoad::single("2026-02-05T10:00:00Z".parse().unwrap(), RunWork::default()),
        ];
        let found = of(&loads);
        assert_eq!((found.n_jobs, found.n_overdue, found.n_beyond), (2, 1, 1));
        assert_eq!(found.n_runs, 95 + 1);
        assert_eq!(found.hours[0], 3, "10:00 is past, 10:15, 10:30 and 10:45 are not");
        assert_eq!(found.peak_hour(), (3, 5), "the hour from 13:00 has 13:15 too");
        assert_eq!(found.hour_start(3).to_string(), "2026-02-04T13:00:00Z");
        assert_eq!(found.peak_minute(), 2);
    }

    #[test]
    fn an_empty_window_has_no_peak_and_no_complaint() {
        let found = of(&[]);
        assert_eq!((found.peak_hour(), found.peak_slot()), ((0, 0), (0, 0)));
        assert_eq!(found.suggestion(), "Distribution is acceptable");
        let clustered: Vec<JobLoad> = (0..12).map(|_| daily(1)).collect();
        assert_eq!(of(&clustered).suggestion(), "Distribution degraded, consider rebalancing");
    }

    #[test]
    fn a_window_has_an_hour_to_a_month() {
        let error = |hours| Distribution::of(now(), hours, SlotWidth::DEFAULT, []).unwrap_err().to_string();
        assert_eq!(error(0), "a window of 0 hours is not between 1 and 744");
        assert_eq!(error(745), "a window of 745 hours is not between 1 and 744");
    }

    proptest! {
        #[test]
        fn a_score_lies_between_0_and_1_and_level_counts_reach_1(
            counts in prop::collection::vec(0_u32..50, 1..100),
            total in 0_u32..5_000,
        ) {
            let score = evenness(&counts);
            prop_assert!((0.0..=1.0).contains(&score));
            let n = counts.len() as u32;
            let level: Vec<u32> = (0..n).map(|idx| total / n + u32::from(idx < total % n)).collect();
            prop_assert!((evenness(&level) - 1.0).abs() < 1e-9);
        }
    }
}

//! How evenly starts are spread over a window, in numbers (A11).
//!
//! The window is made of whole slots and begins with the current one. What that slot has behind it counts by the rhythm of
//! each job, not by what has run: otherwise the slot would empty while its minutes pass, and the score of a fleet would
//! depend on the minute of the request.

use crate::schedule::Rhythm;
use crate::slot::{JobLoad, Slot, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};

/// From this score on, a distribution needs no attention.
pub const SCORE_ACCEPTABLE: f64 = 0.8;

/// The longest window that is looked at: 31 days.
pub const WINDOW_HOURS_MAX: u32 = 31 * 24;

/// Starts over a window of whole slots from the current one on, by slot, hour and minute.
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
    /// Jobs whose next run should have started before the current second.
    pub n_overdue: usize,
    /// Jobs without a start in the window, whose next run lies behind it.
    pub n_beyond: usize,
}

/// The jobs of a distribution, counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobTotals {
    pub(crate) in_window: usize,
    pub(crate) overdue: usize,
    pub(crate) beyond: usize,
}

/// The beginning of a second. A job is overdue from the next second on, so that those which are can be counted as time
/// passes.
pub(crate) fn second_of(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second())
}

/// The window cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a window of {hours} hours is not between 1 and {WINDOW_HOURS_MAX}")]
pub struct WindowHoursError {
    /// The requested length.
    pub hours: u32,
}

impl Distribution {
    /// The starts of these loads from the slot of `now` on.
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
        for rhythm in rhythms {
            let Some(first) = rhythm.first() else { continue };
            let n_before = found.n_runs;
            found.n_overdue += usize::from(first < second_of(now));
            found.count_behind(&rhythm, first, now);
            rhythm.for_each_in(window, |at| found.count(at));
            let is_in_window = n_before < found.n_runs;
            found.n_jobs += usize::from(is_in_window);
            found.n_beyond += usize::from(!is_in_window && window.end() <= first);
        }
        Ok(found)
    }

    /// The starts of the current slot that lie behind us. A job that is moved or new may leave one of its rhythm out; one
    /// that is still to begin for longer has none.
    fn count_behind(&mut self, rhythm: &Rhythm<'_>, first: Timestamp, now: Timestamp) {
        let just_after = now + Duration::from_millis(1);
        let behind = TimeWindow::new(self.window.start(), just_after.min(first));
        if behind.is_empty() {
            return;
        }
        let projected = rhythm.clone().beginning_at(self.window.start());
        if projected.count_in(TimeWindow::new(just_after, first)) <= 1 {
            projected.for_each_in(behind, |at| self.count(at));
        }
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

    /// A distribution whose starts are known by the minute.
    pub(crate) fn of_minutes(
        start: Timestamp,
        width: SlotWidth,
        minutes: &[u32],
        jobs: JobTotals,
    ) -> Distribution {
        let sums = |minutes_each: usize| -> Vec<u32> {
            minutes.chunks(minutes_each).map(|cells| cells.iter().sum()).collect()
        };
        let n_minutes = i64::try_from(minutes.len()).unwrap_or(0);
        Distribution {
            window: TimeWindow::starting_at(start, Duration::from_mins(n_minutes)),
            width,
            slots: sums(usize::from(width.as_mins())),
            hours: sums(60),
            minutes: minutes.to_vec(),
            n_jobs: jobs.in_window,
            n_runs: minutes.iter().map(|cell| u64::from(*cell)).sum(),
            n_overdue: jobs.overdue,
            n_beyond: jobs.beyond,
        }
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

    /// A fleet as it is at an instant: every job waits for the next occurrence of its rhythm.
    fn score_at(now: Timestamp, jobs: &[(Timestamp, Duration)]) -> f64 {
        let loads: Vec<JobLoad> = jobs
            .iter()
            .map(|(anchor_at, every)| {
                let next = Rhythm::grid(*anchor_at, *every).next_after(now).unwrap();
                JobLoad::every(next, *every, RunWork::default())
            })
            .collect();
        Distribution::of(now, 24, SlotWidth::DEFAULT, &loads).unwrap().score()
    }

    #[test]
    fn the_score_does_not_depend_on_the_minute_in_which_it_is_asked() {
        let midnight: Timestamp = "2026-02-01T00:00:00Z".parse().unwrap();
        let day: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let jobs_of = |every: Duration, n: i64, apart: Duration| {
            (0..n).map(move |it| (midnight + apart * it, every)).collect::<Vec<_>>()
        };
        let level: Vec<_> = jobs_of(Duration::from_mins(15), 3, Duration::from_mins(5))
            .into_iter()
            .chain(jobs_of(Duration::from_hours(6), 24, Duration::from_mins(15)))
            .collect();
        let uneven: Vec<_> = jobs_of(Duration::from_hours(1), 30, Duration::from_secs(40))
            .into_iter()
            .chain(jobs_of(Duration::from_mins(15), 7, Duration::from_mins(1)))
            .collect();
        let day = day + Duration::from_millis(1);
        for (jobs, expected) in [(&level, Some(1.0)), (&uneven, None)] {
            let expected = expected.unwrap_or_else(|| score_at(day, jobs));
            for second in (0..7_200).step_by(7) {
                let score = score_at(day + Duration::from_secs(second), jobs);
                assert!((score - expected).abs() < 1e-9, "{score} is not {expected} after {second} s");
            }
        }
    }

    #[test]
    fn a_job_that_is_made_in_the_current_slot_counts_by_its_rhythm() {
        // Placed at 10:07:30, due next at 10:06 of tomorrow: one start a day.
        let made = JobLoad::every(
            "2026-02-05T10:06:00Z".parse().unwrap(),
            Duration::from_days(1),
            RunWork::default(),
        );
        let found = of(&[made]);
        assert_eq!((found.n_jobs, found.n_runs, found.n_beyond, found.slots[0]), (1, 1, 0, 1));
        // One that begins in five days has no start today.
        let later = JobLoad::every(
            "2026-02-09T10:06:00Z".parse().unwrap(),
            Duration::from_mins(15),
            RunWork::default(),
        );
        let found = of(&[later]);
        assert_eq!((found.n_jobs, found.n_runs, found.n_beyond), (0, 0, 1));
    }

    #[test]
    fn jobs_and_starts_are_counted_from_the_current_slot() {
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
        assert_eq!(found.n_runs, 96 + 1);
        assert_eq!(found.hours[0], 4, "10:00 is past, and counts with its slot");
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

//! How many runs are expected to go on at once over the next day, from how long runs usually take.
//!
//! Starts alone do not make a peak matter; what matters is whether there is room for all that want to run. Demand is kept
//! by the minute and shown by the slot: a slot counts for its busiest minute, because jobs queue for minutes, not for a
//! quarter of an hour.
//!
//! As in [`Distribution`](crate::distribution::Distribution), a job counts by its rhythm: what started before the window
//! and is still expected to run counts too.

use crate::schedule::Rhythm;
use crate::slot::{JobLoad, RunWork, Slot, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};

const MINUTE_MS: i64 = 60_000;
const DAY: Duration = Duration::from_days(1);

/// Expected demand by slot over a day, in cost units.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedRunning {
    /// A day from the beginning of the current slot.
    pub window: TimeWindow,
    /// How wide its slots are.
    pub width: SlotWidth,
    /// The demand of the busiest minute of each slot.
    pub slots: Vec<f64>,
    /// Jobs with a start ahead of them.
    pub n_jobs: usize,
    /// Those of them whose run length is not known yet. They count with the usual length.
    pub n_without_length: usize,
    /// The median length of the others; none if there are no others.
    pub usual_length: Option<Duration>,
}

impl ExpectedRunning {
    /// Whether enough run lengths are known to say something about all: thirty of them, or one in twenty.
    pub fn is_known(&self) -> bool {
        let n_known = self.n_jobs - self.n_without_length.min(self.n_jobs);
        30 <= n_known || self.n_jobs <= n_known * 20
    }

    /// The slot with the highest demand, and that demand; the earliest of several.
    pub fn peak(&self) -> (usize, f64) {
        let mut peak = (0, 0.0);
        for (idx, demand) in self.slots.iter().enumerate() {
            if peak.1 < *demand {
                peak = (idx, *demand);
            }
        }
        peak
    }
}

/// Adds up the demand of jobs.
#[derive(Clone, Debug)]
pub struct RunningSum {
    window: TimeWindow,
    width: SlotWidth,
    /// Cost times milliseconds of runs that cover a part of a minute.
    parts: Vec<i64>,
    /// Where the cost of runs that cover whole minutes begins and ends.
    steps: Vec<i64>,
    now: Timestamp,
    n_jobs: usize,
    n_without_length: usize,
    usual_length: Option<Duration>,
}

/// The median of the run lengths that are known.
pub fn usual_length(works: impl IntoIterator<Item = RunWork>) -> Option<Duration> {
    let mut known: Vec<Duration> =
        works.into_iter().map(|it| it.length).filter(|it| Duration::ZERO < *it).collect();
    let middle = known.len() / 2;
    (!known.is_empty()).then(|| *known.select_nth_unstable(middle).1)
}

impl RunningSum {
    /// Nothing yet, over a day from the slot that `now` lies in. Runs whose length is not known take the usual one.
    pub fn new(now: Timestamp, width: SlotWidth, usual_length: Option<Duration>) -> RunningSum {
        let window = TimeWindow::starting_at(Slot::of(now, width).start(width), DAY);
        let n_minutes = usize::try_from(DAY.as_millis() / MINUTE_MS).unwrap_or(0);
        let (parts, steps) = (vec![0; n_minutes], vec![0; n_minutes + 1]);
        RunningSum { window, width, parts, steps, now, n_jobs: 0, n_without_length: 0, usual_length }
    }

    /// The demand of these loads.
    pub fn of<'a, I>(now: Timestamp, width: SlotWidth, loads: I) -> ExpectedRunning
    where
        I: IntoIterator<Item = &'a JobLoad> + Clone,
    {
        let usual = usual_length(loads.clone().into_iter().map(|load| load.work));
        let mut sum = RunningSum::new(now, width, usual);
        for load in loads {
            sum.add(&load.rhythm(), load.work);
        }
        sum.finish()
    }

    /// Adds the runs of one job. A run ends at the next occurrence at the latest: a job has one run at a time.
    pub fn add(&mut self, rhythm: &Rhythm<'_>, work: RunWork) {
        let Some(first) = rhythm.first() else { return };
        self.n_jobs += 1;
        let is_known = Duration::ZERO < work.length;
        self.n_without_length += usize::from(!is_known);
        let length = if is_known { Some(work.length) } else { self.usual_length };
        let Some(length) = length.map(|it| it.min(DAY)) else { return };
        let mut open: Option<Timestamp> = None;
        let mut begin = |at: Timestamp, sum: &mut RunningSum| {
            if let Some(before) = open.replace(at) {
                sum.add_run(before, (before + length).min(at), work.cost);
            }
        };
        // What may still run from before the window, unless the job is yet to begin.
        let since = self.window.start() - length;
        if self.window.start() < first {
            let projected = rhythm.clone().beginning_at(since);
            let just_after = self.now + Duration::from_millis(1);
            if projected.count_in(TimeWindow::new(just_after, first)) <= 1 {
                projected.for_each_in(TimeWindow::new(since, first), |at| begin(at, self));
            }
        }
        rhythm.for_each_in(TimeWindow::new(since, self.window.end()), |at| begin(at, self));
        if let Some(last) = open {
            self.add_run(last, last + length, work.cost);
        }
    }

    fn add_run(&mut self, from: Timestamp, to: Timestamp, cost: u32) {
        let (from, to) = (from.max(self.window.start()), to.min(self.window.end()));
        if to <= from {
            return;
        }
        let (from, to) = ((from - self.window.start()).as_millis(), (to - self.window.start()).as_millis());
        let (first, last, cost) = (from / MINUTE_MS, (to - 1) / MINUTE_MS, i64::from(cost));
        if first == last {
            bump(&mut self.parts, first, cost * (to - from));
            return;
        }
        bump(&mut self.parts, first, cost * ((first + 1) * MINUTE_MS - from));
        bump(&mut self.parts, last, cost * (to - last * MINUTE_MS));
        bump(&mut self.steps, first + 1, cost);
        bump(&mut self.steps, last, -cost);
    }

    /// The demand by slot.
    pub fn finish(self) -> ExpectedRunning {
        let mut whole = 0;
        let minutes: Vec<i64> = self
            .parts
            .iter()
            .zip(&self.steps)
            .map(|(part, step)| {
                whole += step;
                whole * MINUTE_MS + part
            })
            .collect();
        let slots = minutes.chunks(usize::from(self.width.as_mins()));
        ExpectedRunning {
            window: self.window,
            width: self.width,
            slots: slots.map(|it| units(it.iter().copied().max().unwrap_or(0))).collect(),
            n_jobs: self.n_jobs,
            n_without_length: self.n_without_length,
            usual_length: self.usual_length,
        }
    }
}

fn bump(cells: &mut [i64], idx: i64, by: i64) {
    if let Some(cell) = usize::try_from(idx).ok().and_then(|idx| cells.get_mut(idx)) {
        *cell += by;
    }
}

#[expect(clippy::cast_precision_loss, reason = "the demand of a minute stays far below 2^53")]
fn units(cost_ms: i64) -> f64 {
    cost_ms as f64 / MINUTE_MS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-02-04T{text}Z").parse().unwrap()
    }

    fn work(minutes: i64, cost: u32) -> RunWork {
        RunWork { length: Duration::from_mins(minutes), cost }
    }

    fn of(loads: &[JobLoad]) -> ExpectedRunning {
        RunningSum::of(at("10:07:00"), SlotWidth::DEFAULT, loads)
    }

    #[track_caller]
    fn check(found: &ExpectedRunning, expected: &[(usize, f64)]) {
        let busy: Vec<(usize, f64)> =
            found.slots.iter().copied().enumerate().filter(|(_, demand)| 0.0 < *demand).collect();
        assert_eq!(busy, expected);
    }

    #[test]
    fn a_run_counts_in_every_slot_that_it_covers() {
        let day = Duration::from_days(1);
        let load = JobLoad::every(at("10:50:00"), day, work(30, 2));
        check(&of(&[load]), &[(3, 2.0), (4, 2.0), (5, 2.0)]);
        let short = JobLoad::single(at("12:00:00"), RunWork { length: Duration::from_secs(15), cost: 1 });
        check(&of(&[short]), &[(8, 0.25)]);
        check(&of(&[]), &[]);
    }

    #[test]
    fn a_slot_counts_for_its_busiest_minute() {
        // Ten runs of a minute one after the other are one at a time; at once they are ten.
        let spread: Vec<JobLoad> = (0..10)
            .map(|minute| JobLoad::single(at("12:00:00") + Duration::from_mins(minute), work(1, 1)))
            .collect();
        check(&of(&spread), &[(8, 1.0)]);
        let at_once: Vec<JobLoad> = (0..10).map(|_| JobLoad::single(at("12:00:00"), work(1, 1))).collect();
        let found = of(&at_once);
        check(&found, &[(8, 10.0)]);
        assert_eq!(found.peak(), (8, 10.0));
    }

    #[test]
    fn a_job_never_counts_twice_at_once() {
        // Runs of an hour every 15 minutes: the job runs all the time, once.
        let load = JobLoad::every(at("10:15:00"), Duration::from_mins(15), work(60, 1));
        let found = of(&[load]);
        assert!(found.slots.iter().all(|demand| (demand - 1.0).abs() < 1e-9), "{:?}", found.slots);
    }

    #[test]
    fn what_began_before_the_window_still_runs_in_it() {
        // Due next at 13:50, so it was due at 09:50 as well and runs until 10:20.
        let load = JobLoad::every(at("13:50:00"), Duration::from_hours(4), work(30, 1));
        let found = of(&[load]);
        assert_eq!((found.slots[0], found.slots[1], found.slots[2]), (1.0, 1.0, 0.0));
        // One that begins the day after tomorrow does not.
        let later =
            JobLoad::every(at("13:50:00") + Duration::from_days(2), Duration::from_hours(4), work(30, 1));
        check(&of(&[later]), &[]);
    }

    #[test]
    fn the_current_slot_counts_what_has_started_in_it() {
        // Every 5 minutes, due next at 10:10: it was due at 10:00 and 10:05 as well.
        let load = JobLoad::every(at("10:10:00"), Duration::from_mins(5), work(2, 1));
        let found = of(&[load]);
        assert!(found.slots.iter().all(|demand| (demand - 1.0).abs() < 1e-9), "{:?}", found.slots);
    }

    #[test]
    fn jobs_without_a_known_length_take_as_long_as_others() {
        let unknown = JobLoad::single(at("12:00:00"), RunWork::default());
        let found = of(std::slice::from_ref(&unknown));
        check(&found, &[]);
        assert_eq!((found.n_jobs, found.n_without_length, found.usual_length), (1, 1, None));
        assert!(!found.is_known());
        let known = [5, 20, 60].map(|minutes| JobLoad::single(at("18:00:00"), work(minutes, 1)));
        let found = of(&[&known[..], &[unknown]].concat());
        assert_eq!((found.n_without_length, found.usual_length), (1, Some(Duration::from_mins(20))));
        assert_eq!((found.slots[8], found.slots[9], found.slots[10]), (1.0, 1.0, 0.0));
        assert!(found.is_known());
    }
}

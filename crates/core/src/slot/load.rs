//! The cells of the time line and what lies in them.

use super::work::{BalanceBy, JobLoad};
use super::{Slot, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};

const MINUTE_MS: usize = 60_000;
const SECOND_MS: usize = 1_000;
const DAY_MS: i64 = 86_400_000;
const MINUTES_A_DAY: usize = 1_440;
const SECONDS_A_DAY: usize = 86_400;

/// How far ahead load is known unless asked otherwise: a week holds every weekly job once.
const HORIZON: Duration = Duration::from_days(7);

/// Load per slot over a horizon, and per minute and second over its first day.
///
/// It counts **every** projected occurrence, not only the next: a job each 15 minutes weighs 96 a
/// day, a daily one 1. The cells are flat arrays, and adding a load and removing it again leaves them
/// as they were, bit for bit.
///
/// Minutes and seconds are kept for one day only. A job that has no occurrence in that day is noted
/// where its next one would lie in it by the time of day: two weekly jobs on another day must not
/// meet in the same second either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotLoad {
    width: SlotWidth,
    by: BalanceBy,
    window: TimeWindow,
    /// Starts per slot.
    runs: Box<[u32]>,
    /// Milliseconds times cost per slot; empty unless that is what is levelled.
    work: Box<[u64]>,
    minutes: Box<[u32]>,
    seconds: Box<[u32]>,
}

impl SlotLoad {
    /// Nothing yet, over a week from the slot that `from` lies in.
    pub fn new(from: Timestamp, width: SlotWidth, by: BalanceBy) -> SlotLoad {
        SlotLoad::over(from, HORIZON, width, by)
    }

    /// Nothing yet, over a horizon of one day to 31 days from the slot that `from` lies in.
    pub fn over(from: Timestamp, horizon: Duration, width: SlotWidth, by: BalanceBy) -> SlotLoad {
        let horizon = horizon.clamp(Duration::from_days(1), Duration::from_days(31));
        let n_slots = usize::try_from(horizon.as_millis() / width.length().as_millis()).unwrap_or(0);
        let start = Slot::of(from, width).start(width);
        let n_work = if by == BalanceBy::Work { n_slots } else { 0 };
        SlotLoad {
            width,
            by,
            window: TimeWindow::starting_at(start, width.length() * i64::try_from(n_slots).unwrap_or(0)),
            runs: vec![0; n_slots].into(),
            work: vec![0; n_work].into(),
            minutes: vec![0; MINUTES_A_DAY].into(),
            seconds: vec![0; SECONDS_A_DAY].into(),
        }
    }

    /// How wide its slots are.
    pub fn width(&self) -> SlotWidth {
        self.width
    }

    /// What is levelled.
    pub fn by(&self) -> BalanceBy {
        self.by
    }

    /// What it covers, in whole slots.
    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// Starts per slot, from the first on.
    pub fn runs(&self) -> &[u32] {
        &self.runs
    }

    /// Starts in a slot; none outside the window.
    pub fn runs_in(&self, slot: Slot) -> u32 {
        self.index(slot.start(self.width)).and_then(|idx| self.runs.get(idx)).copied().unwrap_or(0)
    }

    /// The most starts of any slot.
    pub fn peak(&self) -> u32 {
        self.runs.iter().copied().max().unwrap_or(0)
    }

    /// Puts a job on the time line.
    pub fn add(&mut self, load: &JobLoad) {
        self.change(load, |cell| *cell += 1, |cell, work| *cell += work);
    }

    /// Takes a job off it; it must have been added as it is now.
    pub fn remove(&mut self, load: &JobLoad) {
        self.change(load, |cell| *cell -= 1, |cell, work| *cell -= work);
    }

    /// What counts against a start in the slot with this index: starts, or the work in all slots that
    /// a run of this length covers.
    pub(crate) fn weight_at(&self, idx: usize, n_covered: usize) -> u64 {
        match self.by {
            BalanceBy::Runs => u64::from(self.runs.get(idx).copied().unwrap_or(0)),
            BalanceBy::Work => {
                let end = idx.saturating_add(n_covered).min(self.work.len());
                self.work.get(idx..end).and_then(|covered| covered.iter().copied().max()).unwrap_or(0)
            }
        }
    }

    /// The index of the slot that an instant lies in; none outside the window.
    pub(crate) fn index(&self, at: Timestamp) -> Option<usize> {
        if !self.window.contains(at) {
            return None;
        }
        usize::try_from((at - self.window.start()).as_millis() / self.width.length().as_millis()).ok()
    }

    /// Starts in each minute of the day that begins the window.
    pub(crate) fn minutes(&self) -> &[u32] {
        &self.minutes
    }

    /// Starts in each second of that day.
    pub(crate) fn seconds(&self) -> &[u32] {
        &self.seconds
    }

    /// Milliseconds from the beginning of the window, laid into its first day by the time of day.
    pub(crate) fn in_day(&self, at: Timestamp) -> i64 {
        (at - self.window.start()).as_millis().rem_euclid(DAY_MS)
    }

    fn change(&mut self, load: &JobLoad, start: impl Fn(&mut u32), work: impl Fn(&mut u64, u64)) {
        let start_ms = self.window.start().as_millis();
        let first = load.rhythm().next_after(self.window.start() - Duration::from_millis(1));
        let Some(first) = first.filter(|first| self.window.contains(*first)) else { return };
        let first_ms = first.as_millis() - start_ms;
        match load.grid() {
            // The common case, and the one that runs a million times.
            Some(interval) if self.work.is_empty() => {
                self.change_row(first_ms, interval.as_millis(), &start);
            }
            _ => {
                let width_ms = self.width.length().as_millis();
                let run_ms = load.work.length.as_millis().max(1);
                let cost = u64::from(load.work.cost);
                let Self { runs, work: works, minutes, seconds, window, .. } = self;
                load.rhythm().for_each_in(*window, |at| {
                    let from_start = at.as_millis() - start_ms;
                    if let Some(cell) = cell(runs, from_start / width_ms) {
                        start(cell);
                    }
                    if !works.is_empty() {
                        spread(works, from_start, run_ms, width_ms, |cell, overlap| {
                            work(cell, overlap * cost);
                        });
                    }
                    if from_start < DAY_MS {
                        mark_fine(minutes, seconds, from_start, &start);
                    }
                });
            }
        }
        if DAY_MS <= first_ms {
            mark_fine(&mut self.minutes, &mut self.seconds, first_ms % DAY_MS, &start);
        }
    }

    /// The starts of an interval, from milliseconds after the beginning of the window on.
    fn change_row(&mut self, first_ms: i64, step_ms: i64, start: impl Fn(&mut u32)) {
        let width_ms = self.width.length().as_millis();
        if step_ms % width_ms == 0 {
            let step = usize::try_from(step_ms / width_ms).unwrap_or(usize::MAX);
            let first = usize::try_from(first_ms / width_ms).unwrap_or(0);
            self.runs.iter_mut().skip(first).step_by(step).for_each(&start);
        } else {
            // Walking from slot to slot is cheaper than dividing for each start.
            let mut slot_end_ms = (first_ms / width_ms + 1) * width_ms;
            let mut at_ms = first_ms;
            for runs in self.runs.iter_mut().skip(usize::try_from(first_ms / width_ms).unwrap_or(0)) {
                while at_ms < slot_end_ms {
                    start(runs);
                    at_ms += step_ms;
                }
                slot_end_ms += width_ms;
            }
        }
        let mut at_ms = first_ms;
        while at_ms < DAY_MS {
            mark_fine(&mut self.minutes, &mut self.seconds, at_ms, &start);
            at_ms += step_ms;
        }
    }
}

fn mark_fine(minutes: &mut [u32], seconds: &mut [u32], in_day_ms: i64, start: impl Fn(&mut u32)) {
    let in_day_ms = usize::try_from(in_day_ms).unwrap_or(0);
    if let Some(cell) = minutes.get_mut(in_day_ms / MINUTE_MS) {
        start(cell);
    }
    if let Some(cell) = seconds.get_mut(in_day_ms / SECOND_MS) {
        start(cell);
    }
}

/// Lays a run over the slots it covers; what lies beyond the window is not known.
fn spread(works: &mut [u64], from_ms: i64, run_ms: i64, width_ms: i64, work: impl Fn(&mut u64, u64)) {
    let end_ms = from_ms + run_ms;
    let mut at_ms = from_ms;
    while at_ms < end_ms {
        let idx = at_ms / width_ms;
        let next_ms = ((idx + 1) * width_ms).min(end_ms);
        let Some(cell) = cell(works, idx) else { return };
        work(cell, (next_ms - at_ms).unsigned_abs());
        at_ms = next_ms;
    }
}

fn cell<T>(cells: &mut [T], idx: i64) -> Option<&mut T> {
    cells.get_mut(usize::try_from(idx).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::cron::CronExpr;
    use crate::slot::RunWork;
    use crate::zone::Zone;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn empty(by: BalanceBy) -> SlotLoad {
        SlotLoad::new(at("2026-02-04T10:07:30Z"), SlotWidth::DEFAULT, by)
    }

    #[test]
    fn every_projected_occurrence_counts() {
        let mut load = empty(BalanceBy::Runs);
        load.add(&JobLoad::every(at("2026-02-04T10:08:00Z"), Duration::from_mins(15), RunWork::default()));
        assert_eq!(load.runs()[..96].iter().sum::<u32>(), 96);
        let mut daily = empty(BalanceBy::Runs);
        daily.add(&JobLoad::every(at("2026-02-04T10:20:00Z"), Duration::from_days(1), RunWork::default()));
        assert_eq!(daily.runs()[..96].iter().sum::<u32>(), 1);
        assert_eq!(daily.runs().iter().sum::<u32>(), 7);
        assert_eq!(daily.runs_in(Slot::of(at("2026-02-05T10:15:00Z"), SlotWidth::DEFAULT)), 1);
        assert_eq!(daily.peak(), 1);
    }

    #[test]
    fn work_is_laid_over_every_slot_that_a_run_covers() {
        let mut load = empty(BalanceBy::Work);
        let work = RunWork { length: Duration::from_mins(40), cost: 2 };
        load.add(&JobLoad::single(at("2026-02-04T10:10:00Z"), work));
        let minutes: Vec<u64> = load.work.iter().take(5).map(|it| it / 60_000).collect();
        assert_eq!(minutes, [10, 30, 30, 10, 0]);
        assert_eq!(load.runs()[..5], [1, 0, 0, 0, 0]);
        assert_eq!(load.weight_at(0, 3) / 60_000, 30);
    }

    #[test]
    fn what_lies_outside_the_window_is_not_there() {
        let mut load = empty(BalanceBy::Work);
        load.add(&JobLoad::single(at("2026-02-04T09:59:59Z"), RunWork::default()));
        load.add(&JobLoad::single(at("2026-02-11T10:00:00Z"), RunWork::default()));
        assert_eq!(load, empty(BalanceBy::Work));
    }

    #[test]
    fn a_job_of_another_day_is_noted_by_its_time_of_day() {
        let mut load = empty(BalanceBy::Runs);
        load.add(&JobLoad::every(at("2026-02-06T10:16:05Z"), Duration::from_days(7), RunWork::default()));
        assert_eq!(load.minutes()[16], 1);
        assert_eq!(load.seconds()[16 * 60 + 5], 1);
        assert_eq!(load.runs()[1], 0);
    }

    fn any_load() -> impl Strategy<Value = JobLoad> {
        let work = (0_i64..10_000_000, 1_u32..5)
            .prop_map(|(length_ms, cost)| RunWork { length: Duration::from_millis(length_ms), cost });
        let offset = -100_000_000_i64..900_000_000;
        let base = at("2026-02-04T10:07:30Z");
        let cron = prop::sample::select(vec!["0 * * * *", "*/7 3-5 * * *", "30 2 * * 1", "0 0 1 1 *"]);
        prop_oneof![
            (offset.clone(), work.clone())
                .prop_map(move |(ms, work)| JobLoad::single(base + Duration::from_millis(ms), work)),
            (offset.clone(), 60_000_i64..900_000_000, work.clone()).prop_map(move |(ms, interval, work)| {
                JobLoad::every(base + Duration::from_millis(ms), Duration::from_millis(interval), work)
            }),
            (cron, work).prop_map(move |(text, work)| {
                JobLoad::cron(CronExpr::parse(text).unwrap().plan().unwrap(), Zone::utc(), base, work)
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is added, removed and moved, the cells are those of a load built from scratch.
        #[test]
        fn adding_and_removing_is_exact(
            loads in prop::collection::vec(any_load(), 1..20),
            steps in prop::collection::vec((0_usize..20, any::<bool>()), 0..60),
            by_work in any::<bool>(),
        ) {
            let by = if by_work { BalanceBy::Work } else { BalanceBy::Runs };
            let mut load = empty(by);
            let mut present = vec![false; loads.len()];
            for (idx, put) in steps {
                let idx = idx % loads.len();
                match (present[idx], put) {
                    (false, true) => load.add(&loads[idx]),
                    (true, false) => load.remove(&loads[idx]),
                    _ => continue,
                }
                present[idx] = put;
            }
            let mut scratch = empty(by);
            for (one, _) in loads.iter().zip(&present).filter(|(_, present)| **present) {
                scratch.add(one);
            }
            prop_assert_eq!(load, scratch);
        }

        /// Counted one by one, the slow way.
        #[test]
        fn slots_hold_what_the_rhythm_says(one in any_load()) {
            let mut load = empty(BalanceBy::Runs);
            load.add(&one);
            for idx in 0..load.runs().len() {
                let slot = Slot::of(load.window().start(), SlotWidth::DEFAULT).plus(idx as i64);
                let expected = one.rhythm().count_in(slot.window(SlotWidth::DEFAULT));
                prop_assert_eq!(u64::from(load.runs()[idx]), expected);
            }
        }
    }
}

//! The place inside a slot: its minute, second and millisecond (A4).

use super::spot::{PhaseChoice, spread_rank};
use super::wishes::Wishes;
use crate::slot::SlotLoad;
use crate::time::{Duration, Timestamp};

const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_days(1);

/// The best first occurrence whose phase lies in the cell of this length that begins at `cell`.
pub(super) fn refine(
    load: &SlotLoad,
    cell: Timestamp,
    cell_length: Duration,
    choice: &PhaseChoice,
    wishes: Option<&Wishes<'_>>,
) -> Option<Timestamp> {
    let minute = if MINUTE < cell_length {
        let n_lanes = usize::try_from(cell_length.as_millis() / MINUTE.as_millis()).unwrap_or(1);
        best_lane(load.minutes(), MINUTE, n_lanes, load, cell, choice, wishes)?
    } else {
        cell
    };
    let second = if SECOND < cell_length {
        best_lane(load.seconds(), SECOND, 60, load, minute, choice, None)?
    } else {
        minute
    };
    // Jobs that share a second are spread over it by how many are there already.
    let at = choice.first_of(second).or_else(|| first_allowed(second, choice))?;
    let idx = usize::try_from(load.in_day(at) / SECOND.as_millis()).unwrap_or(0);
    let n_before = load.seconds().get(idx).copied().unwrap_or(0);
    let rank = spread_rank(usize::try_from(n_before % 1_024).unwrap_or(0), 1_024);
    let millis = Duration::from_millis(i64::try_from(rank * 1_000 / 1_024).unwrap_or(0));
    Some(choice.first_of(second + millis).unwrap_or(at))
}

/// In a second that may be chosen only in part: its first millisecond that may.
fn first_allowed(second: Timestamp, choice: &PhaseChoice) -> Option<Timestamp> {
    let into_second = (choice.first_in.start() - second).as_millis().rem_euclid(choice.interval.as_millis());
    let is_inside = into_second < SECOND.as_millis();
    choice.first_of(second + Duration::from_millis(into_second)).filter(|_| is_inside)
}

/// How many repetitions of a lane are looked at: a day of 15 minutes.
const ROWS_MAX: usize = 96;

/// And of a second, where a part tells enough: what repeats every hour repeats in these too.
const SECOND_ROWS_MAX: usize = 16;

/// No slot has more minutes, and no minute more seconds.
const LANES_MAX: usize = 60;

/// The lane (a minute of a slot, a second of a minute) whose repetitions over a day carry least.
fn best_lane(
    cells: &[u32],
    lane_length: Duration,
    n_lanes: usize,
    load: &SlotLoad,
    base: Timestamp,
    choice: &PhaseChoice,
    wishes: Option<&Wishes<'_>>,
) -> Option<Timestamp> {
    let n_lanes = n_lanes.min(LANES_MAX);
    let n_rows_max = if lane_length == SECOND { SECOND_ROWS_MAX } else { ROWS_MAX };
    let mut peaks = [0_u32; LANES_MAX];
    let mut sums = [0_u32; LANES_MAX];
    let mut unwished = [0_u32; LANES_MAX];
    let lane_start = |lane: usize| lane_length * i64::try_from(lane).unwrap_or(0);
    // One row of lanes after the other, each side by side in memory.
    let mut at = base;
    let mut lanes = DayLanes::new(load, base, lane_length, choice.interval);
    for _ in 0..n_rows_max {
        let first = lanes.idx();
        let row = cells.get(first..first + n_lanes).unwrap_or_default();
        for ((peak, sum), cell) in peaks.iter_mut().zip(&mut sums).zip(row) {
            *peak = (*peak).max(*cell);
            // A sum of up to 96 counts of jobs; were it to wrap, a tie would fall the other way.
            *sum = sum.wrapping_add(*cell);
        }
        if let Some(wishes) = wishes {
            for (lane, n) in unwished.iter_mut().take(n_lanes).enumerate() {
                *n += u32::from(wishes.is_unwished(at + lane_start(lane)));
            }
        }
        lanes.advance();
        at = at + choice.interval;
        if base + DAY <= at {
            break;
        }
    }
    let all_allowed = choice.covers(base, lane_start(n_lanes));
    (0..n_lanes)
        .zip(unwished.iter().zip(peaks.iter().zip(&sums)))
        .filter(|(lane, _)| all_allowed || is_allowed(base + lane_start(*lane), lane_length, choice))
        .min_by_key(|(lane, rank)| (*rank, spread_rank(*lane, n_lanes)))
        .map(|(lane, _)| base + lane_start(lane))
}

/// The most starts of any minute that the phase through `at` falls into, over a day.
pub(super) fn minute_peak(load: &SlotLoad, at: Timestamp, interval: Duration) -> u32 {
    let mut peak = 0;
    let mut lanes = DayLanes::new(load, at, MINUTE, interval);
    let n_rows = (DAY.as_millis() / interval.as_millis()).max(1);
    for _ in 0..n_rows.min(96) {
        peak = peak.max(load.minutes().get(lanes.idx()).copied().unwrap_or(0));
        lanes.advance();
    }
    peak
}

/// A place among the lanes of a day that goes on by one interval at a time, and round at its end.
struct DayLanes {
    in_day: Duration,
    step: Duration,
    lane_length: Duration,
    /// The same in whole lanes, where the interval is a whole number of them: then nothing has to be
    /// divided on the way.
    idx: usize,
    n_step: Option<usize>,
    n_day: usize,
}

impl DayLanes {
    fn new(load: &SlotLoad, at: Timestamp, lane_length: Duration, interval: Duration) -> DayLanes {
        let in_day = Duration::from_millis(load.in_day(at));
        let step = Duration::from_millis(interval.as_millis() % DAY.as_millis());
        let lanes =
            |length: Duration| usize::try_from(length.as_millis() / lane_length.as_millis()).unwrap_or(0);
        let is_whole = step.as_millis() % lane_length.as_millis() == 0;
        let n_step = is_whole.then(|| lanes(step));
        DayLanes { in_day, step, lane_length, idx: lanes(in_day), n_step, n_day: lanes(DAY) }
    }

    fn idx(&self) -> usize {
        self.idx
    }

    fn advance(&mut self) {
        if let Some(n_step) = self.n_step {
            self.idx += n_step;
            self.idx -= if self.idx < self.n_day { 0 } else { self.n_day };
            return;
        }
        self.in_day = self.in_day + self.step;
        if DAY <= self.in_day {
            self.in_day = self.in_day - DAY;
        }
        self.idx = usize::try_from(self.in_day.as_millis() / self.lane_length.as_millis()).unwrap_or(0);
    }
}

/// Whether some point of a cell may be chosen.
pub(super) fn is_allowed(cell: Timestamp, cell_length: Duration, choice: &PhaseChoice) -> bool {
    let last = cell + cell_length - Duration::from_millis(1);
    if choice.first_of(cell).is_some() || choice.first_of(last).is_some() {
        return true;
    }
    // A choice narrower than the cell may lie in its middle.
    let start = choice.first_in.start();
    let into_cell = (start - cell).as_millis().rem_euclid(choice.interval.as_millis());
    !choice.first_in.is_empty() && into_cell < cell_length.as_millis()
}

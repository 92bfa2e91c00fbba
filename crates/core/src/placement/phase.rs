//! The phase of an interval (A3).

use super::fine::{is_allowed, refine};
use super::spot::{PhaseChoice, Spot, n_covered};
use super::wishes::Wishes;
use crate::slot::{BalanceBy, RunWork, SlotLoad};
use crate::time::{Duration, TimeWindow, Timestamp};

const MINUTE: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_days(1);
const MINUTES_A_DAY: usize = 1_440;

/// The best first occurrence of an interval, inside `first_in`; none only if that is empty.
///
/// What it costs is the number of slots of a day, or of the interval if that is longer: each slot
/// belongs to one phase. An interval that is not a whole number of slots is looked at by minutes,
/// and one that is not a whole number of minutes by seconds.
pub fn place_every(
    load: &SlotLoad,
    interval: Duration,
    first_in: TimeWindow,
    work: RunWork,
    wishes: Option<&Wishes<'_>>,
) -> Option<Spot> {
    let search = Search::new(load, interval, first_in, work, wishes);
    let best = search.best()?;
    search.spot(&best)
}

/// All phases of an interval that a first occurrence may choose from, as rows of cells.
pub(super) struct Search<'a> {
    load: &'a SlotLoad,
    choice: PhaseChoice,
    /// The cells that distinguish phases, all counted from the beginning of the window.
    grain: Duration,
    /// The cell in which the choice begins.
    first_cell: i64,
    /// How many cells there are to choose from.
    n_cells: i64,
    /// How many cells lie between two occurrences.
    step: usize,
    /// How many cells are known of.
    n_known: usize,
    /// How many cells a phase is looked at over: a day, or all that is known if the interval is longer.
    n_looked_at: usize,
    n_covered: usize,
    wishes: Option<&'a Wishes<'a>>,
}

/// A phase, and how much it would meet; the smallest is the best.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The cell that its first occurrence lies in, counted in grains from the beginning of the window.
    cell: i64,
    pub(super) n_unwished: u32,
    pub(super) peak: u64,
    pub(super) sum: u64,
    /// How many occurrences that is the sum of.
    pub(super) n: u64,
    /// The same of the minutes, where the grain is finer than a slot.
    minute_peak: u32,
    minute_sum: u32,
}

/// What a phase would meet, by starts alone; the smallest is the best.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct PhaseCost {
    peak: u32,
    sum: u64,
    minute_peak: u32,
    minute_sum: u32,
}

impl Candidate {
    fn rank(&self) -> (u32, u64, u64, u32, u32) {
        (self.n_unwished, self.peak, self.sum, self.minute_peak, self.minute_sum)
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(
        load: &'a SlotLoad,
        interval: Duration,
        first_in: TimeWindow,
        work: RunWork,
        wishes: Option<&'a Wishes<'a>>,
    ) -> Search<'a> {
        assert!(Duration::ZERO < interval, "an interval of {interval} has no phase");
        // No phase needs more than one interval to be reached.
        let end = first_in.end().min(first_in.start() + interval);
        let choice = PhaseChoice { interval, first_in: TimeWindow::new(first_in.start(), end) };
        let grain = grain_of(load, interval);
        let grain_ms = grain.as_millis();
        let window = load.window();
        let cell_of = |at: Timestamp| (at - window.start()).as_millis().div_euclid(grain_ms);
        let first_cell = cell_of(choice.first_in.start());
        let last_cell = cell_of(choice.first_in.end() - Duration::from_millis(1));
        let n_phases = (interval.as_millis() / grain_ms).max(1);
        let n_known = window.length().as_millis() / grain_ms;
        // Beyond what is known of the future, all places are equally good: there the earliest win.
        let n_cells = n_phases.min(last_cell - first_cell + 1).min((n_known - first_cell).max(1));
        let n_looked_at = if DAY < interval { n_known } else { DAY.as_millis() / grain_ms };
        let to_usize = |it: i64| usize::try_from(it).unwrap_or(0);
        Search {
            load,
            choice,
            grain,
            first_cell,
            n_cells,
            step: to_usize(n_phases),
            n_known: to_usize(n_known),
            n_looked_at: to_usize(n_looked_at),
            n_covered: n_covered(load, work.length),
            wishes,
        }
    }

    /// The instant that a phase begins at: the best millisecond of its cell.
    pub(super) fn spot(&self, best: &Candidate) -> Option<Spot> {
        let at = refine(self.load, self.cell_start(best.cell), self.grain, &self.choice, self.wishes)?;
        Some(Spot::new(self.load, at, best.peak, best.n_unwished))
    }

    pub(super) fn best(&self) -> Option<Candidate> {
        let is_plain = self.load.by() == BalanceBy::Runs && self.wishes.is_none();
        let equals = if is_plain { self.best_by_runs() } else { self.best_in_general() };
        match equals.as_slice() {
            [] => None,
            [only] => Some(*only),
            several => self.by_neighbourhood(several),
        }
    }

    fn best_in_general(&self) -> Vec<Candidate> {
        let candidates: Vec<Candidate> = self.cells().map(|cell| self.candidate(cell)).collect();
        let Some(best) = candidates.iter().map(Candidate::rank).min() else { return Vec::new() };
        candidates.into_iter().filter(|candidate| candidate.rank() == best).collect()
    }

    /// The same for the common case, counts of starts: all phases side by side, one interval after the
    /// other, instead of one phase after the other.
    fn best_by_runs(&self) -> Vec<Candidate> {
        let mut tallies: Vec<PhaseCost> = vec![PhaseCost::default(); self.step.min(self.n_known)];
        let per = |length: Duration| index_of(length.as_millis() / self.grain.as_millis()).max(1);
        if self.grain == self.load.width().length() {
            self.tally_slots(&mut tallies);
        } else {
            self.tally_finely(&mut tallies, per(self.load.width().length()), per(MINUTE));
        }
        // The phase of the slot that is going on is looked at elsewhere.
        let first = self.candidate(self.first_cell);
        if let Some(tally) = tallies.first_mut() {
            let Candidate { peak, sum, minute_peak, minute_sum, .. } = first;
            *tally =
                PhaseCost { peak: u32::try_from(peak).unwrap_or(u32::MAX), sum, minute_peak, minute_sum };
        }
        // Only where the choice begins and ends may a cell be out of it.
        let is_out = |cell: i64| !is_allowed(self.cell_start(cell), self.grain, &self.choice);
        let start = index_of(i64::from(is_out(self.first_cell)));
        let end = index_of(self.n_cells - i64::from(is_out(self.first_cell + self.n_cells - 1)));
        let reached = tallies.get(start..end.min(tallies.len())).unwrap_or_default();
        let Some(best) = reached.iter().min() else { return Vec::new() };
        let cell_of = |idx: usize| self.first_cell + i64::try_from(start + idx).unwrap_or(0);
        let equals = reached.iter().enumerate().filter(|(_, tally)| *tally == best);
        equals.map(|(idx, _)| self.candidate(cell_of(idx))).collect()
    }

    fn tally_slots(&self, tallies: &mut [PhaseCost]) {
        let runs = self.load.runs().get(index_of(self.first_cell)..).unwrap_or_default();
        for row in runs.chunks(self.step).take(self.n_looked_at.div_ceil(self.step)) {
            for (tally, runs) in tallies.iter_mut().zip(row) {
                tally.peak = tally.peak.max(*runs);
                tally.sum += u64::from(*runs);
            }
        }
    }

    /// By slots, and by minutes where slots are equal.
    fn tally_finely(&self, tallies: &mut [PhaseCost], per_slot: usize, per_minute: usize) {
        let first = index_of(self.first_cell);
        let n_rows = self.n_looked_at.div_ceil(self.step);
        // Slots and minutes are repeated for each of their cells, so that nothing has to be divided.
        let slots = self.load.runs().iter().flat_map(|runs| std::iter::repeat_n(*runs, per_slot));
        let minutes = self.load.minutes().iter().cycle();
        let minutes = minutes.flat_map(|in_minute| std::iter::repeat_n(*in_minute, per_minute));
        let mut cells = slots.zip(minutes).skip(first);
        for _ in 0..n_rows {
            for (tally, (runs, in_minute)) in tallies.iter_mut().zip(&mut cells) {
                tally.peak = tally.peak.max(runs);
                tally.sum += u64::from(runs);
                tally.minute_peak = tally.minute_peak.max(in_minute);
                tally.minute_sum = tally.minute_sum.saturating_add(in_minute);
            }
        }
    }

    /// The cells of all phases, by the first occurrence in each.
    fn cells(&self) -> impl Iterator<Item = i64> {
        let last = self.first_cell + self.n_cells - 1;
        // Only where the choice begins and ends may a cell be out of it.
        let is_inner = move |cell: i64| self.first_cell < cell && cell < last;
        (self.first_cell..=last).filter(move |cell| {
            is_inner(*cell) || is_allowed(self.cell_start(*cell), self.grain, &self.choice)
        })
    }

    fn cell_start(&self, cell: i64) -> Timestamp {
        self.load.window().start() + self.grain * cell
    }

    /// The cells of a phase's occurrences, as far as they are looked at.
    fn row(&self, cell: i64) -> std::iter::StepBy<std::ops::Range<usize>> {
        let (first, end) = self.row_ends(cell);
        (first..end).step_by(self.step)
    }

    fn row_ends(&self, cell: i64) -> (usize, usize) {
        let mut first = index_of(cell);
        if cell == self.first_cell {
            // Most of the slot that is going on lies behind us: its phase is seen where it comes next.
            let start = self.cell_start(cell);
            let is_behind = start < self.choice.first_in.start()
                && start + self.choice.interval < self.choice.first_in.end();
            first += if is_behind { self.step } else { 0 };
        }
        (first, (first + self.n_looked_at).min(self.n_known))
    }

    fn candidate(&self, cell: i64) -> Candidate {
        let (first, end) = self.row_ends(cell);
        let n = u64::try_from(self.row(cell).len()).unwrap_or(u64::MAX);
        let mut found = Candidate { cell, n_unwished: 0, peak: 0, sum: 0, n, minute_peak: 0, minute_sum: 0 };
        let is_slot_grain = self.grain == self.load.width().length();
        match (is_slot_grain, self.load.by()) {
            (true, BalanceBy::Runs) => {
                let row = self.load.runs().get(first..end).unwrap_or_default().iter().step_by(self.step);
                let (mut peak, mut sum) = (0, 0);
                for runs in row {
                    peak = peak.max(*runs);
                    sum += u64::from(*runs);
                }
                (found.peak, found.sum) = (u64::from(peak), sum);
            }
            (true, BalanceBy::Work) => {
                for idx in self.row(cell) {
                    let weight = self.load.weight_at(idx, self.n_covered);
                    found.peak = found.peak.max(weight);
                    found.sum += weight;
                }
            }
            (false, _) => self.weigh_finely(&mut found, self.row(cell)),
        }
        if let Some(wishes) = self.wishes {
            found.n_unwished = self.n_unwished(wishes, cell);
        }
        found
    }

    /// By slots, and by minutes where slots are equal.
    fn weigh_finely(&self, found: &mut Candidate, cells: impl Iterator<Item = usize>) {
        let per = |length: Duration| {
            usize::try_from(length.as_millis() / self.grain.as_millis()).unwrap_or(1).max(1)
        };
        let (per_slot, per_minute) = (per(self.load.width().length()), per(MINUTE));
        for cell in cells {
            let weight = self.load.weight_at(cell / per_slot, self.n_covered);
            found.peak = found.peak.max(weight);
            found.sum += weight;
            let minute = cell / per_minute % MINUTES_A_DAY;
            let n_in_minute = self.load.minutes().get(minute).copied().unwrap_or(0);
            found.minute_peak = found.minute_peak.max(n_in_minute);
            found.minute_sum = found.minute_sum.saturating_add(n_in_minute);
        }
    }

    /// How many occurrences have no minute in their cell that suits: a blackout may end in the middle
    /// of a slot.
    fn n_unwished(&self, wishes: &Wishes<'_>, cell: i64) -> u32 {
        let n_minutes = (self.grain.as_millis() / MINUTE.as_millis()).max(1);
        let suits = |cell: usize| {
            let start = self.cell_start(i64::try_from(cell).unwrap_or(0));
            (0..n_minutes).any(|minute| !wishes.is_unwished(start + MINUTE * minute))
        };
        let n = self.row(cell).filter(|cell| !suits(*cell)).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    }

    /// Of equals: the quietest hour around, then the farthest from all that carry something, then
    /// the earliest.
    fn by_neighbourhood(&self, equals: &[Candidate]) -> Option<Candidate> {
        let reach = (self.load.width().n_an_hour() / 2).max(1);
        let hour_of = |candidate: &Candidate| {
            let mut sum = 0;
            self.for_each_slot(candidate, |slot| {
                for near in slot.saturating_sub(reach)..=slot + reach {
                    sum += self.load.weight_at(near, 1);
                }
            });
            sum
        };
        let hours: Vec<u64> = equals.iter().map(hour_of).collect();
        let quietest = hours.iter().min()?;
        let mut remaining = equals.iter().zip(&hours).filter(|(_, hour)| *hour == quietest).map(|(it, _)| it);
        if equals.first().is_some_and(|candidate| 0 < candidate.peak) {
            // A slot that carries something is at no distance from itself: the earliest wins.
            return remaining.next().copied();
        }
        let distances = self.distances();
        let distance_of = |candidate: &Candidate| {
            let mut nearest = u32::MAX;
            self.for_each_slot(candidate, |slot| {
                nearest = nearest.min(distances.get(slot).copied().unwrap_or(u32::MAX));
            });
            nearest
        };
        remaining.max_by_key(|candidate| (distance_of(candidate), std::cmp::Reverse(candidate.cell))).copied()
    }

    fn for_each_slot(&self, candidate: &Candidate, visit: impl FnMut(usize)) {
        let per_slot =
            usize::try_from(self.load.width().length().as_millis() / self.grain.as_millis()).unwrap_or(1);
        self.row(candidate.cell).map(|cell| cell / per_slot.max(1)).for_each(visit);
    }

    /// For each slot, how far the nearest one is that carries something.
    fn distances(&self) -> Vec<u32> {
        let n_slots = self.load.runs().len();
        let mut distances = vec![u32::MAX; n_slots];
        let mut sweep = |order: &mut dyn Iterator<Item = usize>| {
            let mut since = u32::MAX;
            for idx in order {
                let occupied = 0 < self.load.weight_at(idx, 1);
                since = if occupied { 0 } else { since.saturating_add(1) };
                if let Some(distance) = distances.get_mut(idx) {
                    *distance = (*distance).min(since);
                }
            }
        };
        sweep(&mut (0..n_slots));
        sweep(&mut (0..n_slots).rev());
        distances
    }
}

/// A cell of the window as an index; what lies before it is looked at from its beginning.
fn index_of(cell: i64) -> usize {
    usize::try_from(cell).unwrap_or(0)
}

/// The coarsest cells that an interval is a whole number of; seconds for what has odd milliseconds.
pub(super) fn grain_of(load: &SlotLoad, interval: Duration) -> Duration {
    [load.width().length(), MINUTE, SECOND]
        .into_iter()
        .find(|grain| interval.as_millis() % grain.as_millis() == 0)
        .unwrap_or(SECOND)
}

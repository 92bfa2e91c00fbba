//! What a search for a place asks and answers.

use crate::slot::{Slot, SlotLoad};
use crate::time::{Duration, TimeWindow, Timestamp};

/// How places are chosen (A6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By all projected occurrences of every job.
    #[default]
    Phase,
    /// By the next runs alone: the emptiest slot of the next day, the earliest of several.
    LeastLoaded,
    /// Not at all: one interval from now. To observe a fleet before adopting anything.
    None,
}

/// A place on the time line, and what it was chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The first occurrence.
    pub at: Timestamp,
    /// The slot that it lies in.
    pub slot: Slot,
    /// What that slot carried before.
    pub load: u32,
    /// The most that any slot of its occurrences carried before, as it is levelled.
    pub peak: u64,
    /// How many of its occurrences of the next day go against its wishes.
    pub n_unwished: u32,
}

impl Spot {
    pub(super) fn new(load: &SlotLoad, at: Timestamp, peak: u64, n_unwished: u32) -> Spot {
        let slot = Slot::of(at, load.width());
        Spot { at, slot, load: load.runs_in(slot), peak, n_unwished }
    }
}

/// The phases of an interval that a first occurrence may choose from.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseChoice {
    pub(super) interval: Duration,
    /// Where the first occurrence must lie.
    pub(super) first_in: TimeWindow,
}

impl PhaseChoice {
    /// Whether every point of a cell may be chosen. True of most cells, and quickly known of new jobs,
    /// which may choose any phase.
    pub(super) fn covers(&self, cell: Timestamp, cell_length: Duration) -> bool {
        let last = cell_length - Duration::from_millis(1);
        self.interval <= self.first_in.length()
            || self.first_of(cell).is_some_and(|first| self.first_of(cell + last) == Some(first + last))
    }

    /// The first occurrence of the phase that a point lies on, if it may be chosen.
    pub(super) fn first_of(&self, point: Timestamp) -> Option<Timestamp> {
        let start = self.first_in.start();
        let step = self.interval.as_millis();
        let into_phase = (point - start).as_millis().rem_euclid(step);
        Some(start + Duration::from_millis(into_phase)).filter(|at| self.first_in.contains(*at))
    }
}

/// How many slots a run of this length reaches into, at least its own.
pub(super) fn n_covered(load: &SlotLoad, length: Duration) -> usize {
    let width = load.width().length().as_millis();
    usize::try_from(length.as_millis().max(0) / width).unwrap_or(0) + 1
}

/// The n-th of some lanes in an order in which every beginning is spread out: 0, 8, 4, 12, 2 …
pub(super) fn spread_rank(lane: usize, n_lanes: usize) -> usize {
    let bits = n_lanes.next_power_of_two().trailing_zeros().max(1);
    lane.reverse_bits() >> (usize::BITS - bits)
}

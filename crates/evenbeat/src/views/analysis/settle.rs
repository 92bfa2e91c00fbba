//! Turns a placement of all jobs into a proposal that is never worse than the current schedule and has no useless moves.

use evenbeat_core::distribution::WindowHoursError;

use super::figures::{SCORE_TOLERANCE, Side, changed};
use super::input::FleetFileKind;
use super::placement::PlacedJob;

/// Budget of starts to count while trying moves one by one. Beyond it, all moves are accepted or rejected together.
const STARTS_MAX: u64 = 20_000_000;

/// Chooses which moves of a placement to propose.
pub(super) fn settled(
    as_is: &[PlacedJob],
    placed: Vec<PlacedJob>,
    kind: FleetFileKind,
    now: &Side,
) -> Result<Vec<PlacedJob>, WindowHoursError> {
    let mut trial = Trial::of(placed, now)?;
    if trial.side.is_worse_than(now) {
        trial = trial.adopted(as_is, now)?;
    }
    // A crontab is changed by hand, so every changed line must be worth it. The times of a job file are chosen by
    // Evenbeat anyway.
    if kind != FleetFileKind::Jobs {
        trial.take_back(as_is)?;
    }
    Ok(trial.placed)
}

/// Jobs on the time line, with the option to move one and see the effect.
struct Trial<'a> {
    placed: Vec<PlacedJob>,
    side: Side,
    now: &'a Side,
    n_steps_left: u64,
}

impl<'a> Trial<'a> {
    fn of(placed: Vec<PlacedJob>, now: &'a Side) -> Result<Trial<'a>, WindowHoursError> {
        let side = side_of(&placed, now)?;
        let n_steps_left = STARTS_MAX / now.distribution.n_runs.max(1);
        Ok(Trial { placed, side, now, n_steps_left })
    }

    /// Starts from the current schedule and moves each job only if that makes nothing worse.
    ///
    /// Placement minimises the peak over a week, job by job, while the score measures the deviation over these hours. The
    /// two disagree for about one in a hundred small crontabs, in the third digit.
    fn adopted(self, as_is: &[PlacedJob], now: &'a Side) -> Result<Trial<'a>, WindowHoursError> {
        let mut adopting = Trial::of(as_is.to_vec(), now)?;
        for (idx, new) in self.placed.iter().enumerate() {
            adopting.try_at(idx, new, |side, before| !side.is_worse_than(before))?;
        }
        Ok(adopting)
    }

    /// Reverts each move that has no effect. Jobs that do not start within these hours cannot be judged, so they keep the
    /// place that was chosen for the week.
    fn take_back(&mut self, as_is: &[PlacedJob]) -> Result<(), WindowHoursError> {
        let hours = self.now.distribution.window;
        for (idx, old) in as_is.iter().enumerate().filter(|(_, old)| 0 < old.n_starts(hours)) {
            self.try_at(idx, old, |side, before| {
                let is_as_even = before.minute_evenness() <= side.minute_evenness() + SCORE_TOLERANCE;
                is_as_even && !side.is_worse_than(before)
            })?;
        }
        Ok(())
    }

    /// Moves one job if the result is accepted.
    fn try_at(
        &mut self,
        idx: usize,
        other: &PlacedJob,
        accept: impl Fn(&Side, &Side) -> bool,
    ) -> Result<(), WindowHoursError> {
        let Some(place) = self.placed.get_mut(idx) else { return Ok(()) };
        if changed(place, other).is_none() || self.n_steps_left == 0 {
            return Ok(());
        }
        self.n_steps_left -= 1;
        let before = std::mem::replace(place, other.clone());
        let side = side_of(&self.placed, self.now)?;
        if accept(&side, &self.side) {
            self.side = side;
        } else if let Some(place) = self.placed.get_mut(idx) {
            *place = before;
        }
        Ok(())
    }
}

/// The figures after the moves.
fn side_of(placed: &[PlacedJob], like: &Side) -> Result<Side, WindowHoursError> {
    let hours = u32::try_from(like.distribution.hours.len()).unwrap_or(u32::MAX);
    Side::of(like.distribution.window.start(), hours, placed)
}

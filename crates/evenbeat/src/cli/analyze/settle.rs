//! From a placement of all jobs to a proposal: never worse than what there is, and no move in vain.

use evenbeat_core::distribution::WindowHoursError;

use super::figures::{SCORE_TOLERANCE, Side, changed};
use super::placed::Placed;
use crate::cli::input::InputKind;

/// How many starts may be counted while moves are tried one by one; beyond, all stand or fall together.
const STARTS_MAX: u64 = 20_000_000;

/// What is proposed of a placement of all jobs.
pub(super) fn settled(
    as_is: &[Placed],
    placed: Vec<Placed>,
    kind: InputKind,
    now: &Side,
) -> Result<Vec<Placed>, WindowHoursError> {
    let mut trial = Trial::of(placed, now)?;
    if trial.side.is_worse_than(now) {
        trial = trial.adopted(as_is, now)?;
    }
    // Who keeps a crontab changes it by hand, and wants to know of every line what for. The times of
    // a job file are chosen by Evenbeat anyway.
    if kind != InputKind::Jobs {
        trial.take_back(as_is)?;
    }
    Ok(trial.placed)
}

/// Jobs on the time line, one of which may be moved to see what that does.
struct Trial<'a> {
    placed: Vec<Placed>,
    side: Side,
    now: &'a Side,
    n_steps_left: u64,
}

impl<'a> Trial<'a> {
    fn of(placed: Vec<Placed>, now: &'a Side) -> Result<Trial<'a>, WindowHoursError> {
        let side = side_of(&placed, now)?;
        let n_steps_left = STARTS_MAX / now.distribution.n_runs.max(1);
        Ok(Trial { placed, side, now, n_steps_left })
    }

    /// What remains if, beginning with what there is, each job moves only where that makes nothing
    /// worse.
    ///
    /// Jobs are placed one by one, over a week, by the smallest peak first; the score is about
    /// deviation, over these hours. Of a hundred small crontabs, for one the two disagree in the
    /// third digit.
    fn adopted(self, as_is: &[Placed], now: &'a Side) -> Result<Trial<'a>, WindowHoursError> {
        let mut adopting = Trial::of(as_is.to_vec(), now)?;
        for (idx, new) in self.placed.iter().enumerate() {
            adopting.try_at(idx, new, |side, before| !side.is_worse_than(before))?;
        }
        Ok(adopting)
    }

    /// Takes back each move that nobody would miss. About jobs that do not start in these hours
    /// nothing can be said, and they keep the place that a look at the week gave them.
    fn take_back(&mut self, as_is: &[Placed]) -> Result<(), WindowHoursError> {
        let hours = self.now.distribution.window;
        for (idx, old) in as_is.iter().enumerate().filter(|(_, old)| 0 < old.n_starts(hours)) {
            self.try_at(idx, old, |side, before| {
                let is_as_even = before.minute_evenness() <= side.minute_evenness() + SCORE_TOLERANCE;
                is_as_even && !side.is_worse_than(before)
            })?;
        }
        Ok(())
    }

    /// Sets one job down elsewhere, if what comes of it is accepted.
    fn try_at(
        &mut self,
        idx: usize,
        other: &Placed,
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

/// The same hours as another side.
fn side_of(placed: &[Placed], like: &Side) -> Result<Side, WindowHoursError> {
    let hours = u32::try_from(like.distribution.hours.len()).unwrap_or(u32::MAX);
    Side::of(like.distribution.window.start(), hours, placed)
}

//! How the next day is spread, whether there is room for it, and how even it was before.

use std::sync::Arc;

use evenbeat_core::distribution::Distribution;
use evenbeat_core::expected_running::ExpectedRunning;
use evenbeat_core::placement::DayOutlook;
use evenbeat_core::store::SessionKind;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use super::ViewError;
use crate::app::App;
use crate::fleet::DAY_HOURS;
use crate::store::query::ScorePoint;

/// How far the score is looked back at, in how many cells. A sample is taken every five minutes.
const SCORE_DAYS: i64 = 7;
const SCORE_CELLS: usize = 168;
const SCORES_MAX: usize = 2_200;

/// Below this much history, a day of it is shown in finer cells.
const SCORE_DAY_CELLS: usize = 96;

/// The next day as it is planned.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleDay {
    pub(crate) day: Arc<Distribution>,
    /// What the starts ask for. None while it is being counted.
    pub(crate) outlook: Option<Arc<DayOutlook>>,
    pub(crate) capacity: FleetCapacity,
    pub(crate) score_history: ScoreHistory,
}

/// What all living nodes can run at once, over all pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FleetCapacity {
    /// Cost units of nodes that take new runs.
    pub(crate) units: u64,
    /// Nodes that take new runs.
    pub(crate) n_nodes: usize,
    /// Pools that they carry.
    pub(crate) n_pools: usize,
}

/// A time at which more is expected to run than there is room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScheduleOverload {
    pub(crate) slot_idx: usize,
    pub(crate) at: Timestamp,
    /// Cost units that are wanted, rounded up.
    pub(crate) wanted: u64,
    /// Those of them that find no room.
    pub(crate) too_many: u64,
}

/// The score over the last days, in equal cells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScoreHistory {
    pub(crate) window: TimeWindow,
    /// The lowest score in each cell; none if there was no sample.
    pub(crate) cells: Vec<Option<f64>>,
}

/// The next day, and the past of its score.
pub(crate) async fn day(app: &App) -> Result<ScheduleDay, ViewError> {
    let now = app.intake.now();
    let day = app.fleet.distribution(now, DAY_HOURS).await;
    let day = day.map_err(|error| ViewError::Bug(error.to_string()))?;
    let samples = app.store.scores(now - Duration::from_days(SCORE_DAYS), SCORES_MAX).await?;
    Ok(ScheduleDay {
        outlook: app.fleet.outlook(now).await,
        capacity: capacity(app).await?,
        score_history: ScoreHistory::of(&samples, now),
        day,
    })
}

/// What all living nodes can run at once.
pub(crate) async fn capacity(app: &App) -> Result<FleetCapacity, ViewError> {
    let sessions = app.store.sessions().await?;
    let takes_runs =
        |kind, is_dead: bool, is_draining: bool| kind == SessionKind::Node && !is_dead && !is_draining;
    let nodes = sessions.iter().filter(|it| takes_runs(it.spec.kind, it.is_dead, it.is_draining));
    let nodes: Vec<_> = nodes.collect();
    let pools = nodes.iter().flat_map(|it| it.spec.pools.keys());
    Ok(FleetCapacity {
        units: nodes.iter().flat_map(|it| it.spec.pools.values()).map(|it| u64::from(*it)).sum(),
        n_nodes: nodes.len(),
        n_pools: pools.collect::<std::collections::BTreeSet<_>>().len(),
    })
}

impl FleetCapacity {
    /// By how much a demand exceeds it, rounded up.
    pub(crate) fn too_many(&self, demand: f64) -> u64 {
        whole(demand).saturating_sub(self.units)
    }
}

impl ScheduleDay {
    /// How many runs are expected at once. None while that is being counted, and while too few run lengths are known.
    pub(crate) fn running(&self) -> Option<&ExpectedRunning> {
        self.outlook.as_ref().map(|it| &it.running).filter(|it| it.is_known())
    }

    /// The slot in which the most is wanted, if there is no room for all of it.
    pub(crate) fn overload(&self) -> Option<ScheduleOverload> {
        let running = self.running()?;
        let (slot_idx, demand) = running.peak();
        let too_many = self.capacity.too_many(demand);
        let at = self.day.slot_start(slot_idx);
        (0 < too_many).then_some(ScheduleOverload { slot_idx, at, wanted: whole(demand), too_many })
    }

    /// The first slot in which more is wanted than there is room for.
    pub(crate) fn first_overload(&self) -> Option<Timestamp> {
        let running = self.running()?;
        let idx = running.slots.iter().position(|demand| 0 < self.capacity.too_many(*demand))?;
        Some(self.day.slot_start(idx))
    }

    /// The day as it is drawn: its slots, or several of them together where slots are narrower than ten minutes.
    pub(crate) fn cells(&self) -> Vec<DayCell> {
        let width = usize::from(self.day.width.as_mins());
        let minutes = match width {
            10.. => width,
            _ if 15 % width == 0 => 15,
            _ => 12,
        };
        let per_cell = minutes / width;
        let chunks = self.day.slots.chunks(per_cell).enumerate();
        let outlook = self.outlook.as_ref();
        chunks
            .map(|(idx, slots)| {
                let (from, starts) = (idx * per_cell, slots.iter().sum::<u32>());
                let part = |all: &[u32]| all.get(from..from + per_cell).map(|it| it.iter().sum::<u32>());
                let demand = self.running().and_then(|it| it.slots.get(from..from + per_cell));
                DayCell {
                    window: TimeWindow::starting_at(
                        self.day.slot_start(from),
                        self.day.width.length() * i64::try_from(per_cell).unwrap_or(1),
                    ),
                    starts,
                    // Counted a moment earlier than the starts themselves.
                    movable: outlook.and_then(|it| part(&it.movable_slots)).map(|n| n.min(starts)),
                    demand: demand.map(|it| it.iter().copied().fold(0.0, f64::max)),
                }
            })
            .collect()
    }
}

/// Some minutes of the day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DayCell {
    pub(crate) window: TimeWindow,
    /// Planned starts.
    pub(crate) starts: u32,
    /// Those of them whose time Evenbeat may choose. None while that is being counted.
    pub(crate) movable: Option<u32>,
    /// Cost units that are wanted at once. None if that is not known.
    pub(crate) demand: Option<f64>,
}

/// The cells with the most starts, at most this many: the busiest first, then the earliest.
pub(crate) fn busiest(cells: &[DayCell], most: usize) -> Vec<DayCell> {
    let mut busy: Vec<DayCell> = cells.iter().copied().filter(|it| 0 < it.starts).collect();
    busy.sort_by_key(|it| (std::cmp::Reverse(it.starts), it.window.start()));
    busy.truncate(most);
    busy
}

/// A demand in whole units: a tenth of a run more than there is room for is one that waits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a demand is small and not negative"
)]
pub(crate) fn whole(demand: f64) -> u64 {
    // Not one more because of how fractions are stored.
    (demand - 1e-6).ceil().max(0.0) as u64
}

impl ScoreHistory {
    /// The lowest score of each cell: an average would hide the hour that hurt.
    fn of(samples: &[ScorePoint], now: Timestamp) -> ScoreHistory {
        let day_ago = now - Duration::from_days(1);
        let is_short = samples.first().is_none_or(|it| day_ago <= it.at);
        let (start, n_cells) = if is_short {
            (day_ago, SCORE_DAY_CELLS)
        } else {
            (now - Duration::from_days(SCORE_DAYS), SCORE_CELLS)
        };
        let window = TimeWindow::new(start, now);
        let mut cells: Vec<Option<f64>> = vec![None; n_cells];
        for it in samples {
            let into = (it.at - start).as_millis_f64() / window.length().as_millis_f64();
            let idx = cell_idx(into, n_cells);
            if let Some(cell) = idx.and_then(|idx| cells.get_mut(idx)) {
                *cell = Some(cell.map_or(it.score, |score| score.min(it.score)));
            }
        }
        ScoreHistory { window, cells }
    }

    /// The lowest score of all, and its cell.
    pub(crate) fn lowest(&self) -> Option<(usize, f64)> {
        let scores = self.cells.iter().enumerate().filter_map(|(idx, it)| it.map(|score| (idx, score)));
        scores.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// When a cell begins.
    pub(crate) fn cell_start(&self, idx: usize) -> Timestamp {
        let n_cells = i64::try_from(self.cells.len()).unwrap_or(1).max(1);
        let length = self.window.length().as_millis() / n_cells;
        self.window.start() + Duration::from_millis(length * i64::try_from(idx).unwrap_or(0))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share of a few hundred cells"
)]
fn cell_idx(share: f64, n_cells: usize) -> Option<usize> {
    (0.0..=1.0).contains(&share).then(|| ((share * n_cells as f64) as usize).min(n_cells - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(now: Timestamp, ago: Duration, score: f64) -> ScorePoint {
        ScorePoint { at: now - ago, score, peak: 1, n_jobs: 1 }
    }

    #[test]
    fn a_demand_is_rounded_up_to_whole_runs() {
        assert_eq!([0.0, 0.1, 1.0, 1.000_000_1, 59.9, 60.2].map(whole), [0, 1, 1, 1, 60, 61]);
        let capacity = FleetCapacity { units: 60, ..FleetCapacity::default() };
        assert_eq!([0.0, 60.0, 60.2, 110.0].map(|it| capacity.too_many(it)), [0, 0, 1, 50]);
    }

    #[test]
    fn a_young_history_is_a_day_and_an_older_one_a_week() {
        let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let young = ScoreHistory::of(&[sample(now, Duration::from_hours(2), 0.5)], now);
        assert_eq!((young.cells.len(), young.lowest()), (96, Some((88, 0.5))));
        assert_eq!(young.cell_start(88), now - Duration::from_hours(2));
        let old = [
            sample(now, Duration::from_days(3), 0.9),
            sample(now, Duration::from_mins(50), 0.8),
            sample(now, Duration::from_mins(20), 0.6),
            sample(now, Duration::ZERO, 0.7),
        ];
        let old = ScoreHistory::of(&old, now);
        assert_eq!((old.cells.len(), old.lowest()), (168, Some((167, 0.6))));
        assert_eq!(ScoreHistory::of(&[], now).lowest(), None);
    }
}

//! What people look at before they confirm a rebalance plan: figures, the first moves, and counts of the rest. It is kept
//! with the plan, so that any node can show it, and its size does not depend on the fleet.

use std::collections::BTreeMap;

use evenbeat_core::distribution::Distribution;
use evenbeat_core::expected_running::ExpectedRunning;
use evenbeat_core::placement::{KeptReason, Move, RebalancePlan};
use evenbeat_core::time::{Duration, Timestamp};
use serde::{Deserialize, Serialize};

/// Number of moves that are listed.
const MOVES_LISTED_MAX: usize = 200;

/// A plan in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanSummary {
    made_at: i64,
    /// When the first slot begins.
    start: i64,
    /// How wide slots are, in minutes.
    pub slot_minutes: u16,
    pub before: PlanSide,
    pub after: PlanSide,
    /// Jobs that move.
    pub n_moves: usize,
    /// Jobs that are well where they are.
    pub n_unchanged: usize,
    /// Jobs that must not move now, by the code of the reason.
    kept: BTreeMap<String, usize>,
    /// The first moves by the time they leave.
    pub moves: Vec<ListedMove>,
    /// The move with the least room before its latest start.
    pub tightest: Option<ListedMove>,
    /// Moves past the latest start of the occurrence that is moved.
    pub n_past_latest_start: usize,
    /// Moved jobs that meet a blackout.
    pub n_in_blackout: usize,
}

/// The next day without the plan, or with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanSide {
    pub score: f64,
    /// Starts by slot.
    pub slots: Vec<u32>,
    /// Most cost units that are expected to run at once; none if too few run lengths are known.
    pub most_running: Option<f64>,
}

/// One move in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMove {
    pub key: String,
    old: i64,
    new: i64,
    latest: Option<i64>,
}

impl ListedMove {
    fn of(it: &Move) -> ListedMove {
        ListedMove {
            key: it.key.to_string(),
            old: it.old_time.as_millis(),
            new: it.new_time.as_millis(),
            latest: it.latest_start.map(Timestamp::as_millis),
        }
    }

    /// Its next start as it is.
    pub fn old_time(&self) -> Timestamp {
        Timestamp::from_millis(self.old)
    }

    /// Its next start as it would be.
    pub fn new_time(&self) -> Timestamp {
        Timestamp::from_millis(self.new)
    }

    /// From the new start to the latest start; negative if it starts later than that, none without a deadline.
    pub fn room(&self) -> Option<Duration> {
        self.latest.map(|latest| Timestamp::from_millis(latest) - self.new_time())
    }
}

impl PlanSide {
    fn of(day: &Distribution, running: &ExpectedRunning) -> PlanSide {
        PlanSide {
            score: day.score(),
            slots: day.slots.clone(),
            most_running: running.is_known().then_some(running.peak().1),
        }
    }

    /// The busiest slot, and its starts.
    pub fn peak(&self) -> (usize, u32) {
        let most = self.slots.iter().copied().max().unwrap_or(0);
        (self.slots.iter().position(|it| *it == most).unwrap_or(0), most)
    }
}

impl PlanSummary {
    /// A plan in figures.
    pub fn of(plan: &RebalancePlan) -> PlanSummary {
        let mut first: Vec<&Move> = plan.moves.iter().collect();
        let order = |one: &&Move, other: &&Move| (one.old_time, &one.key).cmp(&(other.old_time, &other.key));
        if MOVES_LISTED_MAX < first.len() {
            first.select_nth_unstable_by(MOVES_LISTED_MAX, order);
            first.truncate(MOVES_LISTED_MAX);
        }
        first.sort_unstable_by(order);
        let mut kept: BTreeMap<String, usize> = BTreeMap::new();
        for it in &plan.kept {
            match kept.get_mut(it.reason.as_str()) {
                Some(n) => *n += 1,
                None => {
                    kept.insert(it.reason.as_str().to_owned(), 1);
                }
            }
        }
        let tightest = plan.moves.iter().filter(|it| it.room().is_some()).min_by_key(|it| it.room());
        PlanSummary {
            made_at: plan.made_at.as_millis(),
            start: plan.before.window.start().as_millis(),
            slot_minutes: plan.before.width.as_mins(),
            before: PlanSide::of(&plan.before, &plan.running_before),
            after: PlanSide::of(&plan.after, &plan.running_after),
            n_moves: plan.moves.len(),
            n_unchanged: plan.n_unchanged,
            kept,
            moves: first.into_iter().map(ListedMove::of).collect(),
            tightest: tightest.map(ListedMove::of),
            n_past_latest_start: plan.moves.iter().filter(|it| it.is_past_latest_start()).count(),
            n_in_blackout: plan.n_in_blackout,
        }
    }

    /// When the plan was made.
    pub fn made_at(&self) -> Timestamp {
        Timestamp::from_millis(self.made_at)
    }

    /// When a slot begins.
    pub fn slot_start(&self, idx: usize) -> Timestamp {
        let width = Duration::from_mins(self.slot_minutes.into());
        Timestamp::from_millis(self.start) + width * i64::try_from(idx).unwrap_or(0)
    }

    /// Jobs that must not move now, by reason.
    pub fn kept(&self) -> Vec<(KeptReason, usize)> {
        let counted = |it: KeptReason| self.kept.get(it.as_str()).map(|n| (it, *n));
        KeptReason::ALL.into_iter().filter_map(counted).collect()
    }

    /// Jobs that stay where they are.
    pub fn n_stays(&self) -> usize {
        self.n_unchanged + self.kept.values().sum::<usize>()
    }
}

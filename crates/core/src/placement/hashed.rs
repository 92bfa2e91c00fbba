//! Values for `H` in a cron expression, by load (A15).

use super::spot::{Spot, n_covered};
use super::wishes::Wishes;
use crate::schedule::cron::{CronExpr, CronPlan, HashedTerm};
use crate::slot::{RunWork, SlotLoad};
use crate::time::{TimeWindow, Timestamp};
use crate::zone::Zone;

/// Up to this many combinations of values are all tried: an hour and a minute have 1,440.
const COMBINATIONS_MAX: u64 = 2_000;

/// Beyond that, how often all `H` are looked at in turn: the best hour depends on the minute, and the
/// other way round.
const ROUNDS: usize = 2;

/// The best choices for every `H`, and the first occurrence after `now` with them; none if there is
/// none ever.
///
/// Few combinations are all tried. Of many, each `H` is tried with all its values while the others
/// stay, beginning with what the job's name gives: the whole space of eight of them is far too large.
pub fn place_hashed(
    load: &SlotLoad,
    expr: &CronExpr,
    zone: &Zone,
    now: Timestamp,
    seed: u64,
    work: RunWork,
    wishes: Option<&Wishes<'_>>,
) -> Option<(Spot, Vec<u8>)> {
    let window = TimeWindow::new(now, load.window().end());
    let trial = Trial { load, expr, zone, window, n_covered: n_covered(load, work.length), wishes };
    let (_, choices) = expr.provisional(seed);
    let mut best = BestChoice { rank: trial.rank(&choices)?, choices };
    let n_values: Vec<u8> = expr.hashed_terms().iter().map(HashedTerm::n_choices).collect();
    let n_combinations = n_values.iter().fold(1_u64, |product, n| product.saturating_mul(u64::from(*n)));
    if n_combinations <= COMBINATIONS_MAX {
        let mut combination = vec![0; n_values.len()];
        for _ in 0..n_combinations {
            best.consider(&trial, &combination);
            advance(&mut combination, &n_values);
        }
    } else {
        for _ in 0..ROUNDS {
            for (term_idx, n) in n_values.iter().enumerate() {
                for value in 0..*n {
                    let mut other = best.choices.clone();
                    other.iter_mut().skip(term_idx).take(1).for_each(|choice| *choice = value);
                    best.consider(&trial, &other);
                }
            }
        }
    }
    let first = expr.resolve(&best.choices)?.next_after(zone, now)?;
    Some((Spot::new(load, first, best.rank.peak, best.rank.n_unwished), best.choices))
}

struct BestChoice {
    rank: ChoiceRank,
    choices: Vec<u8>,
}

impl BestChoice {
    fn consider(&mut self, trial: &Trial<'_>, choices: &[u8]) {
        if let Some(rank) = trial.rank(choices).filter(|rank| *rank < self.rank) {
            *self = BestChoice { rank, choices: choices.to_vec() };
        }
    }
}

/// The next combination, counted like digits of which each has its own base.
fn advance(combination: &mut [u8], n_values: &[u8]) {
    for (digit, n) in combination.iter_mut().zip(n_values) {
        *digit += 1;
        if *digit < *n {
            return;
        }
        *digit = 0;
    }
}

struct Trial<'a> {
    load: &'a SlotLoad,
    expr: &'a CronExpr,
    zone: &'a Zone,
    window: TimeWindow,
    n_covered: usize,
    wishes: Option<&'a Wishes<'a>>,
}

/// How good a set of choices is; the smallest is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ChoiceRank {
    n_unwished: u32,
    peak: u64,
    sum: u64,
    minute_peak: u32,
    minute_sum: u64,
}

impl Trial<'_> {
    fn rank(&self, choices: &[u8]) -> Option<ChoiceRank> {
        let plan: CronPlan = self.expr.resolve(choices)?;
        let mut rank = ChoiceRank { n_unwished: 0, peak: 0, sum: 0, minute_peak: 0, minute_sum: 0 };
        plan.for_each_in(self.zone, self.window, |at| {
            let Some(idx) = self.load.index(at) else { return };
            let weight = self.load.weight_at(idx, self.n_covered);
            let minute = usize::try_from(self.load.in_day(at) / 60_000).unwrap_or(0);
            let n_in_minute = self.load.minutes().get(minute).copied().unwrap_or(0);
            rank.peak = rank.peak.max(weight);
            rank.sum += weight;
            rank.minute_peak = rank.minute_peak.max(n_in_minute);
            rank.minute_sum += u64::from(n_in_minute);
            if self.wishes.is_some_and(|wishes| wishes.is_unwished(at)) {
                rank.n_unwished += 1;
            }
        });
        Some(rank)
    }
}

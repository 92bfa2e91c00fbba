//! `H`: a value that placement chooses to balance the load.

use super::CronField;

/// How many `H` one expression may hold; a placement stores a choice for each.
pub(super) const HASHED_TERMS_MAX: usize = 8;

/// One `H` of an expression: which values it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashedTerm {
    /// The field it stands in.
    pub field: CronField,
    /// The first value of its range.
    pub first: u8,
    /// The last value of its range; never before the first.
    pub last: u8,
    /// With `H/n`, every n-th value from the chosen one on; else the chosen one alone.
    pub step: Option<u8>,
}

impl HashedTerm {
    /// How many choices there are; a choice is a number below this.
    pub fn n_choices(&self) -> u8 {
        let n_values = self.last - self.first + 1;
        self.step.map_or(n_values, |step| step.min(n_values))
    }

    /// The numbers that a choice stands for.
    pub(super) fn numbers(&self, choice: u8) -> impl Iterator<Item = u8> {
        let first = self.first + choice;
        let last = if self.step.is_some() { self.last } else { first };
        (first..=last).step_by(usize::from(self.step.unwrap_or(1)))
    }

    /// The choice in plain cron: `17`, or `7-59/15`.
    pub(super) fn resolved_text(self, choice: u8) -> String {
        let first = self.first + choice;
        match self.step {
            Some(step) => format!("{first}-{}/{step}", self.last),
            None => first.to_string(),
        }
    }
}

/// A choice for each term that depends on nothing but the seed and the term's place.
pub(super) fn choices_from(seed: u64, terms: &[HashedTerm]) -> Vec<u8> {
    let mut state = seed;
    terms
        .iter()
        .map(|term| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let choice = mixed(state) % u64::from(term.n_choices());
            u8::try_from(choice).unwrap_or(0)
        })
        .collect()
}

/// Spreads every bit of the state over all of them (the finaliser of `SplitMix64`), so that names
/// whose hashes differ in one bit do not end up side by side.
fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

//! Store facts that survive, and a state that follows from them.
//!
//! A failover takes the last commits back: runs, beats, edits, everything. What a checker has concluded
//! from them must go too. So a checker keeps its conclusions about the store in a [`SurvivingState`]: it
//! has the log of facts behind it, cuts that log at a failover, and draws its conclusions again from what is
//! left. Slow, and hard to get wrong.

use crate::fact::{Fact, RealTime, What};

/// A state that follows from facts, one after the other, and from nothing else.
pub(super) trait FactState: Default {
    /// Whether a fact matters to it; others are not kept.
    fn wants(what: &What) -> bool;

    /// What it is after one more fact. [`What::FailedOver`] comes here too, after the cut.
    fn apply(&mut self, fact: &Fact);
}

/// A state that follows from the facts that survived.
#[derive(Debug, Default)]
pub(super) struct SurvivingState<S> {
    log: Vec<Fact>,
    state: S,
}

impl<S: FactState> SurvivingState<S> {
    /// Takes one more fact into account.
    pub(super) fn see(&mut self, fact: &Fact) {
        if let What::FailedOver { kept_until, .. } = &fact.what {
            self.cut(*kept_until);
        }
        if S::wants(&fact.what) {
            self.state.apply(fact);
            self.log.push(fact.clone());
        }
    }

    /// What follows from the facts that survived.
    pub(super) fn now(&self) -> &S {
        &self.state
    }

    fn cut(&mut self, kept_until: RealTime) {
        let n_before = self.log.len();
        self.log.retain(|fact| fact.at <= kept_until || !is_commit(&fact.what));
        if self.log.len() == n_before {
            return;
        }
        self.state = S::default();
        for fact in &self.log {
            self.state.apply(fact);
        }
    }
}

/// Whether a fact is something that the store committed, and so can lose.
pub(super) fn is_commit(what: &What) -> bool {
    match what {
        What::Joined { .. }
        | What::Beat { .. }
        | What::Fenced { .. }
        | What::Adopted { .. }
        | What::Granted { .. }
        | What::TakenUp { .. }
        | What::RunEnded { .. }
        | What::Recorded { .. }
        | What::EpochOpened { .. }
        | What::Put { .. }
        | What::Removed { .. }
        | What::Triggered { .. }
        | What::CancelAsked { .. } => true,
        What::Begins { .. }
        | What::Halts { .. }
        | What::GoesOn { .. }
        | What::IsGone { .. }
        | What::Watched { .. }
        | What::Drained { .. }
        | What::Undrained { .. }
        | What::FailedOver { .. }
        | What::FaultBegan { .. }
        | What::Healed => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::FactBuilder;

    /// The number of each session that beat, in order, with `|` where the store failed over.
    #[derive(Debug, Default)]
    struct Beats(String);

    impl FactState for Beats {
        fn wants(what: &What) -> bool {
            matches!(what, What::Beat { .. } | What::FailedOver { .. })
        }

        fn apply(&mut self, fact: &Fact) {
            match &fact.what {
                What::Beat { session } => self.0.push_str(&session.0.to_string()),
                _ => self.0.push('|'),
            }
        }
    }

    #[track_caller]
    fn check(fact_builder: &FactBuilder, expected: &str) {
        let mut beats = SurvivingState::<Beats>::default();
        fact_builder.facts().iter().for_each(|fact| beats.see(fact));
        assert_eq!(beats.now().0, expected);
    }

    #[test]
    fn a_failover_takes_commits_back_and_nothing_else() {
        check(&FactBuilder::new().at(1_000).beat(1).at(2_000).beat(2), "12");
        // What was committed at the last instant that was kept was kept.
        check(&FactBuilder::new().at(1_000).beat(1).at(2_000).beat(2).at(3_000).failed_over(1_000, 2), "1|");
        check(&FactBuilder::new().at(1_000).beat(1).at(2_000).failed_over(999, 2).at(3_000).beat(3), "|3");
        // The second one reaches back over the first, which has nevertheless happened.
        check(
            &FactBuilder::new()
                .at(1_000)
                .beat(1)
                .at(2_000)
                .beat(2)
                .at(3_000)
                .failed_over(2_000, 2)
                .at(3_500)
                .beat(3)
                .at(4_000)
                .failed_over(1_500, 3),
            "1||",
        );
    }
}

//! A node that fences has watched all the time: a watcher that could not see the store knows nothing of that time, and after
//! an outage every session gets a whole window to speak first (I9, L3).

use std::collections::{BTreeMap, VecDeque};

use evenbeat_core::ids::{NodeName, SessionId};
use evenbeat_core::lease::TimingsSpec;
use evenbeat_core::time::Duration;

use super::finding::{Findings, Violation, shown};
use super::premises::Premises;
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// How many readings of a node are remembered: more than lie in any window.
const READINGS_MAX: usize = 200;

/// Watches over the watchers.
#[derive(Debug)]
pub struct Integrity {
    findings: Findings,
    timings: TimingsSpec,
    readings: BTreeMap<NodeName, VecDeque<RealTime>>,
    last_sign: BTreeMap<SessionId, RealTime>,
}

impl Integrity {
    /// No node has watched yet.
    pub fn new(premises: &Premises) -> Integrity {
        Integrity {
            findings: Findings::of("unbroken"),
            timings: premises.timings.spec(),
            readings: BTreeMap::new(),
            last_sign: BTreeMap::new(),
        }
    }

    /// How far apart two readings may have reached the store if their answers were not too far apart: each may have
    /// been on its way for the length of an attempt.
    fn gap_max(&self) -> Duration {
        let gap = self.timings.gap.as_millis() * 101 / 100;
        Duration::from_millis(gap) + self.timings.attempt * 2
    }

    /// A request may be on its way for long: what counts is that at some time since the last sign of the session the
    /// node has looked for as long as it must. The window is over somewhere between two readings.
    fn fencing(&mut self, at: RealTime, session: SessionId, by: &NodeName) {
        let last_sign = self.last_sign.get(&session).copied().unwrap_or_default();
        let least = self.timings.window - self.gap_max();
        let mut since: Option<(RealTime, RealTime)> = None;
        for reading in self.readings.get(by).into_iter().flatten().filter(|it| last_sign <= **it) {
            let began_at = match since {
                Some((began_at, last)) if reading.since(last) <= self.gap_max() => began_at,
                _ => *reading,
            };
            if least <= reading.since(began_at) {
                return;
            }
            since = Some((began_at, *reading));
        }
        let seen = since.map_or(Duration::ZERO, |(began_at, last)| last.since(began_at));
        let what = format!(
            "is fenced off by {by}, which since the last sign at {} has looked without a break for {seen} at last; {least} are needed",
            shown(last_sign)
        );
        self.findings.add(at, &session, what);
    }
}

impl Checker for Integrity {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        match &fact.what {
            What::Watched { by } => {
                let readings = self.readings.entry(by.clone()).or_default();
                if READINGS_MAX <= readings.len() {
                    readings.pop_front();
                }
                readings.push_back(fact.at);
            }
            What::Joined { session, .. } | What::Beat { session } => {
                self.last_sign.insert(*session, fact.at);
            }
            What::Fenced { session, by } => self.fencing(fact.at, *session, by),
            // What was seen of another primary says nothing about this one.
            What::FailedOver { .. } => self.readings.clear(),
            _ => {}
        }
    }

    fn end(&mut self, _end: &WorldEnd<'_>) {}

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, premises};

    /// Node `n2` reads every second from one instant to another.
    fn watched(mut fact_builder: FactBuilder, from: i64, to: i64) -> FactBuilder {
        for second in from..=to {
            fact_builder = fact_builder.at(second * 1_000).watched("n2");
        }
        fact_builder
    }

    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        fact_builder.check(Integrity::new(&premises()), expected);
    }

    #[test]
    fn who_looked_all_the_time_may_fence() {
        let told = || FactBuilder::new().joined(1, "n1").joined(2, "n2");
        check(watched(told(), 1, 13).fenced(1, "n2"), &[]);
        // The window is 12 s; readings may lie 2.525 s and two attempts of 0.8 s apart.
        check(watched(told(), 1, 9).fenced(1, "n2"), &[]);
        check(watched(told(), 1, 8).fenced(1, "n2"), &["without a break for 7s at last; 7s875ms are needed"]);
        check(watched(told(), 1, 13).fenced(1, "n3"), &["fenced off by n3"]);
        check(watched(watched(told(), 1, 6).beat(1), 7, 12).fenced(1, "n2"), &["since the last sign at 6s"]);
    }

    #[test]
    fn who_was_cut_off_may_not() {
        let told = || watched(FactBuilder::new().joined(1, "n1").joined(2, "n2"), 1, 5);
        check(watched(told(), 9, 10).fenced(1, "n2"), &[]);
        check(watched(told(), 10, 13).fenced(1, "n2"), &["without a break for 3s at last"]);
        check(watched(told(), 10, 18).fenced(1, "n2"), &[]);
        // What was requested in time may be done late.
        check(watched(told(), 6, 13).at(90_000).fenced(1, "n2"), &[]);
    }

    #[test]
    fn another_primary_is_watched_anew() {
        let told = || watched(FactBuilder::new().joined(1, "n1"), 1, 13).at(13_500).failed_over(13_000, 2);
        check(watched(told(), 14, 20).fenced(1, "n2"), &["without a break for 6s"]);
        check(watched(told(), 14, 26).fenced(1, "n2"), &[]);
    }
}

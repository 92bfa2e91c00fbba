//! No session is fenced off before a whole window of silence, nothing of a living session is released, and a
//! new epoch is left alone until its quarantine is over (I9, I10).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use evenbeat_core::ids::{NodeName, RunId, SessionId};
use evenbeat_core::lease::{Epoch, TimingsSpec};
use evenbeat_core::time::Duration;

use super::finding::{Findings, Violation, shown};
use super::history::{FactState, SurvivingState};
use super::premises::Premises;
use super::{Checker, WorldEnd};
use crate::fact::{Fact, RealTime, What};

/// Clocks count whole milliseconds, so each of the two readings of a window may be off by one.
const ROUNDING: Duration = Duration::from_millis(2);

/// Watches over windows and quarantines.
#[derive(Debug)]
pub struct Windows {
    findings: Findings,
    timings: TimingsSpec,
    sessions: SurvivingState<Sessions>,
}

/// What survives of sessions, of who owns what, and of epochs.
#[derive(Debug, Default)]
struct Sessions {
    last_sign: BTreeMap<SessionId, RealTime>,
    dead: BTreeSet<SessionId>,
    owner: BTreeMap<RunId, SessionId>,
    newest_of: BTreeMap<NodeName, SessionId>,
    /// The epoch of the last failover, since when, and whether it was opened. None before the first.
    reign: Option<(Epoch, RealTime, bool)>,
}

impl FactState for Sessions {
    fn wants(what: &What) -> bool {
        matches!(
            what,
            What::Joined { .. }
                | What::Beat { .. }
                | What::Fenced { .. }
                | What::Adopted { .. }
                | What::Granted { .. }
                | What::TakenUp { .. }
                | What::EpochOpened { .. }
                | What::FailedOver { .. }
        )
    }

    fn apply(&mut self, fact: &Fact) {
        match &fact.what {
            What::Joined { session, node } => {
                self.last_sign.insert(*session, fact.at);
                self.newest_of.insert(node.clone(), *session);
            }
            What::Beat { session } => {
                self.last_sign.insert(*session, fact.at);
            }
            What::Fenced { session, .. } => {
                self.dead.insert(*session);
            }
            What::Adopted { session, by } => {
                self.dead.insert(*session);
                if let Some(heir) = self.newest_of.get(by) {
                    for owner in self.owner.values_mut().filter(|owner| *owner == session) {
                        *owner = *heir;
                    }
                }
            }
            What::Granted { run, session, .. } | What::TakenUp { run, session, .. } => {
                self.owner.insert(*run, *session);
            }
            What::EpochOpened { epoch } => {
                if let Some(reign) = self.reign.as_mut().filter(|reign| reign.0 == *epoch) {
                    reign.2 = true;
                }
            }
            What::FailedOver { epoch, .. } => self.reign = Some((*epoch, fact.at, false)),
            _ => {}
        }
    }
}

impl Windows {
    /// No session has begun yet.
    pub fn new(premises: &Premises) -> Windows {
        Windows {
            findings: Findings::of("windows"),
            timings: premises.timings.spec(),
            sessions: SurvivingState::default(),
        }
    }

    fn fencing(&mut self, at: RealTime, session: SessionId, by: &NodeName) {
        self.in_open_epoch(at, &session, "is fenced off");
        let Some(last_sign) = self.sessions.now().last_sign.get(&session).copied() else {
            self.findings.add(at, &session, format!("is fenced off by {by}, and no sign of it survives"));
            return;
        };
        let silent_for = at.since(last_sign);
        let least = at_least(self.timings.window);
        if silent_for < least {
            let what = format!(
                "is fenced off by {by} {silent_for} after its last sign at {}; the window is {least}",
                shown(last_sign)
            );
            self.findings.add(at, &session, what);
        }
    }

    fn release(&mut self, at: RealTime, run: RunId) {
        self.in_open_epoch(at, &run, "is released");
        let owner = self.sessions.now().owner.get(&run).copied();
        if let Some(owner) = owner.filter(|owner| !self.sessions.now().dead.contains(owner)) {
            self.findings.add(
                at,
                &run,
                format!("is released, though its session {owner} was never fenced off"),
            );
        }
    }

    fn in_open_epoch(&mut self, at: RealTime, who: &dyn fmt::Display, what: &str) {
        if let Some((epoch, since, false)) = self.sessions.now().reign {
            let what =
                format!("{what} in epoch {}, which began at {} and is not open", epoch.0, shown(since));
            self.findings.add(at, who, what);
        }
    }

    fn opening(&mut self, at: RealTime, opened: Epoch) {
        // The first epoch is open from the start, unless the store says otherwise when it is created.
        let Some((epoch, since, _)) = self.sessions.now().reign else { return };
        let who = format!("epoch {}", opened.0);
        let least = at_least(self.timings.quarantine);
        if epoch != opened {
            self.findings.add(at, &who, format!("is opened in epoch {}", epoch.0));
        } else if at.since(since) < least {
            let what = format!(
                "is opened {} after the failover at {}; the quarantine is {least}",
                at.since(since),
                shown(since)
            );
            self.findings.add(at, &who, what);
        }
    }

    fn taking_up(&mut self, at: RealTime, run: RunId, session: SessionId) {
        self.in_open_epoch(at, &run, "is taken up by a worker");
        if self.sessions.now().dead.contains(&session) {
            self.findings.add(at, &run, format!("is taken up by session {session}, which is dead"));
        }
    }

    fn grant(&mut self, at: RealTime, run: RunId, session: SessionId, epoch: Epoch) {
        self.in_open_epoch(at, &run, "is granted");
        let sessions = self.sessions.now();
        if sessions.dead.contains(&session) {
            self.findings.add(at, &run, format!("is granted to session {session}, which is dead"));
        }
        if let Some((current, _, _)) = self.sessions.now().reign.filter(|reign| reign.0 != epoch) {
            let what = format!("is granted in epoch {}, but the current one is {}", epoch.0, current.0);
            self.findings.add(at, &run, what);
        }
    }
}

/// How long something lasts at least in real time if a clock that is fast by one part in a hundred counts
/// this long.
fn at_least(counted: Duration) -> Duration {
    Duration::from_millis(counted.as_millis() * 100 / 101) - ROUNDING
}

impl Checker for Windows {
    fn name(&self) -> &'static str {
        self.findings.property()
    }

    fn see(&mut self, fact: &Fact) {
        match &fact.what {
            What::Fenced { session, by } => self.fencing(fact.at, *session, by),
            What::RunEnded { run, is_release: true, .. } => self.release(fact.at, *run),
            What::EpochOpened { epoch } => self.opening(fact.at, *epoch),
            What::Granted { run, session, epoch, .. } => self.grant(fact.at, *run, *session, *epoch),
            What::TakenUp { run, session, .. } => self.taking_up(fact.at, *run, *session),
            What::Beat { session } if self.sessions.now().dead.contains(session) => {
                self.findings.add(fact.at, &session, "beats, and is dead".to_owned());
            }
            _ => {}
        }
        self.sessions.see(fact);
    }

    fn end(&mut self, _end: &WorldEnd<'_>) {}

    fn violations(&self) -> &[Violation] {
        self.findings.all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every, premises};

    #[track_caller]
    fn check(fact_builder: FactBuilder, expected: &[&str]) {
        // FAST: the window and the quarantine are 12 s, so 11.882 s of real time are enough.
        fact_builder.check(Windows::new(&premises()), expected);
    }

    fn told() -> FactBuilder {
        FactBuilder::new().joined(1, "n1").joined(2, "n2").put(every("a", 60_000))
    }

    #[test]
    fn who_was_silent_for_a_window_may_be_fenced_off() {
        check(told().at(5_000).beat(1).at(16_882).fenced(1, "n2"), &[]);
        check(told().at(11_882).fenced(1, "n2"), &[]);
    }

    #[test]
    fn who_gave_a_sign_may_not() {
        check(
            told().at(5_000).beat(1).at(16_870).fenced(1, "n2"),
            &[
                "at 16s870ms: ..1: is fenced off by n2 11s870ms after its last sign at 5s; the window is 11s879ms",
            ],
        );
        check(told().at(11_000).fenced(1, "n2"), &["is fenced off by n2 11s after its last sign at 0s"]);
        check(told().at(5_000).fenced(9, "n2"), &["..9: is fenced off by n2, and no sign of it survives"]);
        check(told().at(20_000).fenced(1, "n2").at(21_000).beat(1), &["at 21s: ..1: beats, and is dead"]);
    }

    #[test]
    fn a_beat_that_was_lost_is_no_sign() {
        let failed = || told().at(15_000).beat(1).at(16_000).failed_over(14_000, 2).at(28_000).opened(2);
        check(failed().at(28_100).fenced(1, "n2"), &[]);
        check(
            failed().at(28_000).beat(1).at(30_000).fenced(1, "n2"),
            &["is fenced off by n2 2s after its last sign at 28s"],
        );
    }

    #[test]
    fn a_new_epoch_is_left_alone_until_it_is_opened() {
        let failed = || told().at(1_000).granted(1, "a", 5).at(16_000).failed_over(15_000, 2).at(20_000);
        check(
            failed().fenced(1, "n2"),
            &["at 20s: ..1: is fenced off in epoch 2, which began at 16s and is not open"],
        );
        check(
            failed().epoch(2).granted(2, "a", 6),
            &["at 20s: ..2: is granted in epoch 2, which began at 16s and is not open"],
        );
        check(failed().released(1), &["..1: is released in epoch 2", "..1: is released, though"]);
        check(
            failed().opened(2),
            &["at 20s: epoch 2: is opened 4s after the failover at 16s; the quarantine is 11s879ms"],
        );
        check(failed().at(28_000).opened(2).epoch(2).granted(2, "a", 6), &[]);
        check(failed().at(28_000).opened(1), &["epoch 1: is opened in epoch 2"]);
        check(
            failed().at(28_000).opened(2).granted(2, "a", 6),
            &["is granted in epoch 1, but the current one is 2"],
        );
        // The opening itself may be lost, with a second failover.
        check(
            failed()
                .at(28_000)
                .opened(2)
                .at(29_000)
                .failed_over(27_000, 3)
                .at(30_000)
                .epoch(3)
                .granted(2, "a", 6),
            &["is granted in epoch 3, which began at 29s and is not open"],
        );
    }

    #[test]
    fn only_what_dead_sessions_had_is_released() {
        let granted = || told().at(1_000).granted(1, "a", 5);
        check(granted().at(20_000).fenced(1, "n2").released(1), &[]);
        check(
            granted().at(20_000).released(1),
            &["at 20s: ..1: is released, though its session ..1 was never fenced off"],
        );
        check(
            granted().at(20_000).fenced(1, "n2").granted(2, "a", 6),
            &["..2: is granted to session ..1, which is dead"],
        );
        // A restarted node goes on with what it had.
        let adopted = || granted().at(2_000).joined(3, "n1").adopted(1, "n1");
        check(adopted().at(3_000).released(1), &["is released, though its session ..3 was never fenced off"]);
        check(adopted().at(15_000).fenced(3, "n2").released(1), &[]);
        // The fencing was lost.
        check(
            granted()
                .at(20_000)
                .fenced(1, "n2")
                .at(21_000)
                .failed_over(19_000, 2)
                .at(34_000)
                .opened(2)
                .released(1),
            &["..1: is released, though its session ..1 was never fenced off"],
        );
    }

    #[test]
    fn what_a_worker_has_taken_up_is_its_own() {
        let told = || {
            FactBuilder::new()
                .put(every("a", 60_000))
                .joined(1, "n1")
                .granted(1, "a", 5)
                .joined(9, "w1")
                .taken_up(1, 9, "w1")
        };
        let check = |fact_builder: FactBuilder, expected: &[&str]| {
            fact_builder.check(Windows::new(&premises()), expected);
        };
        check(told().at(20_000).fenced(9, "n1").released(1), &[]);
        // The death of the node that published it changes nothing.
        check(
            told().at(20_000).fenced(1, "n2").released(1),
            &["..1: is released, though its session ..9 was never fenced off"],
        );
        check(
            told().at(20_000).fenced(9, "n1").granted(2, "a", 6).taken_up(2, 9, "w1"),
            &["..2: is taken up by session ..9, which is dead"],
        );
        check(
            told().at(20_000).failed_over(19_000, 2).taken_up(1, 8, "w2"),
            &["..1: is taken up by a worker in epoch 2, which began at 20s and is not open"],
        );
    }
}

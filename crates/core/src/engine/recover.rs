//! Runs that no other node will end: those of dead sessions, those whose grant was lost on its way, and those that an
//! earlier life of this node left behind.

use std::sync::Arc;

use super::ends::{EndWhat, OpenEnd};
use super::local_runs::{LocalRun, Phase, lost_end};
use super::view::JobIdx;
use super::{Command, Engine, Now};
use crate::ids::{Fence, RunId};
use crate::job::JobState;
use crate::rules::Rule;
use crate::run::Outcome;
use crate::store::{RunPhase, RunRow};
use crate::time::Duration;
use crate::urgency;

impl Engine {
    /// Takes over runs of an earlier life of this node. What they take up is known when the fleet has been read.
    pub(super) fn adopt(&mut self, now: Now, adopted: Vec<RunRow>) {
        for row in adopted {
            let (run, is_published) = (row.run, row.phase == RunPhase::Published);
            self.counters.adopted(&row.takes);
            let held = LocalRun {
                idx: JobIdx::FIRST,
                key: row.key,
                fence: row.fence,
                due: row.due,
                phase: if is_published { Phase::Published } else { Phase::Running },
                terms: None,
                hold: None,
                takes: row.takes,
                keeps_end: false,
                since: now.boot,
                started_at: row.started_at.or(Some(row.claimed_at)),
                worked_before: Duration::ZERO,
            };
            self.held.by_id.insert(run, held);
            if is_published {
                self.await_worker(now, run);
            }
        }
    }

    /// The fleet has been read: runs that were taken over get their room and their alarms.
    pub(super) fn complete_adopted(&mut self, now: Now) {
        let time = self.time(now);
        let adopted: Vec<RunId> = self.held.unplaced().collect();
        for run in adopted {
            let Some(held) = self.held.by_id.get_mut(&run) else { continue };
            let entry = self.view.find(&held.key);
            // The terms of a removed job were kept when it was removed.
            let Some(terms) = entry.map(|entry| Arc::clone(&entry.terms)).or_else(|| held.terms.clone())
            else {
                continue;
            };
            held.terms = Some(Arc::clone(&terms));
            let state = entry.map_or_else(|| JobState::new(time), |entry| entry.state.clone());
            let expected = urgency::expected_length(&terms, &state, &self.outlook(&terms));
            if let Some(line) = self.pools.get_mut(&terms.place.pool) {
                let hold = line.hold(terms.place.cost, false, time + expected);
                if let Some(held) = self.held.by_id.get_mut(&run) {
                    held.hold = Some(hold);
                }
            }
            match self.held.by_id.get(&run).map(|held| held.phase) {
                Some(Phase::Published) => self.mind_blackout(now, run),
                _ => self.set_alarms(now, run),
            }
        }
    }

    /// Gives back runs that the store says are ours and that are unknown here: the answer to their claim was lost.
    pub(super) fn give_back(&mut self, now: Now, release: &[(RunId, Fence)], runs: &[RunRow]) {
        if !self.settings.rules.hold(Rule::ReleaseUnstarted) {
            return;
        }
        for row in runs.iter().filter(|row| release.contains(&(row.run, row.fence))) {
            // A claim is open at this moment, and its answer may be on its way.
            if self.asked.contains_key(&row.key) {
                continue;
            }
            if row.phase == RunPhase::Published {
                // A worker may start it at any moment. If none does, this node must give it up.
                self.adopt(now, vec![row.clone()]);
                continue;
            }
            let what = match row.phase {
                // It executed, as far as the store knows, and a failover has lost its end.
                RunPhase::Running => {
                    EndWhat::Owner(lost_end(row.run, row.started_at, row.claimed_at, self.time(now)))
                }
                RunPhase::Claimed | RunPhase::Published | RunPhase::Ended(_) => EndWhat::Unstarted,
            };
            let (key, due) = (row.key.clone(), row.due.clone());
            self.ends.insert(row.run, OpenEnd { key, fence: row.fence, due, what, waits_until: None });
        }
        if self.feed.is_loaded {
            self.complete_adopted(now);
        }
    }

    /// Releases runs of dead sessions. Nothing of them executes, and their jobs can be claimed again once the store has
    /// written the runs off.
    pub(super) fn release_orphans(&mut self, now: Now, orphans: Vec<RunRow>) {
        let time = self.time(now);
        for row in orphans {
            if self.held.by_id.contains_key(&row.run) {
                continue;
            }
            let end = lost_end(row.run, row.started_at, row.claimed_at, time);
            let what = EndWhat::Release { dead: row.session, end };
            let end = OpenEnd { key: row.key, fence: row.fence, due: row.due, what, waits_until: None };
            self.ends.insert_new(row.run, end);
        }
    }

    /// Drops runs that are no longer ours. Nothing of a published run executes here, and its new owner ends it.
    pub(super) fn revoke(&mut self, runs: Vec<RunId>, out: &mut Vec<Command>) {
        if !self.settings.rules.hold(Rule::RevokeUnknown) {
            return;
        }
        for run in runs {
            let Some(held) = self.held.by_id.get_mut(&run) else { continue };
            match held.phase {
                Phase::Over | Phase::Revoked => continue,
                Phase::Published => {
                    self.leave_room(run);
                    self.held.by_id.remove(&run);
                    continue;
                }
                Phase::Starting | Phase::Running | Phase::Stopping => {}
            }
            held.phase = Phase::Revoked;
            out.push(Command::Revoke { run });
        }
    }

    /// Stops runs that were cancelled.
    pub(super) fn stop_cancelled(&mut self, now: Now, runs: &[RunRow], out: &mut Vec<Command>) {
        for row in runs.iter().filter(|row| row.is_cancel_asked) {
            self.stop(now, row.run, Outcome::Cancelled, None, out);
        }
    }
}

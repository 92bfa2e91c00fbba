//! How all jobs stand, kept up beside the engine: from what it has just heard, and by the clock.

use evenbeat_core::engine::{Engine, Event};
use evenbeat_core::ids::JobKey;
use evenbeat_core::roster::{Roster, Turned};
use evenbeat_core::store::{Changes, ClaimAnswer, Claims, EndAnswer, SettleAnswer};
use evenbeat_core::time::{Duration, Timestamp};

/// Number of jobs per refresh, which catches what has changed around a job.
const REFRESH_MAX: usize = 20;

/// The shortest time between two refreshes: during a burst of events there is no time for more.
const REFRESH_EVERY: Duration = Duration::from_millis(20);

/// Up to this many jobs are all judged again as soon as nodes come or go. In a larger fleet the refresh gets round to
/// them.
const REASSESS_MAX: usize = 50_000;

/// How all jobs stand.
#[derive(Debug)]
pub(super) struct RosterKeeper {
    roster: Roster,
    /// Whether the whole fleet was judged since it was last read.
    is_judged: bool,
    refreshed_at: Timestamp,
    /// Which nodes the jobs were judged with.
    nodes_version: u64,
}

impl RosterKeeper {
    pub(super) fn new(now: Timestamp) -> RosterKeeper {
        RosterKeeper { roster: Roster::new(now), is_judged: false, refreshed_at: now, nodes_version: 0 }
    }

    pub(super) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Takes in what an event has changed. Tells what has turned; not for jobs that are seen for the first time.
    pub(super) fn follow(&mut self, engine: &Engine, now: Timestamp, changed: &[JobKey]) -> Vec<Turned> {
        let Some(jobs) = engine.jobs() else {
            self.is_judged = false;
            return Vec::new();
        };
        let have_nodes_changed = self.nodes_version != engine.nodes_version();
        self.nodes_version = engine.nodes_version();
        if !self.is_judged {
            self.is_judged = true;
            self.roster.reassess(now, &jobs);
            return Vec::new();
        }
        let mut turned = self.roster.apply(now, &jobs, changed);
        if have_nodes_changed && engine.n_jobs() <= REASSESS_MAX {
            turned.extend(self.roster.reassess(now, &jobs));
        }
        // Also if the clock was put back.
        if now < self.refreshed_at || self.refreshed_at + REFRESH_EVERY <= now {
            self.refreshed_at = now;
            turned.extend(self.roster.refresh(now, &jobs, REFRESH_MAX));
        }
        turned.retain(Turned::is_of_condition);
        turned
    }
}

/// The jobs of which an event tells something new.
pub(super) fn changed_by(event: &Event, engine: &Engine) -> Vec<JobKey> {
    match event {
        // All of them are judged when they have been read.
        _ if engine.jobs().is_none() => Vec::new(),
        Event::Changed(Ok(Changes::Rows { rows, .. })) => {
            let news = rows.iter().filter(|row| !engine.has_heard(row));
            news.map(|row| row.key.clone()).collect()
        }
        Event::Claimed { answer: Ok(Claims::Answered(answers)), .. } => {
            let rows = answers.iter().filter_map(|answer| match answer {
                ClaimAnswer::Granted(row) | ClaimAnswer::Lost(row) => Some(row.job.key.clone()),
                _ => None,
            });
            rows.collect()
        }
        Event::EndAnswered { answer: Ok(answers), .. } => {
            let rows = answers.iter().filter_map(|answer| match answer {
                EndAnswer::Ended(row) | EndAnswer::Stale(row) => Some(row.job.key.clone()),
                _ => None,
            });
            rows.collect()
        }
        Event::Settled { answer: Ok(answers), .. } => {
            let rows = answers.iter().filter_map(|answer| match answer {
                SettleAnswer::Settled(row) | SettleAnswer::Stale(row) => Some(row.job.key.clone()),
                _ => None,
            });
            rows.collect()
        }
        _ => Vec::new(),
    }
}

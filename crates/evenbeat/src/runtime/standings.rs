//! How all jobs stand, kept up beside the engine: from what it has just heard, and by the clock.

use evenbeat_core::engine::{Engine, Event};
use evenbeat_core::ids::JobKey;
use evenbeat_core::roster::{Roster, Turned};
use evenbeat_core::store::{Changes, ClaimAnswer, Claims, EndAnswer, SettleAnswer};
use evenbeat_core::time::Timestamp;

/// So many jobs are looked at again with every event, for what has changed around them.
const REFRESH_MAX: usize = 2;

/// How all jobs stand.
#[derive(Debug)]
pub(super) struct Standings {
    roster: Roster,
    /// Whether the whole fleet was judged since it was last read.
    is_judged: bool,
}

impl Standings {
    pub(super) fn new(now: Timestamp) -> Standings {
        Standings { roster: Roster::new(now), is_judged: false }
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
        if !self.is_judged {
            self.is_judged = true;
            self.roster.reassess(now, &jobs);
            return Vec::new();
        }
        let mut turned = self.roster.apply(now, &jobs, changed);
        turned.extend(self.roster.refresh(now, &jobs, REFRESH_MAX));
        turned.retain(Turned::is_of_condition);
        turned
    }
}

/// The jobs that an event tells of.
pub(super) fn changed_by(event: &Event) -> Vec<JobKey> {
    match event {
        Event::Changed(Ok(Changes::Rows { rows, .. })) => rows.iter().map(|row| row.key.clone()).collect(),
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

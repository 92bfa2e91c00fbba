//! A fleet as a plain map, which counts how often it is asked; and memories in words.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::estimate::Estimate;
use crate::ids::{JobKey, RunId};
use crate::job::sample::{instant, length, placed};
use crate::job::{Job, JobState, Owner, Pause, PausedBy, Terms};
use crate::roster::{JobRef, Jobs};
use crate::run::Outcome;
use crate::urgency::Outlook;

#[derive(Debug, Default)]
pub(super) struct Plain {
    pub(super) rows: BTreeMap<JobKey, (Terms, JobState)>,
    pub(super) outlook: Outlook,
    n_looks: Cell<usize>,
}

impl Plain {
    pub(super) fn put(&mut self, key: &str, job: &Job, state: JobState) -> JobKey {
        let key: JobKey = key.parse().unwrap();
        self.rows.insert(key.clone(), (job.terms.clone(), state));
        key
    }

    /// How many jobs were looked at since the last time that this was asked.
    pub(super) fn looks(&self) -> usize {
        self.n_looks.take()
    }
}

impl Jobs for Plain {
    fn job(&self, key: &JobKey) -> Option<JobRef<'_>> {
        self.n_looks.set(self.n_looks.get() + 1);
        let (key, (terms, state)) = self.rows.get_key_value(key)?;
        Some(JobRef { key, terms, state })
    }

    fn jobs(&self) -> impl Iterator<Item = JobRef<'_>> {
        self.rows.iter().map(|(key, (terms, state))| {
            self.n_looks.set(self.n_looks.get() + 1);
            JobRef { key, terms, state }
        })
    }

    fn outlook(&self, _: &Terms) -> Outlook {
        self.outlook
    }
}

/// The memory of a job that was placed at 10:00: `good 10:00-10:20, failed 2 until 11:05, runs 11:10, takes 30m,
/// next 12:00, paused`.
pub(super) fn remember(job: &Job, memory: &str) -> JobState {
    let mut state = placed(job, "10:00");
    for fact in memory.split(", ").filter(|fact| !fact.is_empty()) {
        match fact.split(' ').collect::<Vec<_>>().as_slice() {
            ["good", stretch] => {
                let (start, end) = stretch.split_once('-').unwrap();
                state.last_good_start_at = Some(instant(start));
                state.last_good_end_at = Some(instant(end));
            }
            ["failed", times, "until", end] => {
                state.failure_count = times.parse().unwrap();
                state.last_start_at = Some(instant(end));
                state.last_end_at = Some(instant(end));
                state.last_outcome = Some(Outcome::Failed);
            }
            ["runs", since] => {
                state.owner = Some(Box::new(Owner {
                    node: "n1".parse().unwrap(),
                    name: "n1-1".to_owned(),
                    tag: RunId(1),
                    started_at: instant(since),
                }));
            }
            ["takes", expected] => state.estimate = Some(Estimate::first(length(expected))),
            ["next", pending] => state.next_run_at = Some(instant(pending)),
            ["paused", "by", "system"] => {
                state.pause = Some(Box::new(Pause { by: PausedBy::Failures, reason: None }));
            }
            ["paused"] => state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None })),
            other => panic!("nobody remembers {other:?}"),
        }
    }
    state
}

pub(super) fn blackout(start: &str, end: &str) -> Blackouts {
    let period = BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), Weekdays::ALL).unwrap();
    Blackouts::new(vec![period]).unwrap()
}

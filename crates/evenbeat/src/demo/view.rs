//! One picture of a living fleet, as plain values.

use std::collections::BTreeMap;

use evenbeat_core::condition::{self, Condition};
use evenbeat_core::distribution::Distribution;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{BATCH_MAX, JobRow, RunFilter, RunPhase, RunRow, StoreDown};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::urgency::Outlook;

use crate::app::App;

/// So many runs are looked back at.
const RUNS_MAX: usize = 200;

/// What can be seen at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// When.
    pub at: Timestamp,
    /// Since when it goes on.
    pub since: Timestamp,
    /// How many jobs are in which condition.
    pub conditions: BTreeMap<Condition, usize>,
    /// How many jobs have which status.
    pub statuses: BTreeMap<&'static str, usize>,
    /// The jobs that are worst off: key, condition and the reason for people.
    pub worst: Vec<(String, Condition, String)>,
    /// Runs that go on: key and for how long.
    pub open: Vec<(String, Duration)>,
    /// Runs that ended last: key, outcome, length, and when.
    pub ended: Vec<(String, Outcome, Option<Duration>, Timestamp)>,
    /// How late the last runs were claimed, the most.
    pub lateness: Option<Duration>,
    /// What comes next.
    pub next: Vec<(Timestamp, String)>,
    /// How even the next day is.
    pub score: f64,
    /// Starts of the next day by minute of the hour.
    pub minutes: Vec<u32>,
}

impl View {
    /// As it is now.
    pub async fn of(app: &App) -> Result<View, StoreDown> {
        let now = app.clock.now();
        let mut rows: Vec<JobRow> = Vec::new();
        loop {
            let page = app.store.jobs(rows.last().map(|it| it.job.key.clone()), BATCH_MAX).await?;
            if page.is_empty() {
                break;
            }
            rows.extend(page);
        }
        let runs = app.store.runs(RunFilter::default(), None, RUNS_MAX).await?;
        let day = app.fleet.distribution_async(now, 24).await.ok();
        let agenda = app.fleet.agenda();
        let next = agenda.between(now, now + Duration::from_mins(10));
        let next = next.iter().take(5).map(|it| (it.at, it.job.to_string())).collect();
        let mut view = View {
            at: now,
            since: app.started_at,
            conditions: BTreeMap::new(),
            statuses: BTreeMap::new(),
            worst: Vec::new(),
            open: Vec::new(),
            ended: Vec::new(),
            lateness: None,
            next,
            score: day.as_ref().map_or(1.0, Distribution::score),
            minutes: day.as_ref().map(by_minute).unwrap_or_default(),
        };
        view.judge(&rows);
        view.look_at(&runs);
        Ok(view)
    }

    fn judge(&mut self, rows: &[JobRow]) {
        for row in rows {
            let JobRow { job, state, .. } = row;
            let status = state.status(job);
            *self.statuses.entry(status.as_str()).or_default() += 1;
            let found = condition::assess(&job.key, job, state, self.at, &Outlook::default());
            *self.conditions.entry(found.condition()).or_default() += 1;
            if found.condition() != Condition::Ok {
                self.worst.push((job.key.to_string(), found.condition(), found.sentence()));
            }
        }
        self.worst.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    }

    fn look_at(&mut self, runs: &[RunRow]) {
        for run in runs {
            let key = run.key.to_string();
            match (run.phase, &run.ended) {
                (RunPhase::Ended(outcome), Some(ended)) => {
                    let length = run.started_at.map(|at| ended.ended_at - at);
                    self.ended.push((key, outcome, length, ended.ended_at));
                }
                _ => self.open.push((key, self.at - run.started_at.unwrap_or(run.claimed_at))),
            }
            let late = run.claimed_at - run.due.due_at;
            if run.due.trigger == Trigger::Scheduler {
                self.lateness = Some(self.lateness.map_or(late, |it| it.max(late)));
            }
        }
        self.ended.sort_by_key(|it| std::cmp::Reverse(it.3));
        self.open.sort_by_key(|it| std::cmp::Reverse(it.1));
    }
}

/// All hours of a window together, from `:00` on wherever in the hour the window begins.
fn by_minute(day: &Distribution) -> Vec<u32> {
    let mut minutes = vec![0; 60];
    let first = day.window.start().as_second().div_euclid(60).rem_euclid(60);
    let first = usize::try_from(first).unwrap_or(0);
    for (idx, n) in day.minutes.iter().enumerate() {
        if let Some(sum) = minutes.get_mut((first + idx) % 60) {
            *sum += n;
        }
    }
    minutes
}

#[cfg(test)]
mod tests {
    use evenbeat_core::slot::{JobLoad, RunWork, SlotWidth};

    use super::*;

    #[test]
    fn minutes_are_those_of_the_clock() {
        let now: Timestamp = "2026-11-17T10:20:00Z".parse().unwrap();
        let hourly =
            |at: &str| JobLoad::every(at.parse().unwrap(), Duration::from_hours(1), RunWork::default());
        let loads = [hourly("2026-11-17T11:05:00Z"), hourly("2026-11-17T10:50:00Z")];
        let minutes = by_minute(&Distribution::of(now, 24, SlotWidth::DEFAULT, &loads).unwrap());
        let with_starts: Vec<usize> = (0..60).filter(|idx| 0 < minutes[*idx]).collect();
        assert_eq!(with_starts, [5, 50]);
    }
}

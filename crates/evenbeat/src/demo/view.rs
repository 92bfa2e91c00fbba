//! A snapshot of a live fleet, as plain values.

use std::collections::BTreeMap;

use evenbeat_core::condition::{self, Condition};
use evenbeat_core::distribution::Distribution;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{BATCH_MAX, JobRow, RunFilter, RunPhase, RunRow, StoreDown};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::urgency::Outlook;

use crate::app::App;

/// Number of ended runs to look back at.
const RUNS_MAX: usize = 200;

/// The state of the fleet at one moment.
#[derive(Clone, Debug)]
pub struct View {
    pub at: Timestamp,
    /// When the demo started.
    pub since: Timestamp,
    /// Number of jobs by condition.
    pub conditions: BTreeMap<Condition, usize>,
    /// Number of jobs by status.
    pub statuses: BTreeMap<&'static str, usize>,
    /// The jobs in the worst condition: key, condition and sentence.
    pub worst: Vec<(String, Condition, String)>,
    /// Open runs: key and how long they have been running.
    pub open: Vec<(String, Duration)>,
    /// The last runs that ended: key, outcome, length and end.
    pub ended: Vec<(String, Outcome, Option<Duration>, Timestamp)>,
    /// The longest delay between due time and claim of recent runs.
    pub lateness: Option<Duration>,
    /// The next runs.
    pub next: Vec<(Timestamp, String)>,
    /// Evenness of the next day.
    pub score: f64,
    /// Starts of the next day by minute of the hour.
    pub minutes: Vec<u32>,
}

impl View {
    /// Collects the current state.
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

/// Sums all hours of a window by minute, from `:00` on, wherever in the hour the window starts.
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

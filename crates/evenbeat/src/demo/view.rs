//! A snapshot of a live fleet, as plain values: the same views that API and command line show.

use std::collections::BTreeMap;

use evenbeat_core::condition::Condition;
use evenbeat_core::distribution::Distribution;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use crate::app::App;
use crate::store::query::RunQuery;
use crate::views::model::{ConditionCounts, JobView, RunView};
use crate::views::runs::RunSelection;
use crate::views::{self, ViewError};

/// Number of open and of ended runs to look at.
const RUNS_MAX: usize = 100;

/// Number of upcoming runs shown, and how far ahead they may lie.
const NEXT_MAX: usize = 5;
const NEXT_WITHIN: Duration = Duration::from_mins(10);

/// The state of the fleet at one moment.
#[derive(Clone, Debug)]
pub struct View {
    pub at: Timestamp,
    /// When the demo started.
    pub since: Timestamp,
    pub n_jobs: usize,
    /// Number of jobs by condition; only those whose condition counts.
    pub conditions: BTreeMap<Condition, usize>,
    /// Some of the jobs in the worst condition: key, condition and sentence.
    pub worst: Vec<(String, Condition, String)>,
    /// Open runs: key and how long they have been running.
    pub open: Vec<(String, Duration)>,
    /// The last runs that ended: key, outcome, length and end.
    pub ended: Vec<(String, Outcome, Option<Duration>, Timestamp)>,
    /// The next runs.
    pub next: Vec<(Timestamp, String)>,
    /// Evenness of the next day.
    pub score: f64,
    /// Starts of the next day by minute of the hour.
    pub minutes: Vec<u32>,
}

impl View {
    /// Collects the current state.
    pub(super) async fn of(app: &App) -> Result<View, ViewError> {
        let status = views::status::status(app).await?;
        let at = status.now.0;
        let runs = async |open| {
            let selection = RunSelection { query: RunQuery::default(), open: Some(open) };
            views::runs::list(app, selection, None, RUNS_MAX).await
        };
        let mut open: Vec<(String, Duration)> =
            runs(true).await?.items.into_iter().map(|run| running(run, at)).collect();
        open.sort_by_key(|it| std::cmp::Reverse(it.1));
        let ended = runs(false).await?.items.into_iter().filter_map(ended).collect();
        let window = TimeWindow::new(at, at + NEXT_WITHIN);
        let next = views::upcoming::of_fleet(app, window, None, NEXT_MAX).await?.items;
        let day = app.fleet.distribution(at, 24).await;
        Ok(View {
            at,
            since: app.started_at,
            n_jobs: status.jobs.total as usize,
            conditions: by_condition(status.jobs.by_condition),
            worst: status.worst.into_iter().filter_map(needs_a_look).collect(),
            open,
            ended,
            next: next.into_iter().map(|it| (it.at.0, it.job)).collect(),
            score: status.distribution_score,
            minutes: day.as_deref().map(by_minute).unwrap_or_default(),
        })
    }
}

fn by_condition(counts: ConditionCounts) -> BTreeMap<Condition, usize> {
    let ConditionCounts { ok, warning, error } = counts;
    let counts = [(Condition::Ok, ok), (Condition::Warning, warning), (Condition::Error, error)];
    counts.into_iter().filter(|(_, n)| 0 < *n).map(|(it, n)| (it, n as usize)).collect()
}

fn needs_a_look(job: JobView) -> Option<(String, Condition, String)> {
    let conditions = [Condition::Ok, Condition::Warning, Condition::Error];
    let condition = conditions.into_iter().find(|it| it.as_str() == job.condition)?;
    Some((job.key, condition, job.sentence))
}

fn running(run: RunView, now: Timestamp) -> (String, Duration) {
    let since = run.started_at.or(run.claimed_at).map_or(now, |at| at.0);
    (run.job, now - since)
}

fn ended(run: RunView) -> Option<(String, Outcome, Option<Duration>, Timestamp)> {
    let outcome = Outcome::ALL.into_iter().find(|it| Some(it.as_str()) == run.outcome.as_deref())?;
    Some((run.job, outcome, run.took.map(|it| it.0), run.ended_at?.0))
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

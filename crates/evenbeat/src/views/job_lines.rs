//! Jobs as the lines of a list: how fresh they are, why, what comes next, and how their last runs went.

use std::collections::BTreeMap;

use evenbeat_core::condition::Reason;
use evenbeat_core::estimate::Estimate;
use evenbeat_core::explain::Explanation;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Status;
use evenbeat_core::roster::Standing;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunPhase, RunRow};
use evenbeat_core::time::{Duration, Timestamp};

use super::ViewError;
use super::job_list::ListedCondition;
use super::model::ExplanationView;
use crate::alerts::last_run_among;
use crate::app::App;

/// How many of the last runs are shown.
pub(crate) const N_LAST_RUNS: usize = 14;

/// One job of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobLine {
    pub(crate) key: String,
    pub(crate) description: Option<String>,
    pub(crate) status: Status,
    /// None while it is not tracked.
    pub(crate) condition: Option<ListedCondition>,
    /// Start of the last good run.
    pub(crate) fresh_since: Option<Timestamp>,
    /// The latest start that still meets the deadline.
    pub(crate) latest_start: Option<Timestamp>,
    pub(crate) deadline: Option<Timestamp>,
    /// Why it stands so, without what the deadline says already.
    pub(crate) why: String,
    /// The whole explanation.
    pub(crate) explanation: String,
    pub(crate) next: NextEvent,
    /// The oldest first.
    pub(crate) last_runs: Vec<EndedRun>,
    /// The mean length of good runs.
    pub(crate) average: Option<Duration>,
    /// Who runs it.
    pub(crate) node: Option<String>,
    pub(crate) pool: String,
}

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextEvent {
    /// It has been running since then.
    Running(Timestamp),
    /// It may start, and waits.
    Queued,
    /// It starts then.
    StartsAt(Timestamp),
    /// Nothing, until a person acts.
    Nothing,
}

/// An ended run, as far as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedRun {
    pub(crate) is_good: bool,
    pub(crate) took: Duration,
}

/// Jobs in the order of their keys here. Those that are gone are left out.
pub(crate) async fn lines(app: &App, keys: Vec<JobKey>) -> Result<Vec<JobLine>, ViewError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let rows = app.store.jobs_of(keys.clone().into()).await?;
    let mut runs = app.store.latest_runs(keys.clone().into(), N_LAST_RUNS).await?;
    let asked = app.node.ask_both(move |engine, roster, now| {
        let standings = keys.iter().filter_map(|key| Some((key.clone(), roster.of(key)?)));
        let standings: BTreeMap<JobKey, Standing> = standings.collect();
        (engine.explain_all(now, &keys), standings)
    });
    let (explained, standings) = asked.await.ok_or(ViewError::NodeGone)?;
    let explained: BTreeMap<JobKey, Explanation> =
        explained.into_iter().map(|it| (it.key.clone(), it)).collect();
    let now = app.intake.now();
    let line = |row: &JobRow| {
        let runs = runs.remove(&row.job.key).unwrap_or_default();
        let line = JobLine::of(row, explained.get(&row.job.key), &runs, now);
        // An explanation may foresee what the counts do not know yet. A list goes by the counts.
        match standings.get(&row.job.key) {
            Some(standing) => JobLine { condition: ListedCondition::of(standing.reason), ..line },
            None => line,
        }
    };
    Ok(rows.iter().filter(|row| !row.is_deleted).map(line).collect())
}

impl JobLine {
    fn of(row: &JobRow, explained: Option<&Explanation>, runs: &[RunRow], now: Timestamp) -> JobLine {
        let (job, state) = (&*row.job, &row.state);
        let it = match explained {
            Some(explained) => ExplanationView::of(explained, row),
            // The node has not heard of the job yet.
            None => ExplanationView::of_row(row, now),
        };
        let status = state.status(job);
        let is_tracked = state.is_tracked(job);
        let reason = Reason::ALL.into_iter().find(|reason| reason.as_str() == it.reason);
        let last_run = last_run_among(row, runs);
        let owner = state.owner.as_deref();
        JobLine {
            key: job.key.to_string(),
            description: job.description.clone(),
            status,
            condition: ListedCondition::of(reason.filter(|_| is_tracked)),
            fresh_since: state.last_good_start_at,
            latest_start: it.should_start_by.map(|at| at.0),
            deadline: it.deadline.map(|at| at.0),
            why: why(
                &it,
                last_run.as_deref(),
                is_tracked,
                state.pause.as_ref().and_then(|it| it.reason.as_deref()),
            ),
            explanation: explanation(&it, last_run.as_deref()),
            next: next_event(&it, status, owner.map(|owner| owner.started_at)),
            last_runs: runs.iter().rev().filter_map(EndedRun::of).collect(),
            average: state.estimate.as_ref().map(Estimate::mean),
            node: owner.map(|owner| owner.node.to_string()),
            pool: job.place.pool.to_string(),
        }
    }

    /// Whether it waits for a person.
    pub(crate) fn is_paused(&self) -> bool {
        self.status == Status::Paused
    }
}

/// Whether what binds a job is worth a word beside how it stands: it is no matter of course, such as that a retry follows
/// a failure.
fn is_hold_up(binding: &str, has_failed: bool) -> bool {
    let is_of_course = ["ok", "running", "not_due", "cooldown", "never_run", "manual"].contains(&binding);
    !(is_of_course || has_failed && binding == Reason::Backoff.as_str())
}

/// The sentences of the explanation that the rest of a line does not show.
fn why(it: &ExplanationView, last_run: Option<&str>, is_tracked: bool, pause_reason: Option<&str>) -> String {
    if !is_tracked {
        let reason = pause_reason.map_or(String::new(), |reason| format!(" ({reason})"));
        return format!("{}{reason}", it.binding_sentence);
    }
    let mut parts: Vec<&str> = Vec::new();
    let mut view = it.clone();
    view.say_last_run(last_run);
    match &*it.condition {
        "ok" => {}
        // How late it is stands beside it.
        _ if it.reason == Reason::DeadlinePassed.as_str() => parts.extend(last_run),
        // So does the row of failures.
        _ if it.reason == Reason::LastRunFailed.as_str() && last_run.is_some() => parts.extend(last_run),
        _ => parts.push(&view.sentence),
    }
    let is_said = parts.iter().any(|part| part.contains(&it.binding_sentence));
    if parts.is_empty() || is_hold_up(&it.binding, last_run.is_some()) && !is_said {
        parts.push(&it.binding_sentence);
    }
    joined(&parts)
}

/// Sentences one after the other. One that ends with what a run printed may have no full stop.
fn joined(parts: &[&str]) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push_str(if text.ends_with(['.', '!', '?']) { " " } else { ". " });
        }
        text.push_str(part);
    }
    text
}

fn explanation(it: &ExplanationView, last_run: Option<&str>) -> String {
    let mut view = it.clone();
    view.say_last_run(last_run);
    if view.sentence == view.binding_sentence {
        return view.sentence;
    }
    joined(&[&view.sentence, &view.binding_sentence])
}

fn next_event(it: &ExplanationView, status: Status, running_since: Option<Timestamp>) -> NextEvent {
    if let Some(since) = running_since {
        return NextEvent::Running(since);
    }
    if matches!(status, Status::Paused | Status::Disabled | Status::Done) {
        return NextEvent::Nothing;
    }
    // What the job itself waits for has an end, or none at all; everything else is a queue.
    let is_own = !it.waits.is_empty();
    match it.starts_at {
        Some(at) if is_own => NextEvent::StartsAt(at.0),
        None if is_own => NextEvent::Nothing,
        _ => NextEvent::Queued,
    }
}

impl EndedRun {
    fn of(run: &RunRow) -> Option<EndedRun> {
        let (RunPhase::Ended(outcome), Some(ended)) = (run.phase, run.ended) else { return None };
        let started_at = run.started_at.unwrap_or(run.claimed_at);
        let took = (ended.ended_at - started_at).max(Duration::ZERO);
        Some(EndedRun { is_good: outcome == Outcome::Succeeded, took })
    }
}

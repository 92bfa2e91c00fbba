//! Which run an id means (K1): the run itself, or the latest run of the request that has this id.

use evenbeat_core::ids::{ExtraId, JobKey, RunId};
use evenbeat_core::job::Extra;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{RunPhase, RunRow};

use super::ViewError;
use super::model::{RunView, SessionNames};
use crate::app::App;
use crate::store::query::RunName;

/// How many runs are listed when an id is not unique.
const CANDIDATES_MAX: usize = 5;

/// The ids that begin in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRange {
    pub(crate) from: RunId,
    pub(crate) to: RunId,
}

/// What an id means.
#[derive(Debug)]
pub(crate) struct FoundRun {
    /// The id of the run, or of the request if that has no run.
    pub(crate) id: String,
    pub(crate) key: JobKey,
    /// The run; none for a request that has none yet, or was taken back before it had one.
    pub(crate) run: Option<RunRow>,
    /// The request, while it waits for its first or its next run.
    pub(crate) waiting: Option<Extra>,
}

impl FoundRun {
    pub(crate) fn view(&self, names: &SessionNames) -> RunView {
        match &self.run {
            Some(run) => RunView {
                retry_at: self.waiting.as_ref().map(|it| it.not_before.into()),
                ..RunView::of(run, names)
            },
            None => RunView::of_request(&self.id, &self.key, self.waiting.as_ref()),
        }
    }
}

/// Finds the run that an id, or the beginning of one, means.
pub(crate) async fn find(app: &App, ids: IdRange) -> Result<FoundRun, ViewError> {
    let id = match ids {
        IdRange { from, to } if from == to => from,
        ids => unique(app, ids).await?,
    };
    let request = ExtraId(id.0);
    match app.store.run(id).await? {
        Some(run) if run.due.asked() == Some(request) && may_run_again(&run) => {
            let waiting = waiting(app, &run.key, request).await?;
            let latest = app.store.latest_attempt(&run.key, request).await?;
            let run = latest.unwrap_or(run);
            Ok(FoundRun { id: run.run.to_string(), key: run.key.clone(), run: Some(run), waiting })
        }
        Some(run) => Ok(FoundRun { id: id.to_string(), key: run.key.clone(), run: Some(run), waiting: None }),
        None => of_request(app, request).await,
    }
}

/// The run with exactly this id, whether or not its request has had others since; or the request.
pub(crate) async fn find_exactly(app: &App, id: RunId) -> Result<FoundRun, ViewError> {
    let Some(run) = app.store.run(id).await? else { return of_request(app, ExtraId(id.0)).await };
    let waiting = match run.due.asked() {
        Some(request) => waiting(app, &run.key, request).await?,
        None => None,
    };
    Ok(FoundRun { id: id.to_string(), key: run.key.clone(), run: Some(run), waiting })
}

/// Whether the request of a run may have had another run after it.
fn may_run_again(run: &RunRow) -> bool {
    !matches!(run.phase, RunPhase::Ended(Outcome::Succeeded | Outcome::Cancelled)) && !run.phase.is_open()
}

async fn of_request(app: &App, id: ExtraId) -> Result<FoundRun, ViewError> {
    let unknown = || ViewError::NoSuchRun(format!("there is no run `{id}`"));
    let request = app.store.request(id).await?.ok_or_else(unknown)?;
    let waiting = waiting(app, &request.key, id).await?;
    let run = app.store.latest_attempt(&request.key, id).await?;
    let shown = run.as_ref().map_or_else(|| id.to_string(), |run| run.run.to_string());
    Ok(FoundRun { id: shown, key: request.key, run, waiting })
}

async fn waiting(app: &App, key: &JobKey, id: ExtraId) -> Result<Option<Extra>, ViewError> {
    let job = app.store.job(key).await?.filter(|row| !row.is_deleted);
    Ok(job.and_then(|row| row.state.extras.iter().find(|extra| extra.id == id).cloned()))
}

/// The one id that begins so.
async fn unique(app: &App, IdRange { from, to }: IdRange) -> Result<RunId, ViewError> {
    let found = app.store.runs_between(from, to, CANDIDATES_MAX + 1).await?;
    let text = common(from, to);
    match found.as_slice() {
        [] => Err(ViewError::NoSuchRun(format!("no run has an id that begins with `{text}`"))),
        [one] => Ok(one.id),
        several => Err(ViewError::AmbiguousRun(ambiguous(&text, several))),
    }
}

fn ambiguous(text: &str, several: &[RunName]) -> String {
    let listed: Vec<String> =
        several.iter().take(CANDIDATES_MAX).map(|it| format!("{} ({})", it.id, it.key)).collect();
    let more = if CANDIDATES_MAX < several.len() { " and more" } else { "" };
    format!("`{text}` is the beginning of several ids: {}{more}; give more of it", listed.join(", "))
}

/// What the caller wrote.
fn common(from: RunId, to: RunId) -> String {
    let (from, to) = (from.to_string(), to.to_string());
    let n_same = from.bytes().zip(to.bytes()).take_while(|(one, other)| one == other).count();
    from.chars().take(n_same).collect::<String>().trim_end_matches('-').to_owned()
}

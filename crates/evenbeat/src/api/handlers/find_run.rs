//! Which run an id means (K1): the run itself, or the latest run of the request that has this id.

use evenbeat_core::ids::{ExtraId, JobKey, RunId};
use evenbeat_core::job::Extra;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{RunPhase, RunRow};

use crate::api::extract::IdRange;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::store::query::RunName;
use crate::views::model::{RunView, SessionNames};

/// How many runs are listed when an id is not unique.
const CANDIDATES_MAX: usize = 5;

/// What an id means.
#[derive(Debug)]
pub(super) struct Found {
    /// The id of the run, or of the request if that has no run.
    pub(super) id: String,
    pub(super) key: JobKey,
    /// The run; none for a request that has none yet, or was taken back before it had one.
    pub(super) run: Option<RunRow>,
    /// The request, while it waits for its first or its next run.
    pub(super) waiting: Option<Extra>,
}

impl Found {
    pub(super) fn view(&self, names: &SessionNames) -> RunView {
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
pub(super) async fn find(api: &Api, ids: IdRange) -> Result<Found, Problem> {
    let id = match ids {
        IdRange { from, to } if from == to => from,
        ids => unique(api, ids).await?,
    };
    let request = ExtraId(id.0);
    match api.app.store.run(id).await? {
        Some(run) if run.due.asked() == Some(request) && may_run_again(&run) => {
            let waiting = waiting(api, &run.key, request).await?;
            let latest = api.app.store.latest_attempt(&run.key, request).await?;
            let run = latest.unwrap_or(run);
            Ok(Found { id: run.run.to_string(), key: run.key.clone(), run: Some(run), waiting })
        }
        Some(run) => Ok(Found { id: id.to_string(), key: run.key.clone(), run: Some(run), waiting: None }),
        None => of_request(api, request).await,
    }
}

/// Whether the request of a run may have had another run after it.
fn may_run_again(run: &RunRow) -> bool {
    !matches!(run.phase, RunPhase::Ended(Outcome::Succeeded | Outcome::Cancelled)) && !run.phase.is_open()
}

async fn of_request(api: &Api, id: ExtraId) -> Result<Found, Problem> {
    let unknown = || Problem::new(Code::NoSuchRun, format!("there is no run `{id}`"));
    let request = api.app.store.request(id).await?.ok_or_else(unknown)?;
    let waiting = waiting(api, &request.key, id).await?;
    let run = api.app.store.latest_attempt(&request.key, id).await?;
    let shown = run.as_ref().map_or_else(|| id.to_string(), |run| run.run.to_string());
    Ok(Found { id: shown, key: request.key, run, waiting })
}

async fn waiting(api: &Api, key: &JobKey, id: ExtraId) -> Result<Option<Extra>, Problem> {
    let job = api.app.store.job(key).await?.filter(|row| !row.is_deleted);
    Ok(job.and_then(|row| row.state.extras.iter().find(|extra| extra.id == id).cloned()))
}

/// The one id that begins so.
async fn unique(api: &Api, IdRange { from, to }: IdRange) -> Result<RunId, Problem> {
    let found = api.app.store.runs_between(from, to, CANDIDATES_MAX + 1).await?;
    let text = common(from, to);
    match found.as_slice() {
        [] => Err(Problem::new(Code::NoSuchRun, format!("no run has an id that begins with `{text}`"))),
        [one] => Ok(one.id),
        several => Err(Problem::new(Code::AmbiguousId, ambiguous(&text, several))),
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

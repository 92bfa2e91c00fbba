//! How people name runs: by an id, by the beginning of one, or by a job.

use evenbeat_core::ids::JobKey;

use super::client::{Ask, Trouble};
use super::live::Desk;
use crate::api::model::{Page, RunView};

/// The length of a whole id.
const ID_LENGTH: usize = 36;

/// What the server is asked for: the last run of the job of this name, or else the id as it was typed.
pub(super) fn find(text: &str, desk: &Desk<'_>) -> Result<String, Trouble> {
    let Ok(job) = text.parse::<JobKey>() else { return Ok(text.to_owned()) };
    if text.len() == ID_LENGTH && uuid::Uuid::try_parse(text).is_ok() {
        return Ok(text.to_owned());
    }
    let page: Page<RunView> = match desk.ask(Ask::get(&["jobs", job.as_str(), "runs"]).with("limit", Some(1)))
    {
        Err(Trouble::Problem(problem)) if problem.code == "no_such_job" => return Ok(text.to_owned()),
        answer => answer?.read()?,
    };
    match page.items.into_iter().next() {
        Some(run) => Ok(run.id),
        None => Err(Trouble::Bad(format!("job `{job}` has not run yet"))),
    }
}

//! How runs are named on the command line: by id, by the start of an id, or by job.

use evenbeat_core::ids::JobKey;

use super::client::{ApiRequest, CommandError};
use super::remote::RemoteContext;
use crate::views::model::{Page, RunView};

/// Length of a full id.
const ID_LENGTH: usize = 36;

/// The id to ask the server for: that of the job's last run if the text names a job, otherwise the text itself.
pub(super) fn find(text: &str, remote: &RemoteContext<'_>) -> Result<String, CommandError> {
    let Ok(job) = text.parse::<JobKey>() else { return Ok(text.to_owned()) };
    if text.len() == ID_LENGTH && uuid::Uuid::try_parse(text).is_ok() {
        return Ok(text.to_owned());
    }
    let page: Page<RunView> = match remote
        .send(ApiRequest::get(&["jobs", job.as_str(), "runs"]).with("limit", Some(1)))
    {
        Err(CommandError::Problem(problem)) if problem.code == "no_such_job" => return Ok(text.to_owned()),
        answer => answer?.read()?,
    };
    match page.items.into_iter().next() {
        Some(run) => Ok(run.id),
        None => Err(CommandError::Bad(format!("job `{job}` has not run yet"))),
    }
}

//! One handler per route: reads the request, asks the store, the intake or the node, and answers with a view model.

pub(super) mod alerts;
pub(super) mod apply;
pub(super) mod audit;
pub(super) mod backfill;
pub(super) mod bulk;
pub(super) mod attainment;
mod definition;
pub(super) mod document;
pub(super) mod events;
mod follow_log;
pub(super) mod health;
pub(super) mod jobs;
pub(super) mod login;
pub(super) mod metrics;
pub(super) mod nodes;
pub(super) mod patch;
pub(super) mod runs;
pub(super) mod scheduler;
pub(super) mod sharing;
pub(super) mod status;
pub(super) mod tokens;
mod trigger;
pub(super) mod upcoming;

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::JobRow;

use super::problem::{Code, Problem};
use super::router::Api;

/// The job, if it is there.
async fn row_of(api: &Api, key: &JobKey) -> Result<JobRow, Problem> {
    let row = api.app.store.job(key).await?.filter(|row| !row.is_deleted);
    row.ok_or_else(|| Problem::new(Code::NoSuchJob, format!("there is no job `{key}`")))
}

//! Why a job runs or does not.

use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;

use super::model::ExplanationView;
use super::{ViewError, jobs};
use crate::app::App;

/// The explanation of a job, now or as of an instant.
pub(crate) async fn explanation(
    app: &App,
    row: &JobRow,
    at: Option<Timestamp>,
) -> Result<ExplanationView, ViewError> {
    let key = row.job.key.clone();
    let explained = app.node.ask(move |engine, now| match at {
        Some(at) => engine.explain_at(&key, at),
        None => engine.explain(now, &key),
    });
    let mut view = match explained.await.flatten() {
        Some(explanation) => ExplanationView::of(&explanation, row),
        // The node has not heard of the job yet.
        None => ExplanationView::of_row(row, at.unwrap_or_else(|| app.intake.now())),
    };
    view.say_last_run(jobs::last_run(app, row).await?.as_deref());
    Ok(view)
}

//! Runs, latest first.

use evenbeat_core::ids::RunId;
use evenbeat_core::store::RunFilter;

use super::ViewError;
use super::model::{Page, RunView, SessionNames};
use crate::app::App;
use crate::store::query::RunQuery;

/// Which runs.
#[derive(Debug, Default)]
pub(crate) struct RunSelection {
    /// By job, and by how and when they ended.
    pub(crate) query: RunQuery,
    /// Whether they are open; all if none.
    pub(crate) open: Option<bool>,
}

impl RunSelection {
    /// Whether only runs that have ended can be among them.
    pub(crate) fn is_of_ended(&self) -> bool {
        let RunQuery { outcome, since, until, .. } = &self.query;
        outcome.is_some() || since.is_some() || until.is_some()
    }
}

/// A page of runs before a run.
pub(crate) async fn list(
    app: &App,
    selection: RunSelection,
    before: Option<RunId>,
    limit: usize,
) -> Result<Page<RunView>, ViewError> {
    let (rows, next) = if selection.open == Some(false) || selection.is_of_ended() {
        let page = app.store.list_runs(selection.query, before, limit).await?;
        (page.rows, page.next)
    } else {
        let filter = RunFilter { key: selection.query.key, is_open: selection.open == Some(true) };
        // One more than wanted tells whether there are more.
        let mut rows = app.store.runs(filter, before, limit + 1).await?;
        let next = (limit < rows.len()).then(|| rows.get(limit - 1).map(|row| row.run));
        rows.truncate(limit);
        (rows, next.flatten())
    };
    let names = SessionNames::of(&app.store.sessions().await?);
    let now = app.intake.now();
    let items = rows.iter().map(|row| RunView::of(row, &names).seen_at(now)).collect();
    Ok(Page { items, next: next.map(|run| run.to_string()) })
}

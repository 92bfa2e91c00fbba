//! Incidents in the order of their list: open ones first, then the latest.

use evenbeat_core::alert::Incident;
use evenbeat_core::time::Timestamp;

use super::ViewError;
use super::model::{IncidentView, Page};
use crate::app::App;

/// Where a page of incidents begins: among the open or the ended ones, after this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncidentCursor {
    is_open: bool,
    opened_at: Timestamp,
    subject: String,
}

impl IncidentCursor {
    /// The cursor of a text that a page returned.
    pub(crate) fn parse(text: &str) -> Option<IncidentCursor> {
        let (state, rest) = text.split_once('-')?;
        let (opened_at, subject) = rest.split_once('-')?;
        let is_open = match state {
            "open" => true,
            "ended" => false,
            _ => return None,
        };
        let opened_at = Timestamp::from_millis(opened_at.parse().ok()?);
        Some(IncidentCursor { is_open, opened_at, subject: subject.to_owned() })
    }

    fn after(incident: &Incident) -> String {
        let state = if incident.is_closed() { "ended" } else { "open" };
        format!("{state}-{}-{}", incident.opened_at.as_millis(), incident.subject)
    }
}

/// A page of incidents, only open ones or all.
pub(crate) async fn incidents(
    app: &App,
    after: Option<IncidentCursor>,
    is_open_only: bool,
    most: usize,
) -> Result<Page<IncidentView>, ViewError> {
    let mut found = Vec::new();
    let is_among_ended = after.as_ref().is_some_and(|it| !it.is_open);
    let place = |it: &IncidentCursor| (it.opened_at, it.subject.clone());
    if !is_among_ended {
        found = app.store.incidents(true, after.as_ref().map(place), most + 1).await?;
    }
    if found.len() <= most && !is_open_only {
        let before = after.as_ref().filter(|it| !it.is_open).map(place);
        found.extend(app.store.incidents(false, before, most + 1 - found.len()).await?);
    }
    let has_more = most < found.len();
    found.truncate(most);
    let next = found.last().filter(|_| has_more).map(IncidentCursor::after);
    Ok(Page { items: found.iter().map(Into::into).collect(), next })
}

//! Jobs for the command palette, as one types.

use axum::Json;
use axum::extract::State;
use evenbeat_core::ids::JobKey;
use serde::Serialize;

use crate::dashboard::Pages;
use crate::dashboard::error::PageResult;
use crate::dashboard::times::{Distance, Times, brief};
use crate::dashboard::user::{PageUser, PageViewer};
use crate::views::job_lines::{JobLine, NextEvent, lines};
use crate::views::job_list::ListedCondition;

/// Jobs that are shown.
const SHOWN_MAX: usize = 8;

/// Keys that are looked at, if there are several words.
const KEYS_MAX: usize = 500;

/// Longest text that is looked for.
const TEXT_MAX: usize = 200;

#[derive(Debug, Default, Serialize)]
pub(super) struct SearchAnswer {
    jobs: Vec<JobHit>,
}

#[derive(Debug, Serialize)]
struct JobHit {
    key: String,
    /// The icon of its condition.
    mark: &'static str,
    /// What happens next.
    note: String,
}

/// Jobs whose key has every word of a text, those that begin with it first.
pub(super) async fn search(
    user: PageUser<PageViewer>,
    State(pages): State<Pages>,
) -> PageResult<Json<SearchAnswer>> {
    let app = &pages.app;
    let text = user.query.get("q").unwrap_or_default().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(longest) = words.iter().max_by_key(|word| word.len()).filter(|_| text.len() <= TEXT_MAX) else {
        return Ok(Json(SearchAnswer::default()));
    };
    let found = app.fleet.find_keys((*longest).to_owned(), None, None, KEYS_MAX).await.unwrap_or_default();
    let has_all = |key: &&JobKey| {
        let key = key.as_str().to_lowercase();
        words.iter().all(|word| key.contains(word))
    };
    let mut keys: Vec<JobKey> = found.iter().filter(has_all).cloned().collect();
    keys.sort_by_key(|key| !key.as_str().to_lowercase().starts_with(*longest));
    keys.truncate(SHOWN_MAX);
    let times = user.times(app.clock.store_now());
    let hits = lines(app, keys).await?.iter().map(|line| hit(line, &times)).collect();
    Ok(Json(SearchAnswer { jobs: hits }))
}

fn hit(line: &JobLine, times: &Times) -> JobHit {
    let mark = match line.condition {
        Some(condition) => condition.as_str(),
        None => "paused",
    };
    JobHit { key: line.key.clone(), mark, note: note(line, times) }
}

/// How late it is or by when it will be, and what comes next.
fn note(line: &JobLine, times: &Times) -> String {
    let late = line.deadline.filter(|at| line.condition == Some(ListedCondition::Error) && *at < times.now);
    let late = late.map(|at| times.distance_text(at, Distance::Left));
    let next = match line.next {
        NextEvent::Running(since) => format!("running for {}", brief(times.now - since)),
        NextEvent::Queued => "queued".to_owned(),
        NextEvent::StartsAt(at) => format!("starts {}", times.short_text(at)),
        NextEvent::Nothing if line.is_paused() => "paused".to_owned(),
        NextEvent::Nothing => "no start planned".to_owned(),
    };
    late.into_iter().chain([next]).collect::<Vec<_>>().join(", ")
}

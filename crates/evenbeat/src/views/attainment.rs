//! How fresh jobs were over a day, a week and a month (K7).

use evenbeat_core::attainment::{Attainment, Span};
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, TimeWindow};

use super::ViewError;
use super::model::{AttainmentGroup, AttainmentView, AttainmentWindow, JobAttainmentView, LateSpan};
use crate::app::App;
use crate::store::spans::{GroupAttainment, GroupBy, SpanKind};

/// Most groups of an answer.
const GROUPS_MAX: usize = 1_000;

/// Most late spans of an answer.
const SPANS_MAX: usize = 100;

/// How far back attainment can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookBack {
    Day,
    Week,
    Month,
}

impl LookBack {
    pub(crate) const ALL: [LookBack; 3] = [LookBack::Day, LookBack::Week, LookBack::Month];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            LookBack::Day => "24h",
            LookBack::Week => "7d",
            LookBack::Month => "30d",
        }
    }

    fn length(self) -> Duration {
        match self {
            LookBack::Day => Duration::from_hours(24),
            LookBack::Week => Duration::from_days(7),
            LookBack::Month => Duration::from_days(30),
        }
    }
}

/// How jobs are grouped, as people write it. The error says what is wrong.
pub(crate) fn group_by(text: &str) -> Result<GroupBy, String> {
    match text.split_once(':') {
        None if text == "fleet" => Ok(GroupBy::Fleet),
        None if text == "tenant" => Ok(GroupBy::Tenant),
        Some(("label", name)) if !name.is_empty() => Ok(GroupBy::Label(name.to_owned())),
        _ => {
            let text = evenbeat_core::nearest::shortened(text);
            Err(format!("`{text}` is not `fleet`, `tenant` or a label (write `label:team`)"))
        }
    }
}

fn word_of(by: &GroupBy) -> String {
    match by {
        GroupBy::Fleet => "fleet".to_owned(),
        GroupBy::Tenant => "tenant".to_owned(),
        GroupBy::Label(name) => format!("label:{name}"),
    }
}

/// The attainment of groups of jobs, the lowest first.
pub(crate) async fn of_groups(app: &App, by: GroupBy, back: LookBack) -> Result<AttainmentView, ViewError> {
    let kept = app.attainment.of(app, by.clone(), back.length()).await?;
    let share = |it: &GroupAttainment| it.attainment.share().unwrap_or(f64::INFINITY);
    let mut groups: Vec<&GroupAttainment> = kept.groups.iter().collect();
    groups.sort_by(|one, other| share(one).total_cmp(&share(other)).then_with(|| one.name.cmp(&other.name)));
    let shown = groups.iter().take(GROUPS_MAX).map(|it| AttainmentGroup {
        name: it.name.clone(),
        jobs: it.n_jobs,
        figures: it.attainment.into(),
    });
    Ok(AttainmentView {
        window: back.as_str().to_owned(),
        from: kept.window.start().into(),
        to: kept.window.end().into(),
        by: word_of(&by),
        groups: shown.collect(),
        total_groups: kept.groups.len(),
    })
}

/// The attainment of one job.
pub(crate) async fn of_job(app: &App, row: &JobRow) -> Result<JobAttainmentView, ViewError> {
    let now = app.intake.now();
    let since = now - LookBack::Month.length();
    let spans = app.store.spans_of(row.job.key.clone(), since).await?;
    let of = |kind: SpanKind| -> Vec<Span> {
        spans.iter().filter(|it| it.kind == kind).map(|it| it.span).collect()
    };
    let (late, paused) = (of(SpanKind::Late), of(SpanKind::Paused));
    let window = |back: LookBack| {
        let window = TimeWindow::new(now - back.length(), now);
        let found = Attainment::of(window, row.state.created_at, &late, &paused);
        AttainmentWindow { window: back.as_str().to_owned(), figures: found.into() }
    };
    let shown = late.iter().rev().filter(|it| row.state.created_at < it.to.unwrap_or(now));
    let shown = shown.take(SPANS_MAX).map(|it| LateSpan { from: it.from.into(), to: it.to.map(Into::into) });
    Ok(JobAttainmentView {
        job: row.job.key.to_string(),
        at: now.into(),
        windows: LookBack::ALL.into_iter().map(window).collect(),
        late: shown.collect(),
    })
}

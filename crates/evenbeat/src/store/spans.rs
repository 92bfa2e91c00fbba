//! When jobs were late or paused, as rows, and what is asked about them for freshness attainment.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::attainment::{Attainment, Span};
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use super::any::AnyStore;

/// Rows that are read at a time.
pub const SPANS_PAGE: usize = 20_000;

/// How long spans are kept.
pub const SPANS_KEPT_FOR: Duration = Duration::from_days(31);

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanKind {
    /// The condition of the job was `error`.
    Late,
    /// A person had paused it.
    Paused,
}

impl SpanKind {
    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            SpanKind::Late => "late",
            SpanKind::Paused => "paused",
        }
    }

    pub(super) fn of(text: &str) -> SpanKind {
        if text == "paused" { SpanKind::Paused } else { SpanKind::Late }
    }
}

/// A span of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpan {
    pub key: JobKey,
    pub kind: SpanKind,
    pub span: Span,
}

/// How jobs are put together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupBy {
    /// All of them.
    Fleet,
    Tenant,
    /// The values of this label.
    Label(String),
}

/// The jobs of a group, and how long they were there in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTotal {
    /// None for jobs without a tenant, and for the fleet.
    pub name: Option<String>,
    pub n_jobs: u64,
    pub existed: Duration,
}

/// A span of a job in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpan {
    pub job_id: i64,
    pub tenant: Option<String>,
    pub kind: SpanKind,
    pub span: Span,
    pub created_at: Timestamp,
}

/// Where a page of spans ends.
pub type SpanCursor = (i64, SpanKind, Timestamp);

/// The attainment of a group of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAttainment {
    /// None for jobs without a tenant, and for the fleet.
    pub name: Option<String>,
    pub n_jobs: u64,
    pub attainment: Attainment,
}

impl AnyStore {
    /// The attainment of groups of jobs over a window that ends now. Reads all jobs and all spans of the window.
    pub async fn attainment(
        &self,
        by: &GroupBy,
        window: TimeWindow,
    ) -> Result<Vec<GroupAttainment>, StoreDown> {
        let totals = self.group_totals(by.clone(), window).await?;
        let mut groups: BTreeMap<Option<String>, GroupAttainment> = totals
            .into_iter()
            .map(|it| {
                let attainment = Attainment { counted: it.existed, late: Duration::ZERO };
                (it.name.clone(), GroupAttainment { name: it.name, n_jobs: it.n_jobs, attainment })
            })
            .collect();
        let labelled: BTreeMap<i64, Arc<str>> = match by {
            GroupBy::Label(name) => self.labelled_jobs(name.clone()).await?.into_iter().collect(),
            GroupBy::Fleet | GroupBy::Tenant => BTreeMap::new(),
        };
        let group_of = |span: &GroupSpan| match by {
            GroupBy::Fleet => Some(None),
            GroupBy::Tenant => Some(span.tenant.clone()),
            GroupBy::Label(_) => labelled.get(&span.job_id).map(|value| Some(value.to_string())),
        };
        let (mut after, mut rows): (Option<SpanCursor>, Vec<GroupSpan>) = (None, Vec::new());
        loop {
            let page = self.group_spans(window, after, SPANS_PAGE).await?;
            let is_last = page.len() < SPANS_PAGE;
            after = page.last().map(|it| (it.job_id, it.kind, it.span.from));
            rows.extend(page);
            // The last job of a page may go on with the next one.
            let open = rows.last().filter(|_| !is_last).map(|it| it.job_id);
            let n_done = rows.iter().position(|it| Some(it.job_id) == open).unwrap_or(rows.len());
            let rest = rows.split_off(n_done);
            for job in rows.chunk_by(|one, next| one.job_id == next.job_id) {
                let group = job.first().and_then(group_of).and_then(|name| groups.get_mut(&name));
                if let Some(group) = group {
                    group.take_off(job, window);
                }
            }
            rows = rest;
            if is_last {
                return Ok(groups.into_values().collect());
            }
        }
    }
}

impl GroupAttainment {
    /// Takes the spans of one of its jobs off the time that it was fresh.
    fn take_off(&mut self, job: &[GroupSpan], window: TimeWindow) {
        let Some(created_at) = job.first().map(|it| it.created_at) else { return };
        let of = |kind: SpanKind| -> Vec<Span> {
            job.iter().filter(|it| it.kind == kind).map(|it| it.span).collect()
        };
        let whole = Attainment::of(window, created_at, &[], &[]);
        let job = Attainment::of(window, created_at, &of(SpanKind::Late), &of(SpanKind::Paused));
        let Attainment { counted, late } = &mut self.attainment;
        *counted = (*counted - (whole.counted - job.counted)).max(Duration::ZERO);
        *late = *late + job.late;
    }
}

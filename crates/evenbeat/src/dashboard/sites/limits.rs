//! A table of limits: of sites, or of tenants.

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::CounterKey;
use maud::{Markup, html};

use crate::dashboard::parts::{icon, job_link, meter};
use crate::dashboard::times::{Distance, Times, brief, count, counted};
use crate::printable;
use crate::views::model::{LimitView, SharedLimitView, SiteView, TenantView};

/// Whose limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    Site,
    Tenant,
}

impl LimitKind {
    pub(super) fn id(self) -> &'static str {
        match self {
            LimitKind::Site => "sites",
            LimitKind::Tenant => "tenants",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            LimitKind::Site => "Sites",
            LimitKind::Tenant => "Quotas",
        }
    }

    pub(super) fn noun(self) -> &'static str {
        match self {
            LimitKind::Site => "site",
            LimitKind::Tenant => "tenant",
        }
    }

    pub(super) fn note(self) -> &'static str {
        match self {
            LimitKind::Site => "limits of what jobs talk to, over all nodes",
            LimitKind::Tenant => {
                "limits of a tenant's plan, over all nodes; a job waits while one is reached"
            }
        }
    }

    pub(super) fn none(self) -> &'static str {
        match self {
            LimitKind::Site => "No job has a `site`, and the configuration sets no limit for one.",
            LimitKind::Tenant => "No job has a `tenant`, and the configuration sets no limit for one.",
        }
    }

    pub(super) fn counter(self, name: &str) -> Option<CounterKey> {
        match self {
            LimitKind::Site => name.parse().ok().map(CounterKey::Site),
            LimitKind::Tenant => name.parse().ok().map(CounterKey::Tenant),
        }
    }
}

/// One site or tenant.
#[derive(Debug)]
pub(super) struct LimitRow {
    pub(super) name: String,
    plan: Option<String>,
    max_run_time: Option<evenbeat_core::time::Duration>,
    pub(super) shared: SharedLimitView,
    /// The first jobs that wait for it.
    pub(super) waiting: Vec<JobKey>,
}

impl LimitRow {
    pub(super) fn of_site(SiteView { site, shared }: SiteView) -> LimitRow {
        LimitRow { name: site, plan: None, max_run_time: None, shared, waiting: Vec::new() }
    }

    pub(super) fn of_tenant(TenantView { tenant, plan, max_run_time, shared }: TenantView) -> LimitRow {
        let max_run_time = max_run_time.map(|it| it.0);
        LimitRow { name: tenant, plan, max_run_time, shared, waiting: Vec::new() }
    }

    /// Whether it has no room for another start now.
    pub(super) fn is_pressed(&self) -> bool {
        0 < self.shared.waiting_here || self.shared.full_until.is_some()
    }

    /// Those that jobs wait for come first, then those in use, then the rest by name.
    pub(super) fn rank(&self) -> (bool, bool, String) {
        (!self.is_pressed(), self.shared.open_runs == 0, self.name.clone())
    }
}

pub(super) fn table(kind: LimitKind, rows: &[LimitRow], times: &Times) -> Markup {
    html! {
        table.tbl.fix.lim {
            colgroup { col.l1; col.l2; col.l3; col.l4; col.l5; @if kind == LimitKind::Tenant { col.l6; } col; }
            thead { tr {
                th { (if kind == LimitKind::Site { "Site" } else { "Tenant" }) }
                th colspan="2" { "Running at once" }
                th.c-h { "Starts in the last hour" }
                th.c-g { "Between starts" }
                @if kind == LimitKind::Tenant { th.c-r { "Longest run" } }
                th { "Effect" }
            } }
            tbody { @for row in rows { (line(kind, row, times)) } }
        }
    }
}

fn line(kind: LimitKind, row: &LimitRow, times: &Times) -> Markup {
    let LimitView { max_concurrent, min_gap, max_per_hour } = &row.shared.limits;
    let open = row.shared.open_runs;
    let query = kind.noun();
    html! {
        tr {
            td.ell.l-n title=(printable::line(&row.name)) {
                a href={ "/?tab=all&" (query) "=" (row.name) } { b { (printable::line(&row.name)) } }
                @if let Some(plan) = &row.plan { " " span.mut { (printable::line(plan)) } }
            }
            td.l-m { @if let Some(most) = max_concurrent { (meter(open, u64::from(*most))) } }
            td.nw.l-v {
                @if 0 < open { a href={ "/?tab=running&" (query) "=" (row.name) } { (count(open)) } } @else { (count(open)) }
                @match max_concurrent { Some(most) => span.mut { " of " (count(u64::from(*most))) }, None => span.mut { ", no limit" } }
            }
            td.nw.c-h {
                @match (row.shared.starts_last_hour, max_per_hour) {
                    (Some(n), Some(most)) => { (count(n)) span.mut { " of " (count(u64::from(*most))) } }
                    (Some(n), None) => { (count(n)) }
                    (None, _) => span.mut { "not counted" }
                }
            }
            td.nw.c-g.t2 { @match min_gap { Some(gap) => { "at least " (brief(gap.0)) }, None => span.mut { "any" } } }
            @if kind == LimitKind::Tenant { td.nw.c-r.t2 { @match row.max_run_time { Some(most) => (brief(most)), None => span.mut { "any" } } } }
            td.t2.l-e { (effect(row, times)) }
        }
    }
}

fn effect(row: &LimitRow, times: &Times) -> Markup {
    let SharedLimitView { waiting_here, full_until, last_start_at, .. } = &row.shared;
    let n_more = waiting_here.saturating_sub(row.waiting.len() as u64);
    html! {
        @if 0 < *waiting_here {
            (icon("wait")) " " b { (counted(*waiting_here, "job")) (if *waiting_here == 1 { " waits" } else { " wait" }) }
            @if !row.waiting.is_empty() { ": " }
            @for (n, key) in row.waiting.iter().enumerate() { @if 0 < n { ", " } (job_link(key.as_str())) }
            @if 0 < n_more && !row.waiting.is_empty() { " and " (count(n_more)) " more" }
            @if let Some(at) = full_until { ", next start " (times.exact(at.0)) }
        } @else if let Some(at) = full_until {
            "no start before " (times.exact(at.0))
        } @else if let Some(at) = last_start_at {
            span.mut { "last start " (times.distance(at.0, Distance::Ago)) }
        }
    }
}

//! Sites and quotas: what jobs share, how much of it is used, and who waits for it.

mod limits;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use evenbeat_core::store::CounterKey;
use maud::{Markup, html};

use self::limits::{LimitKind, LimitRow};
use super::Pages;
use super::error::PageResult;
use super::frame::{Frame, Nav};
use super::parts::{ConditionMark, icon};
use super::times::{Times, count, counted};
use super::user::{PageUser, PageViewer};
use crate::views;

/// Sites and tenants that are shown at once.
const ROWS_MAX: usize = 50;

/// With more names than this, there is a search field.
const SEARCHED_FROM: usize = 20;

/// Jobs that are named as waiting for one of them.
const NAMED_MAX: usize = 3;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/sites", get(page))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let text = user.query.get("q").map(str::to_lowercase);
    let (sites, tenants) =
        (views::sharing::sites(&pages.app).await?, views::sharing::tenants(&pages.app).await?);
    let is_complete = sites.is_complete && tenants.is_complete;
    let sites = sites.items.into_iter().map(LimitRow::of_site).collect();
    let tenants = tenants.items.into_iter().map(LimitRow::of_tenant).collect();
    let sites = Listed::of(&pages, LimitKind::Site, sites, text.as_deref()).await?;
    let tenants = Listed::of(&pages, LimitKind::Tenant, tenants, text.as_deref()).await?;
    let (mark, title, sentence) = verdict(&sites, &tenants);
    let body = html! {
        section.verdict id="verdict" data-l aria-labelledby="v" {
            div { h1 id="v" { (mark.icon()) (title) } p.sub { (sentence) } }
        }
        @if SEARCHED_FROM < sites.n_all + tenants.n_all {
            div.lim-q {
                form role="search" aria-label="Filter this page" {
                    label.sr for="q" { "Site or tenant" }
                    span.field { (icon("search")) input.in id="q" name="q" type="search" placeholder="Site or tenant" value=[user.query.get("q")]; kbd aria-hidden="true" { "/" } }
                }
            }
        }
        @if !is_complete { p.banner.calm { "There are more than 1,000 names. What is not listed is found by its jobs." } }
        (sites.section(LimitKind::Site, &times))
        (tenants.section(LimitKind::Tenant, &times))
    };
    Ok(Frame::new(Nav::Sites, title, body).live("run job").show(&user, &times))
}

/// Some of the sites or tenants, the most pressed first.
struct Listed {
    rows: Vec<LimitRow>,
    n_all: usize,
    n_matching: usize,
    n_pressed: usize,
    n_waiting: u64,
}

impl Listed {
    async fn of(
        pages: &Pages,
        kind: LimitKind,
        mut rows: Vec<LimitRow>,
        text: Option<&str>,
    ) -> PageResult<Listed> {
        let (n_all, n_pressed) = (rows.len(), rows.iter().filter(|it| it.is_pressed()).count());
        let n_waiting = rows.iter().map(|it| it.shared.waiting_here).sum();
        rows.retain(|row| text.is_none_or(|text| row.name.to_lowercase().contains(text)));
        let n_matching = rows.len();
        rows.sort_by_cached_key(LimitRow::rank);
        rows.truncate(ROWS_MAX);
        let waiting: Vec<CounterKey> = rows
            .iter()
            .filter(|it| 0 < it.shared.waiting_here)
            .filter_map(|it| kind.counter(&it.name))
            .collect();
        if !waiting.is_empty() {
            let mut jobs = views::sharing::waiting_jobs(&pages.app, waiting, NAMED_MAX).await?;
            for row in &mut rows {
                row.waiting = jobs.remove(&row.name).unwrap_or_default();
            }
        }
        Ok(Listed { rows, n_all, n_matching, n_pressed, n_waiting })
    }

    fn section(&self, kind: LimitKind, times: &Times) -> Markup {
        let shown = self.rows.len();
        html! {
            section.sec.gap id=(kind.id()) data-l aria-label=(kind.title()) {
                div.sec-h { h2 { (kind.title()) } span.sub { (kind.note()) } }
                @if self.n_all == 0 {
                    p.mut { (kind.none()) }
                } @else if shown == 0 {
                    div.empty { h3 { "Nothing of this name" } p { "Searched " (counted(self.n_all as u64, kind.noun())) "." } a.btn href="/sites" { "Clear the filter" } }
                } @else {
                    (limits::table(kind, &self.rows, times))
                    @if shown < self.n_matching {
                        div.pager { span { "The first " (count(shown as u64)) " of " (count(self.n_matching as u64)) ", those in use first. Search for others by name." } }
                    }
                }
            }
        }
    }
}

fn verdict(sites: &Listed, tenants: &Listed) -> (ConditionMark, String, String) {
    let n_waiting = sites.n_waiting + tenants.n_waiting;
    let sentence = match (sites.n_all, tenants.n_all) {
        (0, 0) => "No job names a site or a tenant, and none has limits.".to_owned(),
        (sites, tenants) => format!(
            "{} and {}. What waits is counted as this node sees it.",
            counted(sites as u64, "site"),
            counted(tenants as u64, "tenant")
        ),
    };
    let full = |n: usize, noun: &str| (0 < n).then(|| counted(n as u64, noun));
    let pressed: Vec<String> =
        [full(sites.n_pressed, "site"), full(tenants.n_pressed, "tenant")].into_iter().flatten().collect();
    if pressed.is_empty() {
        return (ConditionMark::Ok, "No job waits for a site or a quota".to_owned(), sentence);
    }
    let verb = if sites.n_pressed + tenants.n_pressed == 1 { "has" } else { "have" };
    let title = match n_waiting {
        0 => format!("{} {verb} no room", pressed.join(" and ")),
        n => format!(
            "{} {verb} no room, {} {}",
            pressed.join(" and "),
            counted(n, "job"),
            if n == 1 { "waits" } else { "wait" }
        ),
    };
    (ConditionMark::Warning, title, sentence)
}

//! Who runs when, past and future.

mod chart;
mod rows;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use evenbeat_core::nearest::shortened;
use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use self::chart::{Axis, capacity_strip};
use super::Pages;
use super::error::{NoPage, PageResult};
use super::frame::{Frame, Nav};
use super::parts::{ConditionMark, icon, url_query};
use super::times::{Times, brief, count, counted};
use super::user::{FormFields, PageUser, PageViewer};
use crate::views::timeline::{
    MEMBERS_MAX, Overload, TimelineBy, TimelineQuestion, TimelineView, Zoom, timeline,
};

/// Windows reach no further from now than this.
const FAR: Duration = Duration::from_days(366);

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/timeline", get(page))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.clock.store_now());
    let question = question(&user.query, times.now)?;
    let view = timeline(&pages.app, &question, &times.zone).await?;
    let axis = Axis::of(view.parts, view.now, question.zoom, &times);
    let body = html! {
        (heading(&view, &times))
        (controls(&question, &view, &times))
        div.tlv id="tlv" {
            div.tlx {
                div {
                    b { "Running of " (count(view.capacity)) }
                    span.readout.mut id="tlo" aria-live="polite" { span.js-only { "Arrow keys move, Enter opens" } }
                }
                div.tlc id="tl-strip" data-l { (capacity_strip(&view, &axis, &times)) }
            }
            @for group in &view.groups { (rows::group(&question, &view, group, &axis, &times)) }
            @if view.groups.is_empty() { (nothing(&question)) }
        }
        (notes(&view, &times))
    };
    let title = format!("Timeline, {}", question.zoom.as_str());
    Ok(Frame::new(Nav::Timeline, title, body).live("run job").show(&user, &times))
}

/// What the address asks for.
fn question(query: &FormFields, now: Timestamp) -> PageResult<TimelineQuestion> {
    let refused = |text: String| NoPage::Refused(text);
    let zoom = match query.get("zoom") {
        None => Zoom::default(),
        Some(word) => Zoom::named(word).ok_or_else(|| {
            refused(format!("`zoom={}` is not known; use 1h, 6h, 24h or 7d", shortened(word)))
        })?,
    };
    let by = match query.get("by") {
        None => TimelineBy::default(),
        Some(word) => TimelineBy::named(word).ok_or_else(|| {
            refused(format!("`by={}` is not known; use pool, site or label:NAME", shortened(word)))
        })?,
    };
    let at = match query.get("at") {
        None => None,
        Some(text) => {
            let at: Timestamp = text.parse().map_err(|_| {
                refused(format!("`at={}` is not an instant; write 2026-02-04T12:45:00Z", shortened(text)))
            })?;
            if at < now - FAR || now + FAR < at {
                return Err(refused(format!("`at={text}` is more than a year away")));
            }
            // To the second: parts of a window begin at whole ones.
            Some(Timestamp::from_millis(at.as_millis() - at.as_millis().rem_euclid(1_000)))
        }
    };
    let open = query.all("open");
    let open = (!open.is_empty()).then(|| open.iter().filter(|it| !it.is_empty()).cloned().collect());
    Ok(TimelineQuestion { zoom, by, at, open, all_of: query.get("all").map(str::to_owned) })
}

/// The address of a question.
fn address(question: &TimelineQuestion) -> String {
    let (at, by) = (question.at.map(|at| at.to_string()), question.by.word());
    let mut fields = vec![("zoom", question.zoom.as_str()), ("by", by.as_str())];
    fields.extend(at.as_deref().map(|at| ("at", at)));
    match &question.open {
        None => {}
        Some(open) if open.is_empty() => fields.push(("open", "")),
        Some(open) => fields.extend(open.iter().map(|it| ("open", it.as_str()))),
    }
    fields.extend(question.all_of.as_deref().map(|it| ("all", it)));
    url_query("/timeline", fields)
}

fn heading(view: &TimelineView, times: &Times) -> Markup {
    let (mark, text) = match (&view.overload, &view.full_now) {
        (Some(it), _) => (ConditionMark::Warning, overload_text(it, view, times)),
        (None, Some((pool, n_waiting))) => {
            let verb = if *n_waiting == 1 { "waits" } else { "wait" };
            (
                ConditionMark::Warning,
                format!("Pool {pool} is full now, and {} {verb}", counted(*n_waiting, "run")),
            )
        }
        (None, None) => (ConditionMark::Ok, calm_text(view)),
    };
    let n_bad = view.all.n_bad_in_all();
    let since = view.history_from.unwrap_or(view.parts.start);
    html! {
        section.verdict id="tl-verdict" data-l aria-labelledby="v" {
            div {
                h1 id="v" aria-live="polite" { (mark.icon()) (text) }
                p.sub {
                    (count(view.n_running)) @if view.n_running == 1 { " runs" } @else { " run" } " now, "
                    (count(view.n_waiting)) @if view.n_waiting == 1 { " waits" } @else { " wait" } " for a slot."
                    @if since < view.now {
                        " " (counted(n_bad, "run")) " ended badly " @if view.parts.end() <= view.now { "in this window." }
                        @else { "since " (times.short_text(since)) "." }
                    }
                }
            }
        }
    }
}

fn overload_text(overload: &Overload, view: &TimelineView, times: &Times) -> String {
    let Overload { pool, from, wanted, capacity } = overload;
    let when = if *from <= view.now { "now".to_owned() } else { format!("from {}", times.short_text(*from)) };
    if *capacity == 0 {
        return format!("Pool {pool} has no slots, and {} wanted {when}", are(*wanted));
    }
    let who = if view.n_pools <= 1 { "Full".to_owned() } else { format!("Pool {pool} is full") };
    format!("{who} {when}: {} slots wanted, {} available", count(*wanted), count(*capacity))
}

fn are(n: u64) -> String {
    if n == 1 { "1 is".to_owned() } else { format!("{} are", count(n)) }
}

fn calm_text(view: &TimelineView) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "slots in use")]
    let most = view.all.most().ceil() as u64;
    if view.capacity == 0 {
        return "No overload in view: no node offers slots, and none is wanted".to_owned();
    }
    let verb = if view.parts.end() <= view.now { "in use" } else { "wanted" };
    format!("No overload in view: at most {} of {} slots {verb}", count(most), count(view.capacity))
}

fn controls(question: &TimelineQuestion, view: &TimelineView, times: &Times) -> Markup {
    let half = Duration::from_millis(question.zoom.length().as_millis() / 2);
    let moved = |at: Timestamp| address(&TimelineQuestion { at: Some(at), ..question.clone() });
    let zoomed = |zoom: Zoom| {
        // Around the same middle, unless that is around now anyway.
        let middle = view.parts.start + half;
        let at = question.at.map(|_| middle - Duration::from_millis(zoom.length().as_millis() / 2));
        address(&TimelineQuestion { zoom, at, ..question.clone() })
    };
    let mut choices = vec![TimelineBy::Pool, TimelineBy::Site];
    choices.extend(view.labels.iter().cloned().map(TimelineBy::Label));
    if !choices.contains(&question.by) {
        choices.push(question.by.clone());
    }
    html! {
        div.tlh {
            span.seg role="group" aria-label="Zoom" {
                @for zoom in Zoom::ALL {
                    a href=(zoomed(zoom)) aria-current=[(zoom == question.zoom).then_some("true")] { (zoom.as_str()) }
                }
            }
            span.nw id="tl-window" data-l {
                a.btn.bare.ico href=(moved(view.parts.start - half)) aria-label="Earlier by half a window" {
                    span.flip { (icon("arrow")) }
                }
                b { (times.short_text(view.parts.start)) " to " (times.short_text(view.parts.end())) }
                " " span.mut { (times.zone_name()) } " "
                a.btn.bare.ico href=(moved(view.parts.start + half)) aria-label="Later by half a window" { (icon("arrow")) }
                @if question.at.is_some() {
                    " " a.link href=(address(&TimelineQuestion { at: None, ..question.clone() })) { "Now" }
                }
            }
            form.ckb id="tl-by" method="get" action="/timeline" {
                input type="hidden" name="zoom" value=(question.zoom.as_str());
                @if let Some(at) = question.at { input type="hidden" name="at" value=(at); }
                label for="tg" { "Group by " }
                select.sel id="tg" name="by" {
                    @for by in &choices {
                        option value=(by.word()) selected[*by == question.by] {
                            @match by {
                                TimelineBy::Pool => "pool",
                                TimelineBy::Site => "site",
                                TimelineBy::Label(name) => { "label " (crate::printable::line(name)) },
                            }
                        }
                    }
                }
                noscript { " " button.btn { "Show" } }
            }
            span.sp {}
            (legend())
        }
    }
}

fn legend() -> Markup {
    let entry = |drawn: Markup, word: &str| html! { span { svg viewBox="0 0 14 10" aria-hidden="true" { (drawn) } (word) } };
    html! {
        div.lgd.tll {
            (entry(html! { rect.good width="14" height="10" rx="1" {} }, "good"))
            (entry(html! { rect.fail y="4" width="14" height="6" {} }, "failed"))
            (entry(html! { rect.kill y="4" width="14" height="6" rx="1" {} }, "killed"))
            (entry(html! { rect.run width="8" height="10" {} rect.rest x="8" y="0.6" width="5.4" height="8.8" {} }, "running"))
            (entry(html! { path.wait d="M0 5h14" {} }, "waiting"))
            (entry(html! { rect.plan x="0.75" y="0.75" width="12.5" height="8.5" rx="2" {} }, "planned"))
            (entry(html! { rect.blk width="14" height="10" {} }, "blackout"))
        }
    }
}

fn nothing(question: &TimelineQuestion) -> Markup {
    html! {
        div.empty {
            (icon("new"))
            @match &question.by {
                TimelineBy::Pool => { b { "No jobs yet" } p { "What they run and will run is shown here." } p { a.btn href="/welcome" { "Add jobs" } } },
                TimelineBy::Site => { b { "No job has a site" } p { "Jobs set it with " code { "site" } "." } },
                TimelineBy::Label(name) => { b { "No job has the label " (crate::printable::line(name)) } p { "Jobs set labels with " code { "labels" } "." } },
            }
        }
    }
}

fn notes(view: &TimelineView, times: &Times) -> Markup {
    html! {
        div id="tl-notes" data-l {
            @if let Some(from) = view.history_from {
                p.mut.gap {
                    "There are more runs in this window than one page reads. Those that ended before " (times.exact(from))
                    " are not drawn. A shorter window shows more of them."
                }
            }
            @if view.is_grouped_in_part {
                p.mut.gap { "The groups count the first " (count(MEMBERS_MAX as u64)) " jobs; there are more." }
            }
            @if 0 < view.n_more_groups { p.mut.gap { (counted(view.n_more_groups as u64, "more group")) ", with fewer bad runs and less load." } }
            @if !view.groups.is_empty() {
                p.mut.gap {
                    "Past: recorded runs. Ahead: planned starts, each for as long as good runs of its job take on average. A bar is the mean of "
                    (brief(view.parts.part)) "."
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;

    use super::*;

    fn asked(query: &str) -> Result<String, String> {
        let uri: Uri = format!("/timeline?{query}").parse().unwrap();
        let now = "2026-02-04T10:00:00Z".parse().unwrap();
        match question(&FormFields::of_query(&uri), now) {
            Ok(question) => Ok(address(&question)),
            Err(NoPage::Refused(text)) => Err(text),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_address_says_all_there_is_to_see() {
        let check =
            |query: &str, expected: &str| assert_eq!(asked(query).unwrap(), format!("/timeline?{expected}"));
        check("", "zoom=6h&by=pool");
        check("zoom=7d&by=label:team&open=a+b&open=c", "zoom=7d&by=label:team&open=a+b&open=c");
        check("open=&at=2026-02-04T09:00:00.250Z", "zoom=6h&by=pool&at=2026-02-04T09:00:00Z&open=");
    }

    #[test]
    fn what_cannot_be_shown_is_said() {
        let check =
            |query: &str, expected: &str| assert!(asked(query).unwrap_err().contains(expected), "{query}");
        check("zoom=2h", "use 1h, 6h, 24h or 7d");
        check("by=project", "use pool, site or label:NAME");
        check("at=noon", "is not an instant");
        check("at=2036-02-04T09:00:00Z", "more than a year away");
    }
}

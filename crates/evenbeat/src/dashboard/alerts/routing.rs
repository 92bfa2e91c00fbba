//! Who is told: routes and channels, and a test of each channel.

use axum::extract::State;
use axum::response::Response;
use evenbeat_core::alert::{AlertRoute, AlertRules};
use evenbeat_core::ids::Channel;
use evenbeat_core::rights::Role;
use maud::{Markup, html};

use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::parts::{ConditionMark, form_token};
use crate::dashboard::times::Times;
use crate::dashboard::user::{PageForm, PageOperator, PageUser, PageViewer};
use crate::printable;
use crate::views::alert_overview::ChannelHealth;

pub(super) fn section(
    rules: &AlertRules,
    channels: &[ChannelHealth],
    user: &PageUser<PageViewer>,
    times: &Times,
) -> Markup {
    html! {
        section.sec aria-labelledby="r-h" {
            div.sec-h { h2 id="r-h" { "Routes" } span.sub { "all that match count; the default counts where none does" } }
            table.tbl.fix.rts {
                colgroup { col.x1; col; }
                thead { tr { th { "Alerts about" } th { "Go to" } } }
                tbody {
                    @for route in &rules.routes {
                        tr { td.ell title=(about(route)) { b { (about(route)) } } td.t2.ell { (names(&route.channels)) } }
                    }
                    tr { td.ell { b { (if rules.routes.is_empty() { "everything" } else { "everything else" }) } } td.t2.ell { (names(&rules.default)) } }
                }
            }
            div.sec-h.gap { h2 { "Channels" } }
            table.tbl.fix.rts.chn {
                colgroup { col.x1; col; col.x4; }
                tbody id="channels" data-l { @for channel in channels { (row(channel, user, times)) } }
            }
        }
    }
}

fn row(channel: &ChannelHealth, user: &PageUser<PageViewer>, times: &Times) -> Markup {
    let mark = match (&channel.failing, channel.accepted_at) {
        (Some(_), _) => ConditionMark::Error,
        (None, Some(_)) => ConditionMark::Ok,
        (None, None) => ConditionMark::New,
    };
    html! {
        tr {
            td.ell { span class={ "st st-" (mark.name()) } { (mark.icon()) span.w { b { (printable::line(&channel.name)) } " " span.mut { (channel.kind) } } } }
            td.t2.ell {
                @match (&channel.failing, channel.accepted_at) {
                    (Some(failing), _) => { "nothing accepted since " (times.short(failing.since)) }
                    (None, Some(at)) => { "last accepted " (super::ago(at, times)) }
                    (None, None) => { "nothing sent lately" }
                }
            }
            td.num {
                @if user.may(Role::Operator) {
                    form method="post" action="/alerts/test" {
                        (form_token(&user.session))
                        input type="hidden" name="channel" value=(channel.name);
                        button.btn type="submit" { "Send a test" span.sr { " to " (printable::line(&channel.name)) } }
                    }
                }
            }
        }
    }
}

fn names(channels: &[Channel]) -> String {
    let names: Vec<&str> = channels.iter().map(Channel::as_str).collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

/// What a route is about, in words.
fn about(route: &AlertRoute) -> String {
    let list =
        |what: &str, items: Vec<String>| (!items.is_empty()).then(|| format!("{what}{}", items.join(" or ")));
    let parts = [
        list("", route.jobs.iter().map(|it| it.as_str().to_owned()).collect()),
        (!route.labels.is_empty()).then(|| {
            route
                .labels
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" and ")
        }),
        list("site ", route.sites.iter().map(ToString::to_string).collect()),
        list("tenant ", route.tenants.iter().map(ToString::to_string).collect()),
        list("pool ", route.pools.iter().map(ToString::to_string).collect()),
        list("", route.conditions.iter().map(|it| format!("{}s", it.as_str())).collect()),
        list("", route.reasons.clone()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "everything".to_owned() } else { printable::line(&parts.join(", ")).into_owned() }
}

/// Sends a test message, and says what its receiver answered.
pub(super) async fn test(State(pages): State<Pages>, form: PageForm<PageOperator>) -> PageResult<Response> {
    let back = |flash: Flash| NoPage::back("/alerts".to_owned(), flash);
    let name = form.fields.get("channel").unwrap_or_default();
    let channel: Option<Channel> = name.parse().ok();
    let answer = match &channel {
        Some(channel) => pages.app.alerts.test(channel, form.user.actor()).await,
        None => None,
    };
    let Some(answer) = answer else {
        let text = "It may have been removed from the configuration. Reload the page.";
        return Err(back(Flash::failed("There is no such channel", text)));
    };
    let said = format!("It said: {}", printable::line(&answer.answer));
    let flash = if answer.is_accepted {
        Flash::done(format!("{name} accepted the test"), said)
    } else {
        Flash::failed(format!("{name} did not accept the test"), said)
    };
    Ok(see_other("/alerts", Some(&flash)))
}

#[cfg(test)]
mod tests {
    use evenbeat_core::alert::{KeyPattern, Severity};

    use super::*;

    #[test]
    fn a_route_says_what_it_is_about() {
        assert_eq!(about(&AlertRoute::default()), "everything");
        let route = AlertRoute {
            jobs: vec![KeyPattern::parse("shop-*").unwrap(), KeyPattern::parse("prices").unwrap()],
            labels: vec![("team".to_owned(), "shop".to_owned()), ("tier".to_owned(), "1".to_owned())],
            sites: vec!["shop.example".parse().unwrap()],
            conditions: vec![Severity::Error],
            ..AlertRoute::default()
        };
        assert_eq!(about(&route), "shop-* or prices, team=shop and tier=1, site shop.example, errors");
    }
}

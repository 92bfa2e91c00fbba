//! What all pages have in common: navigation, search, palette, messages, and headers.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, SET_COOKIE,
    X_FRAME_OPTIONS,
};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets::{script_url, style_url};
use super::flash::Flash;
use super::parts::{form_token, icon};
use super::prefs::Prefs;
use super::times::{Times, count};
use super::user::PageUser;
use evenbeat_core::rights::Role;

const SPRITE: &str = include_str!("assets/sprite.svg");

/// Nothing from elsewhere, and nothing inline: text that was smuggled into a page stays text (S10).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; \
     form-action 'self'",
);

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The parts of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nav {
    Fleet,
    Schedule,
    Timeline,
    Runs,
    Nodes,
    Alerts,
    WhatIf,
    Sites,
    Audit,
    Tokens,
    Welcome,
}

impl Nav {
    /// Who gets to see it.
    fn least_role(self) -> Role {
        match self {
            Nav::Tokens => Role::Admin,
            Nav::Audit => Role::Operator,
            _ => Role::Viewer,
        }
    }
}

/// The parts in the bar, with what hides them on narrow screens; then those behind "More", with what shows them there.
const BAR: [(Nav, &str, &str, &str); 6] = [
    (Nav::Fleet, "/", "Fleet", ""),
    (Nav::Schedule, "/schedule", "Schedule", ""),
    (Nav::Timeline, "/timeline", "Timeline", "nx-2"),
    (Nav::Runs, "/runs", "Runs", ""),
    (Nav::Nodes, "/nodes", "Nodes", "nx-1"),
    (Nav::Alerts, "/alerts", "Alerts", ""),
];

const MORE: [(Nav, &str, &str, &str); 7] = [
    (Nav::Timeline, "/timeline", "Timeline", "on-2"),
    (Nav::Nodes, "/nodes", "Nodes", "on-1"),
    (Nav::WhatIf, "/whatif", "What if", ""),
    (Nav::Sites, "/sites", "Sites and quotas", ""),
    (Nav::Audit, "/audit", "Audit", ""),
    (Nav::Tokens, "/tokens", "Tokens", ""),
    (Nav::Welcome, "/welcome", "Add jobs", ""),
];

/// A page inside the frame.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) nav: Nav,
    /// The title of the tab.
    pub(super) title: String,
    pub(super) body: Markup,
    /// Dialogs, after the page.
    pub(super) dialogs: Markup,
    /// What makes the page load itself again: kinds of events, separated by spaces; none if it never changes by itself.
    pub(super) live: &'static str,
    /// The only job that the page is about.
    pub(super) live_job: Option<String>,
    pub(super) status: StatusCode,
}

impl Frame {
    pub(super) fn new(nav: Nav, title: impl Into<String>, body: Markup) -> Frame {
        Frame {
            nav,
            title: title.into(),
            body,
            dialogs: html! {},
            live: "",
            live_job: None,
            status: StatusCode::OK,
        }
    }

    /// Loads itself again on these kinds of events.
    pub(super) fn live(mut self, kinds: &'static str) -> Frame {
        self.live = kinds;
        self
    }

    pub(super) fn live_job(mut self, key: &str) -> Frame {
        self.live_job = Some(key.to_owned());
        self
    }

    pub(super) fn dialogs(mut self, dialogs: Markup) -> Frame {
        self.dialogs = dialogs;
        self
    }

    /// The whole page for someone.
    pub(super) fn show<R>(self, user: &PageUser<R>, times: &Times) -> Response {
        let page = html! {
            (head(&self.title, &user.prefs, None))
            body data-live=(self.live) data-live-job=[self.live_job.as_deref()] data-now=(times.now) data-zone=(times.zone.name()) {
                (PreEscaped(SPRITE))
                a.skip href="#main" { "Skip to content" }
                (top(&self, user, times))
                main id="main" {
                    div.banner.err id="offline" hidden {
                        (icon("error")) span { "Not live since " span.at {} ". The page shows what it last heard." }
                        span.sp {} button.btn type="button" { "Try now" }
                    }
                    div.banner id="moved" hidden { span.n {} span.sp {} button.btn type="button" { "Sort again" } }
                    (self.body)
                }
                (foot())
                div.toasts role="status" aria-live="polite" { @if let Some(flash) = &user.flash { (toast(flash)) } }
                (shortcuts())
                (palette(user))
                (self.dialogs)
            }
        };
        let mut answer = html_response(self.status, page);
        if user.flash.is_some() {
            answer.headers_mut().append(SET_COOKIE, Flash::clear());
        }
        answer
    }
}

fn head(title: &str, prefs: &Prefs, reloads_in: Option<u32>) -> Markup {
    // The element is closed by the parser where the document ends.
    html! {
        (DOCTYPE)
        (PreEscaped(match prefs.theme.attribute() {
            Some(theme) => format!("<html lang=\"en\" data-theme=\"{theme}\">"),
            None => "<html lang=\"en\">".to_owned(),
        }))
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            @if let Some(seconds) = reloads_in { meta http-equiv="refresh" content=(seconds); }
            title { (title) " · Evenbeat" }
            link rel="stylesheet" href=(style_url());
            link rel="icon" href="/assets/icon.svg";
            script src=(script_url()) defer {}
        }
    }
}

fn brand() -> Markup {
    html! {
        a.brand href="/" {
            svg viewBox="0 0 18 18" aria-hidden="true" {
                path d="M2 4h8M6 9h10M3 14h7" stroke="currentColor" stroke-width="3" stroke-linecap="round" {}
            }
            "evenbeat"
        }
    }
}

fn top<R>(frame: &Frame, user: &PageUser<R>, times: &Times) -> Markup {
    let link = |(nav, href, label, class): (Nav, &str, &str, &str)| {
        let current = (nav == frame.nav).then_some("page");
        let badge = user.open_incidents.filter(|it| nav == Nav::Alerts && 0 < *it);
        html! {
            a href=(href) class=[(!class.is_empty()).then_some(class)] aria-current=[current]
                id=[(nav == Nav::Alerts).then_some("nav-alerts")] data-l=[(nav == Nav::Alerts).then_some("")] {
                (label)
                @if let Some(n) = badge { " " span.bdg { span.sr { ", open: " } (count(n)) } }
            }
        }
    };
    let is_in_more = MORE.iter().any(|(nav, _, _, class)| *nav == frame.nav && class.is_empty());
    html! {
        header.top {
            (brand())
            nav.nav aria-label="Main" {
                @for part in BAR { (link(part)) }
                details.more {
                    summary aria-current=[is_in_more.then_some("page")] { "More" (icon("down")) }
                    div.menu {
                        @for part in MORE { @if user.may(part.0.least_role()) { (link(part)) } }
                        a href="/docs/api" { "API reference" }
                        form.out method="post" action="/logout" {
                            (form_token(&user.session))
                            span.mut { (user.session.actor.0) ", " (user.session.role) }
                            button.btn.bare type="submit" { "Sign out" }
                        }
                    }
                }
            }
            span.sp {}
            div.top-r {
                @if user.path != "/" {
                    form.field.top-q role="search" aria-label="Search jobs" action="/" {
                        input type="hidden" name="tab" value="all";
                        label.sr for="gq" { "Search jobs" }
                        (icon("search"))
                        input.in id="gq" name="q" type="search" placeholder="Search jobs" autocomplete="off";
                        kbd aria-hidden="true" { "/" }
                    }
                }
                @if !frame.live.is_empty() {
                    button.btn.bare.live type="button" aria-pressed="true" title="Live updates are on. Press to freeze the page (l)." hidden {
                        (icon("live")) span.lv { "Live" }
                    }
                }
                span.clock title=(times.full(times.now)) {
                    time id="clock" datetime=(times.now) { (times.clock_s(times.now)) } " " span.zn { (times.zone_name()) }
                }
                button.btn.bare.ico.theme type="button" aria-label="Theme: follow system" title="Theme (t)" { (icon("theme")) }
            }
        }
    }
}

fn foot() -> Markup {
    html! {
        footer.foot {
            span { "Evenbeat " (env!("CARGO_PKG_VERSION")) }
            span.js-only { kbd { "?" } " keyboard shortcuts, " kbd { "Ctrl" } " " kbd { "K" } " commands" }
        }
    }
}

/// A message that goes by itself, unless it reports a failure.
fn toast(flash: &Flash) -> Markup {
    let kind = if flash.is_failure { "error" } else { "ok" };
    html! {
        div.toast data-stays=[flash.is_failure.then_some("")] {
            (icon(kind)) b { (flash.title) }
            button.btn.bare.ico type="button" aria-label="Dismiss" { (icon("x")) }
            p {
                (flash.text)
                @if let Some((path, label)) = &flash.link { " " a.link href=(path) { (label) } }
            }
        }
    }
}

fn shortcuts() -> Markup {
    let keys = |keys: &[&str], meaning: &str| {
        html! {
            dt { @for key in keys { kbd { (key) } " " } }
            dd { (meaning) }
        }
    };
    html! {
        dialog.dlg.keys id="keys" aria-labelledby="keys-h" {
            div.dlg-h {
                h2 id="keys-h" { "Keyboard shortcuts" } span.sp {}
                button.btn.bare.ico type="button" data-close aria-label="Close" { (icon("x")) }
            }
            div.dlg-b {
                dl.kv {
                    (keys(&["/"], "Search jobs"))
                    (keys(&["Ctrl", "K"], "Commands; also :"))
                    (keys(&["g"], "then f Fleet, s Schedule, t Timeline, r Runs, n Nodes, a Alerts, w What if"))
                    (keys(&["j", "k"], "Next or previous row"))
                    (keys(&["Enter"], "Open the row"))
                    (keys(&["x"], "Tick the row"))
                    (keys(&["1", "5"], "Switch the tab"))
                    (keys(&["l"], "Freeze or resume live updates"))
                    (keys(&["t"], "Theme: system, light, dark"))
                    (keys(&["Esc"], "Close a dialog, clear a filter"))
                }
                p.mut.keys-n { label { input type="checkbox" checked; " Single-key shortcuts on" } }
            }
        }
    }
}

/// Pages and actions; jobs are searched on the server as one types.
fn palette<R>(user: &PageUser<R>) -> Markup {
    let pages: [(&str, &str, &str); 10] = [
        ("/", "Fleet", "g f"),
        ("/schedule", "Schedule", "g s"),
        ("/timeline", "Timeline", "g t"),
        ("/runs", "Runs", "g r"),
        ("/nodes", "Nodes", "g n"),
        ("/alerts", "Alerts", "g a"),
        ("/whatif", "What if", "g w"),
        ("/sites", "Sites and quotas", ""),
        ("/audit", "Audit", ""),
        ("/welcome", "Add jobs", ""),
    ];
    let actions: [(&str, &str, &str, &str, Role); 4] = [
        ("/schedule?rebalance=preview", "Preview a rebalance", "changes nothing yet", "arrow", Role::Viewer),
        ("/alerts?mute=1", "Mute alerts", "asks for an end", "paused", Role::Operator),
        ("/nodes", "Drain a node", "asks which", "drain", Role::Operator),
        ("#theme", "Switch the theme", "t", "theme", Role::Viewer),
    ];
    html! {
        dialog.pal id="pal" aria-label="Commands" {
            div.pal-q {
                (icon("search"))
                input.pal-in role="combobox" aria-expanded="true" aria-controls="pal-l" aria-label="Command or job"
                    placeholder="Job, page or command" autocomplete="off" spellcheck="false";
                kbd { "Esc" }
            }
            div.pal-l role="listbox" id="pal-l" aria-label="Results" {
                div.pg-g role="group" aria-labelledby="pal-gj" id="pal-jobs" hidden { p.pg-h id="pal-gj" { "Jobs" } }
                div.pg-g role="group" aria-labelledby="pal-gp" {
                    p.pg-h id="pal-gp" { "Go to" }
                    @for (n, (href, label, keys)) in pages.into_iter().enumerate() {
                        a.po role="option" id={ "pal-p" (n) } href=(href) aria-selected="false" tabindex="-1" {
                            (icon("arrow")) span.ell { (label) }
                            span.ks { @for key in keys.split_whitespace() { kbd { (key) } } }
                        }
                    }
                }
                div.pg-g role="group" aria-labelledby="pal-ga" {
                    p.pg-h id="pal-ga" { "Do" }
                    @for (n, (href, label, note, symbol, _)) in
                        actions.into_iter().filter(|it| user.may(it.4)).enumerate() {
                        a.po role="option" id={ "pal-a" (n) } href=(href) aria-selected="false" tabindex="-1" {
                            (icon(symbol)) span.ell { (label) } span.mut.ell { (note) }
                        }
                    }
                }
            }
            p.pal-n hidden { "Nothing matches. Enter searches all jobs for it." }
        }
    }
}

/// A page outside the frame: for people who are not signed in, and for errors.
#[derive(Debug)]
pub(super) struct BarePage {
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
    pub(super) body: Markup,
    /// Whether the page loads itself again at once.
    pub(super) reloads: bool,
    /// Whether it loads itself again after this many seconds.
    pub(super) reloads_in: Option<u32>,
    pub(super) prefs: Option<Prefs>,
}

impl BarePage {
    pub(super) fn new(title: &'static str, body: Markup) -> BarePage {
        BarePage { status: StatusCode::OK, title, body, reloads: false, reloads_in: None, prefs: None }
    }
}

impl IntoResponse for BarePage {
    fn into_response(self) -> Response {
        let prefs = self.prefs.unwrap_or_else(|| Prefs::of(&axum::http::HeaderMap::new()));
        let reloads_in = if self.reloads { Some(0) } else { self.reloads_in };
        let page = html! {
            (head(self.title, &prefs, reloads_in))
            body {
                (PreEscaped(SPRITE))
                main.bare id="main" { (brand()) (self.body) }
            }
        };
        html_response(self.status, page)
    }
}

fn html_response(status: StatusCode, page: Markup) -> Response {
    let kind = (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    (status, [kind], page.into_string()).into_response()
}

/// Adds the headers that every page has.
pub(super) async fn with_headers(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    protect(&mut answer);
    answer
}

/// Nothing from elsewhere, nowhere else.
pub(super) fn protect(answer: &mut Response) {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
}

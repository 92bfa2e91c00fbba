//! The style and the scripts of the pages. Each is one file for browsers, put together at compile time from one per purpose.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use std::sync::LazyLock;

const STYLE: &str = concat!(
    include_str!("assets/style.css"),
    include_str!("assets/extra.css"),
    include_str!("assets/fleet.css"),
    include_str!("assets/job.css"),
    include_str!("assets/run.css"),
    include_str!("assets/runs.css"),
    include_str!("assets/schedule.css"),
    include_str!("assets/timeline.css"),
    include_str!("assets/whatif.css"),
    include_str!("assets/nodes.css"),
    include_str!("assets/sites.css"),
    include_str!("assets/alerts.css"),
    include_str!("assets/audit.css"),
    include_str!("assets/tokens.css"),
    include_str!("assets/welcome.css"),
);

const ICON: &str = include_str!("assets/icon.svg");

const SCRIPT: &str = concat!(
    include_str!("assets/app.js"),
    include_str!("assets/keys.js"),
    include_str!("assets/list.js"),
    include_str!("assets/live.js"),
    include_str!("assets/fleet.js"),
    include_str!("assets/job.js"),
    include_str!("assets/run.js"),
    include_str!("assets/runs.js"),
    include_str!("assets/schedule.js"),
    include_str!("assets/timeline.js"),
    include_str!("assets/whatif.js"),
    include_str!("assets/nodes.js"),
    include_str!("assets/alerts.js"),
    include_str!("assets/welcome.js"),
);

/// Changes with the content, so that browsers may keep an asset for as long as they like.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let hash = blake3::hash([STYLE, SCRIPT].concat().as_bytes());
    hash.to_hex().chars().take(12).collect()
});

/// The address of the style.
pub(super) fn style_url() -> String {
    format!("/assets/evenbeat.css?v={}", *VERSION)
}

/// The address of the script.
pub(super) fn script_url() -> String {
    format!("/assets/evenbeat.js?v={}", *VERSION)
}

/// An asset. Anyone may have it: the login page needs them too.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "evenbeat.css" => ("text/css; charset=utf-8", STYLE),
        "evenbeat.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    ([(CONTENT_TYPE, HeaderValue::from_static(kind)), (CACHE_CONTROL, kept)], text).into_response()
}

//! The page of a job, its verbs, its backfill and its editor.

use std::time::Duration as Length;

use super::client::{PageClient, text};
use crate::support::served::{Reply, Served, Setup};
use crate::support::wait::until;

/// Someone who is signed in.
struct Visitor<'a>(PageClient<'a>);

impl<'a> Visitor<'a> {
    fn with_role(served: &'a Served, role: &str) -> Visitor<'a> {
        Visitor(PageClient::new(served, role))
    }

    fn get(&self, path: &str) -> (u16, String) {
        let reply = self.0.get(path);
        (reply.status, text(&reply))
    }

    /// A page that must be there.
    #[track_caller]
    fn page(&self, path: &str) -> String {
        self.0.page(path)
    }

    /// Sends a form with the token of this visitor.
    fn send(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.0.send(path, &body(fields))
    }

    /// Sends a form, and reads the page that it leads to, with its message.
    #[track_caller]
    fn done(&self, path: &str, fields: &[(&str, &str)]) -> String {
        self.0.send_and_follow(path, &body(fields))
    }
}

fn body(fields: &[(&str, &str)]) -> String {
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
}

#[track_caller]
fn has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
}

#[track_caller]
fn has_not(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
}

/// A definition with hostile texts wherever people may write some.
const HOSTILE: &str = r#""description":"<script>alert(1)</script>","contact":"<i>me</i>\u202e","labels":{"team":"\"><img src=x>"}"#;

#[test]
fn a_job_says_how_it_stands_and_what_comes() {
    let served = Served::start();
    served.add(
        "shop",
        &format!(r#""every":"4h","tz":"Europe/Berlin","max_expected_duration":"10m",{HOSTILE}"#),
    );
    served.counted(1);
    let visitor = Visitor::with_role(&served, "viewer");
    let page = visitor.page("/jobs/shop");
    has(
        &page,
        &["New: first run at", "Freshness", "Europe/Berlin", "every 4h", "done within 4h of each start time"],
    );
    has(
        &page,
        &[
            "It has not run yet.",
            "name = &quot;shop&quot;",
            "max_expected_duration",
            "href=\"/audit?q=shop\"",
        ],
    );
    has(
        &page,
        &[
            "data-live=\"job run condition\" data-live-job=\"shop\"",
            "24 hours",
            "30 days",
            "not known before",
        ],
    );
    // What people wrote stays text.
    has(
        &page,
        &[
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "&lt;i&gt;me&lt;/i&gt;\\u{202e}",
            "label=team%3D%22%3E%3Cimg+src%3Dx%3E",
        ],
    );
    has_not(&page, &["<script>alert", "<img", "<i>me"]);
    // A viewer sees no verbs.
    has_not(
        &page,
        &[
            "/jobs/shop/run",
            "/jobs/shop/pause",
            "/jobs/shop/edit",
            "/jobs/shop/delete",
            "/jobs/shop/backfill",
        ],
    );
}

#[test]
fn verbs_follow_the_role() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let (viewer, operator) = (Visitor::with_role(&served, "viewer"), Visitor::with_role(&served, "operator"));
    has(
        &operator.page("/jobs/shop"),
        &["action=\"/jobs/shop/run\"", "action=\"/jobs/shop/pause\"", "/jobs/shop/backfill"],
    );
    has_not(&operator.page("/jobs/shop"), &["/jobs/shop/edit", "/jobs/shop/delete"]);
    has(
        &Visitor::with_role(&served, "editor").page("/jobs/shop"),
        &["/jobs/shop/edit", "action=\"/jobs/shop/delete\""],
    );
    for verb in ["run", "pause", "resume", "stop", "backfill", "delete", "edit"] {
        let path = format!("/jobs/shop/{verb}");
        assert_eq!(viewer.send(&path, &[]).status, 403, "{verb} by a viewer");
        assert_eq!(
            operator.0.send_without_token(&path, "").status,
            403,
            "{verb} without the token of the form"
        );
    }
    assert_eq!(operator.send("/jobs/shop/delete", &[]).status, 403);
    assert_eq!((operator.get("/jobs/shop/edit").0, operator.get("/jobs/new").0), (403, 403));
    assert_eq!(served.get("/api/v1/jobs/shop").json()["paused_by"], serde_json::Value::Null);
}

#[test]
fn a_run_is_asked_for_once_however_often_the_button_is_pressed() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let visitor = Visitor::with_role(&served, "operator");
    let asked = visitor.page("/jobs/shop?confirm=run");
    has(&asked, &["Run shop now?", "It is due at", "this is a run besides that one", "Keep the schedule"]);
    let key =
        asked.split("name=\"idempotency\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let form = [("idempotency", key.as_str())];
    let first = visitor.done("/jobs/shop/run", &form);
    let second = visitor.done("/jobs/shop/run", &form);
    has(&first, &["Requested a run of shop", "Open the run"]);
    let run_of =
        |page: &str| page.split("toast").last().unwrap().split("/runs/").nth(1).unwrap()[..36].to_owned();
    assert_eq!(run_of(&first), run_of(&second));
    until("the run", || {
        let runs = served.get("/api/v1/jobs/shop/runs").json();
        (runs["items"].as_array().unwrap().len() == 1).then_some(())
    });
    until("the history", || visitor.page("/jobs/shop").contains("requested by hand").then_some(()));
    has(&visitor.page("/jobs/shop"), &["Last 1 run: 1 good.", "class=\"good\"", "data is "]);
}

#[test]
fn a_pause_has_a_reason_an_end_and_a_way_back() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let visitor = Visitor::with_role(&served, "operator");
    let page = visitor.done("/jobs/shop/pause", &[("reason", "site <b>moves</b>"), ("until", "4h")]);
    has(&page, &["Paused shop", "Nothing of it starts until", "/jobs/shop?confirm=resume"]);
    has(
        &page,
        &[
            "“site &lt;b&gt;moves&lt;/b&gt;”",
            "It resumes automatically at",
            "None while it is paused.",
            "Not tracked while it is paused.",
        ],
    );
    has(&page, &["Paused by ", "action=\"/jobs/shop/resume\""]);
    has_not(&page, &["action=\"/jobs/shop?confirm=run\"", "href=\"/jobs/shop?confirm=pause\""]);
    // A run that is asked for now would wait for ever.
    has(&visitor.done("/jobs/shop/run", &[]), &["shop was not started", "resume it first"]);
    has(&visitor.done("/jobs/shop/resume", &[]), &["Resumed shop", "Next run "]);
    let wrong = visitor.done("/jobs/shop/pause", &[("until_at", "2020-01-01T00:00")]);
    has(&wrong, &["shop was not paused", "is not in the future"]);
    has(&visitor.done("/jobs/shop/pause", &[("until_at", "soon")]), &["is not a date and a time"]);
    assert_eq!(served.get("/api/v1/jobs/shop").json()["paused_by"], serde_json::Value::Null);
}

#[test]
fn a_run_that_goes_on_is_shown_and_stopped() {
    let served = Served::with(Setup { takes: Length::from_hours(1), ..Setup::default() });
    served.add("shop", r#""every":"4h","estimate":"40m""#);
    served.add("other", r#""every":"4h""#);
    let run = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let foreign = served.run_of("other")["id"].as_str().unwrap().to_owned();
    let visitor = Visitor::with_role(&served, "operator");
    let page = until("the owner", || Some(visitor.page("/jobs/shop")).filter(|it| it.contains("Running on")));
    has(
        &page,
        &[
            "Running on <code>one</code>",
            "It usually takes 40m, so it should end at",
            "Last ping",
            "Stop run",
        ],
    );
    has(&page, &[&format!("href=\"/runs/{run}\""), "class=\"run-open\""]);
    has_not(&page, &["href=\"/jobs/shop?confirm=run\""]);
    assert_eq!(visitor.send("/jobs/shop/stop", &[("run", &foreign)]).status, 400);
    has(&visitor.done("/jobs/shop/stop", &[("run", &run)]), &["Stopping 1 run of shop"]);
    until("the end", || {
        (served.get(&format!("/api/v1/runs/{run}")).json()["outcome"] == "cancelled").then_some(())
    });
    has(&visitor.page("/jobs/shop"), &["Cancelled", "The run was cancelled."]);
    has(&visitor.done("/jobs/shop/stop", &[("run", &run)]), &["Nothing was stopped"]);
}

#[test]
fn the_last_lines_of_a_bad_run_are_shown_as_text() {
    let served = Served::with(Setup { takes: Length::from_hours(1), ..Setup::default() });
    served.add("shop", r#""every":"4h""#);
    let run = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let lines: String = (0..500).map(|no| format!("line {no}\n")).collect();
    served.logs.write(&run, format!("{lines}\x1b[31m<script>x</script>\n"), true);
    assert_eq!(served.post(&format!("/api/v1/runs/{run}/cancel"), "").status, 202);
    let visitor = Visitor::with_role(&served, "viewer");
    let page = until("the log", || Some(visitor.page("/jobs/shop")).filter(|it| it.contains("Open its log")));
    has(&page, &["Last 12 lines of the last bad run", "line 499", "\\x1b[31m&lt;script&gt;x"]);
    has_not(&page, &["line 480", "<script>x"]);
    // A log that cannot be read does not take the page with it.
    served.logs.write(&run, "broken", true);
    has_not(&visitor.page("/jobs/shop"), &["Open its log"]);
}

#[test]
fn older_runs_are_a_page_away() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    for _ in 0..14 {
        served.ended_run_of("shop");
    }
    let visitor = Visitor::with_role(&served, "viewer");
    let first = visitor.page("/jobs/shop");
    has(&first, &["Last 14 runs: 14 good.", "Older runs", "Runs only when someone asks for it"]);
    assert_eq!(first.matches("<tr data-key=").count(), 12);
    let older = first.split("?before=").nth(1).unwrap().split('#').next().unwrap().to_owned();
    let second = visitor.page(&format!("/jobs/shop?before={older}"));
    assert_eq!(second.matches("<tr data-key=").count(), 2);
    has(&second, &["Latest runs"]);
    let (status, page) = visitor.get("/jobs/shop?before=yesterday");
    assert_eq!(status, 400);
    has(&page, &["is not the id of a run"]);
}

#[test]
fn a_key_that_is_not_there_leads_to_those_that_look_like_it() {
    let served = Served::start();
    served.add("shop-prices", r#""every":"4h""#);
    served.counted(1);
    let visitor = Visitor::with_role(&served, "viewer");
    let (status, page) = visitor.get("/jobs/shop-prces");
    assert_eq!(status, 404);
    has(&page, &["There is no job of this name", "href=\"/jobs/shop-prices\""]);
    let (status, page) = visitor.get("/jobs/%3Cb%3Ex");
    assert_eq!(status, 404);
    has(&page, &["&lt;b&gt;x"]);
}

#[test]
fn a_backfill_is_counted_before_it_is_asked_for() {
    let served = Served::with(Setup { takes: Length::from_hours(1), ..Setup::default() });
    served.add("shop", r#""every":"1h""#);
    let visitor = Visitor::with_role(&served, "operator");
    let now = served.app.intake.now();
    let clock =
        |hours: i64| (now - evenbeat_core::time::Duration::from_hours(hours)).to_string()[..16].to_owned();
    let (from, to) = (clock(6), clock(1));
    let counted = visitor.page(&format!("/jobs/shop/backfill?from={from}&to={to}"));
    has(&counted, &["5 runs would be requested", "5 start times between", "Ask for 5 runs"]);
    assert_eq!(served.get("/api/v1/jobs/shop").json()["waiting_runs"], 0);
    let form = [("from", from.as_str()), ("to", to.as_str())];
    has(&visitor.done("/jobs/shop/backfill", &form), &["Requested 5 runs of shop"]);
    has(&visitor.done("/jobs/shop/backfill", &form), &["Requested "]);
    let wrong = visitor.page("/jobs/shop/backfill?from=2020-01-01T00:00&to=2019-01-01T00:00");
    has(&wrong, &["is not before"]);
    has(&visitor.page("/jobs/shop/backfill?from=then"), &["is not a date and a time"]);
}

/// The fields of the editor for a job that runs every six hours.
fn six_hours<'a>(version: &'a str, do_what: &'a str) -> Vec<(&'a str, &'a str)> {
    let rest = "command = [\"true\"]\r\ncost = 2\r\n";
    vec![
        ("kind", "every"),
        ("when", "6h"),
        ("rest", rest),
        ("tz", "Europe/Berlin"),
        ("version", version),
        ("do", do_what),
    ]
}

#[test]
fn a_change_is_previewed_then_saved() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let visitor = Visitor::with_role(&served, "editor");
    let form = visitor.page("/jobs/shop/edit");
    has(
        &form,
        &["name=\"when\" value=\"4h\"", "<option value=\"every\" selected", "command = [&quot;true&quot;]"],
    );
    let version = served.get("/api/v1/jobs/shop").json()["revision"].to_string();

    let preview = visitor.send("/jobs/shop/edit", &six_hours(&version, "preview"));
    assert_eq!(preview.status, 200, "{}", text(&preview));
    let page = text(&preview);
    has(
        &page,
        &[
            "nothing is saved yet",
            "<code>every</code>",
            "<code>tz</code>",
            "<code>cost</code>",
            "Score",
            "Busiest slot",
        ],
    );
    assert_eq!(page.split("id=\"preview\"").nth(1).unwrap().matches("<li>").count(), 10);
    assert_eq!(served.get("/api/v1/jobs/shop").json()["revision"].to_string(), version);

    let saved = visitor.done("/jobs/shop/edit", &six_hours(&version, "save"));
    has(&saved, &["Saved shop", "Next run ", "every 6h"]);
    let job = served.get("/api/v1/jobs/shop").json();
    assert_eq!((&job["definition"]["every"], &job["definition"]["cost"]), (&"6h".into(), &2.into()));

    // Someone who still looks at the version before loses nothing, and overwrites nothing.
    let stale = visitor.send(
        "/jobs/shop/edit",
        &[("when", "9h")]
            .into_iter()
            .chain(six_hours(&version, "save").into_iter().filter(|it| it.0 != "when"))
            .collect::<Vec<_>>(),
    );
    assert_eq!(stale.status, 409);
    has(
        &text(&stale),
        &["Not saved: ", "name=\"when\" value=\"9h\"", "every = &quot;6h&quot;", "Save over it"],
    );
    assert_eq!(served.get("/api/v1/jobs/shop").json()["definition"]["every"], "6h");
}

#[test]
fn an_error_names_its_field_and_keeps_what_was_written() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let visitor = Visitor::with_role(&served, "editor");
    let mut form = six_hours("1", "save");
    form.retain(|it| it.0 != "when" && it.0 != "rest");
    let wrong = [("when", "6x"), ("rest", "command = [\"true\"]\n</textarea><script>x</script> = 1\n")];
    let reply = visitor.send("/jobs/shop/edit", &[form.as_slice(), &wrong].concat());
    assert_eq!(reply.status, 422);
    has(&text(&reply), &["<b>Line 2</b>", "name=\"when\" value=\"6x\"", "&lt;/textarea&gt;&lt;script&gt;x"]);
    let unknown = [("when", "6x"), ("rest", "command = [\"true\"]\ncosts = 1\n")];
    let reply = visitor.send("/jobs/shop/edit", &[form.as_slice(), &unknown].concat());
    has(&text(&reply), &["<b>Value</b>", "<b>costs</b>, line 2", "aria-invalid=\"true\""]);
    assert_eq!(served.get("/api/v1/jobs/shop").json()["definition"]["every"], "4h");
}

#[test]
fn a_job_is_added_by_hand() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let visitor = Visitor::with_role(&served, "editor");
    has(
        &visitor.page("/jobs/new?key=news&command=fetch+news"),
        &["value=\"news\"", "command = [&quot;fetch&quot;, &quot;news&quot;]"],
    );
    let form = |key: &'static str, what: &'static str| {
        vec![
            ("key", key),
            ("kind", "cron"),
            ("when", "0 3 * * *"),
            ("rest", "command = [\"true\"]"),
            ("do", what),
        ]
    };
    let preview = text(&visitor.send("/jobs/new", &form("news", "preview")));
    has(&preview, &["Next starts", "03:00:00"]);
    assert_eq!(served.get("/api/v1/jobs/news").status, 404);
    has(&visitor.done("/jobs/new", &form("news", "save")), &["Added news", "cron <code>0 3 * * *</code>"]);
    let again = visitor.send("/jobs/new", &form("news", "save"));
    assert_eq!(again.status, 422);
    has(&text(&again), &["There is a job <code>news</code> already.", "<b>Key</b>"]);
    // A job of that name has a page, and the form is still there.
    has(&visitor.done("/jobs/new", &form("new", "save")), &["Added new"]);
    has(&visitor.page("/jobs/new?add=1"), &["<h1>Add a job</h1>"]);
    has_not(&visitor.page("/jobs/new"), &["<h1>Add a job</h1>"]);
}

#[test]
fn a_job_is_deleted_as_it_was_seen() {
    let served = Served::start();
    served.add("shop", r#""every":"4h""#);
    let visitor = Visitor::with_role(&served, "editor");
    has(
        &visitor.page("/jobs/shop?confirm=delete"),
        &["Delete shop?", "Nothing of it starts from now on", "Keep it"],
    );
    let stale = visitor.done("/jobs/shop/delete", &[("version", "99")]);
    has(&stale, &["shop was not deleted", "was changed by someone else"]);
    let version = served.get("/api/v1/jobs/shop").json()["revision"].to_string();
    let reply = visitor.send("/jobs/shop/delete", &[("version", &version)]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/?tab=all")));
    assert_eq!(served.get("/api/v1/jobs/shop").status, 404);
    assert_eq!(visitor.get("/jobs/shop").0, 404);
}

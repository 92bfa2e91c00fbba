//! The page of a run: how it ended, its log, and what can be done to it.

use std::time::Duration as Length;

use serde_json::Value as Json;

use crate::pages::client::PageClient;
use crate::support::served::{Reply, Served, Setup};

#[track_caller]
fn json(client: &PageClient<'_>, path: &str) -> Json {
    let reply = client.get(path);
    assert_eq!(reply.status, 200, "{path}: {reply:?}");
    reply.json()
}

fn id(run: &Json) -> String {
    run["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn has(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "`{part}` is not in {page}");
    }
}

#[track_caller]
fn has_not(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(!page.contains(part), "`{part}` is in {page}");
    }
}

#[test]
fn a_run_says_how_it_ended_and_what_can_be_done() {
    let served = Served::start();
    served.add("shop@eu", r#""manual":true"#);
    let run = id(&served.ended_run_of("shop@eu"));
    let path = format!("/runs/{run}");
    let operator = PageClient::new(&served, "operator").page(&path);
    has(
        &operator,
        &[
            "<span>Good",
            r#"href="/jobs/shop@eu""#,
            "<b>Requested</b>",
            "<b>Claimed</b>",
            "<b>Started</b>",
            "by one",
            r#"data-live="run job" data-live-job="shop@eu""#,
            "1 at this request",
            &format!(r#"href="{path}?confirm=again""#),
        ],
    );
    has_not(&operator, &["confirm=cancel", "style="]);
    let viewer = PageClient::new(&served, "viewer").page(&path);
    has_not(&viewer, &["confirm=again", "Run again", "Cancel run"]);
    has(&viewer, &["There is no log.", "Logs are kept for 14d."]);
}

#[test]
fn a_log_is_text_whatever_the_run_wrote() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let run = id(&served.ended_run_of("shop"));
    let written = "\u{1b}[31mred\u{1b}[0m <script>alert(1)</script>\n[stderr] bad \u{202e}news\u{1b}[2J\n\
                   [evenbeat] note\n\u{1b}]8;;https://evil.example\u{7}link\u{1b}]8;;\u{7} \u{0}\nlast";
    served.logs.write(&run, written, true);
    let person = PageClient::new(&served, "viewer");
    let page = person.page(&format!("/runs/{run}"));
    has(
        &page,
        &[
            r#"<span class="l" data-n="1"><span class="a-r">red</span> &lt;script&gt;alert(1)&lt;/script&gt;"#,
            "<span class=\"l e\" data-n=\"2\">bad \\u{202e}news\n</span>",
            "<span class=\"a-m\">[evenbeat] </span>note\n",
            "<span class=\"l\" data-n=\"4\">link \\x00\n</span>",
            "<span class=\"l\" data-n=\"5\">last\n</span>",
        ],
    );
    has_not(&page, &["<script>alert", "evil.example", "[stderr]", "\u{1b}", "\u{202e}", "Load the "]);

    let raw = person.get(&format!("/runs/{run}/log.txt"));
    assert_eq!((raw.status, raw.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert_eq!(raw.header("x-content-type-options"), Some("nosniff"));
    let file = format!("attachment; filename=\"evenbeat-{run}.log\"");
    assert_eq!(raw.header("content-disposition"), Some(file.as_str()));
    let body = String::from_utf8(raw.body).unwrap();
    assert!(body.contains(written), "{body}");
}

#[test]
fn older_parts_of_a_log_come_by_their_bytes() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let run = id(&served.ended_run_of("shop"));
    let whole: String = (1..=20_000).map(|no| format!("line {no}\n")).collect();
    served.logs.write(&run, &whole, true);
    let person = PageClient::new(&served, "viewer");
    let page = person.page(&format!("/runs/{run}"));
    has(&page, &["Load the ", "are not loaded", "line 20000\n", r#"data-n="20,000""#]);
    has_not(&page, &[">line 2\n"]);
    let attribute = |name: &str| {
        let (_, rest) = page.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse::<u64>().unwrap()
    };
    let (mut first, mut no) = (attribute("data-first"), attribute("data-first-no"));
    has(&page, &[&format!("lines 1 to {} are not loaded", thousands(no - 1))]);
    let mut n_parts = 0;
    while 0 < first {
        let part = json(&person, &format!("/runs/{run}/log?before={first}&no={no}"));
        let last = format!("data-n=\"{}\">line {}\n</span>", thousands(no - 1), no - 1);
        assert!(part["html"].as_str().unwrap().ends_with(&last), "{part}");
        (first, no) = (part["first"].as_u64().unwrap(), part["first_no"].as_u64().unwrap());
        n_parts += 1;
    }
    assert_eq!((no, n_parts), (1, 4));
    for query in ["before=x", "", "before=1&after=1", "after=99999999999999999999"] {
        assert_eq!(person.get(&format!("/runs/{run}/log?{query}")).status, 400, "{query}");
    }
    served.logs.write(&run, "broken", true);
    has(&person.page(&format!("/runs/{run}")), &["The log cannot be read.", "the disk is gone"]);
    assert_eq!(person.get(&format!("/runs/{run}/log?after=0")).status, 500);
}

fn thousands(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", n / 1_000, n % 1_000) }
}

#[test]
fn a_log_is_followed_until_the_run_ends() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let run = id(&served.run_of("shop"));
    let person = PageClient::new(&served, "operator");
    served.logs.write(&run, "one\ntw", false);
    let page = served.until("the start", || {
        let page = person.page(&format!("/runs/{run}"));
        page.contains("Running for ").then_some(page)
    });
    has(
        &page,
        &[
            "Running for ",
            r#"data-live="1""#,
            "<span class=\"l o\" data-n=\"2\">tw\n</span>",
            r#"data-next="4""#,
        ],
    );
    served.logs.write(&run, "one\ntwo\n[stderr] three\n", false);
    let part = json(&person, &format!("/runs/{run}/log?after=4&no=2"));
    assert_eq!(
        part["html"],
        "<span class=\"l\" data-n=\"2\">two\n</span><span class=\"l e\" data-n=\"3\">three\n</span>"
    );
    assert_eq!((&part["next"], &part["next_no"], &part["is_over"]), (&23.into(), &4.into(), &false.into()));

    // An update has no lines: the page keeps its own.
    let update = served.ask_bare(
        "GET",
        &format!("/runs/{run}"),
        &[("Cookie", &person.cookie), ("X-Evenbeat-Live", "1")],
        None,
    );
    has_not(&String::from_utf8(update.body).unwrap(), &[">two\n"]);

    let cancel = person.send(&format!("/runs/{run}/cancel"), "");
    assert_eq!((cancel.status, cancel.header("location")), (303, Some(format!("/runs/{run}").as_str())));
    served.logs.write(&run, "one\ntwo\n[stderr] three\n", true);
    served.until("the end of the log", || {
        let part = json(&person, &format!("/runs/{run}/log?after=23&no=4"));
        (part["is_over"] == true).then_some(())
    });
    let page = person.page(&format!("/runs/{run}"));
    has(&page, &["<span>Cancelled after", "The run was cancelled."]);
    has_not(&page, &[r#"data-live="1""#, "Cancel run"]);
    let again = person.send(&format!("/runs/{run}/cancel"), "");
    assert_eq!(again.status, 303);
    has(&flash(&again), &["Not cancelled", "The run is over: cancelled."]);
}

/// What a message says.
fn flash(reply: &Reply) -> String {
    let cookie = reply.header("set-cookie").unwrap();
    let hex = cookie.strip_prefix("evenbeat_flash=").unwrap().split(';').next().unwrap();
    let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

#[test]
fn who_may_not_act_cannot() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let run = id(&served.run_of("shop"));
    let (viewer, operator) = (PageClient::new(&served, "viewer"), PageClient::new(&served, "operator"));
    for verb in ["cancel", "again"] {
        let path = format!("/runs/{run}/{verb}");
        assert_eq!(viewer.send(&path, "").status, 403, "{verb}");
        assert_eq!(operator.send_without_token(&path, "").status, 403, "{verb}");
        assert_eq!(
            operator.send_without_token(&path, &format!("form_token={}", viewer.form_token())).status,
            403
        );
        assert_eq!(operator.get(&path).status, 405, "{verb}");
    }
    // A question that is not theirs to answer is not asked.
    has_not(&viewer.page(&format!("/runs/{run}?confirm=cancel")), &["Let it run"]);
    has(
        &operator.page(&format!("/runs/{run}?confirm=cancel")),
        &["Cancel this run of shop?", "Let it run", &format!(r#"action="/runs/{run}/cancel""#)],
    );
    let still = served.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!((&still["outcome"], &still["cancel_asked"]), (&Json::Null, &false.into()));
    let strangers = served.ask_bare("GET", &format!("/runs/{run}/log.txt"), &[], None);
    assert_eq!((strangers.status, strangers.header("location")), (303, Some("/login")));
}

#[test]
fn a_request_says_what_it_waits_for_and_is_taken_back() {
    let served = Served::with(Setup { takes: Length::from_hours(1), capacity: 1, ..Setup::default() });
    served.add("first", r#""manual":true"#);
    served.add("second", r#""manual":true"#);
    served.run_of("first");
    let asked = served.post("/api/v1/jobs/second/trigger", "").json()["id"].as_str().unwrap().to_owned();
    let path = format!("/runs/{asked}");
    let operator = PageClient::new(&served, "operator");
    let page = served.until("the reason", || {
        let page = operator.page(&path);
        page.contains(r#"<div class="why">"#).then_some(page)
    });
    has(
        &page,
        &["<span>Waits for its turn</span>", "<b>Waiting</b>", "Cancel request", r#"id="log" data-l hidden"#],
    );
    assert_eq!(operator.get(&format!("{path}/log.txt")).status, 404);
    has(&operator.page(&format!("{path}?confirm=cancel")), &["Let it wait", "nothing runs for it"]);
    let cancel = operator.send(&format!("{path}/cancel"), "");
    has(&flash(&cancel), &["Request cancelled"]);
    has(&operator.page(&path), &["<span>Cancelled before it started</span>"]);
}

#[test]
fn a_job_is_run_again_once_however_often_the_form_is_sent() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let run = id(&served.ended_run_of("shop"));
    let operator = PageClient::new(&served, "operator");
    let question = operator.page(&format!("/runs/{run}?confirm=again"));
    has(&question, &["Run shop again?", "Not now"]);
    let (_, rest) = question.split_once(r#"name="once" value=""#).unwrap();
    let once = rest.split('"').next().unwrap();
    let ask = || {
        let reply = operator.send(&format!("/runs/{run}/again"), &format!("once={once}"));
        assert_eq!(reply.status, 303, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    };
    let (first, second) = (ask(), ask());
    assert_eq!(first, second);
    assert_ne!(first, format!("/runs/{run}"));
    served.until("the run", || operator.page(&first).contains("<span>Good").then_some(()));
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    assert_eq!(audit.iter().filter(|it| it.action == "trigger").count(), 2, "{audit:?}");

    assert_eq!(served.post("/api/v1/jobs/shop/pause", r#"{"reason":"<b>"}"#).status, 200);
    let refused = operator.send(&format!("/runs/{run}/again"), "once=2");
    has(&flash(&refused), &["Not started", "shop is paused by operator (<b>). Resume it first."]);
}

#[test]
fn the_beginning_of_an_id_leads_to_the_run_and_nonsense_to_a_sentence() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let run = id(&served.ended_run_of("shop"));
    let person = PageClient::new(&served, "viewer");
    let reply = person.get(&format!("/runs/{}", &run[..13]));
    assert_eq!((reply.status, reply.header("location")), (303, Some(format!("/runs/{run}").as_str())));
    for (path, said) in [
        ("/runs/ffffffff", "No run has an id that begins with `ffffffff`."),
        ("/runs/019c2740-0000-7000-8000-00000000002a", "There is no run `019c2740"),
        ("/runs/%3Cscript%3E", "`&lt;script&gt;` is not the id of a run."),
        ("/runs/shop", "`shop` is not the id of a run."),
    ] {
        let reply = person.get(path);
        let text = String::from_utf8(reply.body).unwrap();
        assert_eq!(reply.status, 404, "{path}");
        has(&text, &[said]);
    }
}

#[test]
fn a_run_that_took_too_long_says_so_and_links_its_attempts() {
    let served = Served::slow();
    served.add(
        "shop",
        r#""every":"1h","first_run_within":"1s","max_allowed_duration":"1s","retry":{"delays":["1s"]}"#,
    );
    let person = PageClient::new(&served, "viewer");
    let runs = served.until("two attempts", || {
        let runs = served.get("/api/v1/jobs/shop/runs?outcome=timed_out").json();
        let runs = runs["items"].as_array().unwrap().clone();
        (2 <= runs.len()).then_some(runs)
    });
    let (last, first) = (id(&runs[runs.len() - 2]), id(&runs[runs.len() - 1]));
    let page = person.page(&format!("/runs/{first}"));
    has(
        &page,
        &[
            "<span>Timed out after",
            r#"<div class="why error">"#,
            "The run was stopped: it took",
            "<th>Why it ended</th>",
            &format!(r#"href="/runs/{last}""#),
        ],
    );
    has(&person.page(&format!("/runs/{last}")), &[&format!(r#"href="/runs/{first}""#)]);
}

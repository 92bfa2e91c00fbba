//! The time line: what ran, what runs, what will run.

use evenbeat_core::time::Duration;

use crate::support::served::{Reply, Served};

fn page(served: &Served, cookie: &str, path: &str) -> Reply {
    served.ask_bare("GET", path, &[("Cookie", cookie)], None)
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

#[track_caller]
fn shown(served: &Served, cookie: &str, path: &str) -> String {
    let reply = page(served, cookie, path);
    let html = text(&reply);
    assert_eq!(reply.status, 200, "{html}");
    assert!(!html.contains("style=") && !html.contains("<script>"), "{html}");
    html
}

#[test]
fn runs_and_plans_stand_in_their_pool() {
    let served = Served::start();
    served.add("shop", r#""every":"2h","labels":{"team":"news"},"site":"shop.example""#);
    served.add("books", r#""every":"3h","pool":"slow""#);
    served.counted(2);
    let run = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    let cookie = served.session_of("viewer");

    let html = shown(&served, &cookie, "/timeline");
    assert!(html.contains("No overload in view") || html.contains("slots wanted"), "{html}");
    for found in [
        "data-group=\"default\"",
        "data-group=\"slow\"",
        "data-live=\"run job\"",
        &format!("href=\"/runs/{run}\""),
        "href=\"/jobs/shop\"",
        "<title>Good, ",
        "<title>Planned ",
        "Running of 8",
    ] {
        assert!(html.contains(found), "`{found}` is not in {html}");
    }
    assert!(!html.contains("method=\"post\" action=\"/timeline"), "{html}");

    // A label and a site are groups, too, and only open groups have rows.
    let by_label = shown(&served, &cookie, "/timeline?by=label:team");
    assert!(
        by_label.contains("data-group=\"news\"") && !by_label.contains("data-group=\"default\""),
        "{by_label}"
    );
    let by_site = shown(&served, &cookie, "/timeline?by=site&open=");
    assert!(
        by_site.contains("data-group=\"shop.example\"") && by_site.contains("Show its jobs"),
        "{by_site}"
    );
    assert!(!by_site.contains("data-key=\"shop\""), "{by_site}");
    let opened = shown(&served, &cookie, "/timeline?by=site&open=shop.example");
    assert!(opened.contains("data-key=\"shop\"") && !opened.contains("Show its jobs"), "{opened}");

    // A window that is over shows what ran, and no plans.
    let before = served.app.clock.now() - Duration::from_hours(9);
    let past = shown(&served, &cookie, &format!("/timeline?zoom=1h&at={before}"));
    assert!(!past.contains("<title>Planned ") && !past.contains(&run), "{past}");
}

#[test]
fn an_overload_is_told_before_it_comes() {
    let served = Served::start();
    for n in 0..12 {
        let next = served.app.clock.now() + Duration::from_hours(2);
        let body = format!(r#""at":"{next}","estimate":"30m""#);
        served.add(&format!("job-{n}"), &body);
    }
    served.counted(12);
    let html = shown(&served, &served.session_of("viewer"), "/timeline");
    assert!(html.contains("Full from ") && html.contains("12 slots wanted, 8 available"), "{html}");
    assert!(html.contains("class=\"over\""), "{html}");
}

#[test]
fn what_runs_and_what_waits_is_told() {
    let served = Served::with(crate::support::served::Setup {
        takes: std::time::Duration::from_hours(1),
        capacity: 1,
        ..crate::support::served::Setup::default()
    });
    for key in ["one", "two"] {
        served.add(key, r#""every":"6h""#);
    }
    served.counted(2);
    served.run_of("one");
    let reply = served.post("/api/v1/jobs/two/trigger", "");
    assert_eq!(reply.status, 202, "{reply:?}");
    let cookie = served.session_of("viewer");
    let html = served.until("the wait", || {
        let html = shown(&served, &cookie, "/timeline?zoom=1h");
        html.contains("1 waits for a slot").then_some(html)
    });
    assert!(html.contains("1 runs now") && html.contains("Running since"), "{html}");
}

#[test]
fn hostile_labels_stay_text_and_bad_addresses_get_a_clear_answer() {
    let served = Served::start();
    let hostile = r"<script>alert(1)</script>";
    served.add("shop", &format!(r#""every":"2h","labels":{{"team":"{hostile}"}}"#));
    served.counted(1);
    let cookie = served.session_of("viewer");
    let html = shown(&served, &cookie, "/timeline?by=label:team");
    assert!(!html.contains(hostile) && html.contains("&lt;script&gt;alert(1)"), "{html}");
    for (query, said) in [
        ("zoom=2h", "use 1h, 6h, 24h or 7d"),
        ("by=project", "use pool, site or label:NAME"),
        ("at=noon", "is not an instant"),
    ] {
        let reply = page(&served, &cookie, &format!("/timeline?{query}"));
        assert_eq!(reply.status, 400);
        assert!(text(&reply).contains(said), "{}", text(&reply));
    }
    assert_eq!(served.ask_bare("GET", "/timeline", &[], None).status, 303);
    let html = shown(&served, &cookie, "/timeline?by=label:nothing");
    assert!(html.contains("No job has the label nothing"), "{html}");
}

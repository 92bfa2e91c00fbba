//! Runs: lists, logs, cancels; and the records of what got none.

use serde_json::{Value as Json, json};

use crate::support::served::Served;

fn ids(page: &Json) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect()
}

#[test]
fn a_run_tells_where_it_comes_from_and_how_it_ended() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let run = served.ended_run_of("shop");
    let is = |field: &str, expected: Json| assert_eq!(run[field], expected, "{field}: {run:#}");
    is("job", json!("shop"));
    is("status", json!("succeeded"));
    is("phase", json!("ended"));
    is("outcome", json!("succeeded"));
    is("trigger", json!("manual"));
    is("attempt", json!(1));
    is("node", json!("one"));
    is("instance", json!("main"));
    is("exit_code", json!(0));
    is("cancel_asked", json!(false));
    is("late", Json::Null);
    for there in ["asked", "session", "claimed_at", "ended_at", "scheduled_for"] {
        assert!(run[there].is_string(), "{there}: {run:#}");
    }
}

#[test]
fn runs_come_in_pages_the_latest_first() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    served.add("news", r#""manual":true"#);
    let mut made: Vec<String> =
        (0..5).map(|_| served.ended_run_of("shop")["id"].as_str().unwrap().to_owned()).collect();
    served.ended_run_of("news");
    made.reverse();
    for query in [
        "/api/v1/runs?job=shop&limit=2",
        "/api/v1/jobs/shop/runs?limit=2",
        "/api/v1/jobs/shop/runs?limit=2&open=false",
    ] {
        let (mut seen, mut before) = (Vec::new(), String::new());
        loop {
            let page = served.get(&format!("{query}{before}")).json();
            seen.extend(ids(&page).into_iter().map(str::to_owned));
            let Some(next) = page["next"].as_str() else { break };
            before = format!("&before={next}");
        }
        assert_eq!(seen, made, "{query}");
    }
    assert_eq!(ids(&served.get("/api/v1/runs").json()).len(), 6);
    assert_eq!(ids(&served.get("/api/v1/runs?outcome=failed").json()).len(), 0);
    assert_eq!(ids(&served.get("/api/v1/runs?open=true").json()).len(), 0);
    assert_eq!(ids(&served.get("/api/v1/runs?until=2020-01-01T00:00:00Z").json()).len(), 0);
}

#[test]
fn a_run_is_cancelled() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let run = served.run_of("shop");
    let id = run["id"].as_str().unwrap();
    assert_eq!(ids(&served.get("/api/v1/runs?open=true").json()), [id]);
    served.until("its start", || {
        (served.get(&format!("/api/v1/runs/{id}")).json()["status"] == "running").then_some(())
    });
    let answer = served.post(&format!("/api/v1/runs/{id}/cancel"), "");
    assert_eq!((answer.status, answer.json()), (202, json!({"run": id, "asked": true})));
    let run = served.until("its end", || {
        let run = served.get(&format!("/api/v1/runs/{id}")).json();
        (run["phase"] == "ended").then_some(run)
    });
    assert_eq!(run["outcome"], json!("cancelled"));
    assert!(
        run["started_at"].is_string() && run["took"].is_string() && run["took_seconds"].is_number(),
        "{run:#}"
    );
}

#[test]
fn a_log_is_read_from_any_byte_on_while_it_grows() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    let log = |from: u64| {
        let reply = served.get(&format!("/api/v1/runs/{id}/log?from={from}"));
        let header = |name: &str| reply.header(name).unwrap_or("-").to_owned();
        (
            reply.status,
            String::from_utf8(reply.body.clone()).unwrap(),
            header("evenbeat-log-next"),
            header("evenbeat-log-more"),
        )
    };
    let is = |text: &str, next: &str, more: &str| (200, text.to_owned(), next.to_owned(), more.to_owned());
    assert_eq!(log(0), is("", "0", "false"), "it wrote nothing");
    served.logs.write(&id, "one\ntwo\n", false);
    assert_eq!(log(0), is("one\ntwo\n", "8", "true"));
    assert_eq!(log(4), is("two\n", "8", "true"));
    assert_eq!(log(8), is("", "8", "true"));
    served.logs.write(&id, "one\ntwo\nthree\n", true);
    assert_eq!(log(8), is("three\n", "14", "false"));
    assert_eq!(log(14), is("", "14", "false"));
    assert_eq!(log(99), is("", "99", "false"));
    let reply = served.get(&format!("/api/v1/runs/{id}/log"));
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    served.logs.write(&id, "x".repeat(300_000), true);
    assert_eq!(log(0).1.len(), 256 << 10, "a part is bounded");
    assert_eq!(log(0).3, "true");
    served.logs.write(&id, "broken", true);
    assert_eq!(served.get(&format!("/api/v1/runs/{id}/log")).short(), "500 internal");
}

#[test]
fn a_log_is_served_as_safe_text_and_raw_only_on_request() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    let written = b"\x1b[31mred\r\xff\n<script>\xe2\x80\xae";
    served.logs.write(&id, written, true);
    let safe = served.get(&format!("/api/v1/runs/{id}/log"));
    assert_eq!(String::from_utf8(safe.body.clone()).unwrap(), "\\x1b[31mred\\r\\xff\n<script>\\u{202e}");
    assert_eq!(safe.header("evenbeat-log-next"), Some("22"));
    let raw = served.get(&format!("/api/v1/runs/{id}/log?raw=true"));
    assert_eq!(raw.body, written);
    assert_eq!(raw.header("content-type"), Some("application/octet-stream"));
    assert_eq!(raw.header("x-content-type-options"), Some("nosniff"));
    // A character of which only the first bytes have come is served with the rest of it.
    served.logs.write(&id, b"1 \xe2\x82", false);
    let part = served.get(&format!("/api/v1/runs/{id}/log"));
    assert_eq!((part.body.as_slice(), part.header("evenbeat-log-next")), (&b"1 "[..], Some("2")));
    served.logs.write(&id, "1 €", true);
    let rest = served.get(&format!("/api/v1/runs/{id}/log?from=2"));
    assert_eq!((rest.body.as_slice(), rest.header("evenbeat-log-next")), ("€".as_bytes(), Some("5")));
}

#[test]
fn what_a_pause_swallowed_is_on_record() {
    let served = Served::start();
    served.add("tick", r#""every":"1s""#);
    for _ in 0..2 {
        assert_eq!(served.post("/api/v1/jobs/tick/pause", "").status, 200);
        // The store keeps its place, which is shown again once it is resumed.
        let row = served.runtime.block_on(served.app.store.job(&"tick".parse().unwrap())).unwrap();
        let due = row.unwrap().state.next_run_at.unwrap();
        // A second passes; then it has missed something.
        served.until("the instant", || (due < served.app.intake.now()).then_some(()));
        assert_eq!(served.post("/api/v1/jobs/tick/resume", "").status, 200);
    }
    let records = served.get("/api/v1/jobs/tick/records").json();
    let first = &records["items"][0];
    assert_eq!(
        (&first["what"], &first["reason"], &first["job"]),
        (&json!("missed"), &json!("paused"), &json!("tick"))
    );
    assert!(1 <= first["count"].as_u64().unwrap(), "{records}");
    // The latest first, and page by page.
    assert!(records["items"][1]["last"].as_str() < first["first"].as_str(), "{records}");
    let page = served.get("/api/v1/jobs/tick/records?limit=1").json();
    assert_eq!((&page["items"], &page["next"]), (&json!([first]), &first["first"]));
    let next = page["next"].as_str().unwrap();
    let page = served.get(&format!("/api/v1/jobs/tick/records?limit=1&before={next}")).json();
    assert_eq!(page["items"], json!([records["items"][1]]));
    assert_eq!(served.get("/api/v1/jobs/tick/records?before=soon").short(), "400 invalid_parameter");
}

#[test]
fn a_trigger_gives_the_id_of_the_run() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let reply = served.post("/api/v1/jobs/shop/trigger", "");
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    let address = format!("/api/v1/runs/{id}");
    assert_eq!(reply.header("location"), Some(&*address));
    let run = served.until("its end", || {
        let run = served.get(&address).json();
        (run["phase"] == "ended").then_some(run)
    });
    assert_eq!((&run["id"], &run["asked"]), (&json!(id), &json!(id)), "{run:#}");
    assert!(run["started_at"].is_string(), "{run:#}");
}

#[test]
fn a_request_waits_for_its_run_and_can_be_taken_back() {
    let served = Served::slow();
    served.add("shop", r#""manual":true,"overlap":"queue""#);
    let first = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let body = r#"{"params":{"day":1}}"#;
    let id = served.post("/api/v1/jobs/shop/trigger", body).json()["id"].as_str().unwrap().to_owned();
    let address = format!("/api/v1/runs/{id}");
    let run = served.get(&address).json();
    let is = |field: &str, expected: Json| assert_eq!(run[field], expected, "{field}: {run:#}");
    is("id", json!(id));
    is("job", json!("shop"));
    is("status", json!("waiting"));
    is("phase", json!("waiting"));
    is("outcome", Json::Null);
    is("trigger", json!("manual"));
    is("params", json!({"day": 1}));
    is("claimed_at", Json::Null);
    let log = served.get(&format!("{address}/log"));
    assert_eq!((log.status, log.body.len(), log.header("evenbeat-log-more")), (200, 0, Some("true")));
    let cancelled = served.post(&format!("{address}/cancel"), "");
    assert_eq!((cancelled.status, cancelled.json()), (202, json!({"run": id, "asked": true})));
    assert_eq!(served.get(&address).json()["status"], "cancelled");
    assert_eq!(served.get("/api/v1/jobs/shop").json()["waiting_runs"], json!(0));
    assert_eq!(served.post(&format!("{address}/cancel"), "").short(), "409 run_is_over");
    // Its start is written a moment after it was claimed.
    served.until("the first run goes on", || {
        (served.get(&format!("/api/v1/runs/{first}")).json()["phase"] == "running").then_some(())
    });
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    let last = audit.last().unwrap();
    assert_eq!((&*last.action, &*last.subject, &*last.detail), ("cancel", "shop", &*format!("request {id}")));
}

#[test]
fn a_run_is_found_by_the_beginning_of_its_id() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    served.add("news", r#""manual":true"#);
    let id = |key: &str| served.ended_run_of(key)["id"].as_str().unwrap().to_owned();
    let (shop, news) = (id("shop"), id("news"));
    let n_same = shop.bytes().zip(news.bytes()).take_while(|(one, other)| one == other).count();
    for length in [n_same + 1, 24, 36] {
        let found = served.get(&format!("/api/v1/runs/{}", &shop[..length.max(n_same + 1)]));
        assert_eq!((found.status, &found.json()["id"]), (200, &json!(shop)), "{length}");
    }
    let both = &shop[..n_same];
    let several = served.get(&format!("/api/v1/runs/{both}"));
    assert_eq!(several.short(), "409 ambiguous_id");
    let detail = several.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains(&format!("{shop} (shop)")) && detail.contains(&format!("{news} (news)")),
        "{detail}"
    );
    assert_eq!(served.post(&format!("/api/v1/runs/{both}/cancel"), "").short(), "409 ambiguous_id");
    assert_eq!(served.get("/api/v1/runs/ffffffff").short(), "404 no_such_run");
    assert_eq!(served.get("/api/v1/runs/fff").short(), "404 no_such_run");
}

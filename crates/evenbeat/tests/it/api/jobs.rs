//! Jobs: what is shown of them, revisions, triggers, pages and filters.

use serde_json::{Value as Json, json};

use crate::support::served::Served;

fn names(page: &Json) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_job_shows_its_definition_its_memory_and_how_it_stands() {
    let served = Served::start();
    let put = served.put(
        "shop@test",
        r#"{"command":["crawl"],"fresh":"24h","site":"shop.example","labels":{"team":"news"},"tenant":"acme"}"#,
    );
    assert_eq!((put.status, put.header("etag")), (201, Some("\"1\"")), "{put:?}");
    assert_eq!(put.json()["warnings"], json!([]));
    let job = served.get("/api/v1/jobs/shop@test").json();
    let is = |field: &str, expected: Json| assert_eq!(job[field], expected, "{field}: {job:#}");
    is("key", json!("shop@test"));
    is("name", json!("shop"));
    is("configuration", json!("test"));
    is("revision", json!(1));
    is("schedule", json!("fresh 1d, cooldown 12h"));
    is("schedule_kind", json!("fresh"));
    is("target_kind", json!("command"));
    is("site", json!("shop.example"));
    is("tenant", json!("acme"));
    is("pool", json!("default"));
    is("labels", json!({"team": "news"}));
    is("condition", json!("ok"));
    is("reason", json!("never_succeeded"));
    is("tracked", json!(true));
    is("failure_count", json!(0));
    for null in [
        "last_start_at",
        "last_good_end_at",
        "estimate",
        "average_good_duration",
        "paused_by",
        "steal_start_at",
    ] {
        is(null, Json::Null);
    }
    for instant in ["created_at", "placed_at", "next_run_at", "can_start_by", "should_start_by", "deadline"] {
        let text = job[instant].as_str().unwrap_or_else(|| panic!("{instant}: {job:#}"));
        assert!(text.ends_with('Z') && text.contains('T'), "{instant}: {text}");
    }
    // What is shown can be put back.
    let again = served.put("shop@test", &job["definition"].to_string());
    assert_eq!(again.json()["definition"], job["definition"]);
}

#[test]
fn a_run_leaves_its_trace_on_the_job() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    served.ended_run_of("shop");
    let job = served.get("/api/v1/jobs/shop").json();
    assert_eq!(job["last_outcome"], json!("succeeded"));
    assert_eq!(job["estimate"]["samples"], json!(1));
    assert_eq!(job["average_good_duration"], job["estimate"]["mean"]);
    assert!(job["average_good_duration_seconds"].is_number());
    assert_eq!(job["owner_node"], Json::Null);
}

#[test]
fn a_running_job_shows_its_owner() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let run = served.run_of("shop");
    let job = served.until("the owner", || {
        let job = served.get("/api/v1/jobs/shop").json();
        (job["status"] == "running").then_some(job)
    });
    assert_eq!(job["owner_node"], json!("one"));
    assert_eq!(job["owner_name"], json!("main"));
    assert_eq!(job["owner_tag"], run["id"]);
    assert!(job["owner_started_at"].is_string() && job["owner_last_ping_at"].is_string(), "{job:#}");
    assert_eq!(job["steal_start_at"], Json::Null);
    assert_eq!(served.post("/api/v1/jobs/shop/trigger", "").short(), "409 job_running");
}

#[test]
fn who_changes_a_job_can_say_which_one_they_have_seen() {
    let served = Served::start();
    let definition = |every: &str| format!(r#"{{"command":["true"],"every":"{every}"}}"#);
    let put = |every: &str, header: (&str, &str)| {
        let reply = served.ask("PUT", "/api/v1/jobs/shop", &[header], Some(&definition(every)));
        format!("{} {}", reply.short(), reply.header("etag").unwrap_or_default()).trim_end().to_owned()
    };
    assert_eq!(put("6h", ("If-Match", "\"1\"")), "412 other_revision");
    assert_eq!(put("6h", ("If-Match", "*")), "412 other_revision");
    assert_eq!(put("6h", ("If-None-Match", "*")), "201 \"1\"");
    assert_eq!(put("6h", ("If-None-Match", "*")), "412 job_exists");
    assert_eq!(put("7h", ("If-Match", "\"1\"")), "200 \"2\"");
    assert_eq!(put("8h", ("If-Match", "\"1\"")), "412 other_revision");
    assert_eq!(put("8h", ("If-Match", "\"1\", \"2\"")), "200 \"3\"");
    assert_eq!(put("8h", ("If-Match", "W/\"3\"")), "412 other_revision");
    assert_eq!(put("9h", ("If-Match", "*")), "200 \"4\"");
    let delete = |tag: &str| served.ask("DELETE", "/api/v1/jobs/shop", &[("If-Match", tag)], None).short();
    assert_eq!(delete("\"3\""), "412 other_revision");
    assert_eq!(served.get("/api/v1/jobs/shop").header("etag"), Some("\"4\""));
    assert_eq!(delete("\"4\""), "204");
}

#[test]
fn a_trigger_with_a_key_is_heard_once() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let trigger = |key: &str, body: &str| {
        served.ask("POST", "/api/v1/jobs/shop/trigger", &[("Idempotency-Key", key)], Some(body))
    };
    let first = trigger("monday", r#"{"params":{"day":1}}"#);
    assert_eq!(first.status, 202, "{first:?}");
    let n_runs = || served.get("/api/v1/jobs/shop/runs").json()["items"].as_array().unwrap().len();
    served.until("the run", || (n_runs() == 1).then_some(()));
    served.until("its end", || {
        let runs = served.get("/api/v1/jobs/shop/runs?open=true").json();
        runs["items"].as_array().unwrap().is_empty().then_some(())
    });
    // Long after it has run, the same question has the same answer, and nothing more is run.
    for _ in 0..3 {
        let again = trigger("monday", r#"{"params":{"day":1}}"#);
        assert_eq!((again.status, again.body), (202, first.body.clone()));
    }
    assert_eq!(n_runs(), 1);
    assert_eq!(trigger("monday", r#"{"params":{"day":2}}"#).short(), "422 idempotency_key_reused");
    assert_eq!(trigger("monday", "").short(), "422 idempotency_key_reused");
    assert_ne!(trigger("tuesday", "").json()["id"], first.json()["id"]);
    served.until("the second run", || (n_runs() == 2).then_some(()));
    assert_eq!(trigger("", "").short(), "400 invalid_header");
    assert_eq!(trigger(&"x".repeat(256), "").short(), "400 invalid_header");
    let run = served.get("/api/v1/jobs/shop/runs").json()["items"][1].clone();
    assert_eq!(run["params"], json!({"day": 1}), "{run:#}");
}

#[test]
fn a_key_is_known_after_any_number_of_runs() {
    let served = Served::start();
    served.add("shop", r#""manual":true,"overlap":"queue""#);
    let trigger =
        |key: &str| served.ask("POST", "/api/v1/jobs/shop/trigger", &[("Idempotency-Key", key)], None);
    let first = trigger("monday").json();
    let n_waiting = || served.get("/api/v1/jobs/shop").json()["waiting_runs"].as_u64().unwrap();
    for no in 0..210 {
        let reply = trigger(&format!("another {no}"));
        assert_eq!(reply.status, 202, "{reply:?}");
        served.until("room for more", || (n_waiting() < 50).then_some(()));
    }
    assert_eq!(trigger("monday").json(), first);
}

#[test]
fn a_trigger_that_waits_is_known_by_its_key_too() {
    let served = Served::slow();
    served.add("shop", r#""manual":true,"overlap":"queue""#);
    served.run_of("shop");
    let trigger = || served.ask("POST", "/api/v1/jobs/shop/trigger", &[("Idempotency-Key", "k")], None);
    let first = trigger();
    assert_eq!(first.status, 202);
    let again = trigger();
    assert_eq!((again.status, again.body), (202, first.body));
    assert_eq!(served.get("/api/v1/jobs/shop").json()["waiting_runs"], json!(1));
}

#[test]
fn pages_follow_each_other_to_the_end() {
    let served = Served::start();
    let all: Vec<String> = (0..7).map(|it| format!("job{it}")).collect();
    for key in &all {
        served.add(key, r#""manual":true"#);
    }
    served.counted(7);
    for query in
        ["limit=3", "limit=3&condition=ok", "limit=3&status=scheduled", "limit=7&q=JOB", "limit=1&prefix=job"]
    {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = served.get(&format!("/api/v1/jobs?{query}{after}")).json();
            seen.extend(names(&page));
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(seen, all, "{query}");
    }
    let export = served.get("/api/v1/export?limit=5").json();
    assert_eq!((export["items"].as_array().unwrap().len(), &export["next"]), (5, &json!("job4")));
}

#[test]
fn lists_are_filtered() {
    let served = Served::start();
    served.add("news", r#""every":"6h","labels":{"team":"news","tier":"1"},"pool":"browsers""#);
    served.add("shop", r#""manual":true,"labels":{"team":"shop"},"site":"s","tenant":"t""#);
    served.add("off", r#""every":"6h","enabled":false"#);
    served.add("held", r#""every":"6h""#);
    assert_eq!(served.post("/api/v1/jobs/held/pause", "").status, 200);
    served.until("the pause", || {
        (served.get("/api/v1/status").json()["jobs"]["by_status"]["paused"] == 1).then_some(())
    });
    let check = |query: &str, expected: &[&str]| {
        assert_eq!(names(&served.get(&format!("/api/v1/jobs?{query}")).json()), expected, "{query}");
    };
    check("", &["held", "news", "off", "shop"]);
    check("q=EW", &["news"]);
    check("prefix=s", &["shop"]);
    check("label=team=news", &["news"]);
    check("label=team=news&label=tier=1", &["news"]);
    check("label=team=news&label=tier=2", &[]);
    check("pool=browsers", &["news"]);
    check("site=s&tenant=t", &["shop"]);
    check("paused=true", &["held"]);
    check("enabled=false", &["off"]);
    check("running=true", &[]);
    check("status=paused", &["held"]);
    check("status=disabled", &["off"]);
    check("status=scheduled", &["news", "shop"]);
    check("status=running", &[]);
    check("condition=ok", &["shop"]);
    // No node has its pool.
    check("condition=warning", &["news"]);
    check(
        "condition=warning&label=team=news&pool=browsers&q=NEW&prefix=n&enabled=true&paused=false",
        &["news"],
    );
    check("condition=ok&site=s&tenant=t&running=false&status=scheduled", &["shop"]);
    check("condition=ok&label=team=nobody", &[]);
    check("condition=error", &[]);
}

#[test]
fn a_job_is_explained_from_the_moment_it_is_there() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let explained = served.get("/api/v1/jobs/shop/explain").json();
    assert_eq!(explained["binding"], json!("never_run"), "{explained:#}");
    assert_eq!(explained["waits"][0]["reason"], json!("never_run"));
    let then = served.get("/api/v1/jobs/shop/explain?at=2090-01-01T00:00:00Z").json();
    assert_eq!(
        (&then["condition"], &then["reason"]),
        (&json!("error"), &json!("deadline_passed")),
        "{then:#}"
    );
    served.post("/api/v1/jobs/shop/pause", "");
    let paused = served.until("the pause", || {
        let it = served.get("/api/v1/jobs/shop/explain").json();
        (it["binding"] == "paused_operator").then_some(it)
    });
    assert_eq!(paused["binding_sentence"], json!("It is paused; resume it to let it run."));
}

/// The instants at which something of these starts, and why it starts later than it is due.
fn starts(items: &Json) -> Vec<String> {
    let start = |it: &Json| {
        let at = &it["at"].as_str().unwrap()[11..16];
        it["held_up_by"].as_str().map_or(at.to_owned(), |why| format!("{at} {why}"))
    };
    items.as_array().unwrap().iter().map(start).collect()
}

#[test]
fn what_comes_is_when_runs_really_start() {
    let served = Served::start();
    let dark = r#""blackout_periods":[{"start":"00:20:00","end":"01:10:00"}]"#;
    served.add("dark", &format!(r#""cron":"*/15 * * * *",{dark}"#));
    served.add("skips", &format!(r#""cron":"*/15 * * * *","missed":"skip",{dark}"#));
    served.counted(2);
    let (from, to) = ("2090-01-01T00:00:00Z", "2090-01-01T01:30:00Z");
    let all = served.get(&format!("/api/v1/upcoming?from={from}&to={to}&limit=100")).json();
    let of = |job: &str| {
        let items = all["items"].as_array().unwrap().iter().filter(|it| it["job"] == job);
        starts(&Json::Array(items.cloned().collect()))
    };
    assert_eq!(of("dark"), ["00:00", "00:15", "01:10 blackout", "01:15"], "{all:#}");
    assert_eq!(of("skips"), ["00:00", "00:15", "01:15"], "{all:#}");
    let held_up = all["items"].as_array().unwrap().iter().find(|it| it["held_up_by"] == "blackout").unwrap();
    assert_eq!(held_up["due_at"], json!("2090-01-01T00:30:00Z"));
    // One job by itself says the same.
    let page = served.get("/api/v1/jobs/dark/upcoming?limit=4&after=2089-12-31T23:59:59Z").json();
    assert_eq!(starts(&page["items"]), ["00:00", "00:15", "01:10 blackout", "01:15"], "{page:#}");
    // Paused jobs do nothing.
    served.post("/api/v1/jobs/dark/pause", "");
    served.until("the pause", || {
        let page = served.get("/api/v1/jobs/dark/upcoming").json();
        (page["items"] == json!([])).then_some(())
    });
    let all = served.get(&format!("/api/v1/upcoming?from={from}&to={to}&limit=100")).json();
    assert_eq!(all["total"], json!(3), "{all:#}");
}

#[test]
fn what_comes_agrees_with_what_is_explained() {
    let served = Served::start();
    // It is dark all day but for a second, so that the next start is not now.
    let dark =
        r#""blackout_periods":[{"start":"00:00:00","end":"12:00:00"},{"start":"12:00:01","end":"24:00:00"}]"#;
    served.add("dark", &format!(r#""every":"1s","estimate":"1ms",{dark}"#));
    served.counted(1);
    served.until("the two to agree", || {
        let explained = served.get("/api/v1/jobs/dark/explain").json();
        let page = served.get("/api/v1/jobs/dark/upcoming?limit=1").json();
        assert_eq!(page["items"][0]["held_up_by"], json!("blackout"), "{page:#}");
        (explained["starts_at"] == page["items"][0]["at"]).then_some(())
    });
}

#[test]
fn a_fresh_job_comes_as_often_by_itself_as_with_the_others() {
    let served = Served::start();
    served.add("news", r#""fresh":"4h","cooldown":"2h","estimate":"1m""#);
    served.counted(1);
    let own = served.get("/api/v1/jobs/news/upcoming?limit=5").json();
    let own = own["items"].as_array().unwrap().clone();
    assert_eq!(own.len(), 5);
    assert!(own.iter().all(|it| it["estimate"] == true), "{own:?}");
    let from = own[0]["at"].as_str().unwrap();
    let to = own[4]["at"].as_str().unwrap();
    let all = served.get(&format!("/api/v1/upcoming?from={from}&to={to}")).json();
    assert_eq!(all["items"].as_array().unwrap()[..], own[..4]);
}

#[test]
fn what_a_job_does_next_is_its_rhythm() {
    let served = Served::start();
    let job = served.add("shop", r#""every":"6h""#);
    let page = served.get("/api/v1/jobs/shop/upcoming?limit=3").json();
    assert_eq!(page["items"][0]["at"], job["next_run_at"]);
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    let next = page["next"].as_str().unwrap();
    assert_eq!(page["items"][2]["at"], json!(next));
    let more = served.get(&format!("/api/v1/jobs/shop/upcoming?limit=1&after={next}")).json();
    assert!(next < more["items"][0]["at"].as_str().unwrap(), "{more}");
    served.add("once", r#""manual":true"#);
    assert_eq!(served.get("/api/v1/jobs/once/upcoming").json(), json!({"items": []}));
}

#[test]
fn a_paused_job_has_no_next_run() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let job = || served.get("/api/v1/jobs/shop").json();
    let in_fleet = || served.get("/api/v1/scheduler/fleet").json()["items"][0].clone();
    let planned = job();
    assert!(planned["next_run_at"].is_string() && planned["can_start_by"].is_string(), "{planned}");
    served.post("/api/v1/jobs/shop/pause", r#"{"reason":"holiday"}"#);
    let paused = job();
    let times =
        ["next_run_at", "can_start_by", "planned_start", "should_start_by", "expected_end", "deadline"];
    for time in times {
        assert!(paused[time].is_null(), "{time}: {paused}");
    }
    assert_eq!(paused["pending_at"], planned["next_run_at"], "its place is kept");
    assert!(in_fleet()["next_run_at"].is_null(), "{}", in_fleet());
    let list = served.get("/api/v1/jobs").json();
    assert!(list["items"][0]["next_run_at"].is_null(), "{list}");
    served.post("/api/v1/jobs/shop/resume", "");
    assert!(job()["next_run_at"].is_string(), "{}", job());
    served.ask("PATCH", "/api/v1/jobs/shop", &[], Some(r#"{"enabled":false}"#));
    assert!(job()["next_run_at"].is_null(), "{}", job());
}

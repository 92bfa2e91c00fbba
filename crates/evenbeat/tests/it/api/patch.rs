//! Changes of some fields, counts, and what becomes of a trigger.

use serde_json::json;

use crate::support::served::Served;

const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");

#[test]
fn a_patch_changes_what_it_names() {
    let served = Served::start();
    served.put("shop", r#"{"command":["true"],"every":"6h","labels":{"team":"news","a":"b"},"cost":2}"#);
    let patch = |headers: &[(&str, &str)], body: &str| {
        served.ask("PATCH", "/api/v1/jobs/shop", &[&[MERGE], headers].concat(), Some(body))
    };
    let put = patch(&[], r#"{"every":"8h","labels":{"team":null,"c":"d"},"cost":null}"#);
    assert_eq!((put.status, put.header("etag")), (200, Some("\"2\"")), "{put:?}");
    let definition = put.json()["definition"].clone();
    assert_eq!(definition["every"], json!("8h"));
    assert_eq!(definition["labels"], json!({"a": "b", "c": "d"}));
    assert!(definition.get("cost").is_none(), "{definition}");

    let n_entries = || served.runtime.block_on(served.app.store.audit(100)).unwrap().len();
    let before = n_entries();
    let same = patch(&[], r#"{"every":"8h"}"#);
    assert_eq!((same.status, same.header("etag")), (200, Some("\"2\"")));
    assert_eq!(n_entries(), before, "nothing was written");

    assert_eq!(patch(&[("If-Match", "\"1\"")], r#"{"every":"9h"}"#).short(), "412 other_revision");
    assert_eq!(patch(&[("If-Match", "\"2\"")], r#"{"every":"9h"}"#).status, 200);
    let both = patch(&[], r#"{"fresh":"24h"}"#);
    assert_eq!(both.short(), "422 invalid_job", "two schedules");
    assert_eq!(patch(&[], r#"{"fresh":"24h","every":null}"#).status, 200);
    let bad = patch(&[], r#"{"retry":{"delays":["x"]}}"#);
    assert_eq!(bad.json()["errors"][0]["pointer"], json!("/retry/delays/0"), "{:#}", bad.json());
    let other = served.ask("PATCH", "/api/v1/jobs/shop", &[("Content-Type", "text/plain")], Some("{}"));
    assert_eq!(other.short(), "415 not_json");
}

#[test]
fn a_list_tells_how_many_there_are() {
    let served = Served::start();
    for no in 0..7 {
        let team = if no < 3 { "a" } else { "b" };
        served.add(
            &format!("job{no}"),
            &format!(r#""every":"6h","labels":{{"team":"{team}"}},"site":"s{team}""#),
        );
    }
    served.counted(7);
    let total = |query: &str| {
        let page = served.get(&format!("/api/v1/jobs?limit=2&count=true&{query}")).json();
        assert_eq!(page["total_is_exact"], json!(true), "{query}");
        page["total"].as_u64().unwrap()
    };
    assert_eq!(total(""), 7);
    assert_eq!(total("label=team=a"), 3);
    assert_eq!(total("site=sb"), 4);
    assert_eq!(total("q=job1"), 1);
    assert_eq!(total("condition=ok"), 7);
    assert_eq!(total("condition=ok&site=sb"), 4);
    assert_eq!(total("status=scheduled"), 7);
    assert_eq!(total("status=paused"), 0);
    assert_eq!(total("status=scheduled&condition=ok"), 7);
    let page = served.get("/api/v1/jobs?limit=2").json();
    assert!(page.get("total").is_none(), "{page}");
}

#[test]
fn a_trigger_says_what_happens() {
    let served = Served::slow();
    served.add("shop", r#""manual":true,"overlap":"queue""#);
    let reply = served.post("/api/v1/jobs/shop/trigger", "");
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(reply.header("location"), Some(format!("/api/v1/runs/{id}").as_str()));
    let sentence = "The run starts when there is room for it and no other run of the job is open.";
    assert_eq!(reply.json()["sentence"], json!(sentence));
    served.until("the run", || (served.get("/api/v1/jobs/shop").json()["status"] == "running").then_some(()));
    served.add("wide", r#""manual":true,"overlap":"allow""#);
    let wide = served.post("/api/v1/jobs/wide/trigger", "").json();
    assert_eq!(wide["sentence"], json!("The run starts as soon as there is room for it."));
    served.add("idle", r#""manual":true"#);
    served.post("/api/v1/jobs/idle/pause", r#"{"reason":"new shop"}"#);
    let paused = served.post("/api/v1/jobs/idle/trigger", "").json();
    let expected =
        "`idle` is paused by operator (new shop), so nothing starts and no run is queued; resume it first";
    assert_eq!(paused["detail"], json!(expected));
}

#[test]
fn past_occurrences_get_their_runs() {
    let served = Served::start();
    served.add("shop", r#""cron":"0 3 * * *","tz":"UTC""#);
    let ask = |body: &str| served.post("/api/v1/jobs/shop/backfill", body);
    let range = r#""from":"2026-01-10T00:00:00Z","to":"2026-01-13T00:00:00Z""#;
    let plan = ask(&format!(r#"{{{range},"dry_run":true}}"#)).json();
    let days: Vec<&str> =
        plan["runs"].as_array().unwrap().iter().map(|it| it["occurrence"].as_str().unwrap()).collect();
    assert_eq!(days, ["2026-01-10T03:00:00Z", "2026-01-11T03:00:00Z", "2026-01-12T03:00:00Z"]);
    assert_eq!(plan["runs"][0]["id"], json!(null));
    assert_eq!(served.get("/api/v1/jobs/shop").json()["waiting_runs"], json!(0));

    let first = ask(&format!(r#"{{{range},"max":2}}"#)).json();
    assert_eq!(first["next_from"], json!("2026-01-12T03:00:00Z"));
    for run in first["runs"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        let ended = served.until("its end", || {
            let run = served.get(&format!("/api/v1/runs/{id}")).json();
            (!run["outcome"].is_null()).then_some(run)
        });
        assert_eq!(ended["trigger"], json!("backfill"));
        assert_eq!(ended["scheduled_for"], run["occurrence"]);
        assert_eq!(ended["id"], json!(id));
    }
    let many = served
        .post("/api/v1/jobs/shop/backfill", r#"{"from":"2026-01-01T00:00:00Z","to":"2026-09-01T00:00:00Z"}"#);
    assert_eq!(many.short(), "409 no_backfill");
    assert!(
        many.json()["detail"].as_str().unwrap().contains("243 runs are wanted, and 100 more can wait"),
        "{many:?}"
    );
    served.post("/api/v1/jobs/shop/pause", "");
    assert_eq!(ask(&format!("{{{range}}}")).short(), "409 job_paused");
}

#[test]
fn a_backfill_that_is_asked_for_again_leaves_out_what_waits() {
    let served = Served::slow();
    served.add("shop", r#""every":"1d""#);
    served.run_of("shop");
    let body = r#"{"from":"2026-01-10T00:00:00Z","to":"2026-01-13T00:00:00Z"}"#;
    let first = served.post("/api/v1/jobs/shop/backfill", body);
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.json()["runs"].as_array().unwrap().len(), 3);
    let again = served.post("/api/v1/jobs/shop/backfill", body).json();
    assert_eq!((again["runs"].as_array().unwrap().len(), &again["already_waiting"]), (0, &json!(3)));
    assert_eq!(served.get("/api/v1/jobs/shop").json()["waiting_runs"], json!(3));
}

#[test]
fn a_pause_ends_by_itself() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    served.add("other", r#""every":"6h""#);
    let pause = |key: &str, until: &str| {
        served.post(&format!("/api/v1/jobs/{key}/pause"), &json!({"reason": "x", "until": until}).to_string())
    };
    assert_eq!(pause("shop", "2020-01-01T00:00:00Z").short(), "422 invalid_body");
    assert_eq!(pause("shop", "2999-01-01T00:00:00Z").short(), "422 invalid_body");
    let now = served.app.intake.now();
    let soon = (now + evenbeat_core::time::Duration::from_millis(300)).to_string();
    let later = (now + evenbeat_core::time::Duration::from_hours(1)).to_string();
    assert_eq!(pause("other", &later).json()["pause_until"], json!(later));
    let listed = served.get("/api/v1/jobs?paused=true").json();
    assert_eq!(listed["items"][0]["pause_until"], json!(later));
    assert_eq!(pause("shop", &soon).status, 200);
    served.until("the end of the pause", || {
        (served.get("/api/v1/jobs/shop").json()["status"] == "scheduled").then_some(())
    });
    assert_eq!(served.get("/api/v1/jobs/other").json()["status"], json!("paused"));
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    let last = audit.last().unwrap();
    assert_eq!((&*last.actor, &*last.action, &*last.subject), ("system", "resume", "shop"));

    // Whoever pauses it again without an end, or resumes it, means that.
    served.post("/api/v1/jobs/other/pause", "");
    assert_eq!(served.get("/api/v1/jobs/other").json()["pause_until"], json!(null));
    pause("other", &later);
    served.post("/api/v1/jobs/other/resume", "");
    served.post("/api/v1/jobs/other/pause", "");
    assert_eq!(served.get("/api/v1/jobs/other").json()["pause_until"], json!(null));
    let bulk = json!({"action": "pause", "filter": {}, "expect": 2, "until": later});
    assert_eq!(served.post("/api/v1/bulk", &bulk.to_string()).json()["done"], json!(2));
    assert_eq!(served.get("/api/v1/jobs/shop").json()["pause_until"], json!(later));
}

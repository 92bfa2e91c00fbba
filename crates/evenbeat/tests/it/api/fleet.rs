//! The fleet as a whole: status, apply, distribution, rebalance, what comes, nodes.

use std::time::Duration as Length;

use evenbeat::testing::store::sqlite::Options;
use serde_json::{Value as Json, json};

use crate::support::served::{Served, Setup};

#[test]
fn the_status_counts_and_names_what_is_bad() {
    let served = Served::start();
    served.add("news", r#""every":"6h""#);
    served.add("shop", r#""manual":true"#);
    served.add("off", r#""every":"6h","enabled":false"#);
    let status_of = |n_jobs: u32| {
        served.until("the count", || {
            let status = served.get("/api/v1/status").json();
            (status["jobs"]["total"] == n_jobs).then_some(status)
        })
    };
    let status = status_of(3);
    assert_eq!(status["condition"], json!("ok"), "{status:#}");
    assert_eq!(status["jobs"]["by_condition"], json!({"ok": 2, "warning": 0, "error": 0}));
    assert_eq!(status["jobs"]["by_status"]["disabled"], json!(1));
    assert_eq!(status["jobs"]["by_status"]["scheduled"], json!(2));
    assert_eq!(
        (&status["node"], &status["store"], &status["nodes"]),
        (&json!("one"), &json!("sqlite"), &json!(1))
    );
    assert_eq!(status["is_read"], json!(true));
    assert_eq!(status["worst"], json!([]));
    // It can never be in time: a standing warning.
    served.add("never", r#""fresh":"1h","cooldown":"1h","estimate":"30m""#);
    let status = status_of(4);
    assert_eq!(status["condition"], json!("warning"), "{status:#}");
    assert_eq!(status["worst"][0]["key"], json!("never"));
    assert_eq!(served.get("/readyz").json(), json!({"ready": true, "store": true, "fleet": true}));
    assert_eq!(served.get("/healthz").json(), json!({"status": "ok"}));
}

#[test]
fn a_fleet_is_declared_compared_and_exported() {
    let served = Served::start();
    let apply = |jobs: &Json, prune: bool, dry_run: bool| {
        let body = json!({"jobs": jobs, "prune": prune, "dry_run": dry_run}).to_string();
        let reply = served.post("/api/v1/apply", &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    let first = json!([
        {"name": "a", "command": ["x"], "every": "6h"},
        {"name": "b", "command": ["x"], "manual": true},
    ]);
    assert_eq!(
        apply(&first, false, true)["counts"],
        json!({"created": 2, "changed": 0, "unchanged": 0, "removed": 0})
    );
    assert_eq!(served.get("/api/v1/jobs").json()["items"], json!([]), "a dry run changes nothing");
    assert_eq!(apply(&first, false, false)["counts"]["created"], json!(2));
    assert_eq!(
        apply(&first, true, false)["counts"],
        json!({"created": 0, "changed": 0, "unchanged": 2, "removed": 0})
    );
    let second = json!([{"name": "a", "command": ["x"], "every": "8h", "retry": {"delays": ["1m"]}}]);
    let diff = apply(&second, true, true);
    assert_eq!(
        diff["changes"],
        json!([
            {"job": "a", "change": "changed", "fields": [
                {"field": "every", "before": "6h", "after": "8h"},
                {"field": "retry.delays", "before": null, "after": ["1m"]},
            ]},
            {"job": "b", "change": "removed", "fields": [
                {"field": "command", "before": ["x"], "after": null},
                {"field": "manual", "before": true, "after": null},
                {"field": "name", "before": "b", "after": null},
            ]},
        ]),
        "{diff:#}"
    );
    apply(&second, true, false);
    assert_eq!(served.get("/api/v1/export").json(), json!({"items": second}));
    let doubtful = json!([{"name": "d", "command": ["x"], "at": "2020-01-01T00:00:00Z"}]);
    let warnings = apply(&doubtful, false, true)["warnings"].clone();
    assert_eq!(
        (&warnings[0]["job"], &warnings[0]["pointer"]),
        (&json!("d"), &json!("/jobs/0/at")),
        "{warnings}"
    );
}

#[test]
fn the_distribution_has_the_fields_that_were_promised() {
    let served = Served::start();
    for key in ["a", "b", "c", "d"] {
        served.add(key, r#""every":"6h""#);
    }
    let it = served.get("/api/v1/scheduler/distribution").json();
    assert_eq!((&it["window_hours"], &it["slot_minutes"]), (&json!(24), &json!(15)));
    assert_eq!(it["total_jobs"], json!(4));
    // What was due in this slot before now is not to come.
    let n_runs = it["total_runs"].as_u64().unwrap();
    assert!([15, 16].contains(&n_runs), "{it:#}");
    let hours = it["hourly_distribution"].as_array().unwrap();
    assert_eq!(hours.len(), 24);
    assert_eq!(hours[3]["hour"], json!(3));
    let n_starts: u64 = hours.iter().map(|it| it["job_count"].as_u64().unwrap()).sum();
    assert_eq!(n_starts, n_runs);
    assert!(hours[0]["start"].as_str().unwrap().ends_with('Z'));
    assert!((0.0..=1.0).contains(&it["distribution_score"].as_f64().unwrap()));
    assert_eq!(it["peak_count"], json!(1), "{it:#}");
    assert!(it["peak_hour"].is_u64() && it["suggestion"].is_string());
    assert_eq!(it["slots"].as_array().unwrap().len(), 96);
    assert_eq!(served.get("/api/v1/scheduler/distribution?window_hours=3").json()["window_hours"], json!(3));
    let empty = Served::start().get("/api/v1/scheduler/distribution").json();
    assert_eq!(
        (&empty["peak_hour"], &empty["peak_count"], &empty["distribution_score"]),
        (&json!(0), &json!(0), &json!(1.0))
    );
    assert_eq!(empty["suggestion"], json!("Distribution is acceptable"));
}

#[test]
fn a_plan_is_shown_and_exactly_that_plan_applied_once() {
    let served = Served::start();
    for key in ["a", "b", "c"] {
        served.add(key, r#""every":"6h""#);
    }
    let preview = served.post("/api/v1/scheduler/rebalance/preview", "").json();
    for field in [
        "plan_id",
        "would_move",
        "would_skip",
        "unchanged",
        "current_score",
        "projected_score",
        "preview",
        "skipped",
    ] {
        assert!(!preview[field].is_null(), "{field}: {preview:#}");
    }
    // They were all placed just now.
    assert_eq!((&preview["would_move"], &preview["would_skip"]), (&json!(0), &json!(3)), "{preview:#}");
    assert!(
        ["placement_cooldown", "protection_window"]
            .contains(&preview["skipped"][0]["reason"].as_str().unwrap())
    );
    assert_eq!(preview["skipped"][0]["job_id"], json!("a"));
    let body = json!({"plan_id": preview["plan_id"]}).to_string();
    let done = served.post("/api/v1/scheduler/rebalance", &body);
    assert_eq!(done.status, 200, "{done:?}");
    let done = done.json();
    assert_eq!((&done["moved"], done["skipped"].as_array().unwrap().len()), (&json!([]), 3));
    assert!(done["new_distribution_score"].is_number());
    assert_eq!(served.post("/api/v1/scheduler/rebalance", &body).short(), "409 plan_is_old");
}

#[test]
fn what_comes_is_told_in_order_and_in_pages() {
    let served = Served::start();
    served.add("a", r#""every":"10m""#);
    served.add("b", r#""cron":"*/15 * * * *""#);
    let window = "from=2090-01-01T00:00:00Z&to=2090-01-01T02:00:00Z";
    let whole = served.get(&format!("/api/v1/upcoming?{window}&limit=500")).json();
    assert_eq!((&whole["total"], &whole["next"]), (&json!(12 + 8), &Json::Null), "{whole:#}");
    let items = whole["items"].as_array().unwrap();
    assert!(items.iter().map(|it| (it["at"].as_str().unwrap(), it["job"].as_str().unwrap())).is_sorted());
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = served.get(&format!("/api/v1/upcoming?{window}&limit=3{after}")).json();
        assert_eq!(page["total"], json!(20));
        seen.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(&seen, items);
}

#[test]
fn a_node_is_listed_and_drained() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    served.run_of("shop");
    let nodes = served.get("/api/v1/nodes").json();
    let node = &nodes["items"][0];
    let is = |field: &str, expected: Json| assert_eq!(node[field], expected, "{field}: {nodes:#}");
    is("node", json!("one"));
    is("instance", json!("main"));
    is("kind", json!("node"));
    is("state", json!("living"));
    is("pools", json!({"default": 8}));
    is("open_runs", json!(1));
    is("is_this", json!(true));
    let drained = served.post("/api/v1/nodes/one/drain", r#"{"draining":true}"#);
    assert_eq!(drained.json(), json!({"node": "one", "draining": true, "sessions": 1}));
    assert_eq!(served.get("/api/v1/nodes").json()["items"][0]["state"], json!("draining"));
}

#[test]
fn whoever_changes_something_is_in_the_audit() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let reply = served.ask_socket("POST", "/api/v1/jobs/shop/pause");
    assert_eq!(reply.status, 200, "{reply:?}");
    let audit = served.runtime.block_on(served.app.store.audit(10)).unwrap();
    let shown: Vec<(&str, &str)> = audit.iter().map(|it| (it.actor.as_str(), it.action.as_str())).collect();
    let uid = rustix::process::getuid().as_raw();
    assert_eq!(shown, [("token 7e577e577e57 (test)", "create"), (format!("uid {uid}").as_str(), "pause")]);
}

/// How a job stands is the same wherever it is looked at: also where that follows from what is usual in its pool.
#[test]
fn a_job_stands_alike_in_counts_lists_and_by_itself() {
    let served = Served::start();
    served.add("usual", r#""every":"6h","estimate":"30m""#);
    // It does not say how long it takes; if it takes what is usual, it can never be in time.
    served.add("new", r#""fresh":"1h","cooldown":"50m""#);
    let status = served.until("the count", || {
        let status = served.get("/api/v1/status").json();
        (status["jobs"]["by_condition"]["warning"] == 1).then_some(status)
    });
    let alike = |job: &Json| {
        assert_eq!((&job["key"], &job["condition"]), (&json!("new"), &json!("warning")), "{job:#}");
        assert_eq!(job["reason"], json!("unsatisfiable"));
    };
    alike(&status["worst"][0]);
    alike(&served.get("/api/v1/jobs?condition=warning").json()["items"][0]);
    alike(&served.get("/api/v1/jobs/new").json());
    assert_eq!(served.get("/api/v1/jobs?condition=ok").json()["items"][0]["key"], json!("usual"));
}

#[test]
fn a_simulation_gets_jobs_where_they_are_and_the_limits_they_run_under() {
    let served = Served::start();
    served.add("news", r#""every":"6h""#);
    served.add("night", r#""cron":"H H(1-4) * * *""#);
    served.add("shop", r#""manual":true"#);
    served.ended_run_of("shop");
    let page = served.get("/api/v1/scheduler/fleet").json();
    let jobs = page["items"].as_array().unwrap();
    let keys: Vec<&str> = jobs.iter().map(|it| it["definition"]["name"].as_str().unwrap()).collect();
    assert_eq!((keys.as_slice(), &page["next"]), (["news", "night", "shop"].as_slice(), &Json::Null));
    assert_eq!(jobs[0]["placement"]["anchor_at"], jobs[0]["next_run_at"]);
    assert_eq!((&jobs[0]["measured"], &jobs[0]["status"]), (&Json::Null, &json!("scheduled")));
    assert_eq!(jobs[1]["placement"]["choices"].as_array().unwrap().len(), 2);
    assert_eq!((&jobs[2]["placement"], &jobs[2]["measured"]["samples"]), (&Json::Null, &json!(1)));
    // Page by page.
    let first = served.get("/api/v1/scheduler/fleet?limit=2").json();
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (2, &json!("night")));
    let rest = served.get("/api/v1/scheduler/fleet?limit=2&after=night").json();
    assert_eq!(rest["items"][0]["definition"]["name"], json!("shop"));
    let none = json!({});
    let run_time = json!({"tenants": {}});
    let limits =
        json!({"sites": {}, "tenants": {}, "other_tenants": none, "all_runs": none, "run_time": run_time});
    assert_eq!(served.get("/api/v1/scheduler/limits").json(), limits);
}

#[test]
fn a_server_whose_store_cannot_write_is_not_ready_and_says_why() {
    let store = Options { size_max_bytes: Some(1024 * 1024), ..Options::default() };
    let served = Served::with(Setup { store, ..Setup::default() });
    assert_eq!(served.get("/readyz").status, 200);
    for n_bytes in [50_000, 2_000] {
        let labels = "x".repeat(n_bytes);
        let full = (0..200).any(|no| {
            let body = format!(r#"{{"command":["true"],"manual":true,"labels":{{"ballast":"{labels}"}}}}"#);
            served.put(&format!("job{n_bytes}-{no}"), &body).status == 503
        });
        assert!(full, "there is too much room");
    }
    let reply = served.until("the news", || Some(served.get("/readyz")).filter(|reply| reply.status == 503));
    let answer = reply.json();
    assert_eq!((&answer["ready"], &answer["store"]), (&json!(false), &json!(false)));
    let reason = answer["reason"].as_str().unwrap();
    assert!(reason.starts_with("the store cannot write: ") && reason.contains("has no room"), "{reason}");
    assert_eq!(served.get("/healthz").status, 200, "it lives all the same");
}

#[test]
fn cancels_and_drains_are_in_the_audit() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    assert_eq!(served.post(&format!("/api/v1/runs/{id}/cancel"), "").status, 202);
    for draining in [true, false] {
        let reply = served.post("/api/v1/nodes/one/drain", &format!(r#"{{"draining":{draining}}}"#));
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    let said: Vec<String> =
        audit.iter().skip(2).map(|it| format!("{} {} {}", it.action, it.subject, it.detail)).collect();
    assert_eq!(
        said,
        [format!("cancel shop run {id}"), "drain node one ".to_owned(), "undrain node one ".to_owned()]
    );
    served.until("its end", || {
        (served.get(&format!("/api/v1/runs/{id}")).json()["phase"] == "ended").then_some(())
    });
    assert_eq!(served.post(&format!("/api/v1/runs/{id}/cancel"), "").short(), "409 run_is_over");
    let again = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    assert_eq!(again.len(), audit.len(), "nothing was cancelled");
}

#[test]
fn open_runs_are_counted_to_the_last() {
    const N_JOBS: usize = 1_100;
    let served = Served::with(Setup { takes: Length::from_hours(1), capacity: 2_000, ..Setup::default() });
    let jobs: Vec<Json> =
        (0..N_JOBS).map(|no| json!({"name": format!("job{no}"), "command": ["true"], "at": "now"})).collect();
    let reply = served.post("/api/v1/apply", &json!({ "jobs": jobs }).to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    served.until("all runs", || {
        let open = served.get("/api/v1/status").json()["open_runs"].as_u64().unwrap();
        assert!(open <= 1_100);
        (open == 1_100).then_some(())
    });
    let nodes = served.get("/api/v1/nodes").json();
    assert_eq!(nodes["items"][0]["open_runs"], 1_100, "{nodes}");
}

#[test]
fn an_outage_in_the_middle_of_an_apply_leaves_no_load_of_jobs_that_are_not_there() {
    let store = Options { size_max_bytes: Some(2 << 20), ..Options::default() };
    let served = Served::with(Setup { store, ..Setup::default() });
    let jobs: Vec<Json> = (0..20_000)
        .map(|no| json!({"name": format!("job{no}"), "command": ["true"], "every": "1h"}))
        .collect();
    let reply = served.post("/api/v1/apply", &json!({ "jobs": jobs }).to_string());
    assert_eq!(reply.short(), "503 store_down");
    let runtime = &served.runtime;
    let mut n_stored = 0;
    let mut after = None;
    loop {
        let page = runtime.block_on(served.app.store.jobs(after, 500)).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.job.key.clone());
        n_stored += page.len();
    }
    assert!(0 < n_stored && n_stored < 20_000, "{n_stored}");
    // What the feed still has to tell is of jobs that are there.
    served.until("the same fleet", || (served.app.fleet.ledger().n_jobs() == n_stored).then_some(()));
    // A job that could not be changed keeps its place.
    let large = json!({"command": ["true"], "every": "2h", "params": {"pad": "x".repeat(900_000)}});
    let reply = served.put("job0", &large.to_string());
    assert_eq!(reply.short(), "503 store_down");
    assert_eq!(served.app.fleet.ledger().n_jobs(), n_stored);
}

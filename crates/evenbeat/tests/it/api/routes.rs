//! Every route, good and bad, in one table.

use axum::body::Body;
use axum::http::Request;
use evenbeat::testing::api::{ApiOptions, NoLogs, router};
use tower::ServiceExt;

use crate::support::served::Served;

/// Every route with a method that it has. `{key}` and the like are filled in by the tests.
pub(crate) const ROUTES: [(&str, &str); 27] = [
    ("GET", "/metrics"),
    ("GET", "/api/v1/status"),
    ("GET", "/api/v1/jobs"),
    ("GET", "/api/v1/jobs/{key}"),
    ("PUT", "/api/v1/jobs/{key}"),
    ("DELETE", "/api/v1/jobs/{key}"),
    ("POST", "/api/v1/jobs/{key}/pause"),
    ("POST", "/api/v1/jobs/{key}/resume"),
    ("POST", "/api/v1/jobs/{key}/trigger"),
    ("GET", "/api/v1/jobs/{key}/explain"),
    ("GET", "/api/v1/jobs/{key}/runs"),
    ("GET", "/api/v1/jobs/{key}/upcoming"),
    ("GET", "/api/v1/jobs/{key}/records"),
    ("POST", "/api/v1/apply"),
    ("GET", "/api/v1/export"),
    ("GET", "/api/v1/runs"),
    ("GET", "/api/v1/runs/{id}"),
    ("GET", "/api/v1/runs/{id}/log"),
    ("POST", "/api/v1/runs/{id}/cancel"),
    ("GET", "/api/v1/nodes"),
    ("POST", "/api/v1/nodes/{name}/drain"),
    ("GET", "/api/v1/upcoming"),
    ("GET", "/api/v1/scheduler/distribution"),
    ("GET", "/api/v1/scheduler/fleet"),
    ("GET", "/api/v1/scheduler/limits"),
    ("POST", "/api/v1/scheduler/rebalance"),
    ("POST", "/api/v1/scheduler/rebalance/preview"),
];

const NO_RUN: &str = "0198c0de-0000-7000-8000-00000000002a";

#[test]
fn every_route_answers_good_and_bad_requests() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let run = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&run, "hello\n", true);
    let check = |method: &str, path: &str, body: Option<&str>, expected: &str| {
        let path = path.replace("{run}", &run);
        let reply = served.ask(method, &path, &[], body);
        assert_eq!(
            reply.short(),
            expected,
            "{method} {path} {body:?}: {}",
            String::from_utf8_lossy(&reply.body)
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{method} {path}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{method} {path}");
    };
    let get = |path: &str, expected: &str| check("GET", path, None, expected);
    let post = |path: &str, body: &str, expected: &str| check("POST", path, Some(body), expected);

    get("/healthz", "200");
    get("/readyz", "200");
    check("POST", "/healthz", None, "405 no_such_method");
    get("/metrics", "200");
    get("/metrics?x=1", "400 invalid_parameter");
    check("POST", "/metrics", None, "405 no_such_method");
    get("/", "404 no_such_route");
    get("/api/v1", "404 no_such_route");
    get("/api/v1/", "404 no_such_route");
    get("/api/v2/status", "404 no_such_route");

    get("/api/v1/status", "200");
    get("/api/v1/status?x=1", "400 invalid_parameter");
    check("DELETE", "/api/v1/status", None, "405 no_such_method");

    get("/api/v1/jobs", "200");
    get(
        "/api/v1/jobs?q=sh&prefix=s&label=a=b&pool=default&site=x&tenant=y&paused=false&running=false&enabled=true",
        "200",
    );
    get("/api/v1/jobs?condition=ok&status=scheduled&limit=500&after=a", "200");
    for bad in [
        "limit=0",
        "limit=501",
        "limit=x",
        "condition=good",
        "status=gone",
        "paused=1",
        "label=a",
        "pool=a%20b",
        "after=%2F",
        "nope=1",
    ] {
        get(&format!("/api/v1/jobs?{bad}"), "400 invalid_parameter");
    }

    get("/api/v1/jobs/shop", "200");
    get("/api/v1/jobs/none", "404 no_such_job");
    get("/api/v1/jobs/a%20b", "404 no_such_job");
    get("/api/v1/jobs/%ff", "404 no_such_route");
    check("PATCH", "/api/v1/jobs/shop", Some("{}"), "405 no_such_method");
    check("PUT", "/api/v1/jobs/new", Some(r#"{"manual":true,"command":["true"]}"#), "201");
    check("PUT", "/api/v1/jobs/new", Some(r#"{"manual":true,"command":["true"]}"#), "200");
    check("PUT", "/api/v1/jobs/new", Some(r#"{"name":"new","manual":true,"command":["true"]}"#), "200");
    check(
        "PUT",
        "/api/v1/jobs/new",
        Some(r#"{"name":"old","manual":true,"command":["true"]}"#),
        "422 invalid_job",
    );
    check("PUT", "/api/v1/jobs/new", Some(r#"{"manual":true}"#), "422 invalid_job");
    check("PUT", "/api/v1/jobs/a%20b", Some(r#"{"manual":true,"command":["true"]}"#), "422 invalid_job");
    check("PUT", "/api/v1/jobs/new", Some("{"), "400 malformed_body");
    check("PUT", "/api/v1/jobs/new", Some("[]"), "422 invalid_body");
    check("PUT", "/api/v1/jobs/new", None, "400 malformed_body");
    check(
        "PUT",
        "/api/v1/jobs/new",
        Some(r#"{"manual":true,"command":{"shell":true,"argv":"ls"}}"#),
        "422 shell_not_allowed",
    );
    check(
        "PUT",
        "/api/v1/jobs/new",
        Some(r#"{"manual":true,"http":"https://a.example/"}"#),
        "422 target_not_supported",
    );

    post("/api/v1/jobs/new/pause", r#"{"reason":"holiday"}"#, "200");
    post("/api/v1/jobs/new/pause", "", "200");
    post("/api/v1/jobs/new/pause", r#"{"reasn":"x"}"#, "422 invalid_body");
    post("/api/v1/jobs/none/pause", "", "404 no_such_job");
    get("/api/v1/jobs/new/pause", "405 no_such_method");
    post("/api/v1/jobs/new/trigger", "", "409 job_paused");
    post("/api/v1/jobs/new/resume", "", "200");
    post("/api/v1/jobs/new/resume", "", "409 not_paused");
    post("/api/v1/jobs/none/resume", "", "404 no_such_job");
    post("/api/v1/jobs/new/trigger", r#"{"params":{"a":1}}"#, "202");
    post("/api/v1/jobs/new/trigger", r#"{"params":3}"#, "422 invalid_body");
    post("/api/v1/jobs/none/trigger", "", "404 no_such_job");
    get("/api/v1/jobs/new/trigger", "405 no_such_method");

    get("/api/v1/jobs/shop/explain", "200");
    get("/api/v1/jobs/shop/explain?at=2030-01-01T00:00:00Z", "200");
    get("/api/v1/jobs/shop/explain?at=tomorrow", "400 invalid_parameter");
    get("/api/v1/jobs/none/explain", "404 no_such_job");
    get("/api/v1/jobs/shop/runs?limit=1", "200");
    get("/api/v1/jobs/shop/runs?job=shop", "400 invalid_parameter");
    get("/api/v1/jobs/none/runs", "404 no_such_job");
    get("/api/v1/jobs/shop/upcoming?limit=3", "200");
    get("/api/v1/jobs/none/upcoming", "404 no_such_job");
    get("/api/v1/jobs/shop/records", "200");
    get("/api/v1/jobs/none/records", "404 no_such_job");

    post("/api/v1/apply", r#"{"jobs":[],"dry_run":true}"#, "200");
    post("/api/v1/apply", "{}", "422 invalid_body");
    post("/api/v1/apply", r#"{"jobs":[{}]}"#, "422 invalid_job");
    get("/api/v1/apply", "405 no_such_method");
    get("/api/v1/export?limit=1", "200");
    get("/api/v1/export?limit=0", "400 invalid_parameter");

    get("/api/v1/runs?job=shop&limit=1", "200");
    get("/api/v1/runs?open=true", "200");
    get("/api/v1/runs?open=false&since=2020-01-01T00:00:00Z&until=2090-01-01T00:00:00Z", "200");
    get("/api/v1/runs?outcome=succeeded", "200");
    for bad in ["outcome=good", "open=true&outcome=failed", "since=x", "before=x", "job=a%20b", "limit=501"] {
        get(&format!("/api/v1/runs?{bad}"), "400 invalid_parameter");
    }
    get("/api/v1/runs/{run}", "200");
    get(&format!("/api/v1/runs/{NO_RUN}"), "404 no_such_run");
    get("/api/v1/runs/x", "404 no_such_run");
    get("/api/v1/runs/{run}/log", "200");
    get("/api/v1/runs/{run}/log?from=3", "200");
    get("/api/v1/runs/{run}/log?from=-3", "400 invalid_parameter");
    get(&format!("/api/v1/runs/{NO_RUN}/log"), "404 no_such_run");
    post("/api/v1/runs/{run}/cancel", "", "409 run_is_over");
    post(&format!("/api/v1/runs/{NO_RUN}/cancel"), "", "404 no_such_run");
    get("/api/v1/runs/{run}/cancel", "405 no_such_method");

    get("/api/v1/nodes", "200");
    get("/api/v1/nodes?dead=true", "200");
    get("/api/v1/nodes?dead=maybe", "400 invalid_parameter");
    post("/api/v1/nodes/two/drain", r#"{"draining":true}"#, "404 no_such_node");
    post("/api/v1/nodes/a%20b/drain", r#"{"draining":true}"#, "404 no_such_node");
    post("/api/v1/nodes/one/drain", "", "400 malformed_body");
    post("/api/v1/nodes/one/drain", "{}", "422 invalid_body");
    post("/api/v1/nodes/one/drain", r#"{"draining":false}"#, "200");

    get("/api/v1/upcoming", "200");
    get("/api/v1/upcoming?from=2030-01-01T00:00:00Z&to=2030-01-02T00:00:00Z&limit=2", "200");
    get("/api/v1/upcoming?from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z", "400 invalid_parameter");
    get("/api/v1/upcoming?from=2030-01-02T00:00:00Z&to=2030-01-02T00:00:00Z", "200");
    get("/api/v1/upcoming?from=2030-01-01T00:00:00Z&to=2030-03-01T00:00:00Z", "400 invalid_parameter");
    get("/api/v1/upcoming?after=x", "400 invalid_parameter");
    get("/api/v1/scheduler/distribution", "200");
    get("/api/v1/scheduler/distribution?window_hours=744", "200");
    get("/api/v1/scheduler/distribution?window_hours=745", "400 invalid_parameter");
    get("/api/v1/scheduler/fleet?limit=1", "200");
    get("/api/v1/scheduler/fleet?limit=501", "400 invalid_parameter");
    get("/api/v1/scheduler/fleet?after=%2F", "400 invalid_parameter");
    post("/api/v1/scheduler/fleet", "", "405 no_such_method");
    get("/api/v1/scheduler/limits", "200");
    get("/api/v1/scheduler/limits?site=x", "400 invalid_parameter");
    post("/api/v1/scheduler/rebalance/preview", "", "200");
    get("/api/v1/scheduler/rebalance/preview", "405 no_such_method");
    post("/api/v1/scheduler/rebalance", "", "200");
    post("/api/v1/scheduler/rebalance", &format!(r#"{{"plan_id":"{NO_RUN}"}}"#), "409 plan_is_old");
    post("/api/v1/scheduler/rebalance", r#"{"plan_id":"x"}"#, "409 plan_is_old");
    post("/api/v1/scheduler/rebalance", r#"{"plan":"x"}"#, "422 invalid_body");

    check("DELETE", "/api/v1/jobs/new", None, "204");
    check("DELETE", "/api/v1/jobs/new", None, "404 no_such_job");
    get("/api/v1/jobs/new", "404 no_such_job");
}

#[test]
fn nobody_is_let_in_whom_nobody_knows() {
    let served = Served::start();
    let routes = router(served.app.clone(), std::sync::Arc::new(NoLogs), ApiOptions::default());
    let status_of = |method: &str, path: &str| {
        // As if whoever accepts connections had not said where this one comes from.
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        served.runtime.block_on(routes.clone().oneshot(request)).unwrap().status().as_u16()
    };
    for (method, path) in ROUTES {
        let path = path.replace("{key}", "shop").replace("{id}", NO_RUN).replace("{name}", "one");
        assert_eq!(status_of(method, &path), 403, "{method} {path}");
    }
    assert_eq!(status_of("GET", "/healthz"), 200);
    assert_eq!(status_of("GET", "/readyz"), 200);
}

#[test]
fn nothing_is_changed_by_looking() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let before = served.get("/api/v1/export").body;
    for (_, path) in ROUTES {
        let path = path.replace("{key}", "shop").replace("{id}", NO_RUN).replace("{name}", "one");
        for method in ["GET", "HEAD"] {
            let status = served.ask(method, &path, &[], None).status;
            assert!([200, 404, 405].contains(&status), "{method} {path}: {status}");
        }
    }
    assert_eq!(served.get("/api/v1/export").body, before);
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    assert_eq!(audit.len(), 1, "{audit:?}");
}

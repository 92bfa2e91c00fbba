//! Every route, good and bad, in one table.

use axum::body::Body;
use axum::http::Request;
use evenbeat::testing::api::{ApiOptions, openapi};
use tower::ServiceExt;

use crate::support::served::Served;

/// An operation of the API document.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) id: String,
    pub(crate) role: String,
    /// Whether its answer goes on until the server stops.
    pub(crate) is_stream: bool,
}

impl Route {
    pub(crate) fn is_open(&self) -> bool {
        self.role == "none"
    }

    /// The path with this key, a run that is not there, and this node.
    pub(crate) fn path_of(&self, key: &str, node: &str) -> String {
        self.path.replace("{key}", key).replace("{id}", NO_RUN).replace("{name}", node)
    }
}

/// Every route, from the document itself.
pub(crate) fn routes() -> Vec<Route> {
    let document: serde_json::Value = serde_json::from_str(&openapi()).unwrap();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let text = |name: &str| operation[name].as_str().unwrap().to_owned();
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                id: text("operationId"),
                role: text("x-evenbeat-role"),
                is_stream: !operation["responses"]["200"]["content"]["text/event-stream"].is_null(),
            });
        }
    }
    assert!(30 < routes.len(), "{routes:?}");
    routes
}

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
    get("/", "303");
    get("/login", "200");
    get("/nowhere", "404 no_such_route");
    get("/api/v1", "200");
    get("/api/v1?x=1", "400 invalid_parameter");
    get("/api/v1/openapi.json", "200");
    get("/docs/api", "200");
    get("/docs/api.css", "200");
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
    check("PATCH", "/api/v1/jobs/shop", Some("{}"), "200");
    check("PATCH", "/api/v1/jobs/shop", Some(r#"{"every":"7h"}"#), "200");
    check("PATCH", "/api/v1/jobs/shop", Some(r#"{"every":"7"}"#), "422 invalid_job");
    check("PATCH", "/api/v1/jobs/shop", Some(r#"{"name":"other"}"#), "422 invalid_job");
    check("PATCH", "/api/v1/jobs/shop", Some("[]"), "422 invalid_body");
    check("PATCH", "/api/v1/jobs/shop", Some("{"), "400 malformed_body");
    check("PATCH", "/api/v1/jobs/shop", None, "400 malformed_body");
    check("PATCH", "/api/v1/jobs/none", Some("{}"), "404 no_such_job");
    check("PATCH", "/api/v1/jobs", Some("{}"), "405 no_such_method");
    get("/api/v1/jobs?count=true", "200");
    get("/api/v1/jobs?count=1", "400 invalid_parameter");
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

    let range = r#""from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z""#;
    post("/api/v1/jobs/shop/backfill", &format!(r#"{{{range},"dry_run":true}}"#), "200");
    post("/api/v1/jobs/shop/backfill", &format!(r#"{{{range},"max":2}}"#), "202");
    post("/api/v1/jobs/new/backfill", &format!("{{{range}}}"), "409 no_backfill");
    post("/api/v1/jobs/none/backfill", &format!("{{{range}}}"), "404 no_such_job");
    post("/api/v1/jobs/shop/backfill", "{}", "422 invalid_body");
    post("/api/v1/jobs/shop/backfill", r#"{"from":"2090-01-01T00:00:00Z"}"#, "422 invalid_body");
    post("/api/v1/jobs/shop/backfill", r#"{"from":"2020-01-01T00:00:00Z"}"#, "422 invalid_body");
    post("/api/v1/jobs/shop/backfill", &format!(r#"{{{range},"max":0}}"#), "422 invalid_body");
    get("/api/v1/jobs/shop/backfill", "405 no_such_method");

    post("/api/v1/bulk", r#"{"action":"pause","filter":{"site":"x"},"dry_run":true}"#, "200");
    post("/api/v1/bulk", r#"{"action":"pause","filter":{"site":"x"},"expect":0}"#, "200");
    post("/api/v1/bulk", r#"{"action":"pause","filter":{"site":"x"},"expect":1}"#, "409 count_differs");
    post("/api/v1/bulk", r#"{"action":"pause","filter":{"site":"x"}}"#, "422 invalid_body");
    post(
        "/api/v1/bulk",
        r#"{"action":"resume","filter":{},"reason":"x","dry_run":true}"#,
        "422 invalid_body",
    );
    post("/api/v1/bulk", r#"{"action":"stop","filter":{},"dry_run":true}"#, "422 invalid_body");
    post("/api/v1/bulk", r#"{"action":"pause","dry_run":true}"#, "422 invalid_body");
    for bad in [r#""site":"a b""#, r#""condition":"good""#, r#""label":["x"]"#, r#""sites":"x""#] {
        let body = format!(r#"{{"action":"pause","filter":{{{bad}}},"dry_run":true}}"#);
        post("/api/v1/bulk", &body, "422 invalid_body");
    }
    get("/api/v1/bulk", "405 no_such_method");

    get("/api/v1/sites", "200");
    get("/api/v1/sites/nowhere", "404 no_such_site");
    get("/api/v1/sites/a%20b", "404 no_such_site");
    get("/api/v1/tenants", "200");
    get("/api/v1/tenants/nobody", "404 no_such_tenant");
    get("/api/v1/pools", "200");
    get("/api/v1/pools?x=1", "400 invalid_parameter");
    get("/api/v1/nodes/one", "200");
    get("/api/v1/nodes/two", "404 no_such_node");
    get("/api/v1/audit", "200");
    get(
        "/api/v1/audit?job=shop&actor=a&action=pause&since=2020-01-01T00:00:00Z&until=2090-01-01T00:00:00Z&limit=2",
        "200",
    );
    for bad in ["job=a&subject=b", "since=x", "before=x", "limit=501", "who=x"] {
        get(&format!("/api/v1/audit?{bad}"), "400 invalid_parameter");
    }
    get("/api/v1/audit/chain", "200");
    get("/api/v1/audit/chain?after=x", "400 invalid_parameter");

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
    post("/api/v1/scheduler/rebalance/preview", "{}", "200");
    post("/api/v1/scheduler/rebalance/preview", r#"{"x":1}"#, "422 invalid_body");
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
    let routes = served.routes_with(ApiOptions::default());
    let status_of = |method: &str, path: &str| {
        // As if whoever accepts connections had not said where this one comes from.
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        served.runtime.block_on(routes.clone().oneshot(request)).unwrap().status().as_u16()
    };
    for route in super::routes::routes() {
        let expected = if route.is_open() { 200 } else { 403 };
        assert_eq!(status_of(&route.method, &route.path_of("shop", "one")), expected, "{route:?}");
    }
}

#[test]
fn nothing_is_changed_by_looking() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let before = served.get("/api/v1/export").body;
    for route in routes().iter().filter(|it| !it.is_stream) {
        let path = route.path_of("shop", "one");
        // A stream of events has no end.
        let methods = if route.id == "followEvents" { &["HEAD"][..] } else { &["GET", "HEAD"] };
        for method in methods {
            let status = served.ask(method, &path, &[], None).status;
            let expected: &[u16] = if route.role == "owner" { &[403, 404, 405] } else { &[200, 404, 405] };
            assert!(expected.contains(&status), "{method} {path}: {status}");
        }
    }
    assert_eq!(served.get("/api/v1/export").body, before);
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    assert_eq!(audit.len(), 1, "{audit:?}");
}

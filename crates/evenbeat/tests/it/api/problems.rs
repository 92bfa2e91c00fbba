//! What problems say, to the letter.

use std::fmt::Write as _;

use crate::support::served::Served;

#[test]
fn a_problem_has_a_code_a_sentence_and_the_fields_concerned() {
    let served = Served::start();
    let mut text = String::new();
    let mut note = |what: &str, reply: &crate::support::served::Reply| {
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{what}");
        write!(text, "{what}\n{:#}\n\n", reply.json()).unwrap();
    };
    note("GET /nowhere", &served.get("/nowhere"));
    note("DELETE /api/v1/status", &served.ask("DELETE", "/api/v1/status", &[], None));
    note("GET /api/v1/jobs/shop", &served.get("/api/v1/jobs/shop"));
    note("GET /api/v1/jobs?…", &served.get("/api/v1/jobs?limt=3&condition=good&limit=9999"));
    let definition = r#"{"cron":"0 25 * * *","command":"ls -l","retry":{"delays":["5x"]},"colour":"red"}"#;
    note("PUT /api/v1/jobs/shop", &served.put("shop", definition));
    let fleet = r#"{"jobs":[{"name":"a","manual":true,"command":["x"]},{"name":"a","manual":true,"command":["x"]},{"name":"b","every":"0s","command":["x"]}]}"#;
    note("POST /api/v1/apply", &served.post("/api/v1/apply", fleet));
    note("PUT with a broken body", &served.put("shop", "{\"every\": }"));
    note("PUT with half a body", &served.put("shop", "{\"every\": \"1h\""));
    note("PUT with a list", &served.put("shop", "[]"));
    note(
        "PUT with a key twice",
        &served.put("shop", r#"{"manual":true,"command":["x"],"labels":{"a":"1","a":"2"}}"#),
    );
    let twice = r#"{"jobs":[{"name":"a","manual":true,"command":["x"]},{"name":"b","name":"c","manual":true,"command":["x"]}]}"#;
    note("POST /api/v1/apply with a key twice", &served.post("/api/v1/apply", twice));
    note("POST /api/v1/apply with a list of texts", &served.post("/api/v1/apply", r#"{"jobs":["a"]}"#));
    note("POST /api/v1/apply with a text", &served.post("/api/v1/apply", r#"{"jobs":"a","prone":true}"#));
    note("POST a drain that is a text", &served.post("/api/v1/nodes/one/drain", r#"{"draining":"yes"}"#));
    note("POST a drain that says nothing", &served.post("/api/v1/nodes/one/drain", "{}"));
    served.add("real", r#""manual":true"#);
    note(
        "POST a trigger with a key twice",
        &served.post("/api/v1/jobs/real/trigger", r#"{"params":{"page":1,"page":2}}"#),
    );
    note("POST as a form", &{
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        served.ask("POST", "/api/v1/jobs/shop/pause", &headers, Some("reason=x"))
    });
    note("another host", &served.ask("GET", "/api/v1/status", &[("Host", "evil.example")], None));
    note("another origin", &{
        served.ask("POST", "/api/v1/scheduler/rebalance", &[("Origin", "http://evil.example")], None)
    });
    insta::assert_snapshot!(text);
}

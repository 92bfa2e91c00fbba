//! Who changed what, and what it was before and after.

use evenbeat_core::time::{Duration, Timestamp};
use serde_json::{Value as Json, json};

use crate::support::served::Served;

fn entries(served: &Served, query: &str) -> Vec<Json> {
    let page = served.get(&format!("/api/v1/audit?{query}"));
    assert_eq!(page.status, 200, "{page:?}");
    page.json()["items"].as_array().unwrap().clone()
}

#[test]
fn every_change_has_its_before_and_after() {
    let served = Served::start();
    served
        .put("shop", r#"{"command":{"argv":["true"],"env":{"API_TOKEN":"s3cret","LANG":"C"}},"every":"6h"}"#);
    served.ask("PATCH", "/api/v1/jobs/shop", &[], Some(r#"{"every":"8h","cost":2}"#));
    served.post("/api/v1/jobs/shop/pause", r#"{"reason":"holiday"}"#);
    served.post("/api/v1/jobs/shop/resume", "");
    let run = served.post("/api/v1/jobs/shop/trigger", "").json()["id"].clone();
    served.ask("DELETE", "/api/v1/jobs/shop", &[], None);
    let all = entries(&served, "job=shop");
    let of = |action: &str| {
        all.iter().find(|it| it["action"] == action).unwrap_or_else(|| panic!("{action}: {all:#?}"))
    };
    let actions: Vec<&str> = all.iter().map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["delete", "trigger", "resume", "pause", "edit", "create"], "the latest first");
    let actor = &all[0]["actor"];
    assert!(actor.as_str().is_some_and(|it| !it.is_empty()), "{actor}");
    assert!(all.iter().all(|it| it["actor"] == *actor && it["subject"] == "shop"));

    assert_eq!(of("create")["before"], json!(null));
    assert_eq!(of("create")["after"]["every"], json!("6h"));
    assert_eq!(of("create")["after"]["command.env.API_TOKEN"], json!("***"));
    assert_eq!(of("create")["after"]["command.env.LANG"], json!("C"));
    let edit = of("edit");
    assert_eq!((&edit["before"]["every"], &edit["after"]["every"]), (&json!("6h"), &json!("8h")));
    assert_eq!((&edit["before"]["cost"], &edit["after"]["cost"]), (&json!(null), &json!(2)));
    assert!(edit["before"].get("command.argv").is_none(), "only what changed: {edit:#}");
    let pause = of("pause");
    assert_eq!(pause["before"], json!({"paused_by": null, "pause_reason": null}));
    assert_eq!(pause["after"], json!({"paused_by": "operator", "pause_reason": "holiday"}));
    assert_eq!(of("resume")["after"]["paused_by"], json!(null));
    assert_eq!(of("trigger")["after"]["run"], run);
    assert_eq!(of("delete")["after"], json!(null));
    assert!(of("delete")["before"]["every"].is_string());
    let text = served.get("/api/v1/audit").body;
    assert!(!String::from_utf8_lossy(&text).contains("s3cret"));
}

#[test]
fn mutes_are_recorded_with_their_reason_and_times() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let now: Timestamp = served.get("/api/v1/status").json()["now"].as_str().unwrap().parse().unwrap();
    let tomorrow = (now + Duration::from_days(1)).to_string();
    let mute = |scope: &str, value: &str| {
        let body = json!({ "scope": scope, "value": value, "ends_at": tomorrow, "reason": "new disks" });
        let reply = served.post("/api/v1/mutes", &body.to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()["id"].clone()
    };
    let id = mute("jobs", "shop");
    mute("label", "team=prices");
    mute("fleet", "");
    let path = format!("/api/v1/mutes/{}", id.as_str().unwrap());
    assert_eq!(served.ask("DELETE", &path, &[], None).status, 204);
    assert_eq!(served.ask("DELETE", &path, &[], None).short(), "404 no_such_mute");

    let all = entries(&served, "");
    let short = |it: &Json| format!("{} {}", it["action"].as_str().unwrap(), it["subject"].as_str().unwrap());
    let short: Vec<String> = all.iter().map(short).collect();
    let expected = ["unmute shop", "mute fleet", "mute label team=prices", "mute shop", "create shop"];
    assert_eq!(short, expected, "the latest first, and a mute of one job is a change of that job");
    assert_eq!(entries(&served, "job=shop&action=mute").len(), 1);
    let (ended, begun) = (&all[0], &all[3]);
    assert_eq!((&begun["detail"], &begun["before"]), (&json!("new disks"), &json!(null)));
    assert_eq!((&begun["after"]["mute"], &begun["after"]["muted_until"]), (&id, &json!(tomorrow)));
    assert_eq!((&ended["before"], &ended["after"]), (&begun["after"], &json!(null)));
}

#[test]
fn entries_are_found_by_who_what_and_when() {
    let served = Served::start();
    for name in ["a", "b"] {
        served.add(name, r#""manual":true"#);
        served.ask_socket("POST", &format!("/api/v1/jobs/{name}/pause"));
    }
    served.post("/api/v1/nodes/one/drain", r#"{"draining":false}"#);
    assert_eq!(entries(&served, "").len(), 5);
    let uid = format!("uid%20{}", rustix::process::getuid().as_raw());
    assert_eq!(entries(&served, &format!("actor={uid}")).len(), 2, "through the socket");
    assert_eq!(entries(&served, "action=pause").len(), 2);
    assert_eq!(entries(&served, "subject=node%20one").len(), 1);
    assert_eq!(entries(&served, "job=a&action=create").len(), 1);
    assert_eq!(entries(&served, "until=2020-01-01T00:00:00Z").len(), 0);
    assert_eq!(entries(&served, "since=2020-01-01T00:00:00Z").len(), 5);
    let first = served.get("/api/v1/audit?limit=2").json();
    let rest = entries(&served, &format!("before={}", first["next"].as_str().unwrap()));
    assert_eq!(rest.len(), 3);
}

#[test]
fn hostile_texts_stay_texts() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let hostile = "<script>alert(1)</script> '; DROP TABLE audit; -- \u{202e} \n[31m";
    let body = json!({ "reason": hostile }).to_string();
    assert_eq!(served.post("/api/v1/jobs/shop/pause", &body).status, 200);
    let entry = entries(&served, "job=shop&action=pause").remove(0);
    assert_eq!(entry["detail"], json!(hostile));
    for bad in ["a\u{0}b".to_owned(), "x".repeat(1_001)] {
        let reply = served.post("/api/v1/jobs/shop/pause", &json!({ "reason": bad }).to_string());
        assert_eq!(reply.short(), "422 invalid_body");
    }
    assert_eq!(served.get("/api/v1/audit?actor=%00").short(), "400 invalid_parameter");
    assert_eq!(entries(&served, "actor=%27%20OR%201=1%20--").len(), 0);
    let chain = served.get("/api/v1/audit/chain").json();
    assert!(chain["anchor"]["no"].is_u64(), "{chain}");
}

//! One action on all jobs that match a filter.

use evenbeat_core::rights::{Grant, Role};
use serde_json::{Value as Json, json};

use crate::support::served::{Reply, Served};

fn act(served: &Served, body: &Json) -> Reply {
    served.post("/api/v1/bulk", &body.to_string())
}

fn n_with(served: &Served, query: &str) -> usize {
    served.get(&format!("/api/v1/jobs?limit=500&{query}")).json()["items"].as_array().unwrap().len()
}

#[test]
fn jobs_are_counted_first_and_then_changed() {
    let served = Served::start();
    for no in 0..450 {
        let site = if no < 430 { "shop.example" } else { "other.example" };
        served.add(&format!("job{no:03}"), &format!(r#""manual":true,"site":"{site}""#));
    }
    let filter = json!({"site": "shop.example"});
    let dry = act(&served, &json!({"action": "pause", "filter": filter, "dry_run": true})).json();
    assert_eq!((&dry["matched"], dry["sample"].as_array().unwrap().len()), (&json!(430), 20));
    assert_eq!(n_with(&served, "paused=true"), 0);

    let stale = act(&served, &json!({"action": "pause", "filter": filter, "expect": 429}));
    assert_eq!((stale.short(), &stale.json()["matched"]), ("409 count_differs".to_owned(), &json!(430)));
    assert_eq!(n_with(&served, "paused=true"), 0);

    let pause =
        json!({"action": "pause", "filter": filter, "expect": 430, "reason": "new\nlayout \u{1b}[31m"});
    let done = act(&served, &pause).json();
    assert_eq!((&done["done"], &done["failed"], &done["next"]), (&json!(430), &json!(0), &json!(null)));
    assert_eq!(n_with(&served, "paused=true"), 430);
    assert_eq!(served.get("/api/v1/jobs/job000").json()["pause_reason"], json!("new\nlayout \u{1b}[31m"));
    let again = act(&served, &pause).json();
    assert_eq!((&again["done"], &again["unchanged"]), (&json!(0), &json!(430)), "nothing is written twice");

    let audit = served.runtime.block_on(served.app.store.audit(2_000)).unwrap();
    assert_eq!(audit.iter().filter(|it| it.action == "pause").count(), 430, "each job has its entry");

    let trigger = act(&served, &json!({"action": "trigger", "filter": {}, "expect": 450})).json();
    assert_eq!((&trigger["done"], &trigger["failed"]), (&json!(20), &json!(430)));
    assert_eq!(trigger["failures"].as_array().unwrap().len(), 100, "only the first are listed");
    assert_eq!(trigger["failures"][0]["code"], json!("job_paused"));

    let resume = act(&served, &json!({"action": "resume", "filter": {}, "expect": 450})).json();
    assert_eq!((&resume["done"], &resume["unchanged"]), (&json!(430), &json!(20)));
    let delete = json!({"action": "delete", "filter": {"prefix": "job00"}, "expect": 10});
    assert_eq!(act(&served, &delete).json()["done"], json!(10));
    assert_eq!(n_with(&served, ""), 440);
}

#[test]
fn a_filter_takes_what_a_list_takes() {
    let served = Served::start();
    served.add("a", r#""every":"6h","labels":{"team":"x"},"pool":"default","tenant":"acme""#);
    served.add("b", r#""every":"6h","enabled":false"#);
    served.counted(2);
    let matched = |filter: Json| {
        act(&served, &json!({"action": "pause", "filter": filter, "dry_run": true})).json()["matched"].clone()
    };
    assert_eq!(matched(json!({})), json!(2));
    assert_eq!(matched(json!({"label": ["team=x"]})), json!(1));
    assert_eq!(matched(json!({"tenant": "acme", "pool": "default", "q": "A"})), json!(1));
    assert_eq!(matched(json!({"enabled": false})), json!(1));
    assert_eq!(matched(json!({"status": "disabled"})), json!(1));
    assert_eq!(matched(json!({"condition": "ok", "status": "scheduled"})), json!(1));
    assert_eq!(matched(json!({"paused": true, "running": true})), json!(0));
}

#[test]
fn to_delete_jobs_takes_the_role_that_changes_them() {
    let served = Served::start();
    served.add("a", r#""manual":true"#);
    let ask = |role: Role, body: &Json| {
        let authorization = format!("Bearer {}", served.token(Grant::Role(role)));
        let headers = [("Authorization", authorization.as_str())];
        served.ask_bare("POST", "/api/v1/bulk", &headers, Some(&body.to_string())).short()
    };
    let pause = json!({"action": "pause", "filter": {}, "expect": 1});
    let delete = json!({"action": "delete", "filter": {}, "expect": 1});
    let counted = json!({"action": "delete", "filter": {}, "dry_run": true});
    assert_eq!(ask(Role::Viewer, &pause), "403 not_allowed");
    assert_eq!(ask(Role::Operator, &pause), "200");
    assert_eq!(ask(Role::Operator, &delete), "403 not_allowed");
    assert_eq!(ask(Role::Operator, &counted), "403 not_allowed");
    assert_eq!(n_with(&served, ""), 1);
    assert_eq!(ask(Role::Editor, &delete), "200");
    assert_eq!(n_with(&served, ""), 0);
}

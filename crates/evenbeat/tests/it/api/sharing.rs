//! Sites, tenants, pools and nodes.

use serde_json::json;

use crate::support::served::Served;

#[test]
fn what_jobs_share_is_listed_with_its_use() {
    let served = Served::slow();
    served.add("a", r#""manual":true,"site":"shop.example","tenant":"acme""#);
    served.add("b", r#""manual":true,"site":"shop.example","pool":"gpu""#);
    served.add("c", r#""manual":true,"site":"other.example""#);
    served.run_of("a");
    let sites = served.get("/api/v1/sites").json();
    assert_eq!(sites["is_complete"], json!(true));
    let names: Vec<&str> =
        sites["items"].as_array().unwrap().iter().map(|it| it["site"].as_str().unwrap()).collect();
    assert_eq!(names, ["other.example", "shop.example"]);
    let shop = &sites["items"][1];
    assert_eq!((&shop["open_runs"], &shop["waiting_here"]), (&json!(1), &json!(0)));
    assert_eq!(shop["limits"], json!({}));
    assert_eq!(shop["starts_last_hour"], json!(null), "nobody counts what is not limited");
    let one = served.get("/api/v1/sites/shop.example").json();
    assert_eq!((&one["jobs"], &one["jobs_is_exact"]), (&json!(2), &json!(true)));

    let tenants = served.get("/api/v1/tenants").json();
    assert_eq!(
        (&tenants["items"][0]["tenant"], &tenants["items"][0]["open_runs"]),
        (&json!("acme"), &json!(1))
    );
    let pools = served.get("/api/v1/pools").json();
    let of =
        |name: &str| pools["items"].as_array().unwrap().iter().find(|it| it["pool"] == name).unwrap().clone();
    let default = of("default");
    assert_eq!((&default["capacity"], &default["open_runs"]), (&json!(8), &json!(1)));
    assert_eq!(default["here"], json!({"capacity": 8, "reserved": 0, "in_use": 1, "ready": 0}));
    assert_eq!(
        default["nodes"],
        json!([{"node": "one", "instance": "main", "capacity": 8, "state": "living"}])
    );
    assert_eq!((&of("gpu")["capacity"], &of("gpu")["here"]), (&json!(0), &json!(null)), "no node carries it");

    let node = served.get("/api/v1/nodes/one").json();
    assert_eq!((&node["state"], &node["open_runs"]), (&json!("living"), &json!(1)));
    assert_eq!(node["sessions"].as_array().unwrap().len(), 1);
    assert!(node["last_seen_at"].is_string(), "{node}");
}

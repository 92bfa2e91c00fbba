//! What others see of a run's owner (L2), and what becomes of a result that nobody waits for any more (L5).

use std::fs;

use evenbeat_core::time::{Duration, Timestamp};
use serde_json::Value as Json;

use crate::chaos::leases::{PATIENT, go_by};
use crate::chaos::node::{Node, until};
use crate::support::database::Database;

/// A run that ends with a code when a file is there.
const LONG: &str = r#"
[[job]]
name = "long"
command = ["sh", "-c", "echo began; while ! test -e go-on; do sleep 0.02; done; exit 3"]
at = "now"
"#;

fn node(database: &Database, name: &str, jobs: &str) -> Node {
    let mut node = Node::with(jobs);
    go_by(&mut node, database, &PATIENT);
    node.set(&format!("node.name={name}"));
    node.set("scheduler_interval=200ms");
    node
}

fn running(node: &Node) -> Json {
    until("a running run", || {
        node.list("/api/v1/runs?job=long&", "before").into_iter().find(|run| run["status"] == "running")
    })
}

fn instant(value: &Json) -> Timestamp {
    value.as_str().unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

#[test]
fn a_result_that_comes_after_the_takeover_is_kept_as_superseded() {
    let database = Database::new();
    let (mut first, mut second) = (node(&database, "first", LONG), node(&database, "second", ""));
    first.start();
    let run = running(&first)["id"].as_str().unwrap().to_owned();
    second.start();
    first.kill();
    // It ends by itself before its lease does, and nobody is there to tell the store.
    fs::write(first.path("go-on"), "").unwrap();
    until("its last word", || first.data(&format!("runs/{run}/end")).exists().then_some(()));
    let address = format!("/api/v1/runs/{run}");
    until("the loss", || (second.get(&address)["status"] == "lost").then_some(()));
    assert_eq!(second.get(&address)["exit_code"], Json::Null);
    let again = running(&second);
    assert_eq!((&again["node"], &again["attempt"]), (&Json::from("second"), &Json::from(2)));

    first.start();
    let late =
        until("the late result", || Some(second.get(&address)).filter(|run| run["status"] == "superseded"));
    assert_eq!(
        (&late["exit_code"], &late["late"]["outcome"]),
        (&Json::from(3), &Json::from("failed")),
        "{late}"
    );
    until("nothing left of it", || (!first.data(&format!("runs/{run}")).exists()).then_some(()));
    // The other copy goes on as if nothing had happened.
    assert_eq!(second.get(&format!("/api/v1/runs/{}", again["id"].as_str().unwrap()))["status"], "running");
    fs::write(second.path("go-on"), "").unwrap();
    second.come_to_rest();
    assert_eq!((first.stop(), second.stop()), (Some(0), Some(0)));
}

#[test]
fn the_owner_of_a_run_is_seen_to_live_and_then_doubted() {
    let database = Database::new();
    let (mut first, mut second) = (node(&database, "first", LONG), node(&database, "second", ""));
    second.set("pools.default.capacity=0");
    first.start();
    running(&first);
    second.start();
    let job = || second.get("/api/v1/jobs/long");
    let started_at = instant(&job()["owner_started_at"]);
    let ping = until("a later ping", || {
        let ping = instant(&job()["owner_last_ping_at"]);
        (Duration::from_millis(500) < ping - started_at).then_some(ping)
    });
    until("the next one", || (ping < instant(&job()["owner_last_ping_at"])).then_some(()));
    assert_eq!(job()["steal_start_at"], Json::Null);
    // It stands still, others begin to doubt it, and its next beat clears that.
    first.signal(rustix::process::Signal::STOP);
    let doubted = until("the doubt", || Some(job()).filter(|job| job["steal_start_at"].is_string()));
    assert!(instant(&doubted["owner_last_ping_at"]) < instant(&doubted["steal_start_at"]), "{doubted}");
    assert_eq!(doubted["owner_node"], "first");
    first.signal(rustix::process::Signal::CONT);
    until("its next beat", || job()["steal_start_at"].is_null().then_some(()));
    fs::write(first.path("go-on"), "").unwrap();
    fs::write(second.path("go-on"), "").unwrap();
    second.pause_all();
    second.kill();
    first.kill();
}

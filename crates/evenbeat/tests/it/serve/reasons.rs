//! What people and monitoring systems are told about jobs that do not run, by a real node.

use std::fs;

use crate::serve::node::{Node, until};
use crate::support::wait::until_so;

/// The condition and reason of a job, and the sentence.
fn stands(node: &Node, job: &str) -> (String, String) {
    let shown = node.json(&["job", "show", job]);
    let text = |field: &str| shown[field].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned();
    (format!("{} {}", text("condition"), text("reason")), text("sentence"))
}

#[test]
fn a_job_that_no_node_can_take_warns_at_apply_and_names_the_cause_everywhere() {
    let mut node = Node::with("");
    node.start_with(&["--set", "sites.api.max_concurrent=1"]);
    let jobs = r#"
        [[job]]
        name = "chrome"
        command = ["true"]
        every = "1s"
        pool = "chrome"

        [[job]]
        name = "costly"
        command = ["true"]
        every = "1s"
        cost = 100000

        [[job]]
        name = "elsewhere"
        command = ["true"]
        every = "1s"
        run_on_nodes = ["nowhere"]

        [[job]]
        name = "typo"
        command = ["true"]
        every = "1h"
        site = "apii"
    "#;
    fs::write(node.path("more.toml"), jobs).unwrap();
    let applied = node.ask(&["apply", node.path("more.toml").to_str().unwrap()]);
    assert!(applied.status.success(), "{applied:?}");
    let told = String::from_utf8_lossy(&applied.stderr).into_owned();
    let no_pool = "no living node has pool `chrome`";
    for cause in [
        no_pool,
        "it needs 100000 units, but no living node has more than ",
        "no node that it may run on is alive (`nowhere`)",
        "site `apii` has no limits, while other sites have some",
    ] {
        assert!(told.contains(cause), "{cause}: {told}");
    }

    let explained = until("the job to be due", || {
        let explained = node.json(&["explain", "chrome"]);
        (explained["binding"] == "no_node").then_some(explained)
    });
    let sentence = explained["binding_sentence"].as_str().unwrap();
    assert!(sentence.contains(no_pool), "{sentence}");
    // Before it is late, it is a warning; it never becomes `ok`.
    let reasons = explained["reasons"].as_array().unwrap();
    assert!(reasons.contains(&"unsatisfiable".into()), "{explained}");
    let counted = until("all of them to be judged", || {
        let by = node.json(&["status"])["jobs"]["by_condition"].clone();
        (by["warning"].as_u64()? + by["error"].as_u64()? == 3).then_some(by)
    });
    assert_eq!(counted["ok"], 1, "{counted}");
    // What is to come says so too (K6).
    let first = |words: &[&str]| node.json(words)["items"][0].clone();
    assert_eq!(first(&["upcoming", "--job", "chrome"])["held_up_by"], "no_node");
    assert!(first(&["upcoming", "--job", "typo"])["held_up_by"].is_null());
    // The agenda takes a moment to know new jobs.
    until("the runs of chrome on the agenda, marked", || {
        let items = node.json(&["upcoming", "--to", "1m"])["items"].clone();
        let of_chrome = items.as_array()?.iter().find(|it| it["job"] == "chrome")?.clone();
        assert_eq!(of_chrome["held_up_by"], "no_node", "{of_chrome}");
        Some(())
    });
    node.stop();
}

#[test]
fn what_the_system_paused_stays_an_error_until_a_person_acts() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "gives-up"
        command = ["false"]
        at = "now"
        retry = { pause_after_failures = 1 }
        "#,
    );
    node.start();
    until_so("the pause", || node.json(&["job", "show", "gives-up"])["status"] == "paused");
    let (stands_as, sentence) = stands(&node, "gives-up");
    assert_eq!(stands_as, "error paused_failures", "{sentence}");
    let status = until("the roster to know", || {
        let status = node.json(&["status"]);
        (status["jobs"]["by_condition"]["error"] == 1).then_some(status)
    });
    assert_eq!(status["worst"][0]["reason"], "paused_failures", "{status}");
    assert_eq!(node.ask(&["status"]).status.code(), Some(1));
    assert_eq!(node.ask(&["probe"]).status.code(), Some(2));
    let listed = node.json(&["job", "list", "--condition", "error"]);
    assert_eq!(listed["items"][0]["key"], "gives-up", "{listed}");

    node.ask(&["job", "pause", "gives-up"]);
    until_so("monitoring to be quiet", || node.ask(&["probe"]).status.code() == Some(0));
    node.stop();
}

#[test]
fn a_job_that_is_done_is_explained_as_done() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "once"
        command = ["true"]
        at = "now"
        "#,
    );
    node.start();
    let explained = until("its end", || {
        let explained = node.json(&["explain", "once"]);
        (explained["binding"] == "done").then_some(explained)
    });
    assert_eq!(explained["binding_sentence"], "It is done; its schedule has no more runs.");
    node.stop();
}

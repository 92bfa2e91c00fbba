//! What comes after a failure: retries, the schedule, a corrected command, and the pause that a person lifts.

use std::fs;

use serde_json::Value as Json;

use crate::serve::node::{Node, until};

/// The ended runs of a job, the first one first.
fn ended(node: &Node, job: &str) -> Vec<Json> {
    let mut runs: Vec<Json> = node.runs(job).into_iter().filter(|run| run["phase"] == "ended").collect();
    runs.reverse();
    runs
}

fn outcomes(runs: &[Json]) -> Vec<&str> {
    runs.iter().filter_map(|run| run["outcome"].as_str()).collect()
}

#[test]
fn a_failing_job_keeps_its_schedule_and_a_corrected_command_runs_at_once() {
    let jobs = |command: &str| {
        format!(
            r#"
            [[job]]
            name = "regular"
            command = ["false"]
            every = "1s"

            [[job]]
            name = "held"
            command = {command}
            every = "1s"
            retry = {{ holds_schedule = true }}

            [[job]]
            name = "once"
            command = {command}
            at = "now"
            "#
        )
    };
    let mut node = Node::with(&jobs(r#"["false"]"#));
    node.start();
    // The delays are 5 minutes and more; this job is tried every second all the same.
    let runs = until("four failures", || Some(ended(&node, "regular")).filter(|runs| 4 <= runs.len()));
    assert!(outcomes(&runs).iter().all(|outcome| *outcome == "failed"), "{runs:?}");
    let mut due: Vec<&str> = runs.iter().filter_map(|run| run["scheduled_for"].as_str()).collect();
    let n_runs = due.len();
    due.dedup();
    assert_eq!(due.len(), n_runs, "each is another occurrence: {due:?}");
    let records = node.json(&["run", "records", "regular"]);
    let has_backoff = records["items"].as_array().into_iter().flatten().any(|it| it["reason"] == "backoff");
    assert!(!has_backoff, "{records}");

    // Where the delay holds the schedule, or there is none, nothing comes for minutes.
    for job in ["held", "once"] {
        let runs = until("a failure", || Some(ended(&node, job)).filter(|runs| !runs.is_empty()));
        assert_eq!(outcomes(&runs), ["failed"], "{job}");
        assert_eq!(node.json(&["job", "show", job])["failure_count"], 1, "{job}");
    }
    fs::write(node.path("jobs.toml"), jobs(r#"["true"]"#)).unwrap();
    let file = node.path("jobs.toml").display().to_string();
    let applied = node.ask(&["apply", &file]);
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    for job in ["held", "once"] {
        let runs = until("a success", || Some(ended(&node, job)).filter(|runs| 2 <= runs.len()));
        assert_eq!(outcomes(&runs)[..2], ["failed", "succeeded"], "{job}");
    }
    assert_eq!(ended(&node, "once")[1]["attempt"], 2, "the same occurrence was tried again");
    node.stop();
}

#[test]
fn a_resumed_job_may_fail_as_often_again_and_a_person_can_take_over_a_pause() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "broken"
        command = ["false"]
        every = "1s"
        retry = { pause_after_failures = 2 }
        "#,
    );
    node.start();
    let paused = |n_runs: usize| {
        until("a pause", || {
            let job = node.json(&["job", "show", "broken"]);
            (job["status"] == "paused" && ended(&node, "broken").len() == n_runs).then_some(job)
        })
    };
    assert_eq!(paused(2)["paused_by"], "system");
    let resumed = node.ask(&["job", "resume", "broken"]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    assert_eq!(paused(4)["paused_by"], "system");
    for reason in [&["--reason", "the shop is closed"][..], &[]] {
        let again = node.ask(&[&["job", "pause", "broken"][..], reason].concat());
        assert_eq!(again.status.code(), Some(0), "{again:?}");
        let job = node.json(&["job", "show", "broken"]);
        assert_eq!(job["paused_by"], "operator");
        assert_eq!(job["pause_reason"], "the shop is closed");
    }
    node.stop();
}

#[test]
fn a_requested_run_that_fails_is_tried_again() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "by-hand"
        command = ["sh", "-c", "test -e mended"]
        manual = true
        retry = { delays = ["1s"] }
        "#,
    );
    node.start();
    let triggered = node.ask(&["job", "trigger", "by-hand"]);
    assert_eq!(triggered.status.code(), Some(0), "{triggered:?}");
    until("two failures", || (2 <= ended(&node, "by-hand").len()).then_some(()));
    fs::write(node.path("mended"), "").unwrap();
    let runs = until("a success", || {
        Some(ended(&node, "by-hand")).filter(|runs| runs.iter().any(|run| run["outcome"] == "succeeded"))
    });
    let attempts: Vec<u64> = runs.iter().filter_map(|run| run["attempt"].as_u64()).collect();
    let expected: Vec<u64> = (1..).take(runs.len()).collect();
    assert_eq!(attempts, expected);
    assert!(runs.iter().all(|run| run["trigger"] == "manual"), "{runs:?}");
    node.stop();
}

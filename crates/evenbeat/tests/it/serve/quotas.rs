//! What the configuration says about all jobs holds, whatever they say of themselves.

use evenbeat_core::time::{Duration, Timestamp};
use serde_json::Value as Json;

use crate::serve::node::{Node, until};

fn ended(node: &Node, job: &str) -> Json {
    until("an end", || node.runs(job).into_iter().find(|run| run["phase"] == "ended"))
}

#[test]
fn quotas_and_plans_hold() {
    let mut node = Node::with(
        r#"
        [template.waits]
        manual = true
        command = ["sh", "-c", "while ! test -e go-on; do sleep 0.05; done"]

        [[job]]
        name = "first"
        template = "waits"

        [[job]]
        name = "second"
        template = "waits"

        [[job]]
        name = "guests"
        template = "waits"
        tenant = "guest"

        [[job]]
        name = "daily"
        command = ["true"]
        every = "1d"
        "#,
    );
    node.start_with(&[
        "--set",
        "default_plan=brief",
        "--set",
        "plans.brief.max_run_time=1s",
        "--set",
        "quota.max_concurrent_jobs=1",
        "--set",
        "balance.first_run_within=10m",
    ]);
    let trigger = |job: &str| assert_eq!(node.ask(&["job", "trigger", job]).status.code(), Some(0), "{job}");

    // A tenant that nobody has listed has the default plan: a second for a run.
    trigger("guests");
    assert_eq!(ended(&node, "guests")["outcome"], "timed_out");

    // One at a time, over all of them; whoever waits is told what for.
    trigger("first");
    until("a running run", || node.runs("first").into_iter().find(|run| run["status"] == "running"));
    trigger("second");
    let explained = until("a wait", || {
        let explained = node.json(&["explain", "second"]);
        (explained["binding"] == "quota_concurrency").then_some(explained)
    });
    let why = explained["binding_sentence"].as_str().unwrap();
    assert!(why == "The quota of concurrent jobs is used up.", "{why}");
    std::fs::write(node.path("go-on"), "").unwrap();
    for job in ["first", "second"] {
        assert_eq!(ended(&node, job)["outcome"], "succeeded", "{job}");
    }

    // A new job comes soon, however long its interval is; so soon, perhaps, that its first run has begun by now.
    let instant = |it: &Json| it.as_str().unwrap().parse::<Timestamp>().unwrap();
    let daily = node.json(&["job", "show", "daily"]);
    let due = node.runs("daily").into_iter().map(|run| instant(&run["scheduled_for"]));
    let first = due.chain([instant(&daily["next_run_at"])]).min().unwrap();
    let first_in = first - instant(&daily["created_at"]);
    assert!(first_in <= Duration::from_mins(10) + Duration::from_secs(1), "{first_in}");
    node.stop();
}

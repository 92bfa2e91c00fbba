//! What comes due while nobody serves: each policy does what it says, and says what it did.

use std::time::{Duration, Instant};

use crate::serve::node::{Node, until};

/// The occurrences of a job that got no run, as the records tell.
fn missed(node: &Node, job: &str) -> u64 {
    let page = node.json(&["run", "records", job]);
    page["items"].as_array().into_iter().flatten().filter_map(|it| it["count"].as_u64()).sum()
}

#[test]
fn each_policy_makes_up_for_downtime_as_it_says() {
    let mut node = Node::with(
        r#"
        [defaults]
        command = ["true"]
        every = "1s"

        [[job]]
        name = "once"

        [[job]]
        name = "skip"
        missed = "skip"

        [[job]]
        name = "all"
        missed = "all"
        missed_max = 3
        "#,
    );
    node.start();
    let both = ["once", "skip", "all"];
    for job in both {
        until("a first run", || node.runs(job).into_iter().find(|run| run["phase"] == "ended"));
    }
    assert_eq!(node.stop(), Some(0));
    let down = Instant::now();
    until("six seconds of downtime", || (Duration::from_secs(6) < down.elapsed()).then_some(()));
    node.start();
    for job in both {
        until("a run after the downtime", || {
            let runs = node.runs(job);
            (3 <= runs.len()).then_some(())
        });
    }
    // Every occurrence is a run or in a record, and none is both.
    for job in both {
        let runs = node.runs(job);
        let mut due: Vec<&str> = runs.iter().filter_map(|run| run["scheduled_for"].as_str()).collect();
        let n_runs = due.len();
        due.dedup();
        assert_eq!(due.len(), n_runs, "{job}: no occurrence ran twice");
        let n_caught_up = runs.iter().filter(|run| run["trigger"] == "catchup").count();
        let n_missed = missed(&node, job);
        match job {
            "skip" => assert!(n_caught_up == 0 && 4 <= n_missed, "{job}: {n_caught_up} and {n_missed}"),
            "once" => assert!(n_caught_up <= 1 && 3 <= n_missed, "{job}: {n_caught_up} and {n_missed}"),
            _ => assert!(n_caught_up <= 3 && 1 <= n_missed, "{job}: {n_caught_up} and {n_missed}"),
        }
    }
    node.stop();
}

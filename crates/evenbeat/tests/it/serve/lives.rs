//! A node lives, dies and comes back; runs go on.

use std::fs;

use evenbeat_core::time::{Duration, Timestamp};
use serde_json::Value as Json;

use crate::serve::node::{Node, until};

fn ended(node: &Node, job: &str) -> Vec<Json> {
    let runs = node.runs(job).into_iter();
    runs.filter(|run| run["phase"] == "ended").collect()
}

#[test]
fn commands_run_in_their_rhythm_and_their_output_can_be_read() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "hello"
        command = ["sh", "-c", "echo hello from $EVENBEAT_JOB; echo and more >&2"]
        every = "1s"

        [[job]]
        name = "counts"
        command = ["sh", "-c", "echo '{\"pages_processed\": 42}' > $EVENBEAT_RESULT_FILE; exit 3"]
        at = "now"
        "#,
    );
    node.start();
    let runs = until("three runs", || Some(ended(&node, "hello")).filter(|runs| 3 <= runs.len()));
    assert!(runs.iter().all(|run| run["status"] == "succeeded"), "{runs:?}");
    let id = runs[0]["id"].as_str().unwrap();
    let log = node.ask(&["run", "log", id]);
    assert_eq!(String::from_utf8_lossy(&log.stdout), "hello from hello\n[stderr] and more\n");
    let counted = until("the run that counts", || ended(&node, "counts").pop());
    assert_eq!((&counted["status"], &counted["exit_code"]), (&Json::from("failed"), &Json::from(3)));
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    // Nothing lies about but what is kept.
    assert_eq!(fs::read_dir(node.data().join("runs")).unwrap().count(), 0);
}

#[test]
fn a_run_that_did_not_succeed_says_why_in_one_sentence_everywhere() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "fails"
        command = ["sh", "-c", "echo '{\"error\": \"login page changed\"}' > $EVENBEAT_RESULT_FILE; exit 4"]
        at = "now"
        retry = { delays = ["1h"] }

        [[job]]
        name = "breaks"
        command = ["sh", "-c", "echo 'ValueError: no price' >&2; exit 3"]
        at = "now"
        retry = { delays = ["1h"] }

        [[job]]
        name = "stubborn"
        command = { argv = ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], grace = "200ms" }
        at = "now"
        max_allowed_duration = "1s"
        retry = { delays = ["1h"] }
        "#,
    );
    node.start();
    for (job, sentence) in [
        ("fails", "failed with exit code 4: login page changed."),
        ("breaks", "failed with exit code 3. Last line of stderr: ValueError: no price"),
        (
            "stubborn",
            "was stopped: it took longer than max_allowed_duration 1s. It ignored SIGTERM and was killed.",
        ),
    ] {
        let run = until("its end", || ended(&node, job).pop());
        assert_eq!(run["sentence"], format!("The run {sentence}"), "{run:#}");
        let shown = node.ask(&["run", "show", run["id"].as_str().unwrap()]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains(&format!("\n  The run {sentence}\n")), "{shown}");
        let last = format!("The last run {sentence}");
        until("the job says so too", || {
            let explained = node.ask(&["explain", job]);
            String::from_utf8_lossy(&explained.stdout).contains(&last).then_some(())
        });
        until("so does the fleet", || {
            let status = node.ask(&["status", "--json"]);
            let status: Json = serde_json::from_slice(&status.stdout).unwrap();
            let worst = status["worst"].as_array().unwrap();
            let of_job = worst.iter().find(|it| it["key"] == job)?;
            of_job["sentence"].as_str().unwrap().contains(&last).then_some(())
        });
    }
    let run = ended(&node, "stubborn").pop().unwrap();
    assert_eq!((&run["reason"], &run["ignored_term"]), (&Json::from("time_limit"), &Json::from(true)));
    assert_eq!(run["limit"], "max_allowed_duration 1s");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn a_node_that_is_killed_finds_its_runs_again_and_loses_no_work() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "long"
        command = ["sh", "-c", "echo began; while ! test -e go-on; do sleep 0.05; done; echo done"]
        at = "now"
        "#,
    );
    node.start();
    let running =
        until("a running run", || node.runs("long").into_iter().find(|run| run["status"] == "running"));
    node.kill();
    node.start();
    fs::write(node.path("go-on"), "").unwrap();
    let runs = until("its end", || Some(ended(&node, "long")).filter(|runs| !runs.is_empty()));
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((&runs[0]["id"], &runs[0]["fence"]), (&running["id"], &running["fence"]));
    assert_eq!(runs[0]["status"], "succeeded");
    let log = node.ask(&["run", "log", running["id"].as_str().unwrap()]);
    assert_eq!(String::from_utf8_lossy(&log.stdout), "began\ndone\n");
    node.stop();
}

#[test]
fn a_run_that_ended_while_nobody_looked_is_on_record_after_all() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "long"
        command = ["sh", "-c", "while ! test -e go-on; do sleep 0.05; done; touch over"]
        at = "now"
        "#,
    );
    node.start();
    until("a running run", || node.runs("long").into_iter().find(|run| run["status"] == "running"));
    node.kill();
    fs::write(node.path("go-on"), "").unwrap();
    until("its last act", || node.path("over").exists().then_some(()));
    node.start();
    let runs = until("its end", || Some(ended(&node, "long")).filter(|runs| !runs.is_empty()));
    assert_eq!((runs.len(), &runs[0]["status"]), (1, &Json::from("succeeded")), "{runs:?}");
    node.stop();
}

#[test]
fn a_run_whose_processes_died_too_is_lost_and_runs_again() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "long"
        command = ["sh", "-c", "test -e go-on || { echo $PPID > shim; while true; do sleep 0.05; done; }"]
        at = "now"
        "#,
    );
    node.start();
    let shim: u32 =
        until("the shim's number", || fs::read_to_string(node.path("shim")).ok()?.trim().parse().ok());
    until("a running run", || node.runs("long").into_iter().find(|run| run["status"] == "running"));
    node.kill();
    crate::serve::node::signal(shim, "KILL");
    fs::write(node.path("go-on"), "").unwrap();
    node.start();
    let runs = until("both ends", || Some(ended(&node, "long")).filter(|runs| 2 <= runs.len()));
    let statuses: Vec<&str> = runs.iter().rev().filter_map(|run| run["status"].as_str()).collect();
    assert_eq!(statuses, ["lost", "succeeded"]);
    node.stop();
}

#[test]
fn a_run_is_cancelled_with_its_whole_tree() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "tree"
        manual = true

        [job.command]
        argv = ["sh", "-c", "trap '' TERM; sleep 600 & (setsid sleep 601 &); touch up; wait; sleep 602"]
        grace = "1s"
        "#,
    );
    node.start();
    assert_eq!(node.ask(&["job", "trigger", "tree"]).status.code(), Some(0));
    until("the whole tree", || node.path("up").exists().then_some(()));
    let run = until("a running run", || node.runs("tree").into_iter().find(|run| run["status"] == "running"));
    let marker = format!("EVENBEAT_RUN_ID={}", run["id"].as_str().unwrap());
    assert!(0 < n_marked(&marker));
    assert_eq!(node.ask(&["run", "cancel", run["id"].as_str().unwrap()]).status.code(), Some(0));
    let over = until("its end", || ended(&node, "tree").pop());
    assert_eq!(over["status"], "cancelled");
    assert_eq!(n_marked(&marker), 0, "something of it still executes");
    node.stop();
}

/// How many processes have a line in their environment.
fn n_marked(marker: &str) -> usize {
    let has_it = |path: std::path::PathBuf| {
        let environ = fs::read(path.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|it| it == marker.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter(|process| has_it(process.path())).count()
}

#[test]
fn a_folder_may_be_deeper_than_the_address_of_a_socket_has_room_for() {
    let deep = ["a-folder-of-folders"; 8].join("/");
    let mut node = Node::with_data_in(
        deep,
        r#"
        [[job]]
        name = "waits"
        command = ["sh", "-c", "while ! test -e go-on; do sleep 0.05; done"]
        at = "now"
        "#,
    );
    node.start();
    until("its run", || node.runs("waits").pop());
    node.kill();
    // Its run is found again, and the socket that the dead one left is replaced.
    node.start();
    fs::write(node.path("go-on"), "").unwrap();
    let run = until("its end", || ended(&node, "waits").pop());
    assert_eq!(run["status"], "succeeded", "{run}");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn a_triggered_run_is_followed_to_its_end_and_exit_code() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "fails"
        command = ["sh", "-c", "echo one; sleep 0.2; echo two; exit 3"]
        manual = true

        [[job]]
        name = "works"
        command = ["echo", "fine"]
        manual = true
        "#,
    );
    node.start();
    let followed = node.ask(&["job", "trigger", "fails", "--follow"]);
    assert_eq!(String::from_utf8_lossy(&followed.stdout), "one\ntwo\n");
    assert_eq!(followed.status.code(), Some(3), "{followed:?}");
    let followed = node.ask(&["job", "trigger", "works", "--follow"]);
    assert_eq!((&*followed.stdout, followed.status.code()), (&b"fine\n"[..], Some(0)), "{followed:?}");
    // The id that is printed is that of the run, and a job's name means its last run.
    let said = node.ask(&["job", "trigger", "works"]);
    let said = String::from_utf8(said.stdout).unwrap();
    let id = said.split(' ').nth(2).unwrap();
    until("its end", || (node.json(&["run", "show", id])["status"] == "succeeded").then_some(()));
    assert_eq!(node.json(&["run", "show", "works"])["id"], id);
    assert_eq!(node.ask(&["run", "log", "works"]).stdout, b"fine\n");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

#[test]
fn a_runs_shim_is_asked_for_signs_of_life() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "long"
        command = ["sh", "-c", "while ! test -e go-on; do sleep 0.05; done"]
        at = "now"
        "#,
    );
    node.start();
    let pinged = until("a ping after the start", || {
        let job = node.json(&["job", "show", "long"]);
        let at = |name: &str| job[name].as_str()?.parse::<Timestamp>().ok();
        let (started, ping) = (at("owner_started_at")?, at("owner_last_ping_at")?);
        (Duration::from_secs(3) < ping - started).then_some(job)
    });
    assert_eq!(pinged["steal_start_at"], Json::Null);
    fs::write(node.path("go-on"), "").unwrap();
    until("its end", || ended(&node, "long").pop());
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

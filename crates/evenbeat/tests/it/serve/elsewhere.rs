//! A log that lies on another node: the answer says where.

use crate::serve::node::{Node, until};
use crate::support::database::Database;

const JOBS: &str = r#"
    [[job]]
    name = "one"
    command = ["sh", "-c", "echo hello from one"]
    manual = true
    run_on_nodes = ["first"]
"#;

#[test]
fn a_log_on_another_node_is_named_on_postgres() {
    let database = Database::new();
    let setting = database.setting();
    let (mut first, mut second) = (Node::with(JOBS), Node::with(JOBS));
    first.start_with(&["--set", &setting, "--set", "node.name=first"]);
    second.start_with(&["--set", &setting, "--set", "node.name=second"]);
    let id = second.json(&["job", "trigger", "one"])["id"].as_str().unwrap().to_owned();
    until("its end", || {
        let run = first.json(&["run", "show", &id]);
        (run["outcome"] == "succeeded").then_some(())
    });
    let log = |node: &Node| {
        let output = node.ask(&["run", "log", &id]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}{}{}", text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
    };
    assert_eq!(log(&first), "hello from one\n0");
    assert_eq!(log(&second), "error: the log of this run is on node `first` (main); ask that node\n4");
    let nodes = second.json(&["node", "show", "first"]);
    assert_eq!((&nodes["state"], nodes["last_seen_at"].is_string()), (&"living".into(), true), "{nodes}");
    // A job that was paused through one node is resumed by whichever node looks first.
    let paused = second.json(&["job", "pause", "one", "--until", "1s", "--reason", "x \u{0007}"]);
    assert!(paused["pause_until"].is_string(), "{paused}");
    until("the end of the pause", || {
        (first.json(&["job", "show", "one"])["status"] == "scheduled").then_some(())
    });
    let resumed = first.json(&["audit", "list", "--job", "one", "--action", "resume"]);
    assert_eq!(resumed["items"].as_array().map(Vec::len), Some(1), "{resumed}");
    first.stop();
    until("its death", || {
        let gone = second.json(&["node", "show", "first"]);
        (gone["state"] == "dead").then_some(())
    });
    let gone = log(&second);
    assert!(gone.contains("which is not running; start it, then ask it"), "{gone}");
    second.stop();
}

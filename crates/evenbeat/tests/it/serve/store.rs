//! What people ask a store and a run that is over, and what the log says about it.

use std::process::Output;

use crate::serve::node::{Node, program, until};

const JOBS: &str = r#"
[[job]]
name = "stays"
manual = true
command = ["true"]

[[job]]
name = "goes"
manual = true
command = ["true"]
"#;

fn text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}exit {}", text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

#[test]
fn db_commands_find_the_store_of_a_data_folder_and_count_jobs_that_exist() {
    let mut node = Node::with(JOBS);
    node.start();
    assert_eq!(node.ask(&["job", "delete", "goes"]).status.code(), Some(0));
    let data = node.data().display().to_string();
    let db = |args: &[&str]| text(&program().arg("db").args(args).output().unwrap());
    assert_eq!(db(&["check", "--data-dir", &data]), "1 job, 0 open runs: no problems\nexit 0");
    let copy = node.path("copy.db").display().to_string();
    assert!(db(&["backup", &copy, "--data-dir", &data]).starts_with("copied to "), "{copy}");
    assert!(node.path("copy.db").is_file());
    let config = node.path("evenbeat.toml");
    std::fs::write(&config, format!("data_dir = \"{data}\"\n")).unwrap();
    let config = config.display().to_string();
    assert_eq!(db(&["check", "--config", &config]), "1 job, 0 open runs: no problems\nexit 0");
    let by_variable = program().args(["db", "check"]).env("EVENBEAT_DATA_DIR", &data).output().unwrap();
    assert_eq!(text(&by_variable), "1 job, 0 open runs: no problems\nexit 0");
}

#[test]
fn a_cancel_that_comes_too_late_is_not_logged_as_one() {
    let mut node = Node::with(JOBS);
    node.start();
    assert_eq!(node.ask(&["job", "trigger", "stays"]).status.code(), Some(0));
    let run = until("its end", || node.runs("stays").into_iter().find(|run| run["phase"] == "ended"));
    let refused = node.ask(&["run", "cancel", run["id"].as_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert_eq!(node.stop(), Some(0));
    assert!(!node.log().contains("cancel"), "{}", node.log());
}

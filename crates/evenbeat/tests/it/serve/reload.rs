//! SIGHUP: the configuration and the job files are read again (K5).

use std::fs;

use serde_json::json;

use crate::serve::node::{Node, signal, until};

fn job(name: &str, every: &str) -> String {
    format!("[[job]]\nname = \"{name}\"\ncommand = [\"true\"]\nevery = \"{every}\"\n")
}

#[test]
fn a_hangup_reloads_job_files_and_says_what_changed() {
    let mut node = Node::with(&[job("same", "1h"), job("other", "1h"), job("left-out", "1h")].concat());
    node.start();
    let file = node.path("jobs.toml");
    fs::write(&file, [job("same", "1h"), job("other", "2h"), job("fresh", "1h")].concat()).unwrap();
    signal(node.pid(), "HUP");
    let reloaded = node.logged("job files reloaded", 1);
    let counts = ["created", "changed", "unchanged"].map(|it| reloaded[0][it].as_u64());
    assert_eq!(counts, [Some(1), Some(1), Some(1)], "{reloaded:?}");
    assert_eq!(node.log_lines("job created")[0]["job"], "fresh");
    let changed = node.log_lines("job changed");
    assert_eq!((&changed[0]["job"], &changed[0]["fields"]), (&json!("other"), &json!("every")));
    let left_out = node.log_lines("job no longer in any job file; it stays until it is deleted");
    assert_eq!((left_out.len(), &left_out[0]["job"]), (1, &json!("left-out")), "{left_out:?}");
    assert_eq!(node.json(&["job", "show", "fresh"])["key"], "fresh");
    assert_eq!(node.json(&["job", "show", "left-out"])["key"], "left-out");

    // A file that is not valid changes nothing, not even what is valid in it.
    fs::write(&file, [job("newer", "1h"), job("other", "1 parsec")].concat()).unwrap();
    signal(node.pid(), "HUP");
    let refused = node.logged("job files not reloaded; nothing changed", 1);
    assert_eq!((&refused[0]["level"], &refused[0]["faults"]), (&json!("ERROR"), &json!(1)), "{refused:?}");
    let faults = node.log_lines("job file invalid");
    assert_eq!((faults.len(), faults[0]["line"].as_u64()), (1, Some(8)), "{faults:?}");
    assert!(faults[0]["file"].as_str().is_some_and(|it| it.ends_with("jobs.toml")), "{faults:?}");
    assert_ne!(node.ask(&["job", "show", "newer"]).status.code(), Some(0));
    fs::remove_file(&file).unwrap();
    signal(node.pid(), "HUP");
    node.logged("job files not reloaded; nothing changed", 2);
    assert_eq!(node.json(&["job", "show", "other"])["key"], "other");

    // Many in a row are as good as one or two, and the last file counts.
    let many: String = (0..2_000).map(|no| job(&format!("many{no}"), "1h")).collect();
    fs::write(&file, [many, job("last", "1h")].concat()).unwrap();
    let n_before = node.log_lines("reloading job files").len();
    let burst = format!("for i in $(seq 50); do kill -HUP {}; done", node.pid());
    assert!(std::process::Command::new("sh").args(["-c", &burst]).status().unwrap().success());
    until("the last job", || (node.ask(&["job", "show", "last"]).status.code() == Some(0)).then_some(()));
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    let n_reloads = node.log_lines("reloading job files").len() - n_before;
    assert!(n_reloads < 10, "{n_reloads} reloads for 50 signals");
}

#[test]
fn job_files_can_be_named_where_the_server_is_started() {
    let mut node = Node::with(&job("configured", "1h"));
    fs::write(node.path("more.toml"), job("argument", "1h")).unwrap();
    fs::create_dir(node.path("folder")).unwrap();
    fs::write(node.path("folder").join("a.toml"), job("in-folder", "1h")).unwrap();
    node.start_with(&["more.toml", "folder"]);
    for name in ["configured", "argument", "in-folder"] {
        assert_eq!(node.json(&["job", "show", name])["key"], name);
    }
    fs::write(node.path("more.toml"), job("argument", "2h")).unwrap();
    signal(node.pid(), "HUP");
    assert_eq!(node.logged("job changed", 1)[0]["job"], "argument");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    let refused = node.serve().arg("no-such-file.toml").output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no-such-file.toml"), "{refused:?}");
}

#[test]
fn a_hangup_reloads_the_configuration_and_says_what_needs_a_restart() {
    let mut node = Node::with(&job("same", "1h"));
    let file = node.path("evenbeat.toml");
    let write = |text: &str| fs::write(&file, text).unwrap();
    let channel = |name: &str| format!("[alerts.channels.{name}]\nkind = 'command'\ncommand = ['true']\n");
    write(&format!("log.level = 'info'\n[alerts]\ndefault = ['old']\n{}", channel("old")));
    node.start_with(&["--config", file.to_str().unwrap()]);
    let test = |name: &str| node.ask(&["alert", "test", name]).status.code();
    assert_eq!((test("old"), test("new")), (Some(0), Some(3)));

    write(&format!(
        "log.level = 'warn'\nscheduler_interval = '3s'\nretention.runs = '3d'\n[alerts]\ndefault = ['new']\n{}",
        channel("new")
    ));
    signal(node.pid(), "HUP");
    let restart = node.logged("configuration change needs a restart", 1);
    assert_eq!((restart.len(), &restart[0]["key"]), (1, &json!("scheduler_interval")), "{restart:?}");
    assert_eq!(restart[0]["configured"], "\"3s\"");
    assert_eq!((test("old"), test("new")), (Some(3), Some(0)), "{}", node.log());
    // What is below the new level is not logged any longer.
    assert_eq!(node.log_lines("configuration changed").len(), 0);

    write(&format!("log.level = 'info'\n[alerts]\ndefault = ['new']\n{}", channel("new")));
    signal(node.pid(), "HUP");
    let reloaded = node.logged("configuration reloaded", 1);
    let counts = ["changed", "needing_restart"].map(|it| reloaded[0][it].as_u64());
    assert_eq!(counts, [Some(2), Some(0)], "{reloaded:?}");
    let changed = node.log_lines("configuration changed");
    let shown: Vec<_> = changed.iter().map(|it| (&it["key"], &it["before"], &it["after"])).collect();
    assert_eq!(shown[0], (&json!("log.level"), &json!("\"warn\""), &json!("\"info\"")), "{shown:?}");
    assert_eq!(shown[1], (&json!("retention.runs"), &json!("\"3d\""), &json!("\"30d\"")), "{shown:?}");

    write("log.level = 'loud'\n");
    signal(node.pid(), "HUP");
    let refused = node.logged("configuration not reloaded; nothing changed", 1);
    assert_eq!(refused[0]["errors"], 1, "{refused:?}");
    assert_eq!(test("new"), Some(0), "{}", node.log());
    node.logged("job files reloaded", 2);
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

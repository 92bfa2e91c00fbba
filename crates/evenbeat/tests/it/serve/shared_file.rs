//! One database file under several names, and two servers that want it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::serve::node::{Node, program, until};

const JOBS: &str = "[[job]]\nname = \"tick\"\nevery = \"1s\"\ncommand = [\"true\"]\n";

/// What a server says that does not start on this file, in a data directory of its own.
fn refused(node: &Node, data: &str, file: &Path) -> String {
    let mut serve = program();
    serve.arg("serve").arg("--data-dir").arg(node.path(data)).args(["--listen", "127.0.0.1:0"]);
    serve.arg("--set").arg(format!("store=sqlite:{}", file.display()));
    let output = serve.current_dir(node.path("")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

fn db(words: &[&str], file: &Path) -> String {
    let output = program()
        .arg("db")
        .args(words)
        .arg("--store")
        .arg(format!("sqlite:{}", file.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server on `store.db` of its folder, with a run behind it.
fn serving() -> Node {
    let mut node = Node::with(JOBS);
    let store = format!("store=sqlite:{}", node.path("store.db").display());
    node.start_with(&["--set", &store]);
    until("a run", || (!node.runs("tick").is_empty()).then_some(()));
    node
}

#[test]
fn a_second_server_on_a_hard_link_is_refused() {
    let mut node = serving();
    let link = node.path("link.db");
    fs::hard_link(node.path("store.db"), &link).unwrap();
    let said = refused(&node, "other", &link);
    assert!(said.contains("is in use by process "), "{said}");
    assert!(said.contains("under another name"), "{said}");
    // What only reads goes on, and takes nothing away from the server.
    let file = node.path("store.db");
    assert!(db(&["check"], &file).ends_with("no problems\n"));
    db(&["backup", node.path("copy.db").to_str().unwrap()], &file);
    let said = refused(&node, "other", &link);
    assert!(said.contains("is in use by process "), "{said}");

    // With nobody on the file, it still belongs to the first data directory.
    node.kill();
    let said = refused(&node, "other", &file);
    let owner = node.data().display().to_string();
    assert!(said.contains(&format!("belongs to the data directory `{owner}`")), "{said}");
    assert!(said.contains("evenbeat db new-epoch --store sqlite:"), "{said}");
    node.start_with(&["--set", &format!("store=sqlite:{}", file.display())]);
    assert_eq!(node.stop(), Some(0), "{}", node.log());

    // The way out that the text names.
    db(&["new-epoch"], &file);
    let mut other = Node::with("");
    other.start_with(&["--set", &format!("store=sqlite:{}", file.display())]);
    assert!(!other.runs("tick").is_empty());
    assert_eq!(other.stop(), Some(0), "{}", other.log());
}

#[test]
fn a_second_server_on_a_bind_mount_is_refused() {
    let node = serving();
    let other_name = node.path("mounted.db");
    fs::write(&other_name, "").unwrap();
    let mount = Command::new("mount").arg("--bind").arg(node.path("store.db")).arg(&other_name).output();
    if !mount.is_ok_and(|it| it.status.success()) {
        println!("not covered here: mounting a file needs root");
        return;
    }
    let said = std::panic::catch_unwind(|| refused(&node, "other", &other_name));
    let unmounted = Command::new("umount").arg(&other_name).status().unwrap();
    assert!(unmounted.success());
    let said = said.unwrap();
    assert!(said.contains("is in use by process "), "{said}");
}

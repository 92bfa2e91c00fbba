//! Why a node does not serve: a text that says what to do, and a code for scripts.

use std::fs;
use std::net::TcpListener;

use crate::node::Node;

/// What it says, with the names of this test's folder taken out.
fn said(node: &Node, more: &[&str]) -> (Option<i32>, String) {
    let output = node.serve().args(more).output().unwrap();
    let folder = node.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let text = String::from_utf8_lossy(&output.stderr).replace(folder, "FOLDER");
    // Log lines tell of other things, and when.
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with('{')).collect();
    (output.status.code(), text.join("\n"))
}

#[test]
fn a_second_node_in_the_same_folder_is_told_so() {
    let mut node = Node::with("");
    node.start();
    let (code, text) = said(&node, &[]);
    assert_eq!(
        text,
        "error: another node works in `FOLDER/data` (lock `FOLDER/data/node.lock`); stop it, or give this one a \
         `data_dir` of its own"
    );
    assert_eq!(code, Some(1));
    node.stop();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let node = Node::with("");
    let (code, text) = said(&node, &["--set", &format!("listen={address}")]);
    // Given twice, by two flags, is a fault of the command line.
    assert_eq!(code, Some(2), "{text}");
    let output = crate::node::program()
        .args(["serve", "--data-dir"])
        .arg(node.data())
        .args(["--listen", &address])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        text.trim_end(),
        format!(
            "error: `{address}` cannot be listened on; if another server has it, stop that, or give another with \
             `--listen`: Address already in use (os error 98)"
        )
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn job_files_with_faults_are_shown_in_their_place_and_nothing_is_applied() {
    let node = Node::with("[[job]]\nname = \"a\"\ncommand = [\"true\"]\nevery = \"1 fortnight\"\n");
    let (code, text) = said(&node, &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("FOLDER/jobs.toml:4:9"), "{text}");
}

#[test]
fn a_store_that_is_no_store_is_left_alone() {
    let node = Node::with("");
    fs::create_dir_all(node.data()).unwrap();
    fs::write(node.data().join("evenbeat.db"), "precious notes that are no database").unwrap();
    let (code, text) = said(&node, &[]);
    assert_eq!(code, Some(1));
    assert!(text.starts_with("error: `FOLDER/data/evenbeat.db` is not an Evenbeat store"), "{text}");
    assert_eq!(
        fs::read_to_string(node.data().join("evenbeat.db")).unwrap(),
        "precious notes that are no database"
    );
}

#[test]
fn a_server_that_is_away_is_named_without_its_password() {
    let node = Node::with("");
    let away = "postgres://ann:secret@127.0.0.1:1/beat";
    let (code, text) = said(&node, &["--store", away]);
    assert_eq!(code, Some(1));
    assert!(text.starts_with("error: the store `postgres://127.0.0.1:1/beat` cannot be used: "), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

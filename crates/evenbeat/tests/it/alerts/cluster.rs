//! Several nodes on one database alert once.

use std::collections::BTreeSet;
use std::fs;

use crate::alerts::delivery::{jobs, run_all, told};
use crate::alerts::receivers::Receiver;
use crate::serve::node::{Node, until};
use crate::support::database::Database;

#[test]
fn of_several_nodes_one_alerts_and_another_goes_on() {
    let database = Database::new();
    let receiver = Receiver::start();
    let config = format!(
        "http.allow_private = ['127.0.0.1']\n[alerts]\ndefault = ['hook']\ngroup_wait = '1s'\n\
         [alerts.channels.hook]\nkind = 'webhook'\nurl = '{}'\n",
        receiver.url("/")
    );
    let mut nodes: Vec<Node> = (0..3).map(|_| Node::with(&jobs(&["shop"]))).collect();
    for (no, node) in nodes.iter_mut().enumerate() {
        let path = node.path("evenbeat.toml");
        fs::write(&path, &config).unwrap();
        let (path, name) = (path.display().to_string(), format!("node.name=n{no}"));
        node.start_with(&["--config", &path, "--set", &database.setting(), "--set", &name]);
    }
    run_all(&nodes[0], &["shop"]);
    until("an alert", || (!told(&receiver.accepted(), "opened").is_empty()).then_some(()));
    // The node that looks dies; the others know what was told.
    let first = nodes.remove(0);
    drop(first);
    for node in &nodes {
        fs::write(node.path("shop.good"), "").unwrap();
    }
    run_all(&nodes[0], &["shop"]);
    until("the recovery", || (!told(&receiver.accepted(), "over").is_empty()).then_some(()));
    // A node that dies before it has noted an answer leaves the message to another, which sends it again under its id.
    let mut ids = BTreeSet::new();
    let mut accepted = receiver.accepted();
    accepted.retain(|it| ids.insert(it.header("idempotency-key").to_owned()));
    assert_eq!(told(&accepted, "opened"), [["shop"]]);
    assert_eq!(told(&accepted, "over"), [["shop"]]);
}

//! What is left when runs are over: nothing.

use std::process::Command;

use evenbeat_core::run::Outcome;

use crate::command_target::node::{Node, in_every_way, processes_of, until};

/// Set for a test that lives in a process of its own.
const ALONE: &str = "EVENBEAT_TEST_ALONE";

/// Lives through a case in a process of its own: files and children of other tests must not be counted.
#[track_caller]
fn alone(name: &str, case: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return case();
    }
    let name = format!("command_target::hygiene::{name}");
    let test =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", &name]).env(ALONE, "").output();
    let test = test.unwrap();
    let said = String::from_utf8_lossy(&test.stdout);
    assert!(test.status.success() && said.contains("1 passed"), "{said}");
}

fn n_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> Vec<String> {
    let me = std::process::id();
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    stats
        .filter(|stat| {
            stat.rsplit_once(") ").is_some_and(|(_, it)| it.split(' ').nth(1) == Some(&me.to_string()))
        })
        .collect()
}

#[test]
fn nothing_is_left_of_many_runs() {
    in_every_way(|node| {
        let warm_up = node.script("exit 0");
        node.run(&warm_up);
        node.shims.forget(warm_up.run);
        until("it is forgotten", || !node.places.run(warm_up.run).exists());
        let orders: Vec<_> =
            (0..20).map(|no| node.script(&format!("sleep 0.01 & echo {no}; exit {}", no % 2))).collect();
        for order in &orders {
            node.start(order);
        }
        for (no, order) in orders.iter().enumerate() {
            assert_eq!(node.ended(order.run).0.exit_code, Some(i32::try_from(no % 2).unwrap()));
            node.shims.forget(order.run);
        }
        let runs = node.places.runs();
        until("all folders are gone", || std::fs::read_dir(&runs).unwrap().count() == 0);
        for order in &orders {
            until("its shim is gone", || processes_of(order.run).is_empty());
        }
        let left = std::fs::read_dir(node.places.root()).unwrap().count();
        assert_eq!(left, 4, "runs, logs, locks and the lock of the node");
    });
}

#[test]
fn no_child_is_left_unwaited_for() {
    alone("no_child_is_left_unwaited_for", || {
        let mut node = Node::new(crate::command_target::node::Way::Signals);
        let orders: Vec<_> = (0..5).map(|_| node.script("exit 0")).collect();
        for order in &orders {
            node.start(order);
        }
        for order in &orders {
            node.ended(order.run);
        }
        until("all have been waited for", || children().iter().all(|it| !it.contains("(evenbeat)")));
    });
}

#[test]
fn no_file_stays_open() {
    alone("no_file_stays_open", || {
        let mut node = Node::new(crate::command_target::node::Way::Signals);
        let order = node.script("exit 0");
        node.run(&order);
        node.shims.forget(order.run);
        until("it is gone", || processes_of(order.run).is_empty() && children().is_empty());
        let before = n_files();
        for _ in 0..10 {
            let order = node.script("exit 0");
            node.run(&order);
            node.shims.forget(order.run);
        }
        until("no more files than before", || n_files() <= before);
    });
}

#[test]
fn a_scheduler_that_lets_go_keeps_nothing() {
    alone("a_scheduler_that_lets_go_keeps_nothing", || {
        let mut node = Node::new(crate::command_target::node::Way::Signals);
        let order = node.script("while [ ! -e go ]; do sleep 0.01; done; exit 8");
        let before = n_files();
        let run = node.start(&order);
        node.started(run);
        node.shutdown();
        // The one that waits for its child stays until that ends.
        until("its connection is closed", || n_files() <= before + 1);
        std::fs::write(node.work.0.join("go"), "").unwrap();
        until("its end is there", || node.places.end(run).exists());
        until("it was waited for", || children().iter().all(|it| !it.contains("(evenbeat)")));
        node.next_life();
        node.adopt(&[&order]);
        assert_eq!(node.ended(run).0.outcome, Outcome::Failed);
    });
}

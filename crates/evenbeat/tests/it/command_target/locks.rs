//! The locks of a job: no run begins while anything of another executes.

use std::fs::{File, OpenOptions};

use evenbeat::testing::target::command::Order;
use evenbeat_core::ids::JobKey;
use evenbeat_core::run::Outcome;
use rustix::fs::{FlockOperation, flock};

use crate::command_target::node::{Node, in_every_way, in_millis, until};

/// Holds a lock of a job, as something of an earlier life would.
fn hold(node: &Node, key: &JobKey, lane: u32) -> File {
    let path = node.places.root().join("locks").join(format!("{:016x}.{lane}.lock", key.stable_hash()));
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    file
}

fn is_shim_up(node: &Node, order: &Order) -> bool {
    node.places.run(order.run).join("sock").exists()
}

#[test]
fn a_run_waits_for_what_is_left_of_another() {
    in_every_way(|node| {
        let order = node.script("echo ran > ran");
        let held = hold(node, &order.key, 0);
        let run = node.start(&order);
        until("its shim is there", || is_shim_up(node, &order));
        crate::command_target::node::stays(100, || node.file("ran"));
        assert_eq!(node.heard(run), []);
        drop(held);
        assert_eq!(node.ended(run).0.outcome, Outcome::Succeeded);
        assert_eq!(node.file("ran"), "ran\n");
        std::fs::remove_file(node.work.0.join("ran")).unwrap();
    });
}

#[test]
fn a_run_that_gives_its_lock_back_is_waited_for_all_the_same() {
    in_every_way(|node| {
        // Whatever it has open beside its three is unlocked.
        let script = "for fd in /proc/self/fd/*; do case $(readlink $fd) in */locks/*) \
                      python3 -c 'import fcntl, sys; fcntl.flock(int(sys.argv[1]), fcntl.LOCK_UN)' ${fd##*/} && \
                      echo ${fd##*/} >> freed;; esac; done; echo up > up; \
                      while [ ! -e go ]; do sleep 0.01; done";
        let first = node.command(&["/bin/bash", "-c", script]);
        let next = Order { key: first.key.clone(), ..node.script("echo ran > ran") };
        node.start(&first);
        node.line("up");
        assert!(!node.file("freed").is_empty(), "it has given its lock back");
        node.start(&next);
        until("its shim is there", || is_shim_up(node, &next));
        crate::command_target::node::stays(200, || node.file("ran"));
        assert_eq!(node.heard(next.run), []);
        std::fs::write(node.work.0.join("go"), "").unwrap();
        assert_eq!(node.ended(first.run).0.outcome, Outcome::Succeeded);
        assert_eq!(node.ended(next.run).0.outcome, Outcome::Succeeded);
        for name in ["go", "ran", "up", "freed"] {
            std::fs::remove_file(node.work.0.join(name)).unwrap();
        }
    });
}

#[test]
fn whoever_waits_can_be_stopped_and_revoked_and_loses_its_lease() {
    in_every_way(|node| {
        let [stopped, revoked, over] = [60_000, 60_000, 300]
            .map(|lease| Order { lease_until: Some(in_millis(lease)), ..node.script("touch ran") });
        let _held = [&stopped, &revoked, &over].map(|order| hold(node, &order.key, 0));
        for order in [&stopped, &revoked, &over] {
            node.start(order);
            until("its shim is there", || is_shim_up(node, order));
        }
        node.shims.stop(stopped.run, Outcome::Cancelled);
        node.shims.revoke(revoked.run);
        assert_eq!(node.not_started(stopped.run), "it was stopped before it began");
        assert_eq!(node.not_started(revoked.run), "it was revoked before it began");
        assert_eq!(node.not_started(over.run), "its lease was over before it could begin");
        assert!(!node.work.0.join("ran").exists());
    });
}

#[test]
fn an_extension_is_good_for_whoever_waits_too() {
    in_every_way(|node| {
        let order = Order { lease_until: Some(in_millis(1_000)), ..node.script("exit 0") };
        let held = hold(node, &order.key, 0);
        let run = node.start(&order);
        node.extend(60_000);
        until("the first lease is over", || {
            order.lease_until.unwrap() < evenbeat::testing::target::command::boot::now()
        });
        drop(held);
        assert_eq!(node.ended(run).0.outcome, Outcome::Succeeded);
    });
}

#[test]
fn a_job_that_may_overlap_takes_the_next_lock() {
    in_every_way(|node| {
        let key: JobKey = "twice".parse().unwrap();
        let order = |script: &str| Order { key: key.clone(), n_lanes: 2, ..node.script(script) };
        let wait = "while [ ! -e go ]; do sleep 0.01; done";
        let (one, two, three) = (order(wait), order(wait), order("exit 0"));
        node.start(&one);
        node.started(one.run);
        node.start(&two);
        node.started(two.run);
        node.start(&three);
        until("its shim is there", || is_shim_up(node, &three));
        crate::command_target::node::stays(100, || node.places.start_marker(three.run).exists());
        assert!(!node.places.start_marker(three.run).exists());
        std::fs::write(node.work.0.join("go"), "").unwrap();
        for it in [&one, &two, &three] {
            assert_eq!(node.ended(it.run).0.outcome, Outcome::Succeeded);
        }
        std::fs::remove_file(node.work.0.join("go")).unwrap();
    });
}

#[test]
fn two_runs_of_a_job_never_execute_together() {
    in_every_way(|node| {
        let key: JobKey = "once".parse().unwrap();
        // Only one can make a folder; a second finds it there.
        let script = "mkdir busy || echo double >> doubles; sleep 0.02; rmdir busy";
        let orders: Vec<Order> = (0..6).map(|_| Order { key: key.clone(), ..node.script(script) }).collect();
        for order in &orders {
            node.start(order);
        }
        for order in &orders {
            assert_eq!(node.ended(order.run).0.outcome, Outcome::Succeeded);
        }
        assert_eq!(node.file("doubles"), "");
    });
}

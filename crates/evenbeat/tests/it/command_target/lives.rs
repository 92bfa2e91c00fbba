//! Schedulers and shims that die, and those who come after them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use evenbeat::testing::target::RunNews;
use evenbeat::testing::target::command::{Bounds, Order, Places};
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::Duration;
use rustix::process::Signal;

use crate::command_target::node::{
    Node, Way, in_every_way, in_millis, is_alive, kill, new_run, order, processes_of, runtime, shim_of,
    shims, stays, until,
};

const COUNTS: &str = "while [ ! -e go ]; do echo x >> count; sleep 0.005; done";

fn counts_on(node: &Node) {
    let before = node.file("count").len();
    until("it counts on", || before < node.file("count").len());
}

fn go(node: &Node) {
    std::fs::write(node.work.0.join("go"), "").unwrap();
}

#[test]
fn a_run_goes_on_without_its_scheduler_and_is_taken_over_by_the_next() {
    in_every_way(|node| {
        let order = Order { lease_until: Some(in_millis(60_000)), ..node.script(COUNTS) };
        let run = node.start(&order);
        let began_at = node.started(run);
        node.next_life();
        counts_on(node);
        node.adopt(&[&order]);
        assert_eq!(node.started(run), began_at);
        go(node);
        assert_eq!(node.ended(run).0.outcome, Outcome::Succeeded);
    });
}

#[test]
fn a_run_that_is_frozen_says_so_to_whoever_takes_it_over() {
    in_every_way(|node| {
        let order = Order { lease_until: Some(in_millis(1_500)), ..node.script(COUNTS) };
        let run = node.start(&order);
        let frozen_at = node.frozen(run);
        node.next_life();
        node.adopt(&[&order]);
        node.started(run);
        assert_eq!(node.frozen(run), frozen_at);
        node.extend(60_000);
        node.thawed(run);
        counts_on(node);
        node.shims.stop(run, Outcome::Cancelled);
        node.ended(run);
    });
}

#[test]
fn an_end_that_nobody_heard_is_found() {
    in_every_way(|node| {
        let order = node.script(&format!("{COUNTS}; exit 6"));
        let run = node.start(&order);
        node.started(run);
        node.next_life();
        go(node);
        until("its end is there", || node.places.end(run).exists());
        until("its shim is gone", || processes_of(run).is_empty());
        node.adopt(&[&order]);
        let (over, _) = node.ended(run);
        assert_eq!((over.outcome, over.exit_code), (Outcome::Failed, Some(6)));
    });
}

#[test]
fn an_end_that_cannot_be_written_is_kept_until_it_is_on_record() {
    in_every_way(|node| {
        let order = node.script("mkdir ${EVENBEAT_RESULT_FILE%/*}/end; exit 6");
        let run = node.start(&order);
        assert_eq!(node.ended(run).0.exit_code, Some(6));
        let shim = shim_of(run);
        stays(100, || is_alive(shim));
        node.next_life();
        node.adopt(&[&order]);
        assert_eq!(node.ended(run).0.exit_code, Some(6));
        assert!(is_alive(shim));
        node.shims.forget(run);
        until("it has gone", || !is_alive(shim));
    });
}

#[test]
fn what_is_not_taken_over_is_ended() {
    in_every_way(|node| {
        let (ours, other) = (node.script(COUNTS), node.script(COUNTS));
        for order in [&ours, &other] {
            node.start(order);
            node.started(order.run);
        }
        node.next_life();
        node.adopt(&[&ours]);
        until("the other is gone", || processes_of(other.run).is_empty());
        until("nothing lies about of it", || !node.places.run(other.run).exists());
        assert_eq!(node.heard(other.run), []);
        counts_on(node);
        go(node);
        assert_eq!(node.ended(ours.run).0.outcome, Outcome::Succeeded);
    });
}

#[test]
fn a_run_that_was_never_started_is_told_as_such() {
    in_every_way(|node| {
        let order = node.script("touch ran");
        node.adopt(&[&order]);
        assert_eq!(node.not_started(order.run), "its shim died before it began");
        assert!(!node.work.0.join("ran").exists());
    });
}

#[test]
fn a_shim_that_comes_too_late_does_not_begin() {
    in_every_way(|node| {
        let order = node.script("touch ran");
        let run = order.run;
        // The run was given up, which leaves an empty marker; its shim has just been started.
        std::fs::create_dir(node.places.run(run)).unwrap();
        std::fs::write(node.places.start_marker(run), "").unwrap();
        std::fs::remove_dir_all(node.places.run(run)).unwrap();
        let held = hold_lock(node, &order);
        node.start(&order);
        until("its shim waits", || node.places.run(run).join("sock").exists());
        std::fs::write(node.places.start_marker(run), "").unwrap();
        drop(held);
        assert_eq!(node.not_started(run), "it was given up before it began");
        assert!(!node.work.0.join("ran").exists());
    });
}

fn hold_lock(node: &Node, order: &Order) -> std::fs::File {
    let path = node.places.root().join("locks").join(format!("{:016x}.0.lock", order.key.stable_hash()));
    let file = std::fs::File::create(path).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    file
}

#[test]
fn a_shim_that_is_killed_takes_its_run_with_it() {
    in_every_way(|node| {
        let script = "(setsid sh -c 'trap \"\" TERM; echo $$ > hidden; while :; do sleep 1; done' &); \
                      echo $$ > first; while :; do sleep 1; done";
        let order = node.script(script);
        let run = node.start(&order);
        let began_at = node.started(run);
        let pids = [node.line("first"), node.line("hidden")].map(|it| it.parse::<i32>().unwrap());
        kill(shim_of(run), Signal::KILL);
        let (over, told) = node.ended(run);
        assert_eq!((over.outcome, over.exit_code), (Outcome::Lost, None));
        assert!(over.started_at <= began_at && began_at <= over.ended_at);
        assert_eq!(told.reason, Some(EndReason::GuardDied));
        assert_eq!(pids.map(is_alive), [false, false]);
        node.shims.forget(run);
        until("nothing lies about", || !node.places.run(run).exists());
        // Its lock is free: the next one runs.
        let next = Order { key: order.key.clone(), ..node.script("exit 0") };
        assert_eq!(node.run(&next).0.outcome, Outcome::Succeeded);
    });
}

#[test]
fn a_shim_that_died_while_nobody_was_there_is_found_out() {
    in_every_way(|node| {
        let order = node.script("(setsid sh -c 'echo $$ > hidden; exec sleep 1000' &); sleep 1000");
        let run = node.start(&order);
        node.started(run);
        let hidden: i32 = node.line("hidden").parse().unwrap();
        node.next_life();
        let shim = shim_of(run);
        kill(shim, Signal::KILL);
        until("it is gone", || !is_alive(shim));
        node.adopt(&[&order]);
        assert_eq!(node.ended(run).0.outcome, Outcome::Lost);
        assert!(!is_alive(hidden));
    });
}

#[test]
fn what_cannot_be_found_is_waited_for() {
    in_every_way(|node| {
        // It carries no mark, and has left the group and the session; all that it still has is the lock.
        let order =
            node.script("(setsid env -i /bin/sh -c 'echo $$ > hidden; exec /bin/sleep 1000' &); sleep 1000");
        let run = node.start(&order);
        node.started(run);
        let hidden: i32 = node.line("hidden").parse().unwrap();
        kill(shim_of(run), Signal::KILL);
        if order.cgroup.is_none() {
            stays(200, || node.heard(run));
            assert_eq!(node.heard(run), []);
            kill(hidden, Signal::KILL);
        }
        assert_eq!(node.ended(run).0.outcome, Outcome::Lost);
        assert!(!is_alive(hidden));
    });
}

#[test]
fn a_shim_that_is_killed_before_it_began_is_no_loss() {
    in_every_way(|node| {
        let order = node.script("touch ran");
        let held = hold_lock(node, &order);
        let run = node.start(&order);
        until("its shim waits", || node.places.run(run).join("sock").exists());
        kill(shim_of(run), Signal::KILL);
        assert_eq!(node.not_started(run), "its shim died before it began");
        drop(held);
        assert!(!node.work.0.join("ran").exists());
    });
}

#[test]
fn a_run_that_nobody_wants_back_is_killed_in_the_end() {
    in_every_way(|node| {
        let bounds = Bounds { max_orphan: Duration::from_millis(200), ..node.script("").bounds };
        let order = Order { bounds, ..node.script(COUNTS) };
        let run = node.start(&order);
        node.started(run);
        node.next_life();
        until("its end is there", || node.places.end(run).exists());
        node.adopt(&[&order]);
        let (over, told) = node.ended(run);
        assert_eq!(over.outcome, Outcome::Failed);
        let limit = "commands.max_orphan 200ms".to_owned();
        assert_eq!((told.reason, told.limit), (Some(EndReason::Orphaned), Some(limit)));
        until("its shim is gone", || processes_of(run).is_empty());
    });
}

#[test]
fn nothing_but_a_kill_ends_a_shim() {
    in_every_way(|node| {
        let order = node.script(COUNTS);
        let run = node.start(&order);
        node.started(run);
        for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::USR1, Signal::PIPE] {
            kill(shim_of(run), signal);
        }
        counts_on(node);
        go(node);
        assert_eq!(node.ended(run).0.outcome, Outcome::Succeeded);
    });
}

#[test]
fn an_end_of_before_the_machine_was_restarted_is_believed_and_its_instants_are_not() {
    let mut node = Node::new(Way::Signals);
    let order = node.script("exit 0");
    node.run(&order);
    until("its shim is gone", || processes_of(order.run).is_empty());
    let end = std::fs::read_to_string(node.places.end(order.run)).unwrap();
    let boot_id = evenbeat::testing::target::command::boot::id();
    assert!(end.contains(&boot_id));
    std::fs::write(node.places.end(order.run), end.replace(&boot_id, "another")).unwrap();
    node.next_life();
    node.adopt(&[&order]);
    let (over, _) = node.ended(order.run);
    assert_eq!((over.outcome, over.ended_at.as_millis()), (Outcome::Succeeded, 0));
    // One that had begun, and has no end.
    std::fs::remove_file(node.places.end(order.run)).unwrap();
    let began = std::fs::read_to_string(node.places.start_marker(order.run)).unwrap();
    std::fs::write(node.places.start_marker(order.run), began.replace(&boot_id, "another")).unwrap();
    node.next_life();
    node.adopt(&[&order]);
    let (over, told) = node.ended(order.run);
    assert_eq!((over.outcome, over.ended_at.as_millis()), (Outcome::Lost, 0));
    assert_eq!(told.reason, Some(EndReason::MachineRestarted));
}

/// Set for the scheduler that is killed: where its data lies, and how it holds its runs.
const DATA: &str = "EVENBEAT_TEST_DATA";
const CGROUP: &str = "EVENBEAT_TEST_CGROUP";
const THIS_TEST: &str = "command_target::lives::a_scheduler_that_is_killed_leaves_its_runs_to_the_next";

/// Starts a run that counts, says which, and lives until it is killed.
fn be_a_scheduler(data: &Path, way: &Way) {
    let places = Places::open(data).unwrap();
    let runtime = runtime();
    let (shims, mut news) = shims(&runtime, &places, way);
    let order = order(&places, data, way, &["/bin/sh", "-c", COUNTS]);
    let order = Order { lease_until: Some(in_millis(60_000)), ..order };
    shims.start(order.clone());
    while let Some(news) = runtime.block_on(news.recv()) {
        if matches!(news, RunNews::Started { .. }) {
            println!("\nstarted {} {}", order.run.0, order.fence.0);
        }
    }
}

#[test]
fn a_scheduler_that_is_killed_leaves_its_runs_to_the_next() {
    if let Some(data) = std::env::var_os(DATA) {
        let way = std::env::var_os(CGROUP).map_or(Way::Signals, |it| Way::Cgroup(it.into()));
        return be_a_scheduler(Path::new(&data), &way);
    }
    in_every_way(|node| {
        let order = node.script(COUNTS);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", THIS_TEST, "--nocapture"]).env(DATA, node.data()).stdout(Stdio::piped());
        if let Some(parent) = &order.cgroup {
            command.env(CGROUP, parent);
        }
        let mut scheduler = command.spawn().unwrap();
        let mut lines = BufReader::new(scheduler.stdout.take().unwrap()).lines().map_while(Result::ok);
        let run = lines.find_map(|line| Some(line.strip_prefix("started ")?.to_owned())).unwrap();
        let run: Vec<u128> = run.split(' ').map(|it| it.parse().unwrap()).collect();
        let order = Order {
            run: RunId(run[0]),
            fence: Fence(u64::try_from(run[1]).unwrap()),
            lease_until: Some(in_millis(0)),
            ..order
        };
        scheduler.kill().unwrap();
        scheduler.wait().unwrap();
        let count = || std::fs::read_to_string(node.data().join("count")).unwrap_or_default().len();
        let before = count();
        until("it counts on", || before < count());
        node.adopt(&[&order]);
        node.extend(60_000);
        node.started(order.run);
        std::fs::write(node.data().join("go"), "").unwrap();
        assert_eq!(node.ended(order.run).0.outcome, Outcome::Succeeded);
        assert_ne!(order.run, new_run());
    });
}

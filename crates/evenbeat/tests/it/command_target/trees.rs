//! What runs leave behind: children of children, processes that hide, that hold on, that do not want to end.

use evenbeat::testing::target::RunNews;
use evenbeat::testing::target::command::{Bounds, Order};
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::Duration;

use crate::command_target::node::{Node, Way, in_every_way, is_alive, processes_of, shims_of_nobody, until};

/// Runs a script that writes the numbers of processes to a file; none of them may be there when its end is told.
#[track_caller]
fn check(script: &str, n_processes: usize) {
    in_every_way(|node| {
        let order = node.script(script);
        let (over, told) = node.run(&order);
        assert_eq!(over.outcome, Outcome::Succeeded, "{told:?} {}", node.log(order.run));
        let survivors: Vec<i32> = pids(node).into_iter().filter(|pid| is_alive(*pid)).collect();
        assert_eq!(survivors, [0; 0], "in the file: {:?}", pids(node));
        assert_eq!(pids(node).len(), n_processes, "{}", node.file("pids"));
        until("the shim is gone", || processes_of(order.run).is_empty());
    });
}

fn pids(node: &Node) -> Vec<i32> {
    node.file("pids").lines().map(|line| line.trim().parse().unwrap()).collect()
}

#[test]
fn children_that_are_left_behind_end_with_the_run() {
    check("sleep 1000 & echo $! >> pids; sleep 1000 & echo $! >> pids; exit 0", 2);
}

#[test]
fn grandchildren_end_too() {
    check(
        "sh -c 'sleep 1000 & echo $! >> pids; echo $$ >> pids; wait' & until [ $(wc -l < pids) = 2 ]; do :; done",
        2,
    );
}

#[test]
fn whoever_leaves_the_group_and_the_session_is_still_found() {
    check(
        "setsid sh -c 'setsid sh -c \"echo \\$\\$ >> pids; exec sleep 1000\" & exit' & \
         until [ -s pids ]; do :; done",
        1,
    );
}

#[test]
fn whoever_ignores_what_it_is_asked_is_killed() {
    check(
        "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >> pids; while :; do sleep 1; done' & \
         until [ -s pids ]; do :; done",
        1,
    );
}

#[test]
fn whoever_clears_its_environment_is_still_found() {
    check(
        "setsid env -i /bin/sh -c 'echo $$ >> pids; exec /bin/sleep 1000' & until [ -s pids ]; do :; done",
        1,
    );
}

#[test]
fn whoever_closes_all_its_files_is_still_found() {
    check(
        "setsid sh -c 'echo $$ >> pids; exec 0<&- 1>&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec sleep 1000' & \
         until [ -s pids ]; do :; done",
        1,
    );
}

#[test]
fn what_is_left_behind_is_named() {
    in_every_way(|node| {
        let order =
            node.script("setsid sleep 1000 & until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done; exit 0");
        let (over, told) = node.run(&order);
        assert_eq!((over.outcome, told.left_behind), (Outcome::Succeeded, vec!["sleep".to_owned()]));
        assert!(!told.ignored_term);
    });
}

#[test]
fn whoever_ignores_the_request_to_end_is_said_to_have() {
    in_every_way(|node| {
        let script = "trap '' TERM; echo up > up; while :; do sleep 0.02; done";
        let order = Order { grace: Duration::from_millis(50), ..node.script(script) };
        let run = node.start(&order);
        node.line("up");
        node.shims.stop(run, Outcome::TimedOut);
        let (over, told) = node.ended(run);
        assert_eq!((over.outcome, over.exit_code), (Outcome::TimedOut, None));
        assert_eq!((told.reason, told.signal), (Some(EndReason::TimeLimit), Some(9)));
        assert!(told.ignored_term);
        let polite = Order { grace: Duration::from_secs(20), ..node.script("echo on > on; exec sleep 1000") };
        let run = node.start(&polite);
        node.line("on");
        node.shims.stop(run, Outcome::Cancelled);
        let (_, told) = node.ended(run);
        assert_eq!((told.reason, told.ignored_term), (Some(EndReason::Cancelled), false));
        std::fs::remove_file(node.work.0.join("up")).unwrap();
    });
}

#[test]
fn whoever_holds_the_pipe_holds_nothing_up() {
    in_every_way(|node| {
        let order = node.script("setsid sleep 1000 & echo last");
        let (over, _) = node.run(&order);
        assert_eq!(over.outcome, Outcome::Succeeded);
        assert_eq!(node.log(order.run), "last\n");
    });
}

#[test]
fn a_flood_of_output_is_taken_and_the_run_is_not_held_up() {
    in_every_way(|node| {
        let order =
            Order { output_max: 100_000, ..node.script("yes 0123456789 | head -n 500000; echo the end") };
        let (over, told) = node.run(&order);
        assert_eq!(over.outcome, Outcome::Succeeded);
        assert_eq!(told.output_bytes, 11 * 500_000 + 8);
        let log = node.log(order.run);
        assert!(log.ends_with("0123456789\nthe end\n"), "{}", &log[log.len() - 100..]);
        assert!(log.contains(&format!("[evenbeat] {} bytes left out\n", told.left_out_bytes)));
        assert!(log.len() < 100_100);
    });
}

#[test]
fn a_run_that_forks_for_ever_is_ended() {
    in_every_way(|node| {
        let script = "echo $$ >> pids; trap '' TERM; \
                      while :; do (trap '' TERM; echo $(exec sh -c 'echo $PPID') >> pids; sleep 0.05) & sleep 0.005; done";
        let order = Order { grace: Duration::from_millis(50), ..node.script(script) };
        node.start(&order);
        until("a few are there", || 20 < node.file("pids").lines().count());
        node.shims.stop(order.run, Outcome::TimedOut);
        let (over, _) = node.ended(order.run);
        assert_eq!(over.outcome, Outcome::TimedOut);
        assert_eq!(pids(node).into_iter().filter(|pid| is_alive(*pid)).count(), 0);
        let n_then = node.file("pids").lines().count();
        crate::command_target::node::stays(100, || node.file("pids").lines().count());
        assert_eq!(node.file("pids").lines().count(), n_then);
    });
}

#[test]
fn children_that_nobody_waits_for_do_not_pile_up() {
    in_every_way(|node| {
        let order = node.script(
            "for i in 1 2 3 4 5; do (setsid sleep 0.01 &) ; done; while [ ! -e go ]; do sleep 0.02; done",
        );
        let run = node.start(&order);
        node.started(run);
        let shim = crate::command_target::node::shim_of(run);
        let n_zombies = || {
            let pids = std::fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .filter_map(|it| it.file_name().to_str()?.parse().ok());
            let is_zombie_of_it = |pid: &i32| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                stat.contains(&format!(") Z {shim} "))
            };
            pids.filter(is_zombie_of_it).count()
        };
        until("all have been waited for", || processes_of(run).len() <= 3 && n_zombies() == 0);
        std::fs::write(node.work.0.join("go"), "").unwrap();
        node.ended(run);
        std::fs::remove_file(node.work.0.join("go")).unwrap();
    });
}

/// What `sudo` and its like leave behind. Only root can make such a program, so only root can test it.
#[test]
fn a_process_of_another_user_that_cannot_be_killed_is_reported_and_holds_its_job() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let node = Node::new(Way::Signals);
    let (shims, mut news) = shims_of_nobody(&node);
    let become_root = node.work.0.join("become");
    std::fs::copy("/usr/bin/setpriv", &become_root).unwrap();
    std::fs::set_permissions(&become_root, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    let script = "echo up > up; while [ ! -e go ]; do sleep 0.01; done";
    let script = format!("{} --reuid 0 --clear-groups /bin/sh -c '{script}'", become_root.display());
    let bounds = Bounds { kill: Duration::ZERO, ..node.script("").bounds };
    let first = Order { bounds, grace: Duration::from_millis(50), ..node.script(&script) };
    let next = Order { key: first.key.clone(), ..node.script("exit 0") };
    let mut heard = Vec::new();
    let mut hears = |is_it: &dyn Fn(&RunNews) -> bool| {
        while let Ok(it) = news.try_recv() {
            heard.push(it);
        }
        heard.iter().any(is_it)
    };
    shims.start(first.clone());
    node.line("up");
    shims.stop(first.run, Outcome::Cancelled);
    until("it is reported", || hears(&|it| *it == RunNews::Unkillable { run: first.run }));
    shims.start(next.clone());
    until("the next shim is there", || node.places.run(next.run).join("sock").exists());
    let is_over = |it: &RunNews| matches!(it, RunNews::Ended { .. }) || it.run() == next.run;
    crate::command_target::node::stays(300, || hears(&is_over));
    assert!(!hears(&is_over), "its job was released");
    std::fs::write(node.work.0.join("go"), "").unwrap();
    for run in [first.run, next.run] {
        until("both end", || hears(&|it| it.run() == run && matches!(it, RunNews::Ended { .. })));
    }
}

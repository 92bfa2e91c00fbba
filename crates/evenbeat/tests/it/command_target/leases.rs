//! Leases: what happens when they end, are extended, or are taken away.

use evenbeat::testing::target::RunNews;
use evenbeat::testing::target::command::{Bounds, Order};
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use rustix::process::Signal;

use crate::command_target::node::{
    Node, OtherCgroup, Way, in_a_cgroup, in_every_way, in_millis, is_alive, kill, let_go_on, processes_of,
    shim_of, state, stays, until,
};

/// Counts in a file for as long as it executes.
const COUNTS: &str = "while :; do echo x >> count; sleep 0.005; done";

fn leased(order: Order, millis: i64) -> Order {
    Order { lease_until: Some(in_millis(millis)), ..order }
}

fn count(node: &Node) -> usize {
    node.file("count").len()
}

#[track_caller]
fn counts_on(node: &Node) {
    let before = count(node);
    until("it counts on", || before < count(node));
}

/// Extends a lease until something is so, then lets it end; since when nothing executes.
#[track_caller]
fn freezes_once(node: &mut Node, run: RunId, what: &str, is_so: impl Fn(&Node) -> bool) -> BootTime {
    let mut lease_until = in_millis(0);
    until(what, || {
        lease_until = in_millis(500);
        node.shims.extend(lease_until);
        is_so(node)
    });
    node.hear(run, |news| match news {
        // On a busy machine it may have been frozen before, too.
        RunNews::Frozen { at, .. } if lease_until <= *at => Some(*at),
        _ => None,
    })
}

#[test]
fn a_run_stands_still_when_its_lease_is_over_and_goes_on_when_it_is_extended() {
    in_every_way(|node| {
        let order = leased(node.script(COUNTS), 1_500);
        let run = node.start(&order);
        node.started(run);
        let frozen_at = freezes_once(node, run, "it counts", |node| 0 < count(node));
        stays(150, || count(node));
        node.extend(60_000);
        let thawed_at = node.hear(run, |news| match news {
            RunNews::Thawed { at, .. } if frozen_at <= *at => Some(*at),
            _ => None,
        });
        counts_on(node);
        node.shims.stop(run, Outcome::Cancelled);
        let (over, _) = node.ended(run);
        let before: i64 = node.heard(run).iter().map(signed_instant).sum();
        assert_eq!(over.frozen_for, thawed_at - frozen_at + Duration::from_millis(before));
        assert_eq!(over.outcome, Outcome::Cancelled);
    });
}

/// So that the sum over freezes and thaws is how long it stood still.
fn signed_instant(news: &RunNews) -> i64 {
    match news {
        RunNews::Frozen { at, .. } => -at.as_millis(),
        RunNews::Thawed { at, .. } => at.as_millis(),
        _ => 0,
    }
}

#[test]
fn children_that_hide_stand_still_too() {
    in_every_way(|node| {
        let script = format!("(setsid sh -c 'echo up >> up; {COUNTS}' &); sh -c 'echo up >> up; {COUNTS}'");
        let order = leased(node.script(&script), 1_500);
        let run = node.start(&order);
        node.started(run);
        freezes_once(node, run, "both are up", |node| node.file("up").lines().count() == 2);
        stays(150, || count(node));
        node.shims.revoke(run);
        assert_eq!(node.ended(run).0.outcome, Outcome::Lost);
    });
}

/// What `systemd-run --scope` and container tools do: a process of the run moves to a cgroup that is not the run's.
fn moved_to(other: &OtherCgroup, script: &str) -> String {
    format!("echo 0 > {}; {script}", other.procs().display())
}

#[test]
fn a_process_that_left_the_cgroup_of_its_run_stands_still_too() {
    in_a_cgroup(|node| {
        let order = leased(node.script(""), 1_500);
        let other = OtherCgroup::new(&order);
        let script = format!("sh -c '{}' & sh -c '{COUNTS}'", moved_to(&other, "echo up > up; exec sh beat"));
        std::fs::write(node.work.0.join("beat"), "while :; do echo x >> beats; sleep 0.005; done").unwrap();
        let argv = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
        let order = Order { argv, ..order };
        let run = node.start(&order);
        let beats = |node: &Node| node.file("beats").len();
        freezes_once(node, run, "both are up", |node| 0 < count(node) && 0 < beats(node));
        stays(300, || (count(node), beats(node)));
        node.extend(60_000);
        node.thawed(run);
        counts_on(node);
        let before = beats(node);
        until("what moved away goes on too", || before < beats(node));
        node.shims.revoke(run);
        assert_eq!(node.ended(run).0.outcome, Outcome::Lost);
        let after = beats(node);
        stays(60, || beats(node));
        assert_eq!(beats(node), after);
    });
}

#[test]
fn a_frozen_process_that_is_moved_to_another_cgroup_does_not_go_on() {
    in_a_cgroup(|node| {
        let script = "import os, time\n\
                      open('pid', 'w').write(f'{os.getpid()}\\n')\n\
                      while True:\n \
                       open('count', 'a').write('x'); time.sleep(0.002)\n";
        let order = leased(node.command(&["/usr/bin/env", "python3", "-c", script]), 1_500);
        let other = OtherCgroup::new(&order);
        let run = node.start(&order);
        let pid = node.line("pid");
        freezes_once(node, run, "it counts", |node| 0 < count(node));
        let then = count(node);
        // A service manager, for example, may move it out of the frozen cgroup.
        std::fs::write(other.procs(), &pid).unwrap();
        stays(500, || count(node));
        assert_eq!(count(node), then);
        node.extend(60_000);
        counts_on(node);
        node.shims.revoke(run);
        node.ended(run);
    });
}

#[test]
fn threads_stand_still_too() {
    in_every_way(|node| {
        let script = "import threading, time, sys\n\
                      def count():\n \
                       while True:\n  \
                        open('count', 'a').write('x'); time.sleep(0.002)\n\
                      for _ in range(3): threading.Thread(target=count, daemon=False).start()\n";
        let order = leased(node.command(&["/usr/bin/env", "python3", "-c", script]), 1_500);
        let run = node.start(&order);
        node.started(run);
        freezes_once(node, run, "it counts", |node| 0 < count(node));
        stays(100, || count(node));
        node.extend(60_000);
        counts_on(node);
        node.shims.revoke(run);
        node.ended(run);
    });
}

#[test]
fn whoever_lets_a_frozen_run_go_on_by_hand_does_not_get_far() {
    in_every_way(|node| {
        let order = leased(node.script(&format!("echo $$ > pid; {COUNTS}")), 1_500);
        let run = node.start(&order);
        let pid: i32 = node.line("pid").parse().unwrap();
        freezes_once(node, run, "it counts", |node| 0 < count(node));
        for _ in 0..3 {
            for process in processes_of(run).into_iter().filter(|it| *it != shim_of(run)) {
                let_go_on(process);
            }
            // A shell may wait inside the kernel for a child that was stopped before it became another program.
            let stands = || matches!(state(pid), Some('T' | 'D'));
            until("it stands still again", || order.cgroup.is_some() || stands());
        }
        // In time for the next look at the latest.
        let looked_at = in_millis(300);
        until("it was looked at", || looked_at < evenbeat::testing::target::command::boot::now());
        stays(100, || count(node));
        node.extend(60_000);
        counts_on(node);
        node.shims.revoke(run);
        node.ended(run);
    });
}

#[test]
fn a_shim_that_stood_still_freezes_its_run_as_soon_as_it_goes_on() {
    in_every_way(|node| {
        let order = leased(node.script(&format!("echo up > up; {COUNTS}")), 1_500);
        let run = node.start(&order);
        node.line("up");
        let shim = shim_of(run);
        kill(shim, Signal::STOP);
        let lease_until = order.lease_until.unwrap();
        until("its lease is over", || lease_until < evenbeat::testing::target::command::boot::now());
        kill(shim, Signal::CONT);
        assert!(lease_until <= node.frozen(run));
        stays(100, || count(node));
        node.shims.revoke(run);
        node.ended(run);
    });
}

#[test]
fn a_lease_that_is_extended_in_time_is_never_over() {
    in_every_way(|node| {
        let order = leased(node.script(COUNTS), 2_500);
        let run = node.start(&order);
        node.started(run);
        let until_then = in_millis(3_000);
        until("longer than the first lease", || {
            node.extend(5_000);
            until_then < evenbeat::testing::target::command::boot::now()
        });
        counts_on(node);
        assert_eq!(node.heard(run), []);
        node.shims.revoke(run);
        assert_eq!(node.ended(run).0.frozen_for, Duration::ZERO);
    });
}

#[test]
fn a_run_whose_lease_is_over_never_begins() {
    in_every_way(|node| {
        let order = leased(node.script("touch ran"), -1);
        let run = node.start(&order);
        assert_eq!(node.not_started(run), "its lease was over before it could begin");
        assert!(!node.work.0.join("ran").exists());
        until("nothing lies about", || !node.places.run(run).exists());
    });
}

#[test]
fn an_extension_for_another_fence_is_none() {
    in_every_way(|node| {
        let order = leased(node.script(COUNTS), 1_500);
        let run = node.start(&order);
        node.frozen(run);
        // A holder with another fence is not its owner.
        node.next_life();
        node.adopt(&[&Order { fence: Fence(8), ..order.clone() }]);
        node.frozen(run);
        node.extend(60_000);
        stays(100, || count(node));
        node.next_life();
        node.adopt(&[&order]);
        node.extend(60_000);
        node.thawed(run);
        counts_on(node);
        node.shims.revoke(run);
        node.ended(run);
    });
}

#[test]
fn a_run_without_a_lease_is_never_frozen() {
    in_every_way(|node| {
        let order = node.script(COUNTS);
        let run = node.start(&order);
        node.started(run);
        node.extend(-5_000);
        counts_on(node);
        counts_on(node);
        assert_eq!(node.heard(run), []);
        node.shims.revoke(run);
        node.ended(run);
    });
}

#[test]
fn a_run_that_is_revoked_is_killed_and_lost() {
    in_every_way(|node| {
        let order = leased(node.script(&format!("trap '' TERM; echo $$ > pid; {COUNTS}")), 60_000);
        let run = node.start(&order);
        let pid: i32 = node.line("pid").parse().unwrap();
        node.shims.revoke(run);
        node.extend(90_000);
        let (over, told) = node.ended(run);
        assert_eq!((over.outcome, over.exit_code), (Outcome::Lost, None));
        assert_eq!((told.reason, told.error), (Some(EndReason::Revoked), None));
        assert!(!is_alive(pid));
    });
}

#[test]
fn a_frozen_run_that_is_stopped_is_killed_at_once() {
    in_every_way(|node| {
        let order = leased(node.script(&format!("trap 'touch asked; exit 0' TERM; {COUNTS}")), 1_500);
        let run = node.start(&order);
        let frozen_at = node.frozen(run);
        stays(60, || count(node));
        node.shims.stop(run, Outcome::TimedOut);
        let (over, _) = node.ended(run);
        assert_eq!(over.outcome, Outcome::TimedOut);
        assert_eq!(over.frozen_for, over.ended_at - frozen_at);
        assert!(!node.work.0.join("asked").exists(), "it executed again");
    });
}

#[test]
fn a_run_that_is_being_stopped_when_its_lease_ends_is_killed() {
    in_every_way(|node| {
        let order = leased(node.script(&format!("trap '' TERM; echo up > up; {COUNTS}")), 2_500);
        let run = node.start(&order);
        node.line("up");
        node.shims.stop(run, Outcome::Blackout);
        let (over, _) = node.ended(run);
        assert_eq!(over.outcome, Outcome::Blackout);
        assert!(over.ended_at - over.started_at < order.grace, "nobody waited for the grace");
    });
}

#[test]
fn a_run_is_not_frozen_for_ever() {
    in_every_way(|node| {
        let bounds = Bounds { max_frozen: Duration::from_millis(150), ..node.script("").bounds };
        let order = Order { bounds, ..leased(node.script(COUNTS), 1_500) };
        let run = node.start(&order);
        node.frozen(run);
        let (over, told) = node.ended(run);
        assert_eq!(over.outcome, Outcome::Failed);
        let limit = "commands.max_frozen 150ms".to_owned();
        assert_eq!((told.reason, told.limit), (Some(EndReason::FrozenTooLong), Some(limit)));
    });
}

/// Makes a child in a session of its own and ends, over and over, for two seconds, four times beside each other: hard
/// to catch at the first look.
const HARD_TO_CATCH: &str = "import os, time\n\
    end = time.time() + 2\n\
    open('up', 'w').write('up\\n')\n\
    for _ in range(4):\n \
     if os.fork() == 0:\n  \
      while time.time() < end:\n   \
       if os.fork(): os._exit(0)\n   \
       os.setsid()\n  \
      os._exit(0)\n\
    time.sleep(1000)\n";

#[test]
fn a_run_that_cannot_be_frozen_in_time_is_killed() {
    let mut node = Node::new(Way::Signals);
    // Only one look is given. Now and then it is caught all the same; then the next one is tried.
    let bounds = Bounds { freeze: Duration::ZERO, ..node.script("").bounds };
    let killed = (0..20).find_map(|_| {
        let order = leased(node.command(&["/usr/bin/env", "python3", "-c", HARD_TO_CATCH]), 1_000);
        let run = node.start(&Order { bounds, ..order });
        let told = node.hear(run, |news| match news {
            RunNews::Frozen { .. } => Some(None),
            RunNews::Ended { over, told, .. } => Some(Some((over.outcome, told.reason, told.limit.clone()))),
            _ => None,
        });
        node.shims.revoke(run);
        told
    });
    let limit = Some("lease.freeze_bound 0s".to_owned());
    assert_eq!(killed, Some((Outcome::Failed, Some(EndReason::NotFrozen), limit)));
}

#[test]
fn a_kill_that_takes_too_long_is_told_and_the_end_still_comes() {
    let mut node = Node::new(Way::Signals);
    let bounds = Bounds { kill: Duration::ZERO, ..node.script("").bounds };
    let was_told = (0..20).any(|_| {
        let order = Order { bounds, ..node.command(&["/usr/bin/env", "python3", "-c", HARD_TO_CATCH]) };
        let run = node.start(&order);
        node.line("up");
        std::fs::remove_file(node.work.0.join("up")).unwrap();
        node.shims.revoke(run);
        assert_eq!(node.ended(run).0.outcome, Outcome::Lost);
        node.heard(run).contains(&RunNews::Unkillable { run })
    });
    assert!(was_told);
}

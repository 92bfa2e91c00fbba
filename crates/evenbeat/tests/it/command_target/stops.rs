//! Ending in good order: asked, asked again, killed.

use evenbeat::testing::target::command::Order;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::Duration;

use crate::command_target::node::{in_every_way, is_alive, until};

#[test]
fn a_run_that_is_asked_may_end_by_itself_and_has_the_outcome_that_was_asked_for() {
    in_every_way(|node| {
        let order = node.script("trap 'echo asked; exit 0' TERM; echo up > up; while :; do sleep 0.01; done");
        let run = node.start(&order);
        node.line("up");
        node.shims.stop(run, Outcome::TimedOut);
        let (over, told) = node.ended(run);
        assert_eq!((over.outcome, over.exit_code), (Outcome::TimedOut, None));
        assert_eq!(told.exit_code, Some(0), "for people");
        assert!(node.log(run).contains("asked\n"));
    });
}

#[test]
fn it_is_asked_twice_and_then_killed() {
    in_every_way(|node| {
        let script = "trap 'echo asked >> asked' TERM; echo up > up; while :; do sleep 0.01; done";
        let order = Order { grace: Duration::from_millis(600), ..node.script(script) };
        let run = node.start(&order);
        node.line("up");
        let asked_at = evenbeat::testing::target::command::boot::now();
        node.shims.stop(run, Outcome::Cancelled);
        let (over, told) = node.ended(run);
        assert_eq!(over.outcome, Outcome::Cancelled);
        assert_eq!(told.signal, Some(9));
        assert_eq!(node.file("asked"), "asked\nasked\n");
        assert!(asked_at + order.grace <= over.ended_at, "it had its whole grace");
    });
}

#[test]
fn the_second_time_is_at_half_of_the_grace() {
    in_every_way(|node| {
        let script =
            "n=0; trap 'n=$((n+1)); [ $n = 2 ] && exit 0' TERM; echo up > up; while :; do sleep 0.01; done";
        let order = Order { grace: Duration::from_secs(2), ..node.script(script) };
        let run = node.start(&order);
        node.line("up");
        let asked_at = evenbeat::testing::target::command::boot::now();
        node.shims.stop(run, Outcome::Cancelled);
        let (over, told) = node.ended(run);
        assert_eq!(told.exit_code, Some(0), "{told:?}");
        assert!(asked_at + Duration::from_secs(1) <= over.ended_at);
    });
}

#[test]
fn the_whole_group_is_asked() {
    in_every_way(|node| {
        let script = "sh -c 'trap \"echo child >> asked; exit\" TERM; echo up > up; while :; do sleep 0.01; done' & \
                      trap 'echo parent >> asked; wait; exit' TERM; wait";
        let order = node.script(script);
        let run = node.start(&order);
        node.line("up");
        node.shims.stop(run, Outcome::Cancelled);
        node.ended(run);
        let asked = node.file("asked");
        assert!(asked.contains("child") && asked.contains("parent"), "{asked}");
    });
}

#[test]
fn the_first_outcome_stays() {
    in_every_way(|node| {
        let order = node.script("trap 'sleep 0.2; exit 1' TERM; echo up > up; while :; do sleep 0.01; done");
        let run = node.start(&order);
        node.line("up");
        node.shims.stop(run, Outcome::TimedOut);
        node.shims.stop(run, Outcome::Cancelled);
        assert_eq!(node.ended(run).0.outcome, Outcome::TimedOut);
    });
}

#[test]
fn nobody_is_left_whatever_the_first_process_does() {
    in_every_way(|node| {
        let script = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' & \
                      trap 'exit 0' TERM; while :; do sleep 0.01; done";
        let order = Order { grace: Duration::from_millis(300), ..node.script(script) };
        let run = node.start(&order);
        let pid: i32 = node.line("pid").parse().unwrap();
        node.shims.stop(run, Outcome::Cancelled);
        node.ended(run);
        assert!(!is_alive(pid));
        until("the group is gone", || crate::command_target::node::processes_of(run).is_empty());
    });
}

#[test]
fn whoever_is_left_when_the_first_is_gone_keeps_the_grace_and_is_asked_once() {
    in_every_way(|node| {
        let waits = |name: &str| {
            format!(
                "trap 'echo {name} >> asked; sleep 0.3; echo {name} >> done; exit' TERM; echo up >> up; while :; do sleep 0.01; done"
            )
        };
        let script = format!("sh -c \"{}\" & setsid sh -c \"{}\" & wait", waits("group"), waits("other"));
        let order = node.script(&script);
        let run = node.start(&order);
        until("both are up", || node.file("up") == "up\nup\n");
        node.shims.stop(run, Outcome::Cancelled);
        let (over, told) = node.ended(run);
        assert_eq!((over.outcome, told.signal), (Outcome::Cancelled, Some(15)));
        let lines = |name: &str| {
            let text = node.file(name);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(
            (lines("asked"), lines("done")),
            (vec!["group".to_owned(), "other".to_owned()], lines("asked"))
        );
    });
}

//! How runs begin and end if nothing interferes.

use evenbeat::testing::target::RunNews;
use evenbeat::testing::target::command::{Order, ResourceLimits};
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::Duration;

use crate::command_target::node::{Node, Way, boot_between, env_of, in_every_way};

#[track_caller]
fn check(script: &str, outcome: Outcome, exit_code: i32) {
    in_every_way(|node| {
        let order = node.script(script);
        let (over, told) = node.run(&order);
        assert_eq!((over.outcome, over.exit_code), (outcome, Some(exit_code)), "{told:?}");
        assert_eq!(told.exit_code, Some(exit_code));
    });
}

#[test]
fn the_exit_code_decides() {
    check("exit 0", Outcome::Succeeded, 0);
    check("exit 3", Outcome::Failed, 3);
    check("kill -SEGV $$", Outcome::Failed, 139);
}

#[test]
fn a_signal_is_told() {
    in_every_way(|node| {
        let order = node.script("kill -KILL $$");
        let (_, told) = node.run(&order);
        assert_eq!((told.exit_code, told.signal), (Some(137), Some(9)));
        assert_eq!((told.reason, told.error), (Some(EndReason::Signal), None));
    });
}

#[test]
fn started_comes_before_ended_and_the_clock_agrees() {
    in_every_way(|node| {
        let order = node.script("echo done");
        let before = evenbeat::testing::target::command::boot::now();
        let (over, told) = node.run(&order);
        let started_at = node.started(order.run);
        assert_eq!(started_at, over.started_at);
        assert!(boot_between(before, over.started_at, over.ended_at));
        assert_eq!((told.output_bytes, told.left_out_bytes), (5, 0));
        assert_eq!(over.frozen_for, Duration::ZERO);
        assert_eq!(node.log(order.run), "done\n");
        assert_eq!(node.heard(order.run), []);
    });
}

#[track_caller]
fn check_start(order: impl Fn(&Node) -> Order, error: &str, exit_code: i32) {
    in_every_way(|node| {
        let order = order(node);
        let (over, told) = node.run(&order);
        let error = error.replace("WORK", node.work.0.to_str().unwrap());
        assert_eq!(told.error.as_deref(), Some(error.as_str()));
        assert_eq!((over.outcome, over.exit_code), (Outcome::Failed, Some(exit_code)));
        assert_eq!(node.started(order.run), over.started_at);
        assert_eq!(node.log(order.run), format!("[evenbeat] {error}\n"));
    });
}

#[test]
fn a_program_that_cannot_be_started_is_a_failure_in_words() {
    check_start(
        |node| node.command(&["/nowhere/foo", "x"]),
        "cannot start `/nowhere/foo`: No such file or directory",
        127,
    );
    check_start(
        |node| node.command(&["no-such-program"]),
        "cannot start `no-such-program`: No such file or directory",
        127,
    );
    check_start(|node| node.command(&["/etc/passwd"]), "cannot start `/etc/passwd`: Permission denied", 126);
    check_start(|node| node.command(&["/tmp"]), "cannot start `/tmp`: Permission denied", 126);
    check_start(
        |node| Order { cwd: "/nowhere".to_owned(), ..node.script("exit 0") },
        "cannot start in `/nowhere`: No such file or directory",
        126,
    );
}

#[test]
fn what_may_not_run_fails_in_words() {
    in_every_way(|node| {
        let order = Order { refused: Some("shells are not allowed".to_owned()), ..node.script("touch ran") };
        let (over, told) = node.run(&order);
        assert_eq!((over.outcome, over.exit_code), (Outcome::Failed, None));
        assert_eq!(told.error.as_deref(), Some("shells are not allowed"));
        assert!(!node.work.0.join("ran").exists());
    });
}

#[test]
fn a_run_has_the_environment_that_it_was_given_and_nothing_else() {
    in_every_way(|node| {
        let mut order = node.command(&["/usr/bin/env"]);
        order.env.insert("ODD".to_owned(), "a \"b\" ä".to_owned());
        node.run(&order);
        assert_eq!(env_of(&node.log(order.run)), order.env);
    });
}

#[test]
fn a_run_reads_what_it_was_given() {
    in_every_way(|node| {
        let text = "{\"a\":1}".repeat(50_000);
        let order = Order { stdin: Some(text.clone()), ..node.script("wc -c; exec cat 0<&-") };
        node.run(&order);
        assert_eq!(node.log(order.run).lines().next(), Some(text.len().to_string().as_str()));
        let order = node.script("wc -c");
        node.run(&order);
        assert_eq!(node.log(order.run).trim(), "0");
    });
}

#[test]
fn input_that_nobody_reads_holds_nothing_up() {
    in_every_way(|node| {
        let order = Order { stdin: Some("x".repeat(1 << 20)), ..node.script("exit 4") };
        assert_eq!(node.run(&order).0.exit_code, Some(4));
    });
}

#[track_caller]
fn check_result(script: &str, result: Option<&str>, error: Option<&str>) {
    in_every_way(|node| {
        let order = node.script(script);
        let (over, told) = node.run(&order);
        assert_eq!(over.outcome, Outcome::Succeeded, "a result decides nothing here");
        assert_eq!(told.result.map(|it| serde_json::Value::Object(it).to_string()).as_deref(), result);
        assert_eq!(told.error.as_deref(), error);
    });
}

#[test]
fn an_error_in_the_result_file_is_the_error_of_the_run() {
    in_every_way(|node| {
        let order = node.script("echo '{\"error\": \"login page changed\"}' > $EVENBEAT_RESULT_FILE; exit 4");
        let (over, told) = node.run(&order);
        assert_eq!((over.exit_code, told.error.as_deref()), (Some(4), Some("login page changed")));
    });
}

#[test]
fn the_last_line_of_standard_error_is_told() {
    in_every_way(|node| {
        let order = node.script("echo fine; echo first >&2; printf 'ValueError: no price\\n\\n' >&2; exit 1");
        let (_, told) = node.run(&order);
        assert_eq!((told.reason, told.exit_code), (Some(EndReason::ExitCode), Some(1)));
        assert_eq!(told.last_error_line.as_deref(), Some("ValueError: no price"));
        let log = node.log(order.run);
        let mut lines: Vec<&str> = log.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["[stderr] ", "[stderr] ValueError: no price", "[stderr] first", "fine"]);
        assert_eq!(told.output_bytes, 5 + 6 + 22);
    });
}

#[test]
fn a_run_may_say_what_it_has_done() {
    check_result("true", None, None);
    check_result("echo '{\"pages\": 3}' > $EVENBEAT_RESULT_FILE", Some("{\"pages\":3}"), None);
}

#[test]
fn a_result_that_is_none_is_told_and_forgiven() {
    check_result("echo '[1]' > $EVENBEAT_RESULT_FILE", None, Some("the result file is not a JSON object"));
    check_result(": > $EVENBEAT_RESULT_FILE", None, Some("the result file is not a JSON object"));
    check_result("mkfifo $EVENBEAT_RESULT_FILE", None, Some("the result file is not a regular file"));
    check_result(
        "head -c 70000 /dev/zero > $EVENBEAT_RESULT_FILE",
        None,
        Some("the result file is longer than 65536 bytes"),
    );
    check_result(
        "ln -s /etc/passwd $EVENBEAT_RESULT_FILE",
        None,
        Some("the result file cannot be read: Too many levels of symbolic links (os error 40)"),
    );
}

#[test]
fn a_run_starts_clean_whatever_its_shim_is_like() {
    in_every_way(|node| {
        let order = Order {
            limits: ResourceLimits { n_files: Some(77), address_space: Some(1 << 32), ..ResourceLimits::default() },
            ..node.script(
                "ulimit -n; ulimit -v; ulimit -c; umask; ls /proc/self/fd | wc -l; pwd; \
                 grep -E '^Sig(Blk|Ign)|^ShdPnd' /proc/self/status | cut -f2; cut -d' ' -f1,5,6 /proc/$$/stat; echo $$",
            )
        };
        node.run(&order);
        let log = node.log(order.run);
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(&lines[..3], ["77", "4194304", "0"], "{log}");
        let umask = rustix::process::umask(rustix::fs::Mode::empty());
        rustix::process::umask(umask);
        assert_eq!(lines[3], format!("{:04o}", umask.bits()));
        // Standard input, output, error, the lock, and the folder that `ls` itself reads.
        assert_eq!(lines[4], "5");
        assert_eq!(lines[5], node.work.0.to_str().unwrap());
        // The C library reserves two signals for itself.
        let own = 0b11_u64 << 31;
        for (line, what) in lines[6..9].iter().zip(["pending", "blocked", "ignored"]) {
            assert_eq!(u64::from_str_radix(line, 16).unwrap() & !own, 0, "{what}");
        }
        let pid = lines[10];
        assert_eq!(lines[9], format!("{pid} {pid} {pid}"), "a session and a group of its own");
    });
}

#[test]
fn how_much_a_run_used_is_told() {
    let mut node = Node::new(Way::Signals);
    let order = node
        .script("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; while [ ! -e go ]; do sleep 0.02; done");
    node.start(&order);
    node.started(order.run);
    let looked_at = evenbeat::testing::target::command::boot::now() + Duration::from_millis(400);
    crate::command_target::node::until("time to look", || {
        looked_at < evenbeat::testing::target::command::boot::now()
    });
    std::fs::write(node.work.0.join("go"), "").unwrap();
    let (_, told) = node.ended(order.run);
    assert!(Duration::ZERO < told.cpu, "{told:?}");
    assert!(told.max_rss_kib.is_some_and(|it| 100 < it), "{told:?}");
}

#[test]
fn a_shim_that_cannot_be_started_is_told() {
    let mut node = Node::new(Way::Signals);
    std::fs::remove_dir(node.places.runs()).unwrap();
    let order = node.script("exit 0");
    node.start(&order);
    assert!(node.not_started(order.run).starts_with("its shim cannot be started: "));
}

#[test]
fn whoever_wants_an_end_hears_that_there_is_nothing_to_be_ended() {
    let mut node = Node::new(Way::Signals);
    let run = crate::command_target::node::new_run();
    node.shims.stop(run, Outcome::Cancelled);
    node.not_started(run);
    node.shims.revoke(run);
    node.not_started(run);
    assert_eq!(node.heard(run), Vec::<RunNews>::new());
}

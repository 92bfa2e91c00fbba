//! What runs write, while they run and afterwards.

use evenbeat::testing::target::command::{Order, read_log};
use evenbeat_core::run::Outcome;

use crate::command_target::node::{in_every_way, until};

#[test]
fn a_log_can_be_read_while_it_grows() {
    in_every_way(|node| {
        let order = node.script("echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2");
        let run = node.start(&order);
        node.started(run);
        let mut reader = read_log(&node.places, run, 0);
        let mut text = Vec::new();
        until("the first line", || {
            let chunk = reader.next(100);
            assert!(!chunk.is_over);
            text.extend(chunk.bytes);
            text == b"one\n"
        });
        std::fs::write(node.work.0.join("go"), "").unwrap();
        until("the end", || {
            let chunk = reader.next(100);
            text.extend(chunk.bytes);
            chunk.is_over
        });
        assert_eq!(text, b"one\n[stderr] two\n");
        node.ended(run);
        std::fs::remove_file(node.work.0.join("go")).unwrap();
    });
}

#[test]
fn a_log_outlives_what_lies_about_of_its_run() {
    in_every_way(|node| {
        let order = node.script("echo kept");
        node.run(&order);
        node.shims.forget(order.run);
        until("it is forgotten", || !node.places.run(order.run).exists());
        assert_eq!(node.log(order.run), "kept\n");
        assert!(read_log(&node.places, order.run, 5).next(10).is_over);
    });
}

#[test]
fn a_disk_that_takes_nothing_stops_the_log_and_never_the_run() {
    in_every_way(|node| {
        let logs = node.data().join("logs");
        std::fs::remove_dir_all(&logs).unwrap();
        std::fs::write(&logs, "in the way").unwrap();
        let order = Order { output_max: 1_000, ..node.script("yes | head -n 100000; exit 5") };
        let (over, told) = node.run(&order);
        assert_eq!((over.outcome, over.exit_code), (Outcome::Failed, Some(5)));
        assert_eq!((told.output_bytes, told.left_out_bytes), (200_000, 200_000));
    });
}

#[test]
fn logs_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    in_every_way(|node| {
        let order = Order { output_max: 1_000, ..node.script("yes | head -n 1000") };
        node.run(&order);
        for path in [
            node.places.log(order.run),
            node.places.log_tail(order.run, 0),
            node.places.log_tail(order.run, 1),
        ] {
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600,
                "{}",
                path.display()
            );
        }
    });
}

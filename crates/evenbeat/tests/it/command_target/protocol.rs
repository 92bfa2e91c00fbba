//! What a shim hears: from whom, and what it makes of nonsense.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use evenbeat::testing::socket_path::SocketPath;
use evenbeat_core::run::Outcome;

use crate::command_target::node::{Node, in_every_way, in_millis, stays};

const WAITS: &str = "while [ ! -e go ]; do sleep 0.01; done";

fn connect(node: &Node, run: evenbeat_core::ids::RunId) -> BufReader<UnixStream> {
    let socket = SocketPath::to(&node.places.run(run).join("sock")).unwrap();
    BufReader::new(UnixStream::connect(socket.short()).unwrap())
}

fn line(stream: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

fn say(stream: &BufReader<UnixStream>, bytes: &[u8]) {
    stream.get_ref().write_all(bytes).unwrap();
}

#[test]
fn nonsense_is_noted_and_nothing_else() {
    in_every_way(|node| {
        let order = node.script(WAITS);
        let run = node.start(&order);
        let began_at = node.started(run);
        let mut stream = connect(node, run);
        assert_eq!(line(&mut stream), format!("started {}\n", began_at.as_millis()));
        say(&stream, b"\n\xff\xfe\x00\nREVOKE\nstop\nstop nonsense 5\nextend x y\nextend 1 8\nrevoke now\n");
        say(&stream, &[b'x'; 10_000]);
        say(&stream, b"\nstop cancelled 5000\n");
        let ended = line(&mut stream);
        assert!(ended.starts_with("ended {") && ended.contains("\"outcome\":\"cancelled\""), "{ended}");
        let log = node.log(run);
        assert!(log.contains("[evenbeat] unknown message to the shim: `REVOKE`\n"), "{log}");
        assert!(log.contains("[evenbeat] unknown message to the shim: `revoke now`\n"), "{log}");
        assert!(log.contains("[evenbeat] a message to the shim was too long\n"), "{log}");
        assert!(log.is_ascii() || log.contains('\u{fffd}'), "{log}");
    });
}

#[test]
fn whoever_repeats_nonsense_does_not_fill_the_log() {
    let mut node = Node::new(crate::command_target::node::Way::Signals);
    let order = node.script(WAITS);
    let run = node.start(&order);
    node.started(run);
    let mut stream = connect(&node, run);
    line(&mut stream);
    say(&stream, "what\n".repeat(5_000).as_bytes());
    say(&stream, b"revoke\n");
    assert!(line(&mut stream).starts_with("ended "));
    assert_eq!(node.log(run).lines().count(), 100);
}

#[test]
fn the_latest_who_connects_is_listened_to() {
    in_every_way(|node| {
        let order = node.script(WAITS);
        let run = node.start(&order);
        node.started(run);
        let mut first = connect(node, run);
        line(&mut first);
        let mut second = connect(node, run);
        assert!(line(&mut second).starts_with("started "));
        assert_eq!(line(&mut first), "replaced\n");
        assert_eq!(line(&mut first), "");
        say(&second, b"stop timed_out 5000\n");
        assert!(line(&mut second).starts_with("ended "));
        // A scheduler that was replaced reports nothing about it: that is up to the other one.
        assert_eq!(node.heard(run), []);
    });
}

#[test]
fn words_in_pieces_are_words() {
    in_every_way(|node| {
        let order = node.script(WAITS);
        let run = node.start(&order);
        node.started(run);
        let mut stream = connect(node, run);
        line(&mut stream);
        for byte in b"stop blackout 100\n" {
            say(&stream, &[*byte]);
        }
        assert!(line(&mut stream).contains("\"outcome\":\"blackout\""));
    });
}

#[test]
fn a_socket_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mut node = Node::new(crate::command_target::node::Way::Signals);
    let order = node.script(WAITS);
    let run = node.start(&order);
    node.started(run);
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(node.places.run(run).join("sock")), 0o700 & !0o077);
    assert_eq!(mode(node.places.run(run)), 0o700);
    assert_eq!(mode(node.places.start_marker(run)), 0o600);
    assert_eq!(mode(node.places.runs()), 0o700);
    node.shims.stop(run, Outcome::Cancelled);
    node.ended(run);
    assert_eq!(mode(node.places.end(run)), 0o600);
}

#[test]
fn a_run_cannot_extend_its_own_lease() {
    in_every_way(|node| {
        // It connects to the socket beside its result file and asks for an hour more, over and over.
        let script = "import os, socket, time\n\
                      home = os.path.dirname(os.environ['EVENBEAT_RESULT_FILE'])\n\
                      hour = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000) + 3_600_000\n\
                      os.chdir(home)\n\
                      while True:\n \
                       it = socket.socket(socket.AF_UNIX); it.connect('sock')\n \
                       try:\n  \
                        it.sendall(f'extend {hour} 7\\n'.encode()); it.recv(100)\n \
                       except OSError: pass\n \
                       open(os.environ['COUNT'], 'a').write('x')\n";
        let mut order = node.command(&["/usr/bin/env", "python3", "-c", script]);
        let count = node.work.0.join("count");
        order.env.insert("COUNT".to_owned(), count.to_str().unwrap().to_owned());
        order.lease_until = Some(in_millis(2_000));
        let run = node.start(&order);
        node.started(run);
        assert!(order.lease_until.unwrap() <= node.frozen(run));
        assert!(!node.file("count").is_empty(), "it has tried");
        stays(100, || node.file("count").len());
        node.shims.revoke(run);
        assert_eq!(node.ended(run).0.outcome, Outcome::Lost);
    });
}

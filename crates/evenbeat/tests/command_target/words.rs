//! What a shim hears: from whom, and what it makes of nonsense.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use evenbeat::socket_path::SocketPath;
use evenbeat_core::run::Outcome;

use crate::node::{Node, in_every_way};

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
        assert!(log.contains("[evenbeat] a word to the shim was not understood: `REVOKE`\n"), "{log}");
        assert!(log.contains("[evenbeat] a word to the shim was not understood: `revoke now`\n"), "{log}");
        assert!(log.contains("[evenbeat] a word to the shim was too long\n"), "{log}");
        assert!(log.is_ascii() || log.contains('\u{fffd}'), "{log}");
    });
}

#[test]
fn whoever_repeats_nonsense_does_not_fill_the_log() {
    let mut node = Node::new(crate::node::Way::Signals);
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
        // Whoever was replaced leaves it alone: what it would report is for the other to say.
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
    let mut node = Node::new(crate::node::Way::Signals);
    let order = node.script(WAITS);
    let run = node.start(&order);
    node.started(run);
    let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(node.places.run(run).join("sock")), 0o700 & !0o077);
    assert_eq!(mode(node.places.run(run)), 0o700);
    assert_eq!(mode(node.places.began(run)), 0o600);
    assert_eq!(mode(node.places.runs()), 0o700);
    node.shims.stop(run, Outcome::Cancelled);
    node.ended(run);
    assert_eq!(mode(node.places.end(run)), 0o600);
}

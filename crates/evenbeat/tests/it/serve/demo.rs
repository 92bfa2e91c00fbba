//! The demo: a living fleet, and nothing left of it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use crate::serve::node::{program, signal, until};
use crate::support::folder::Folder;

#[test]
fn a_demo_lives_ends_and_leaves_nothing() {
    let folder = Folder::new();
    // Deeper than the address of a socket has room for: where the system keeps such folders is not ours to choose.
    let temporary = folder.path().join("a-long-way-down/".repeat(8));
    fs::create_dir_all(&temporary).unwrap();
    let shown = program()
        .args(["demo", "--seconds", "6", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout);
    let errors = String::from_utf8_lossy(&shown.stderr);
    assert_eq!((shown.status.code(), &*errors), (Some(0), ""), "{text}");
    assert!(text.contains("904 jobs: "), "{text}");
    assert!(text.ends_with("The demo has ended and left nothing behind.\n"), "{text}");
    let files: Vec<_> = fs::read_dir(&temporary).unwrap().flatten().map(|it| it.path()).collect();
    assert_eq!(files, [] as [std::path::PathBuf; 0], "{text}");
    assert_eq!(still_there(folder.path()), [] as [String; 0], "something of it still executes");
    let running = text.lines().filter(|line| line.contains(" running; ")).nth(1).unwrap();
    assert!(!running.contains("; 0 running; "), "after five seconds something runs: {text}");
}

#[test]
fn a_demo_prints_a_login_link_that_works() {
    let mut demo = program()
        .args(["demo", "--seconds", "60", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept to the end: a demo that nobody looks at ends.
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let link = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("open http://")?.split(' ').next().map(str::to_owned));
    let link = link.expect("a link");
    let (address, path) = link.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let said = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(said.as_bytes()).unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert!(heard.starts_with("HTTP/1.1 303"), "{heard}");
    assert!(heard.contains("set-cookie: evenbeat_session="), "{heard}");
    signal(demo.id(), "TERM");
    assert_eq!(demo.wait().unwrap().code(), Some(0));
}

/// Processes of runs whose files are below a folder.
fn still_there(folder: &Path) -> Vec<String> {
    let marker = format!("EVENBEAT_RESULT_FILE={}", folder.display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter(|it| {
        String::from_utf8_lossy(&fs::read(it.path().join("environ")).unwrap_or_default()).contains(&marker)
    });
    ours.map(|it| fs::read_to_string(it.path().join("status")).unwrap_or_default()).collect()
}

/// Runs a demo in a terminal of its own with so many columns and rows. Once it shows a text, the terminal is closed, or
/// Ctrl-C is pressed. Prints everything that the terminal got.
const IN_A_TERMINAL: &str = r#"
import fcntl, os, pty, signal, struct, sys, termios
# A demo that never shows it must not outlive the test: its terminal goes with this process.
signal.alarm(120)
how, text, columns, rows, program = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    os.execv(program[0], program)
seen = b""
def read():
    global seen
    try:
        more = os.read(terminal, 65536)
    except OSError:
        more = b""
    seen += more
    return more
while text.encode() not in seen and read():
    pass
if how == "close":
    os.close(terminal)
else:
    os.write(terminal, b"\x03")
    while read():
        pass
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(status) if how != "close" else 0)
"#;

fn in_a_terminal(
    how: &str,
    once: &str,
    (columns, rows): (u16, u16),
    temporary: &Path,
) -> (Option<i32>, String) {
    let mut python = std::process::Command::new("/usr/bin/env");
    python.args(["python3", "-c", IN_A_TERMINAL, how, once, &columns.to_string(), &rows.to_string()]);
    python.arg(program().get_program()).args(["demo", "--listen", "127.0.0.1:0"]);
    python
        .env("TMPDIR", temporary)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS");
    let shown = python.output().unwrap();
    assert!(shown.stderr.is_empty(), "{}", String::from_utf8_lossy(&shown.stderr));
    (shown.status.code(), String::from_utf8_lossy(&shown.stdout).into_owned())
}

#[test]
fn a_demo_whose_terminal_is_closed_leaves_nothing() {
    let folder = Folder::new();
    in_a_terminal("close", "succeeded", (80, 24), folder.path());
    until("the end of everything", || {
        let is_empty = fs::read_dir(folder.path()).unwrap().next().is_none();
        (is_empty && still_there(folder.path()).is_empty()).then_some(())
    });
}

#[test]
fn a_demo_has_a_screen_of_its_own_and_gives_the_old_one_back() {
    let folder = Folder::new();
    for size in [(80, 24), (40, 10)] {
        let (code, text) = in_a_terminal("interrupt", "Running", size, folder.path());
        assert_eq!(code, Some(0), "{text}");
        let (before, rest) =
            text.split_once("\x1b[?1049h").unwrap_or_else(|| panic!("no other screen: {text}"));
        let (drawn, after) = rest.split_once("\x1b[?1049l").unwrap_or_else(|| panic!("never left: {text}"));
        assert_eq!(before, "", "nothing is written before it");
        assert!(after.ends_with("The demo has ended and left nothing behind.\r\n"), "{after}");
        for frame in drawn.split("\x1b[H").skip(1) {
            let n_lines = frame.matches('\n').count() + 1;
            assert!(n_lines <= usize::from(size.1), "{n_lines} lines in {size:?}:\n{frame}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

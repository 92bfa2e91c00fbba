//! Why a node does not serve: a text that says what to do, and a code for scripts.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

use crate::serve::node::{Node, program};
use crate::support::folder::Folder;

/// What went wrong in several cases, one below the other.
struct Story {
    folder: Folder,
    text: String,
}

impl Story {
    fn new() -> Story {
        Story { folder: Folder::new(), text: String::new() }
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.mode(name, 0o644);
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.folder.path().join(name), Permissions::from_mode(mode)).unwrap();
    }

    /// `evenbeat serve` with these words, in the folder of this story, as someone whom modes of files bind.
    fn serve(&self, words: &[&str]) -> Command {
        let mut serve = bound(&program());
        serve.arg("serve").args(words).current_dir(self.folder.path());
        if !words.contains(&"--listen") {
            serve.args(["--listen", "127.0.0.1:0"]);
        }
        serve
    }

    fn told(&mut self, case: &str, words: &[&str]) {
        let output = self.serve(words).output().unwrap();
        self.note(case, &output);
    }

    fn note(&mut self, case: &str, output: &Output) {
        let folder = self.folder.path().display().to_string();
        let said = String::from_utf8_lossy(&output.stderr).replace(&folder, "FOLDER");
        // Log lines tell of other things, and when.
        let said: Vec<&str> = said.lines().filter(|line| !line.starts_with('{')).collect();
        let code = output.status.code();
        assert!(!said.is_empty() && code.is_some_and(|code| code != 0), "{case}: {output:?}");
        write!(self.text, "# {case}\n{}\n--- exit {}\n\n", said.join("\n"), code.unwrap()).unwrap();
    }
}

/// The same command without the power to pass over the modes of files, which root has.
fn bound(command: &Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return copied(command, command.get_program().as_ref(), &[]);
    }
    copied(command, Path::new("setpriv"), &["--bounding-set=-all", "--inh-caps=-all"])
}

/// The same command by way of another program.
fn copied(command: &Command, program: &Path, words: &[&str]) -> Command {
    let mut copy = Command::new(program);
    copy.args(words);
    if Path::new(command.get_program()) != program {
        copy.arg(command.get_program());
    }
    copy.args(command.get_args()).env_clear();
    copy.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    copy
}

#[test]
fn a_configuration_with_faults() {
    let mut story = Story::new();
    story.file("no.toml", "listen = 127.0.0.1:80\n[pools\nx = 1\n");
    story.told("no TOML", &["--config", "no.toml"]);
    story.file(
        "bad.toml",
        "scheduler_intervall = \"5s\"\n[pools.crawl]\nreserved = 2\n[tenants.acme]\nplan = \"gold\"\n",
    );
    story.told("unknown and incomplete", &["--config", "bad.toml"]);
    story.told("not there", &["--config", "none.toml"]);
    story.file("secret.toml", "");
    story.mode("secret.toml", 0o000);
    story.told("not to be read", &["--config", "secret.toml"]);
    story.file("open.toml", "");
    story.mode("open.toml", 0o666);
    story.told("others can write to it", &["--config", "open.toml"]);
    story.told("a flag", &["--data-dir", "data", "--set", "pools.default.capacity=many"]);
    story.told("no address", &["--data-dir", "data", "--listen", "everywhere"]);
    story.told("no option", &["--data-directory", "data"]);
    let unknown = story.serve(&["--data-dir", "data"]).env("EVENBEAT_LISTN", "127.0.0.1:1").output().unwrap();
    story.note("a variable", &unknown);
    let nowhere = story.serve(&[]).output().unwrap();
    story.note("no place for its files", &nowhere);
    story.told("a key that is retired", &["--data-dir", "data", "--set", "tokens_file=tokens"]);
    story.told("a key without effect", &["--data-dir", "data", "--set", "queue.topic=starts"]);
    story.told("half of TLS", &["--data-dir", "data", "--set", "tls.cert=cert.pem"]);
    story.told(
        "trust behind a proxy",
        &["--data-dir", "data", "--set", "auth.loopback=trust", "--set", "auth.trusted_proxies=127.0.0.1"],
    );
    story.told("an auth key that is unknown", &["--data-dir", "data", "--set", "auth.password=secret"]);
    story.told("other machines, and no tokens", &["--data-dir", "data", "--listen", "0.0.0.0:0"]);
    insta::assert_snapshot!(story.text);
}

#[test]
fn job_files_with_faults() {
    let mut story = Story::new();
    story.file("jobs.toml", "[[job]]\nname = \"a\"\ncommand = [\"true\"]\nevery = \"1 fortnight\"\n");
    let with = |path: &str| format!("jobs=[\"{path}\"]");
    story.told("not valid", &["--data-dir", "data", "--set", &with("jobs.toml")]);
    story.told("not there", &["--data-dir", "data", "--set", &with("none.toml")]);
    story.mode("jobs.toml", 0o000);
    story.told("not to be read", &["--data-dir", "data", "--set", &with("jobs.toml")]);
    story.file(
        "shell.toml",
        "[[job]]\nname = \"a\"\nmanual = true\ncommand = { argv = \"a | b\", shell = true }\n",
    );
    story.told("not allowed", &["--data-dir", "data", "--set", &with("shell.toml")]);
    story.file(
        "greedy.toml",
        "[[job]]\nname = \"a\"\nmanual = true\ncommand = [\"a\"]\ntenant = \"guest\"\nmax_allowed_duration = \"1h\"\n",
    );
    let greedy = with("greedy.toml");
    story.told("over its quota", &["--data-dir", "data", "--set", &greedy, "--set", "default_plan=free"]);
    insta::assert_snapshot!(story.text);
}

#[test]
fn a_folder_that_cannot_be_used() {
    let mut story = Story::new();
    story.file("file", "in the way");
    story.told("a file", &["--data-dir", "file"]);
    fs::create_dir(story.folder.path().join("closed")).unwrap();
    story.mode("closed", 0o500);
    story.told("in one that is closed", &["--data-dir", "closed/data"]);
    story.told("closed", &["--data-dir", "closed"]);
    fs::create_dir(story.folder.path().join("planted")).unwrap();
    std::os::unix::fs::symlink("/etc", story.folder.path().join("planted/logs")).unwrap();
    story.told("a link planted in it", &["--data-dir", "planted"]);
    story.mode("closed", 0o700);
    insta::assert_snapshot!(story.text);
}

#[test]
fn a_second_node_in_the_same_folder_is_told_so() {
    let mut node = Node::with("");
    node.start();
    let output = node.serve().output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).replace(node.path("").to_str().unwrap(), "FOLDER/");
    assert_eq!(
        text.trim_end(),
        "error: another node works in `FOLDER/data` (lock `FOLDER/data/node.lock`); stop it, or give this one a \
         `data_dir` of its own"
    );
    assert_eq!(output.status.code(), Some(1));
    node.stop();
}

#[test]
fn doors_that_cannot_be_opened() {
    let mut story = Story::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    story.told("the port is taken", &["--data-dir", "data", "--listen", &address]);
    story.text = story.text.replace(&address, "ADDRESS");
    let twice = format!("listen={address}");
    story.told("said twice", &["--data-dir", "data", "--listen", "127.0.0.1:0", "--set", &twice]);
    story.told("an address of another machine", &["--data-dir", "data", "--listen", "192.0.2.1:0"]);
    story.file("sock", "precious");
    story.told("a file in place of the socket", &["--data-dir", "data", "--set", "socket=sock"]);
    assert_eq!(fs::read_to_string(story.folder.path().join("sock")).unwrap(), "precious");
    let listening = UnixListener::bind(story.folder.path().join("taken.sock")).unwrap();
    story.told("a socket that is taken", &["--data-dir", "data", "--set", "socket=taken.sock"]);
    drop(listening);
    story.told("a socket in no folder", &["--data-dir", "data", "--set", "socket=none/a.sock"]);
    fs::create_dir(story.folder.path().join("closed")).unwrap();
    story.mode("closed", 0o500);
    story.told(
        "a socket in a folder that is closed",
        &["--data-dir", "data", "--set", "socket=closed/a.sock"],
    );
    story.mode("closed", 0o700);
    let long = format!("socket={}", "a".repeat(120));
    story.told("a socket with a name that is too long", &["--data-dir", "data", "--set", &long]);
    insta::assert_snapshot!(story.text);
}

/// The text without the number of the last migration, which grows with the program.
fn without_step(text: &str) -> String {
    let (before, after) = text.split_once("this program knows ").expect("a store of a newer program");
    format!("{before}this program knows <step>{}", after.trim_start_matches(|it: char| it.is_ascii_digit()))
}

#[test]
fn stores_that_cannot_be_used() {
    let mut story = Story::new();
    let away = "postgres://ann:secret@127.0.0.1:1/beat?connect_timeout=1";
    story.told("a server that is away", &["--data-dir", "data", "--store", away]);
    story.told(
        "no address of one",
        &["--data-dir", "data", "--store", "postgres://ann:secret@127.0.0.1:port/beat"],
    );
    story.told(
        "no store at all",
        &["--data-dir", "data", "--store", "mysql://ann:secret@db/beat?password=secret"],
    );
    story.told("in no folder", &["--data-dir", "data", "--store", "sqlite:none/a.db"]);
    story.told("a folder", &["--data-dir", "data", "--store", "sqlite:data"]);
    let notes = "precious notes that are no database";
    story.file("notes.db", notes);
    story.told("no database", &["--data-dir", "data", "--store", "sqlite:notes.db"]);
    assert_eq!(fs::read_to_string(story.folder.path().join("notes.db")).unwrap(), notes, "it is left alone");
    story.file("empty.db", "");
    story.told("an empty file", &["--data-dir", "data", "--store", "sqlite:empty.db"]);
    let other = rusqlite::Connection::open(story.folder.path().join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE cats (name)").unwrap();
    drop(other);
    story.told("another program's", &["--data-dir", "data", "--store", "sqlite:other.db"]);
    let made = program()
        .args(["db", "migrate", "--store", "sqlite:newer.db"])
        .current_dir(story.folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let newer = rusqlite::Connection::open(story.folder.path().join("newer.db")).unwrap();
    newer
        .execute("INSERT INTO migration (no, name, checksum, applied_at) VALUES (99, 'future', 'x', 0)", [])
        .unwrap();
    drop(newer);
    story.told("of a newer program", &["--data-dir", "data", "--store", "sqlite:newer.db"]);
    story.file("unread.db", "x");
    story.mode("unread.db", 0o000);
    story.told("not to be read", &["--data-dir", "data", "--store", "sqlite:unread.db"]);
    fs::create_dir(story.folder.path().join("closed")).unwrap();
    story.mode("closed", 0o500);
    story.told("in a folder that is closed", &["--data-dir", "data", "--store", "sqlite:closed/a.db"]);
    story.mode("closed", 0o700);
    assert!(!story.text.contains("secret"), "{}", story.text);
    insta::assert_snapshot!(without_step(&story.text));
}

#[test]
fn a_socket_that_is_not_for_everybody() {
    let mut story = Story::new();
    let listening = UnixListener::bind(story.folder.path().join("theirs.sock")).unwrap();
    story.mode("theirs.sock", 0o000);
    let mut ask = bound(&program());
    ask.args(["status", "--server", "unix:theirs.sock"]).current_dir(story.folder.path());
    story.note("of another user", &ask.output().unwrap());
    drop(listening);
    insta::assert_snapshot!(story.text);
}

/// A disk of a few pages that are all taken, seen by one process alone.
fn on_a_full_disk(story: &Story, words: &str) -> Option<Output> {
    let place = story.folder.path().join("disk");
    fs::create_dir_all(&place).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=64k none disk && {{ head -c 100000 /dev/zero > disk/ballast 2>/dev/null; exec \"$0\" serve \
         --listen 127.0.0.1:0 {words}; }} || exit 77"
    );
    let run = |flags: &[&str]| {
        let mut unshare = copied(&program(), Path::new("unshare"), &[flags, &["sh", "-c", &script]].concat());
        unshare.current_dir(story.folder.path());
        unshare.output().ok().filter(|it| it.status.code() != Some(77) && !it.stderr.starts_with(b"unshare"))
    };
    run(&["-m"]).or_else(|| run(&["-rm"]))
}

#[test]
fn a_disk_that_is_full_at_the_start() {
    let mut story = Story::new();
    let cases = [
        ("of its folder", "--data-dir disk/data"),
        ("of its store", "--data-dir data --store sqlite:disk/a.db"),
    ];
    for (case, words) in cases {
        let output = on_a_full_disk(&story, words).unwrap_or_else(|| {
            panic!(
                "this test mounts a small disk in a namespace of its own; `unshare -rm` must be allowed here"
            )
        });
        story.note(case, &output);
    }
    insta::assert_snapshot!(story.text);
}

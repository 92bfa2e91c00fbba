//! A node as its users have it, and everything that can be done to it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use evenbeat::testing::socket_path::SocketPath;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::chaos::processes::{self, signal};
use crate::support::folder::Folder;
use crate::support::wait;
pub(crate) use crate::support::wait::until;

/// Looks for something that takes at least this long.
#[track_caller]
pub(crate) fn until_after<T>(length: Duration, what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait::until_within(length + wait::PATIENCE, what, look)
}

/// Lets the fleet live for a while: faults come at moments that chance has chosen.
pub(crate) fn live_for(millis: u64) {
    wait::live_for(Duration::from_millis(millis));
}

/// A folder with job files, and the node that works in it.
pub(crate) struct Node {
    // Gone before the folder that it lies in.
    disk: Option<SmallDisk>,
    folder: Folder,
    settings: Vec<String>,
    env: Vec<(String, String)>,
    /// A script that ends by becoming its arguments.
    shell: Option<String>,
    program: PathBuf,
    serving: Option<Child>,
}

/// A small disk for the data directory.
struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

impl Node {
    /// With these jobs, not yet serving.
    pub(crate) fn with(jobs: &str) -> Node {
        let folder = Folder::new();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::create_dir(folder.path().join("witness")).unwrap();
        fs::write(folder.path().join("jobs.toml"), jobs).unwrap();
        let (settings, env) = (Vec::new(), Vec::new());
        let program = PathBuf::from(env!("CARGO_BIN_EXE_evenbeat"));
        Node { disk: None, folder, settings, env, shell: None, program, serving: None }
    }

    /// With jobs that need to know the folder that witnesses write to.
    pub(crate) fn of(jobs: impl FnOnce(&Path) -> String) -> Node {
        let node = Node::with("");
        fs::write(node.path("jobs.toml"), jobs(&node.witnesses())).unwrap();
        node
    }

    /// A setting: `pools.default.capacity=32`.
    pub(crate) fn set(&mut self, setting: &str) {
        self.settings.push(setting.to_owned());
    }

    /// A variable for the node alone.
    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.retain(|(it, _)| it != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn forget_env(&mut self, name: &str) {
        self.env.retain(|(it, _)| it != name);
    }

    /// What the node's process does before it becomes a node.
    pub(crate) fn begin_by(&mut self, script: &str) {
        self.shell = Some(script.to_owned());
    }

    /// It is a copy of the program that lies elsewhere.
    pub(crate) fn use_program(&mut self, program: PathBuf) {
        self.program = program;
    }

    pub(crate) fn begin_plainly(&mut self) {
        self.shell = None;
    }

    /// Gives it a small disk for its data; says whether this machine lets tests do that.
    pub(crate) fn put_on_small_disk(&mut self, options: &str) -> bool {
        let place = self.path("data");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(&place).output();
        let is_mounted = mounted.is_ok_and(|it| it.status.success());
        self.disk = is_mounted.then_some(SmallDisk(place));
        is_mounted
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn witnesses(&self) -> PathBuf {
        self.path("witness")
    }

    /// A file of the node's data directory.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.path("data").join(name)
    }

    /// The command that serves here.
    pub(crate) fn command(&self) -> Command {
        let mut serve = match &self.shell {
            Some(script) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("{script}\nexec \"$@\""), "sh"]).arg(&self.program);
                shell
            }
            None => Command::new(&self.program),
        };
        // Nothing of whoever runs the tests.
        serve.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        serve.envs(self.env.iter().map(|(name, value)| (name, value)));
        serve.arg("serve").arg("--data-dir").arg(self.path("data")).args(["--listen", "127.0.0.1:0"]);
        serve.arg("--set").arg(format!("jobs=[\"{}\"]", self.path("jobs.toml").display()));
        serve.args(self.settings.iter().flat_map(|setting| ["--set", setting]));
        serve.current_dir(self.folder());
        serve
    }

    /// Starts it, and does not wait.
    pub(crate) fn spawn(&mut self) {
        assert!(self.serving.is_none(), "it serves");
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("serve.log")).unwrap();
        self.serving = Some(self.command().stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn start(&mut self) {
        self.spawn();
        self.wait_until_up();
    }

    pub(crate) fn wait_until_up(&mut self) {
        until("an answer", || {
            let ended = self.serving.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "it ended ({ended:?}): {}", self.log());
            (self.try_ask("GET", "/api/v1/status", "")?.0 == 200).then_some(())
        });
    }

    pub(crate) fn pid(&self) -> u32 {
        self.serving.as_ref().expect("it serves").id()
    }

    pub(crate) fn signal(&self, it: Signal) {
        signal(self.pid(), it);
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.serving.as_mut().is_some_and(|it| it.try_wait().unwrap().is_some())
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut serving = self.serving.take().expect("it serves");
        until("its end", || serving.try_wait().unwrap()).code()
    }

    /// The end of one that did not want to serve: its code, and what it said.
    pub(crate) fn refuses(&self) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.command().output().unwrap();
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Asks over its socket; none if nobody answers.
    pub(crate) fn try_ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, Json)> {
        let mut stream =
            UnixStream::connect(SocketPath::to(&self.data("evenbeat.sock")).ok()?.short()).ok()?;
        let head = "Host: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n";
        let length = body.len();
        let said = format!("{method} {path} HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(said.as_bytes()).ok()?;
        let mut heard = String::new();
        stream.read_to_string(&mut heard).ok()?;
        let (head, body) = heard.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or(Json::Null)))
    }

    /// Asks one that answers, again if its store does not: on a busy machine a short deadline is soon over.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Json) {
        until("an answer of the store", || {
            let answer = self.try_ask(method, path, body);
            let answer = answer.unwrap_or_else(|| panic!("{method} {path} was not answered"));
            (answer.0 != 503).then_some(answer)
        })
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Json {
        let (status, answer) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// All pages of a list.
    pub(crate) fn list(&self, path: &str, token: &str) -> Vec<Json> {
        let (mut items, mut next) = (Vec::new(), Json::Null);
        loop {
            let more = next.as_str().map_or(String::new(), |next| format!("&{token}={next}"));
            let page = self.get(&format!("{path}limit=500{more}"));
            items.extend(page["items"].as_array().expect("a page has items").iter().cloned());
            next = page["next"].clone();
            if next.is_null() {
                return items;
            }
        }
    }

    /// Lets nothing start any more.
    pub(crate) fn pause_all(&self) {
        let jobs = self.list("/api/v1/jobs?", "after");
        let pause = |job: &Json| {
            let key = job["key"].as_str().unwrap();
            let (status, answer) = self.ask("POST", &format!("/api/v1/jobs/{key}/pause"), "{}");
            assert!(status == 200, "{key}: {answer}");
        };
        // A busy store answers many as soon as one.
        std::thread::scope(|scope| {
            for some in jobs.chunks(jobs.len().div_ceil(8).max(1)) {
                scope.spawn(move || some.iter().for_each(pause));
            }
        });
    }

    /// Lets nothing start any more, and waits until nothing runs.
    pub(crate) fn come_to_rest(&self) {
        self.pause_all();
        until("rest", || {
            self.get("/api/v1/runs?open=true&limit=1")["items"].as_array()?.is_empty().then_some(())
        });
    }

    /// What lies about and executes, for whoever has to find out why.
    fn tell_what_is_left(&self) {
        for run in fs::read_dir(self.path("data/runs")).into_iter().flatten().flatten() {
            let files = fs::read_dir(run.path()).into_iter().flatten().flatten();
            let names: Vec<_> = files.map(|it| it.file_name()).collect();
            let began = fs::read_to_string(run.path().join("began")).unwrap_or_default();
            eprintln!("left: {} {names:?} {began}", run.path().display());
        }
        for it in processes::of_runs(self.folder.path()) {
            let stands_in = fs::read_link(format!("/proc/{}/cwd", it.pid));
            eprintln!("left: {it:?} {:?} in {stands_in:?}", processes::state(it.pid));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("serve.log")).unwrap_or_default()
    }
}

/// What the command line says.
pub(crate) fn cli(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenbeat")).env_clear().args(words).output().unwrap()
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut serving) = self.serving.take() {
            let _ = serving.kill();
            let _ = serving.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            // Not so much of it that the reason of the failure, above it, is out of sight.
            let last: Vec<&str> = log.lines().rev().take(20).collect();
            last.iter().rev().for_each(|line| eprintln!("{line}"));
            self.tell_what_is_left();
        }
        // What a killed node has left running is not left to the machine.
        for it in processes::of_runs(self.folder.path()) {
            signal(it.pid, Signal::KILL);
        }
    }
}

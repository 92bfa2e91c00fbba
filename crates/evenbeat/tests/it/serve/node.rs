//! A node as its users have it: `evenbeat serve` in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

use crate::support::folder::Folder;
pub(crate) use crate::support::wait::until;

pub(crate) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_evenbeat"));
    // Nothing of whoever runs the tests.
    program.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
    program
}

/// A folder with job files, and the node that works in it.
pub(crate) struct Node {
    folder: Folder,
    /// The name of its folder of data.
    data: String,
    listen: String,
    serving: Option<Child>,
}

impl Node {
    /// With these jobs, not yet serving.
    pub(crate) fn with(jobs: &str) -> Node {
        let folder = Folder::new();
        fs::write(folder.path().join("jobs.toml"), jobs).unwrap();
        Node { folder, data: "data".to_owned(), listen: "127.0.0.1:0".to_owned(), serving: None }
    }

    /// With its data elsewhere in its folder.
    pub(crate) fn with_data_in(data: String, jobs: &str) -> Node {
        let mut node = Node::with(jobs);
        node.data = data;
        node
    }

    /// Listens elsewhere from the next start on.
    pub(crate) fn listens_on(&mut self, listen: &str) {
        listen.clone_into(&mut self.listen);
    }

    /// The address that it listens on over TCP, as the last start said.
    pub(crate) fn address(&self) -> String {
        self.logged("serving", 1).pop().unwrap()["address"].as_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path(&self.data)
    }

    /// The command that serves here, on a port that is free.
    pub(crate) fn serve(&self) -> Command {
        let mut serve = program();
        serve.arg("serve").arg("--data-dir").arg(self.data()).arg("--listen").arg(&self.listen);
        serve.arg("--set").arg(format!("jobs=[\"{}\"]", self.path("jobs.toml").display()));
        serve.current_dir(self.folder.path());
        serve
    }

    pub(crate) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it with more to say.
    pub(crate) fn start_with(&mut self, more: &[&str]) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("serve.log")).unwrap();
        let serving = self.serve().args(more).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.serving = Some(serving);
        until("an answer", || self.ask(&["status"]).status.code().filter(|code| *code < 2));
    }

    /// The process that serves.
    pub(crate) fn pid(&self) -> u32 {
        self.serving.as_ref().expect("it serves").id()
    }

    /// The log lines that say this, for machines.
    pub(crate) fn log_lines(&self, said: &str) -> Vec<Json> {
        let lines = self.log();
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
        lines.filter(|line| line["message"] == said).collect()
    }

    /// Waits until it logs that something has happened, so many times.
    pub(crate) fn logged(&self, said: &str, n_times: usize) -> Vec<Json> {
        until(said, || Some(self.log_lines(said)).filter(|lines| n_times <= lines.len()))
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let mut serving = self.serving.take().expect("it serves");
        signal(serving.id(), "TERM");
        serving.wait().unwrap().code()
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        let mut serving = self.serving.take().expect("it serves");
        serving.kill().unwrap();
        serving.wait().unwrap();
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        let door = format!("unix:{}", self.data().join("evenbeat.sock").display());
        program().args(words).args(["--server", &door]).output().unwrap()
    }

    /// A new token of this role.
    pub(crate) fn token(&self, role: &str) -> String {
        let answer = self.json(&["token", "create", "--role", role]);
        answer["token"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// An answer for machines.
    pub(crate) fn json(&self, words: &[&str]) -> Json {
        let output = self.ask(&[words, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// The runs of a job, the latest first.
    pub(crate) fn runs(&self, job: &str) -> Vec<Json> {
        let page = self.json(&["run", "list", "--job", job, "--limit", "200"]);
        page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("serve.log")).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut serving) = self.serving.take() {
            let _ = serving.kill();
            let _ = serving.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
        end_shims(&self.data());
    }
}

/// What a killed node has left running is not left to the machine.
fn end_shims(data: &Path) {
    for run in fs::read_dir(data.join("runs")).into_iter().flatten().flatten() {
        let marker = format!("EVENBEAT_RUN_ID={}", run.file_name().to_string_lossy());
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let environ = fs::read(process.path().join("environ")).unwrap_or_default();
            if environ.split(|byte| *byte == 0).any(|it| it == marker.as_bytes())
                && let Ok(pid) = process.file_name().to_string_lossy().parse()
            {
                signal(pid, "KILL");
            }
        }
    }
}

pub(crate) fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
}

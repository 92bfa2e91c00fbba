//! An example in a folder of its own, and the node that runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

use crate::serve::node::{program, signal, until};
use crate::support::folder::Folder;

/// A copy of an example.
pub(crate) struct Example {
    folder: Folder,
    serving: Option<Child>,
}

/// How a run of a job ends, as a README says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) job: String,
    pub(crate) outcome: String,
    /// None for a run that was ended from outside.
    pub(crate) exit_code: Option<i64>,
    /// What else the README has of it, by column.
    pub(crate) more: Vec<String>,
}

impl Example {
    pub(crate) fn copy_of(name: &str) -> Example {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let folder = Folder::new();
        copy(&root.join("examples").join(name), folder.path());
        Example { folder, serving: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command, typed in its folder.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = program();
        command.args(words).current_dir(self.folder.path());
        command.env("EVENBEAT_SERVER", "unix:state/evenbeat.sock");
        command
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// What a command says that must end well.
    #[track_caller]
    pub(crate) fn said(&self, words: &[&str]) -> String {
        let output = self.ask(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same for machines.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Json {
        serde_json::from_str(&self.said(&[words, &["--json"]].concat())).unwrap()
    }

    /// Serves, with these words of the README, on a port that is free.
    pub(crate) fn serve(&mut self, words: &[&str]) {
        let log = fs::File::create(self.path("serve.log")).unwrap();
        let mut serve = self.command(&[&["serve"], words, &["--listen", "127.0.0.1:0"]].concat());
        serve.env_remove("EVENBEAT_SERVER").stdout(Stdio::null()).stderr(log);
        self.serving = Some(serve.spawn().unwrap());
        until("an answer", || self.ask(&["status"]).status.code().filter(|code| *code < 2));
    }

    pub(crate) fn stop(&mut self) -> Option<i32> {
        let mut serving = self.serving.take().expect("it serves");
        signal(serving.id(), "TERM");
        serving.wait().unwrap().code()
    }

    /// Asks for a run of a job, and waits for its end.
    pub(crate) fn ended_run_of(&self, job: &str) -> Json {
        // It may be running by itself in this very moment.
        let asked = until("a trigger that is taken", || {
            let asked = self.ask(&["job", "trigger", job, "--json"]);
            (asked.status.code() == Some(0)).then(|| serde_json::from_slice::<Json>(&asked.stdout).unwrap())
        });
        until("the end of a run", || {
            let runs = self.json(&["run", "list", "--job", job]);
            let runs = runs["items"].as_array().unwrap();
            runs.iter().find(|it| it["asked"] == asked["id"] && it["phase"] == "ended").cloned()
        })
    }

    /// A run of every job ends as the README says.
    pub(crate) fn check_ends(&self) -> Vec<(Told, Json)> {
        let told = told(&self.read("README.md"));
        let jobs = self.json(&["job", "list"]);
        let jobs = jobs["items"].as_array().unwrap();
        let mut keys: Vec<&str> = jobs.iter().map(|it| it["key"].as_str().unwrap()).collect();
        let mut documented: Vec<&str> = told.iter().map(|it| it.job.as_str()).collect();
        keys.sort_unstable();
        documented.sort_unstable();
        assert_eq!(keys, documented, "the README tells of every job");
        let mut ended = Vec::new();
        for it in told {
            let run = self.ended_run_of(&it.job);
            let seen = (run["outcome"].as_str(), run["exit_code"].as_i64());
            assert_eq!(seen, (Some(it.outcome.as_str()), it.exit_code), "{}: {run}", it.job);
            ended.push((it, run));
        }
        ended
    }

    /// What can be asked of any fleet is answered of every job of this one.
    pub(crate) fn check_answers(&self) {
        let jobs = self.json(&["job", "list"]);
        let jobs = jobs["items"].as_array().unwrap();
        for job in jobs {
            let key = job["key"].as_str().unwrap();
            let explained = self.json(&["explain", key]);
            assert_eq!(explained["job"], key);
            assert!(explained["binding_sentence"].as_str().is_some_and(|it| !it.is_empty()), "{explained}");
        }
        let distribution = self.json(&["distribution"]);
        assert!(0 < distribution["total_runs"].as_u64().unwrap(), "{distribution}");
        let from = self.json(&["status"])["now"].as_str().unwrap().to_owned();
        let upcoming = self.json(&["upcoming", "--from", &from]);
        let upcoming = upcoming["items"].as_array().unwrap_or_else(|| panic!("{upcoming}"));
        assert!(!upcoming.is_empty());
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        if let Some(mut serving) = self.serving.take() {
            let _ = serving.kill();
            let _ = serving.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.path("serve.log")).unwrap_or_default());
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The rows of the table that says how runs end.
fn told(readme: &str) -> Vec<Told> {
    let table = readme.split("| Job | Ends |").nth(1).expect("a table of ends");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(|it| it.trim().trim_matches('`').to_owned());
        let mut cell = || cells.next().unwrap();
        let (job, outcome, exit_code) = (cell(), cell(), cell());
        let exit_code = (exit_code != "-").then(|| exit_code.parse().unwrap());
        Told { job, outcome, exit_code, more: cells.collect() }
    })
    .collect()
}

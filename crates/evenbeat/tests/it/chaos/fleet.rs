//! Fleets of witnesses, and what is looked at when everything is over.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::chaos::checker::{Figures, figures, findings};
use crate::chaos::history::{Book, History};
use crate::chaos::node::{Node, cli, until};
use crate::chaos::processes;
use crate::support::programs;

/// One job that is a witness.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    pub(crate) name: String,
    pub(crate) every: String,
    /// It counts so far before it ends, once in 20 ms.
    pub(crate) ticks: u64,
    /// More lines of its table.
    pub(crate) more: String,
}

impl Witness {
    pub(crate) fn new(name: &str, every: &str, ticks: u64) -> Witness {
        let (name, every) = (name.to_owned(), every.to_owned());
        Witness { name, every, ticks, more: String::new() }
    }

    /// What it runs, as a list in TOML and JSON.
    pub(crate) fn command(&self, folder: &Path) -> String {
        let program = programs::witness();
        format!("[\"{}\", \"{}\", \"{}\", \"20\"]", program.display(), folder.display(), self.ticks)
    }
}

/// A job file of witnesses that write to a folder.
pub(crate) fn job_file(witnesses: &[Witness], folder: &Path) -> String {
    let mut text = "[defaults]\nretry = { delays = [\"1s\"] }\n".to_owned();
    for it in witnesses {
        let Witness { name, every, more, .. } = it;
        let command = it.command(folder);
        write!(text, "[[job]]\nname = \"{name}\"\nevery = \"{every}\"\ncommand = {command}\n{more}\n")
            .unwrap();
    }
    text
}

/// A node with these witnesses, and room for many at once.
pub(crate) fn node_of(witnesses: &[Witness]) -> Node {
    let mut node = Node::of(|folder| job_file(witnesses, folder));
    node.set("pools.default.capacity=64");
    node.set("scheduler_interval=200ms");
    node
}

/// The wall clock, in milliseconds.
pub(crate) fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since_epoch.as_millis()).unwrap()
}

/// How far a witness has counted: its fence, and the last number.
pub(crate) fn progress(folder: &Path, job: &str) -> Option<(u64, u64)> {
    let text = fs::read_to_string(folder.join(format!("{job}.progress"))).ok()?;
    let (fence, tick) = text.lines().next()?.split_once(' ')?;
    Some((fence.parse().ok()?, tick.parse().ok()?))
}

/// Waits until each of these has a run that was claimed from now on and ended well.
pub(crate) fn all_run(node: &Node, jobs: &[&str]) {
    let was = node.list("/api/v1/runs?open=false&", "before");
    let is_old = |id: &str| was.iter().any(|run| run["id"] == id);
    for job in jobs {
        until(&format!("a good run of {job}"), || {
            let page = node.get(&format!("/api/v1/runs?job={job}&outcome=succeeded&limit=20"));
            let mut runs = page["items"].as_array()?.iter();
            runs.any(|run| !is_old(run["id"].as_str().unwrap())).then_some(())
        });
    }
}

/// The end of every story: the node comes to rest, nothing is wrong with what it tells, it stops, and nothing is left.
#[track_caller]
pub(crate) fn is_sound(node: &mut Node, book: &Book) -> Figures {
    node.come_to_rest();
    let history = book.close(node);
    let found = findings(&history);
    if !found.is_empty() {
        tell(&history, &found);
    }
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
    let figures = figures(&history);
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    leaves_nothing(node);
    if let Some(parent) = processes::cgroup("self") {
        let left = history.runs.iter().map(|run| parent.join(format!("evenbeat-{}", run.id)));
        assert_eq!(
            left.filter(|it| it.exists()).collect::<Vec<_>>(),
            [] as [PathBuf; 0],
            "cgroups lie about"
        );
    }
    figures
}

/// All that is known of the jobs with findings.
fn tell(history: &History, found: &[String]) {
    for (job, book) in &history.books {
        if !found.iter().any(|it| it.contains(&format!("{job}:")) || it.contains(&format!(" {job} "))) {
            continue;
        }
        eprintln!("{job}: {book:?}");
        let mut runs: Vec<_> = history.runs.iter().filter(|it| it.job == *job).collect();
        runs.sort_by_key(|it| it.fence);
        for it in runs {
            eprintln!("  {it:?}");
        }
        for it in history.records.iter().filter(|it| it.job == *job) {
            eprintln!("  {it:?}");
        }
        for it in history.lines.iter().filter(|it| it.job == *job) {
            eprintln!("  {it:?}");
        }
    }
}

/// No process, no folder of a run, no lock that is held, and a store without a fault.
#[track_caller]
pub(crate) fn leaves_nothing(node: &Node) {
    // A shim that has said its last word takes a moment to go.
    until("the end of the last process", || processes::of_runs(node.folder()).is_empty().then_some(()));
    let runs: Vec<_> = fs::read_dir(node.path("data/runs")).unwrap().flatten().map(|it| it.path()).collect();
    assert!(runs.is_empty(), "{runs:?} lie about");
    for lock in fs::read_dir(node.path("data/locks")).unwrap().flatten() {
        let file = File::open(lock.path()).unwrap();
        let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        assert!(is_free, "{} is held", lock.path().display());
    }
    let store = node.path("data/evenbeat.db");
    if store.exists() {
        let checked = cli(&["db", "check", "--store", &format!("sqlite:{}", store.display())]);
        assert!(checked.status.success(), "{checked:?}");
    }
}

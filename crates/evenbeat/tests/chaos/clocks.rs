//! Somebody sets the clock of a node that runs.

use std::fs;

use crate::checker::findings;
use crate::dice::bound;
use crate::fleet::{Witness, is_sound, node_of};
use crate::history::{Book, millis};
use crate::node::{Node, live_for, until};
use crate::programs;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

/// The faults that a node sees; see `faults.c`.
pub(crate) struct Faults(std::path::PathBuf);

impl Faults {
    /// Gives a node that is not started yet faults of its own.
    pub(crate) fn of(node: &mut Node) -> Faults {
        let faults = Faults(node.path("faults"));
        fs::write(&faults.0, [0; 16]).unwrap();
        node.env("LD_PRELOAD", programs::faults().to_str().unwrap());
        node.env("EVENBEAT_TEST_FAULTS", faults.0.to_str().unwrap());
        faults
    }

    /// Its wall clock is ahead of ours by so much, from now on.
    pub(crate) fn set_clock(&self, millis: i64) {
        self.write(0, millis);
    }

    /// It can start no process.
    pub(crate) fn forbid_forks(&self, is_so: bool) {
        self.write(8, i64::from(is_so));
    }

    fn write(&self, at: u64, number: i64) {
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().write(true).open(&self.0).unwrap();
        file.write_all_at(&number.to_ne_bytes(), at).unwrap();
    }
}

/// When the latest occurrence was due that got a run.
fn latest(node: &Node, job: &str) -> i64 {
    let page = node.get(&format!("/api/v1/runs?job={job}&limit=500"));
    let runs = page["items"].as_array().unwrap().iter();
    runs.map(|run| millis(run["scheduled_for"].as_str().unwrap())).max().unwrap_or(i64::MIN)
}

#[test]
fn a_clock_that_is_set_either_way_doubles_nothing_and_loses_nothing() {
    let witnesses = [
        Witness::new("second", "1s", 3),
        Witness::new("other", "2s", 30),
        Witness::new("minutes", "7m", 3),
        Witness::new("hourly", "1h", 3),
        Witness { more: "missed = \"skip\"".to_owned(), ..Witness::new("skipping", "1s", 3) },
    ];
    let mut node = node_of(&witnesses);
    let faults = Faults::of(&mut node);
    node.start();
    let book = Book::open(&node);
    // Ahead by so much, one after the other: forward, a little back, on, on, far back, on beyond everything.
    let steps: [i64; 7] =
        [2 * HOUR, 2 * HOUR - 90 * SECOND, 2 * HOUR, 2 * HOUR + 90 * SECOND, 90 * SECOND, 2 * HOUR, 4 * HOUR];
    let (mut ahead, mut n_forward) = (0, 0);
    for round in 0..bound("STEPS", 1) as i64 {
        let base = round * 4 * HOUR;
        for step in steps {
            let to = base + step;
            let before = latest(&node, "second");
            faults.set_clock(to);
            n_forward += i64::from(ahead < to);
            // Time goes on, whichever way the clock was set; and mistakes are given time to be made.
            until("a run after a step", || (before < latest(&node, "second")).then_some(()));
            live_for(500);
            ahead = to;
        }
    }
    // Nor does it matter whether anybody saw it.
    let before = latest(&node, "second");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    faults.set_clock(ahead - HOUR);
    node.start();
    until("a run after a start", || (before < latest(&node, "second")).then_some(()));
    let n_forward = n_forward as usize;
    node.come_to_rest();
    let history = book.close(&node);
    assert_eq!(findings(&history), [] as [String; 0]);
    for job in ["second", "other", "minutes", "hourly", "skipping"] {
        let runs = history.runs.iter().filter(|run| run.job == job);
        let n_caught_up = runs.clone().filter(|run| run.trigger == "catchup").count();
        let most = if job == "skipping" { 0 } else { n_forward };
        assert!(n_caught_up <= most, "{job} caught up {n_caught_up} times after {n_forward} steps");
        // None of these is due again within the time that this takes.
        if ["minutes", "hourly"].contains(&job) {
            let n_runs = runs.count();
            assert!(n_runs <= n_forward + 1, "{job} ran {n_runs} times in {n_forward} steps");
        }
    }
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
    eprintln!("{n_forward} steps forward and as many back: {figures:?}");
}

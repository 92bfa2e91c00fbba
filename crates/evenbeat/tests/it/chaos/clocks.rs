//! Somebody sets the clock of a node that runs.

use std::fs;

use crate::chaos::checker::findings;
use crate::chaos::dice::bound;
use crate::chaos::fleet::{Witness, is_sound, leaves_nothing, node_of, now};
use crate::chaos::history::{Book, millis};
use crate::chaos::node::{Node, live_for, until};
use crate::support::database::Database;
use crate::support::programs;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;

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
fn a_clock_that_is_set_forward_or_a_little_back_doubles_nothing_and_loses_nothing() {
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
    // Ahead by so much, one after the other: forward, a little back, on, on, back again, on beyond everything. Clocks
    // that go further back were wrong, which is a story of its own.
    let steps: [i64; 7] = [
        2 * HOUR,
        2 * HOUR - 20 * SECOND,
        2 * HOUR,
        2 * HOUR + 90 * SECOND,
        2 * HOUR + 65 * SECOND,
        3 * HOUR,
        4 * HOUR,
    ];
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
    faults.set_clock(ahead - 25 * SECOND);
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

/// When the occurrences were due that got a run of a job, in no order.
fn served(node: &Node, job: &str) -> Vec<i64> {
    let runs = node.list(&format!("/api/v1/runs?job={job}&"), "before");
    runs.iter().map(|run| millis(run["scheduled_for"].as_str().unwrap())).collect()
}

/// The clock that a fleet goes by.
enum FleetClock {
    /// The node's own.
    Node(Faults),
    /// The database's.
    Database(Database),
}

impl FleetClock {
    fn set(&self, millis: i64) {
        match self {
            FleetClock::Node(faults) => faults.set_clock(millis),
            FleetClock::Database(database) => database.set_clock(millis),
        }
    }
}

/// A fleet that is stamped by a clock that is ahead, which is then set right, while somebody serves or while nobody does.
fn goes_on_after_a_clock_was_ahead(clock: impl FnOnce(&mut Node) -> FleetClock, ahead: i64, is_down: bool) {
    let every = |no: u64| Witness::new(&format!("every{no}"), "2s", 3);
    let mut witnesses: Vec<Witness> = (0..12).map(every).collect();
    witnesses
        .push(Witness { more: "retry = { delays = [\"1h\"] }".to_owned(), ..Witness::new("slow", "1h", 3) });
    let mut node = node_of(&witnesses);
    let jobs = fs::read_to_string(node.path("jobs.toml")).unwrap();
    let more = "[[job]]\nname = \"cron\"\ncron = \"*/2 * * * * *\"\ncommand = [\"true\"]\n\
                [[job]]\nname = \"skips\"\nevery = \"2s\"\nmissed = \"skip\"\ncommand = [\"true\"]\n\
                [[job]]\nname = \"fresh\"\nfresh = \"8s\"\ncooldown = \"2s\"\ncommand = [\"true\"]\n";
    fs::write(node.path("jobs.toml"), format!("{jobs}{more}")).unwrap();
    let clock = clock(&mut node);
    node.start();
    let book = Book::open(&node);
    let quick: Vec<String> = (0..12)
        .map(|no| format!("every{no}"))
        .chain(["cron".into(), "skips".into(), "fresh".into()])
        .collect();
    for job in &quick {
        until("a first run", || (!served(&node, job).is_empty()).then_some(()));
    }
    clock.set(ahead);
    for job in &quick {
        until("two runs ahead", || {
            let n_ahead = served(&node, job).into_iter().filter(|due| now() + ahead / 2 < *due).count();
            (2 <= n_ahead).then_some(())
        });
    }
    if is_down {
        assert_eq!(node.stop(), Some(0), "{}", node.log());
    }
    clock.set(0);
    let right = now();
    if is_down {
        node.start();
    }
    for job in &quick {
        until("two runs after the clock was set right", || {
            let is_back = |due: &i64| (right..right + HOUR / 2).contains(due);
            (2 <= served(&node, job).into_iter().filter(is_back).count()).then_some(())
        });
    }
    let took = now() - right;
    assert!(took < 60 * SECOND, "it took {took} ms to go on");
    let slow = node.get("/api/v1/jobs/slow");
    let next = millis(slow["next_run_at"].as_str().unwrap());
    assert!(next < right + 2 * HOUR + 60 * SECOND, "{slow}");
    assert!(millis(slow["last_start_at"].as_str().unwrap()) < now() + 30 * SECOND, "{slow}");
    assert!(node.log().contains("clock was ahead, jobs placed again"), "{}", node.log());
    let runs = node.list("/api/v1/runs?", "before");
    for run in &runs {
        let instants = ["claimed_at", "started_at", "ended_at"].iter().filter_map(|it| run[*it].as_str());
        let is_ahead = instants.map(millis).any(|at| right + HOUR < at);
        assert_eq!(run["clock_was_ahead"], is_ahead, "{run}");
        assert!(run["took_seconds"].as_f64().is_none_or(|took| 0.0 <= took), "{run}");
    }
    assert!(runs.iter().any(|run| run["clock_was_ahead"] == true), "history stays");
    node.come_to_rest();
    let history = book.close(&node);
    assert_eq!((history.conflicts, history.torn), (vec![], vec![]));
    for job in quick.iter().map(String::as_str).chain(["slow"]) {
        let mut due = served(&node, job);
        due.sort_unstable();
        let n_runs = due.len();
        due.dedup();
        assert_eq!(due.len(), n_runs, "an occurrence of {job} ran twice");
    }
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    leaves_nothing(&node);
}

fn of_node(node: &mut Node) -> FleetClock {
    FleetClock::Node(Faults::of(node))
}

fn of_database(node: &mut Node) -> FleetClock {
    let database = Database::new();
    node.set(&database.setting());
    FleetClock::Database(database)
}

#[test]
fn a_clock_that_was_two_hours_ahead_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_node, 2 * HOUR, false);
}

#[test]
fn a_clock_that_was_two_days_ahead_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_node, 2 * DAY, false);
}

#[test]
fn a_clock_that_was_thirty_days_ahead_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_node, 30 * DAY, false);
}

#[test]
fn a_clock_that_was_two_hours_ahead_before_a_restart_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_node, 2 * HOUR, true);
}

#[test]
fn a_clock_that_was_thirty_days_ahead_before_a_restart_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_node, 30 * DAY, true);
}

#[test]
fn the_clock_of_a_database_that_was_two_hours_ahead_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_database, 2 * HOUR, false);
}

#[test]
fn the_clock_of_a_database_that_was_thirty_days_ahead_before_a_restart_stops_nothing() {
    goes_on_after_a_clock_was_ahead(of_database, 30 * DAY, true);
}

//! Runs under a lease: they live as long as their scheduler beats, stand still when it does not, and
//! nothing is doubled or lost when everything stops and goes on in any order.
//!
//! Leases need a store that others could share, so these nodes keep their jobs in PostgreSQL; in a file the node's lock
//! is the lease, and a scheduler that stands still freezes nothing. Where someone is to take a silent node's runs away,
//! a second node watches that carries nothing.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::chaos::dice::{Dice, bound};
use crate::chaos::fleet::{Witness, is_sound, leaves_nothing, node_of, progress};
use crate::chaos::history::Book;
use crate::chaos::node::{Node, live_for, until, until_after};
use crate::chaos::processes::{self, Found, signal, stands_still};
use crate::support::database::Database;

/// How long everything may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timings {
    settings: [&'static str; 10],
    /// Past this, nothing of a silent node executes (F, and what it takes to freeze).
    frozen_by: Duration,
    /// Past this, others may take a silent node's runs away (S).
    window: Duration,
}

/// Short, and yet a busy machine does not take a living node for a silent one.
pub(crate) const PATIENT: Timings = Timings {
    settings: [
        "lease.heartbeat=250ms",
        "lease.attempt=250ms",
        "lease.self_fence=1s",
        "lease.stop_bound=500ms",
        "lease.freeze_bound=250ms",
        "lease.window=3s",
        "lease.probe=250ms",
        "lease.gap=750ms",
        "lease.quarantine=3s",
        "lease.backoff_cap=500ms",
    ],
    frozen_by: Duration::from_millis(1_250),
    window: Duration::from_secs(3),
};

/// About the shortest that keep their rules.
pub(crate) const QUICK: Timings = Timings {
    settings: [
        "lease.heartbeat=200ms",
        "lease.attempt=200ms",
        "lease.self_fence=600ms",
        "lease.stop_bound=300ms",
        "lease.freeze_bound=150ms",
        "lease.window=1600ms",
        "lease.probe=200ms",
        "lease.gap=400ms",
        "lease.quarantine=1600ms",
        "lease.backoff_cap=200ms",
    ],
    frozen_by: Duration::from_millis(750),
    window: Duration::from_millis(1_600),
};

fn leased(database: &Database, timings: &Timings, witnesses: &[Witness]) -> Node {
    let mut node = node_of(witnesses);
    go_by(&mut node, database, timings);
    node.set("node.name=worker");
    node
}

pub(crate) fn go_by(node: &mut Node, database: &Database, timings: &Timings) {
    node.set(&database.setting());
    for setting in timings.settings {
        node.set(setting);
    }
}

/// A node that carries nothing, and takes nobody's runs, but for those whose node is silent.
fn watcher(database: &Database, timings: &Timings) -> Node {
    let mut node = Node::with("");
    go_by(&mut node, database, timings);
    node.set("node.name=watcher");
    node.set("pools.default.capacity=0");
    node
}

fn names(witnesses: &[Witness]) -> Vec<&str> {
    witnesses.iter().map(|it| it.name.as_str()).collect()
}

/// Long runs that go on through a cycle, and short ones beside them.
fn fleet() -> Vec<Witness> {
    vec![
        Witness::new("a", "1s", 150),
        Witness::new("b", "1s", 40),
        Witness::new("c", "2s", 90),
        Witness::new("d", "1s", 5),
    ]
}

/// Waits until something of each long one executes.
fn all_count(node: &Node, jobs: &[&str]) {
    for job in jobs {
        let before = progress(&node.witnesses(), job);
        until(&format!("{job} counts on"), || {
            let now = progress(&node.witnesses(), job);
            (now.is_some() && now != before).then_some(())
        });
    }
}

/// Waits until nothing of the runs executes: every process is stopped.
fn all_stand_still(node: &Node) {
    until("a frozen fleet", || {
        let runs = processes::of_runs(node.folder()).into_iter().filter(|it| !it.is_shim);
        runs.map(|it| it.pid).all(stands_still).then_some(())
    });
}

fn all_progress(node: &Node, jobs: &[&str]) -> Vec<Option<(u64, u64)>> {
    jobs.iter().map(|job| progress(&node.witnesses(), job)).collect()
}

/// Waits until a watcher has taken away what a silent node had open; if it does not, what it sees tells why.
#[track_caller]
fn until_taken_away(watcher: &Node) {
    let began = Instant::now();
    until("the loss of its runs", || {
        let open = watcher.get("/api/v1/runs?open=true");
        if open["items"].as_array()?.is_empty() {
            return Some(());
        }
        if Duration::from_mins(1) < began.elapsed() {
            let (nodes, status) = (watcher.get("/api/v1/nodes"), watcher.get("/api/v1/status"));
            panic!("after {:?} these are open: {open}\nnodes: {nodes}\nstatus: {status}", began.elapsed());
        }
        None
    });
}

#[test]
fn a_run_lives_many_times_longer_than_its_lease() {
    let database = Database::new();
    let times = bound("LEASES", 4);
    // Twenty of them, each so many windows long, in ticks of 20 ms.
    let length = PATIENT.window * times as u32;
    let ticks = length.as_millis() as u64 / 20;
    let witnesses: Vec<Witness> = (0..20).map(|no| Witness::new(&format!("w{no}"), "1s", ticks)).collect();
    let mut node = leased(&database, &PATIENT, &witnesses);
    let mut other = watcher(&database, &PATIENT);
    node.start();
    other.start();
    let book = Book::open(&node);
    all_count(&node, &names(&witnesses));
    // One of each is enough.
    node.pause_all();
    for job in names(&witnesses) {
        until_after(length, "the first run", || {
            let page = node.get(&format!("/api/v1/runs?job={job}&open=false&limit=1"));
            page["items"].as_array()?.first().cloned()
        });
    }
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
    other.stop();
    leaves_nothing(&other);
    eprintln!("20 runs of {times} windows each: {figures:?}");
}

#[test]
fn a_run_whose_scheduler_stands_still_is_frozen_and_goes_on_with_it() {
    let (database, witnesses) = (Database::new(), fleet());
    let mut node = leased(&database, &QUICK, &witnesses);
    node.start();
    let book = Book::open(&node);
    let n_cycles = bound("FREEZES", 20);
    let mut longest = Duration::ZERO;
    for _ in 0..n_cycles {
        all_count(&node, &["a"]);
        let stopped_at = Instant::now();
        node.signal(Signal::STOP);
        // One that froze earlier may yet hear of the last beat, and go on until the lease is over.
        until("the end of every lease", || (QUICK.frozen_by < stopped_at.elapsed()).then_some(()));
        all_stand_still(&node);
        let frozen_after = stopped_at.elapsed();
        assert!(frozen_after < QUICK.window, "frozen after {frozen_after:?}, when others may have begun");
        longest = longest.max(frozen_after);
        let frozen = all_progress(&node, &names(&witnesses));
        until("the end of the window", || (QUICK.window < stopped_at.elapsed()).then_some(()));
        assert_eq!(all_progress(&node, &names(&witnesses)), frozen, "something executed without a lease");
        node.signal(Signal::CONT);
    }
    all_count(&node, &["a", "b", "c", "d"]);
    let runs = node.get("/api/v1/runs?job=a&open=false&limit=100");
    let lengths: Vec<&str> =
        runs["items"].as_array().unwrap().iter().filter_map(|run| run["frozen_for"].as_str()).collect();
    assert!(lengths.iter().any(|it| *it != "0s"), "a record says how long its run stood still: {lengths:?}");
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0, "nobody else was there to take anything away");
    eprintln!("{n_cycles} freezes, none later than {longest:?}: {figures:?}");
}

#[test]
fn a_run_that_was_taken_away_while_its_scheduler_stood_still_ends_and_is_on_record() {
    let (database, witnesses) = (Database::new(), fleet());
    let mut node = leased(&database, &QUICK, &witnesses);
    let mut other = watcher(&database, &QUICK);
    node.start();
    other.start();
    let book = Book::open(&node);
    let n_cycles = bound("STEALS", 5);
    for _ in 0..n_cycles {
        all_count(&node, &["a"]);
        node.signal(Signal::STOP);
        until_taken_away(&other);
        let frozen = all_progress(&node, &names(&witnesses));
        live_for(100);
        assert_eq!(all_progress(&node, &names(&witnesses)), frozen, "something executed that was taken away");
        node.signal(Signal::CONT);
    }
    all_count(&node, &["a", "b", "c", "d"]);
    let figures = is_sound(&mut node, &book);
    assert!(n_cycles <= figures.n_lost as u64, "{figures:?}");
    other.stop();
    leaves_nothing(&other);
    eprintln!("{n_cycles} times taken away: {figures:?}");
}

/// Everything stands still, as on a machine that is put to sleep, and wakes up in any order.
fn stop_everything(node: &mut Node, dice: &mut Dice, until_awake: impl Fn()) {
    let mut all = processes::of_runs(node.folder());
    all.push(Found { pid: node.pid(), is_shim: false });
    dice.shuffle(&mut all);
    for it in &all {
        signal(it.pid, Signal::STOP);
    }
    until_awake();
    // Those that the scheduler could start before it stood, too.
    for it in processes::of_runs(node.folder()) {
        if !all.contains(&it) {
            all.push(it);
        }
    }
    dice.shuffle(&mut all);
    for it in all {
        signal(it.pid, Signal::CONT);
        live_for(dice.below(4) * 10);
    }
}

#[test]
fn a_tree_that_stands_still_and_wakes_in_any_order_doubles_nothing() {
    let (database, witnesses, mut dice) = (Database::new(), fleet(), Dice::new());
    let mut node = leased(&database, &QUICK, &witnesses);
    let mut other = watcher(&database, &QUICK);
    node.start();
    other.start();
    let book = Book::open(&node);
    let n_cycles = bound("PAUSES", 20);
    for no in 0..n_cycles {
        all_count(&node, &["a"]);
        // Half of them long enough that the watcher takes the runs away.
        let is_long = no % 2 == 0;
        stop_everything(&mut node, &mut dice, || {
            if is_long {
                until_taken_away(&other);
            } else {
                live_for(800);
            }
        });
    }
    all_count(&node, &["a", "b", "c", "d"]);
    let figures = is_sound(&mut node, &book);
    other.stop();
    leaves_nothing(&other);
    eprintln!("{n_cycles} pauses of everything: {figures:?}");
}

#[test]
fn in_a_file_a_scheduler_that_stands_still_freezes_nothing_and_nothing_is_lost() {
    let (witnesses, mut dice) = (fleet(), Dice::new());
    let mut node = node_of(&witnesses);
    node.start();
    let book = Book::open(&node);
    let n_cycles = bound("FILE_PAUSES", 20);
    for no in 0..n_cycles {
        all_count(&node, &["a"]);
        if no % 2 == 0 {
            node.signal(Signal::STOP);
            // It is in the middle of its run, or that has just ended; then it has its end to tell.
            live_for(dice.below(500));
            node.signal(Signal::CONT);
        } else {
            stop_everything(&mut node, &mut dice, || live_for(300));
        }
    }
    all_count(&node, &["a", "b", "c", "d"]);
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
    eprintln!("{n_cycles} pauses over a file: {figures:?}");
}

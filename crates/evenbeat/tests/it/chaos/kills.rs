//! The scheduler is killed at any moment, now and then with its shims.

use std::fs::{self, File};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

use crate::chaos::dice::{Dice, bound};
use crate::chaos::fleet::{Witness, all_run, is_sound, node_of, progress};
use crate::chaos::history::Book;
use crate::chaos::node::{live_for, until};
use crate::chaos::processes::{self, signal};

/// A node that is killed while it forks leaves its locks to the fork, until that becomes another program.
#[test]
fn a_lock_that_is_held_for_a_moment_longer_is_waited_for() {
    let mut node = node_of(&[]);
    let lock = File::create(node.data("node.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    node.spawn();
    // It has come to the lock when its folders are there.
    until("a node that wants the lock", || node.data("locks").exists().then_some(()));
    live_for(100);
    drop(lock);
    node.wait_until_up();
    assert_eq!(node.stop(), Some(0), "{}", node.log());
}

/// Their ends are heard of while the next life is still taking over the last of them.
#[test]
fn many_runs_that_ended_while_nobody_looked_are_all_on_record() {
    let witnesses: Vec<Witness> = (0..50).map(|no| Witness::new(&format!("w{no}"), "1h", 60)).collect();
    let mut node = node_of(&witnesses);
    node.set("balance.first_run_within=1s");
    node.start();
    let book = Book::open(&node);
    for round in 0..3 {
        for it in &witnesses {
            node.ask("POST", &format!("/api/v1/jobs/{}/trigger", it.name), "{}");
        }
        until("all of them run", || {
            let counts = |it: &Witness| progress(&node.witnesses(), &it.name).is_some();
            witnesses.iter().all(counts).then_some(())
        });
        node.kill();
        until("the last of them has ended", || processes::of_runs(node.folder()).is_empty().then_some(()));
        node.start();
        until(&format!("all ends of round {round}"), || {
            node.get("/api/v1/runs?open=true&limit=1")["items"].as_array()?.is_empty().then_some(())
        });
    }
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
}

#[test]
fn ends_that_wait_behind_starts_are_on_record_after_a_kill() {
    let mut dice = Dice::new();
    let witnesses: Vec<Witness> = (0..40).map(|no| Witness::new(&format!("w{no}"), "1h", 0)).collect();
    let mut node = node_of(&witnesses);
    // Almost anything is more than it can take at once.
    node.set("dispatch.batch=2");
    node.start();
    let mut book = Book::open(&node);
    for _ in 0..3 {
        for it in &witnesses {
            let (status, answer) = node.ask("POST", &format!("/api/v1/jobs/{}/trigger", it.name), "{}");
            assert_eq!(status, 202, "{answer}");
            let asked = &mut book.0.get_mut(&it.name).unwrap().asked;
            asked.push(answer["id"].as_str().unwrap().to_owned());
        }
        live_for(dice.below(400));
        node.kill();
        node.start();
    }
    until("what was asked for", || {
        let wait = node.list("/api/v1/jobs?", "after").iter().any(|job| job["waiting_runs"] != 0);
        let open = node.get("/api/v1/runs?open=true&limit=1");
        (!wait && open["items"].as_array()?.is_empty()).then_some(())
    });
    let figures = is_sound(&mut node, &book);
    assert_eq!((figures.n_lost, figures.n_starts), (0, figures.n_runs), "{figures:?}");
    assert!(3 * witnesses.len() <= figures.n_runs, "{figures:?}");
}

/// The next life looks for its shim before that listens, and again before it makes an end of what is left.
#[test]
fn a_run_whose_shim_was_slow_to_start_is_not_taken_for_dead() {
    let witnesses = [Witness::new("slow", "1h", 100)];
    let mut node = node_of(&witnesses);
    node.env("EVENBEAT_TEST_STOP_AT", "shim.ordered:1");
    node.start();
    let book = Book::open(&node);
    node.ask("POST", "/api/v1/jobs/slow/trigger", "{}");
    let shim = until("a shim that stands still", || {
        let shims = processes::of_runs(node.folder());
        shims.into_iter().find(|it| processes::state(it.pid) == Some('T'))
    });
    node.kill();
    node.env("EVENBEAT_TEST_STOP_AT", "keep.alone:1");
    node.spawn();
    until("a node that has found no shim", || (processes::state(node.pid()) == Some('T')).then_some(()));
    signal(shim.pid, Signal::CONT);
    // A node that was stopped a moment too late has given the run up, and starts it again.
    until("the run begins or is given up", || {
        let is_given_up = fs::read_dir(node.data("runs"))
            .unwrap()
            .flatten()
            .any(|run| fs::metadata(run.path().join("began")).is_ok_and(|marker| marker.len() == 0));
        (is_given_up || progress(&node.witnesses(), "slow").is_some()).then_some(())
    });
    node.signal(Signal::CONT);
    node.wait_until_up();
    until("the run counts", || progress(&node.witnesses(), "slow"));
    let figures = is_sound(&mut node, &book);
    assert_eq!((figures.n_lost, figures.n_starts), (0, 1), "{figures:?}");
}

#[test]
fn a_scheduler_killed_at_any_moment_doubles_nothing_and_loses_nothing() {
    let mut dice = Dice::new();
    let (n_jobs, n_rounds) = (bound("KILL_JOBS", 30), bound("KILLS", 20));
    let witnesses: Vec<Witness> = (0..n_jobs)
        .map(|no| {
            let every = ["1s", "2s", "3s"][dice.below(3) as usize];
            Witness::new(&format!("w{no}"), every, dice.below(80))
        })
        .collect();
    let mut node = node_of(&witnesses);
    node.start();
    let book = Book::open(&node);
    let mut n_shims = 0;
    for _ in 0..n_rounds {
        live_for(dice.below(900));
        node.kill();
        if dice.one_in(10) {
            for shim in processes::of_runs(node.folder()).iter().filter(|it| it.is_shim) {
                signal(shim.pid, Signal::KILL);
                n_shims += 1;
            }
        }
        if dice.one_in(4) {
            live_for(dice.below(2_000));
        }
        node.spawn();
        if dice.one_in(2) {
            node.wait_until_up();
        }
    }
    node.wait_until_up();
    let names: Vec<&str> = witnesses.iter().map(|it| it.name.as_str()).collect();
    all_run(&node, &names);
    let figures = is_sound(&mut node, &book);
    assert!(figures.n_lost <= n_shims, "{n_shims} shims were killed: {figures:?}");
    eprintln!("{n_rounds} kills, {n_shims} of shims: {figures:?}");
}

//! Runs that a worker starts: the node owns them until one has, and no longer than it may (X3, X5).

use super::harness::{Harness, ME, named};
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::engine::{Event, Settings};
use crate::ids::{Fence, RunId};
use crate::job::sample::{instant, length};
use crate::job::{Job, QueueTarget, Target};
use crate::lease::Timings;
use crate::store::{Beat, EndAnswer, RunPhase, RunRow};

/// A node that carries one run at a time and waits a minute for a worker.
fn settings() -> Settings {
    let settings = Settings::new("n1".parse().unwrap(), Some(Timings::default()), 1);
    Settings { start_within: length("1m"), ..settings }
}

fn queued() -> Job {
    Job { target: Target::Queue(QueueTarget::default()), ..named("a", "every 1h", "30m") }
}

/// It has published a run of `a`; `b`, a command, waits for room.
fn published() -> Harness {
    let mut harness = Harness::with(settings(), &[queued(), named("b", "every 1h", "20m")], "10:00");
    assert_eq!(harness.starts(), "a");
    let run = harness.run_of("a");
    harness.runs.get_mut(&run).unwrap().phase = RunPhase::Published;
    harness
}

/// Beats every five seconds until then, and returns all commands.
fn live_until(harness: &mut Harness, time: &str) -> String {
    let mut said = Vec::new();
    while harness.now().wall < instant(time) {
        harness.pass_until((harness.now().wall + length("5s")).min(instant(time)));
        said.push(harness.tell(Event::Woke));
        said.push(harness.beat());
    }
    said.join("; ")
}

#[test]
fn units_are_held_until_a_worker_has_won() {
    let mut harness = published();
    let said = live_until(&mut harness, "10:00:30");
    assert!(!said.contains("claim"), "there is no room yet: {said}");
    // From its start on it is the worker's own.
    let run = harness.run_of("a");
    harness.runs.remove(&run);
    harness.pass_to("10:00:35");
    let said = harness.beat();
    assert!(said.contains("claim b"), "{said}");
    assert!(!said.contains("revoke") && !said.contains("end a"), "there is nothing to be ended here: {said}");
    let said = live_until(&mut harness, "10:02");
    assert!(!said.contains("end a"), "nor later: {said}");
}

#[test]
fn a_run_that_no_worker_starts_is_given_up_once() {
    let mut harness = published();
    let said = live_until(&mut harness, "10:00:59");
    assert!(!said.contains("end a"), "{said}");
    let said = harness.at("10:01");
    assert!(said.contains("[no worker has started the run]"), "{said}");
    assert!(said.contains("end a lost"), "{said}");
    let run = harness.run_of("a");
    // One was quicker.
    harness.runs.remove(&run);
    let said = harness.tell(Event::EndAnswered { runs: vec![run], answer: Ok(vec![EndAnswer::Late]) });
    assert!(!said.contains("end a"), "{said}");
    let said = live_until(&mut harness, "10:03");
    assert!(!said.contains("end a") && !said.contains("no worker"), "{said}");
}

#[test]
fn a_frozen_node_counts_no_time_against_workers() {
    let mut harness = published();
    // The store is out of reach from 10:00 on, so trust ends at 10:00:20.
    assert!(!harness.at("10:00:30").contains("end a"));
    assert!(!harness.at("10:05").contains("end a"));
    assert!(!harness.beat().contains("end a"));
    let said = live_until(&mut harness, "10:06");
    assert!(said.contains("end a lost"), "{said}");
}

#[test]
fn what_was_granted_unheard_and_published_is_given_up_too() {
    let mut harness = Harness::with(settings(), &[named("b", "every 1h", "20m"), queued()], "10:30");
    let row = RunRow { phase: RunPhase::Published, ..unheard(&harness) };
    harness.runs.insert(row.run, row);
    let said = live_until(&mut harness, "10:00:59");
    assert!(!said.contains("end a"), "a worker may still start it: {said}");
    let said = live_until(&mut harness, "10:01:05");
    assert!(said.contains("end a lost"), "{said}");
    // While its message is not out, it is taken back at once.
    let mut harness = Harness::with(settings(), &[queued()], "10:30");
    let row = unheard(&harness);
    harness.runs.insert(row.run, row);
    harness.pass_to("10:00:05");
    assert!(harness.beat().contains("end a unstarted"));
}

fn unheard(harness: &Harness) -> RunRow {
    let mut other = Harness::with(settings(), &[queued()], "10:00");
    assert_eq!(other.starts(), "a");
    let row = other.runs[&other.run_of("a")].clone();
    RunRow { run: RunId(7), fence: Fence(1), phase: RunPhase::Claimed, claimed_at: harness.now().wall, ..row }
}

#[test]
fn a_new_life_waits_for_workers_like_the_one_before() {
    let mut harness = Harness::with(settings(), &[], "10:30");
    harness.rows = [queued(), named("b", "every 1h", "20m")]
        .into_iter()
        .map(|job| (job.key.clone(), super::harness::row(&job, "10:00")))
        .collect();
    let row = RunRow { phase: RunPhase::Published, ..unheard(&harness) };
    harness.rows.get_mut("a").unwrap().n_open = 1;
    harness.runs.insert(row.run, row.clone());
    let joined = Event::Joined {
        session: ME,
        began_at: harness.now().boot,
        epoch: harness.epoch,
        is_open: true,
        store_now: harness.now().wall,
        adopted: vec![row],
    };
    harness.tell(joined);
    harness.beat();
    assert!(!harness.load().contains("claim"), "it holds the only unit");
    let said = live_until(&mut harness, "10:00:59");
    assert!(!said.contains("claim") && !said.contains("end a"), "{said}");
    let said = live_until(&mut harness, "10:01:05");
    assert!(said.contains("end a lost") && said.contains("claim b"), "{said}");
}

#[test]
fn one_that_nobody_has_begun_can_be_cancelled_here() {
    let mut harness = published();
    let run = harness.run_of("a");
    harness.runs.get_mut(&run).unwrap().is_cancel_asked = true;
    harness.pass_to("10:00:05");
    let said = harness.beat();
    assert!(said.contains("end a cancelled"), "{said}");
    assert!(!said.contains("stop"), "{said}");
}

#[test]
fn one_that_nobody_has_begun_waits_for_the_end_of_a_blackout() {
    let mut job = queued();
    let period =
        BlackoutPeriod::new("10:01".parse().unwrap(), "10:40".parse().unwrap(), Weekdays::ALL).unwrap();
    job.blackouts = Blackouts::new(vec![period]).unwrap();
    job.estimate = Some(length("10s"));
    let settings = Settings { start_within: length("5m"), ..settings() };
    let mut harness = Harness::with(settings, &[job], "10:00");
    assert_eq!(harness.starts(), "a");
    let said = live_until(&mut harness, "10:00:59");
    assert!(!said.contains("end a"), "{said}");
    let said = harness.at("10:01");
    assert!(said.contains("end a unstarted"), "{said}");
}

#[test]
fn a_session_that_died_has_nothing_of_it_to_kill() {
    let mut harness = published();
    harness.pass_to("10:00:05");
    assert!(harness.tell(Event::Woke).contains("beat"));
    let said = harness.tell(Event::Beaten { began_at: harness.now().boot, answer: Ok(Beat::Dead) });
    assert!(!said.contains("revoke") && !said.contains("end a"), "{said}");
}

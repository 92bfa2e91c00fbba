//! Trust, silence, takeover (L1 to L6), as one engine lives them.

use super::harness::{Harness, ME, named};
use crate::engine::{Event, Settings};
use crate::ids::RunId;
use crate::job::Job;
use crate::job::sample::instant;
use crate::lease::{Epoch, Timings};
use crate::run::Outcome;
use crate::store::{Beat, Claims, EndAnswer, RunPhase, RunRow, StoreDown};

fn jobs() -> Vec<Job> {
    vec![named("a", "every 1h", "30m"), named("b", "every 1h", "20m")]
}

/// A node of a cluster: it beats every 5 s, trusts for 20 s and claims for 10 s after a beat.
fn settings() -> Settings {
    Settings::new("n1".parse().unwrap(), Some(Timings::default()), 4)
}

fn running() -> Harness {
    let mut harness = Harness::with(settings(), &jobs(), "10:00");
    assert_eq!(harness.starts(), "a b");
    harness
}

fn down<T>() -> Result<T, StoreDown> {
    Err(StoreDown("no answer".to_owned()))
}

#[test]
fn nothing_is_claimed_before_a_beat_and_before_the_fleet_is_known() {
    let mut harness = Harness::with(settings(), &[], "10:00");
    harness.rows =
        jobs().into_iter().map(|job| (job.key.clone(), super::harness::row(&job, "10:00"))).collect();
    let joined = Event::Joined {
        session: ME,
        began_at: harness.now().boot,
        epoch: Epoch(1),
        is_open: true,
        store_now: harness.now().wall,
        adopted: Vec::new(),
    };
    assert_eq!(harness.tell(joined), "beat; watch; changes all");
    assert_eq!(harness.load(), "", "no beat yet");
    assert_eq!(harness.beat(), "extend 20s; claim a b");
}

#[test]
fn trust_ends_claims_first_then_runs() {
    let mut harness = Harness::with(settings(), &jobs(), "10:00:12");
    assert_eq!(harness.at("10:00:05"), "beat; watch; changes since");
    harness.tell(Event::Beaten { began_at: harness.now().boot, answer: down() });
    let said = harness.at("10:00:12");
    assert!(!said.contains("claim"), "half of the trust is used up: {said}");
    assert_eq!(harness.beat(), "extend 20s; claim a b");
}

#[test]
fn what_was_granted_too_late_is_given_back_and_not_started() {
    let mut harness = Harness::with(settings(), &jobs(), "10:00");
    let rows: Vec<_> = harness.rows.values().cloned().collect();
    harness.pass_to("10:00:20");
    let claims = vec![("a".parse().unwrap(), RunId(1)), ("b".parse().unwrap(), RunId(2))];
    let answers = rows
        .into_iter()
        .map(|mut row| {
            row.version.0 += 1;
            row.n_open = 1;
            crate::store::ClaimAnswer::Granted(row)
        })
        .collect();
    let said = harness.tell(Event::Claimed { claims, answer: Ok(Claims::Answered(answers)) });
    assert!(said.contains("end a unstarted b unstarted"), "{said}");
    assert!(!said.contains("start a"), "{said}");
}

#[test]
fn a_held_run_that_the_store_does_not_know_is_revoked() {
    let mut harness = running();
    harness.pass_to("10:00:05");
    let lost = harness.run_of("a");
    harness.runs.remove(&lost);
    let said = harness.beat();
    assert!(said.contains(&format!("revoke run {}", lost.0)), "{said}");
    assert!(!said.contains("revoke b"));
}

#[test]
fn what_is_not_ours_any_more_is_revoked_before_the_rest_thaws() {
    let mut harness = running();
    // It stood still over a failover that has lost a run, and for the whole quarantine.
    harness.pass_to("10:02");
    harness.epoch = Epoch(2);
    let lost = harness.run_of("a");
    harness.runs.remove(&lost);
    let said = harness.beat();
    assert!(said.starts_with(&format!("revoke run {}; extend 20s", lost.0)), "{said}");
}

#[test]
fn a_beat_that_was_begun_before_a_run_was_granted_says_nothing_about_it() {
    let mut harness = Harness::with(settings(), &jobs(), "10:00");
    let began_at = harness.now().boot;
    assert_eq!(harness.starts(), "a b");
    let now = harness.now().wall;
    let alive = Beat::Alive { epoch: Epoch(1), is_open: true, now, is_draining: false, runs: Vec::new() };
    assert_eq!(harness.tell(Event::Beaten { began_at, answer: Ok(alive) }), "extend 20s");
}

#[test]
fn a_run_of_ours_that_nobody_started_is_given_back() {
    let mut harness = running();
    harness.pass_to("10:00:05");
    // One was granted, and the answer was lost; of another, a failover has lost the end.
    for (number, phase) in [(7, RunPhase::Claimed), (8, RunPhase::Running)] {
        let row = harness.runs[&harness.run_of("a")].clone();
        harness
            .runs
            .insert(RunId(number), RunRow { run: RunId(number), key: "b".parse().unwrap(), phase, ..row });
    }
    let said = harness.beat();
    assert!(said.contains("end b unstarted b lost"), "{said}");
}

#[test]
fn a_session_that_was_fenced_off_kills_everything_and_begins_anew() {
    let mut harness = running();
    harness.pass_to("10:01");
    let (a, b) = (harness.run_of("a"), harness.run_of("b"));
    let said = harness.tell(Event::Beaten { began_at: harness.now().boot, answer: Ok(Beat::Dead) });
    assert!(said.contains("revoke a; revoke b"), "{said}");
    assert_eq!(harness.tell(Event::Woke), "");
    // What never began is offered back; whether it still is ours to give, the store knows.
    assert_eq!(harness.tell(Event::NotStarted { run: a }), "end a unstarted");
    assert_eq!(harness.tell(Event::NotStarted { run: b }), "");
    let late = || Ok(vec![EndAnswer::Late]);
    assert_eq!(harness.tell(Event::EndAnswered { runs: vec![a], answer: late() }), "end b unstarted");
    assert_eq!(harness.tell(Event::EndAnswered { runs: vec![b], answer: late() }), "join");
}

#[test]
fn in_a_new_epoch_nothing_is_claimed_and_what_runs_goes_on() {
    let mut harness = running();
    harness.pass_to("10:00:05");
    (harness.epoch, harness.is_open) = (Epoch(2), false);
    let said = harness.beat();
    assert!(said.contains("extend 20s"), "{said}");
    assert!(said.contains("changes all"), "everything is read again: {said}");
    assert!(!said.contains("revoke"), "{said}");
}

#[test]
fn what_is_frozen_stays_so_in_a_new_epoch_until_the_quarantine_is_over() {
    let mut harness = running();
    harness.pass_to("10:00:30");
    (harness.epoch, harness.is_open) = (Epoch(2), false);
    assert!(!harness.beat().contains("extend"), "trust had run out");
    let mut minute = 30;
    let mut thawed_at = None;
    while thawed_at.is_none() && minute < 59 {
        minute += 1;
        harness.pass_to(&format!("10:00:{minute}"));
        if harness.beat().contains("extend") {
            thawed_at = Some(minute);
        }
    }
    assert_eq!(thawed_at, Some(57), "1.05 times 25 s after it was first seen");
}

#[test]
fn what_was_taken_over_in_a_young_epoch_waits_like_anything_frozen() {
    let harness = running();
    let adopted: Vec<_> = harness.runs.values().cloned().collect();
    let mut harness = Harness::with(settings(), &jobs(), "10:00");
    (harness.epoch, harness.is_open) = (Epoch(2), false);
    for row in &adopted {
        harness.runs.insert(row.run, row.clone());
    }
    let said = harness.join(adopted.clone());
    assert!(!said.contains("extend"), "{said}");
    (harness.epoch, harness.is_open) = (Epoch(2), true);
    assert!(harness.beat().contains("extend"));
}

#[test]
fn what_was_taken_over_takes_its_room_though_its_job_was_removed_meanwhile() {
    let narrow = || Settings::new("n1".parse().unwrap(), Some(Timings::default()), 1);
    let mut before = Harness::with(narrow(), &jobs(), "10:00");
    assert_eq!(before.starts(), "a");
    let adopted: Vec<_> = before.runs.values().cloned().collect();

    let mut harness = Harness::with(narrow(), &[], "10:00");
    harness.rows = before.rows.clone();
    let removed = harness.rows.values_mut().find(|row| row.job.key.as_str() == "a").unwrap();
    removed.is_deleted = true;
    for row in &adopted {
        harness.runs.insert(row.run, row.clone());
    }
    harness.join(adopted);
    assert_eq!(harness.starts(), "", "one unit, and a run of a removed job holds it");
    assert_eq!(harness.ends("a", Outcome::Succeeded), "b");
}

#[test]
fn what_a_failover_has_lost_is_revoked_before_anything_is_thawed() {
    let mut harness = running();
    let lost = harness.run_of("a");
    // No beat gets through until everything is frozen; meanwhile another primary, which has never heard of
    // one of the runs, has opened its epoch, and anyone may have claimed that job.
    harness.pass_to("10:00:40");
    (harness.epoch, harness.is_open) = (Epoch(2), true);
    harness.runs.remove(&lost);
    let said = harness.beat();
    let place = |what: &str| said.find(what).unwrap_or_else(|| panic!("no `{what}`: {said}"));
    assert!(place("revoke") < place("extend"), "{said}");
}

#[test]
fn orphans_are_released_and_not_started() {
    let mut harness = Harness::with(settings(), &jobs()[..1], "10:00");
    assert_eq!(harness.starts(), "a");
    harness.pass_to("10:00:05");
    let mut orphan = harness.runs[&harness.run_of("a")].clone();
    orphan.run = RunId(55);
    orphan.session = crate::ids::SessionId(9);
    let said = harness.watch(vec![orphan]);
    assert!(said.contains("end a release"), "{said}");
}

#[test]
fn an_answer_that_was_long_on_its_way_does_not_put_the_clock_back() {
    let mut harness = running();
    let told = |harness: &mut Harness, began_at, now| {
        let runs = harness.runs.values().cloned().collect();
        let alive = Beat::Alive { epoch: Epoch(1), is_open: true, now, is_draining: false, runs };
        harness.tell(Event::Beaten { began_at, answer: Ok(alive) });
        (harness.engine.time(harness.now()) - instant("10:00")).to_string()
    };
    let began_at = harness.now().boot;
    // The node stood still: the answer from 10:00:01 is heard at 10:00:40.
    harness.pass_to("10:00:40");
    assert_eq!(told(&mut harness, began_at, instant("10:00:01")), "40s");
    // The store's clock has been set: no question and answer allow for what was believed.
    let began_at = harness.now().boot;
    harness.pass_to("10:00:41");
    assert_eq!(told(&mut harness, began_at, instant("10:05")), "5m");
    let began_at = harness.now().boot;
    harness.pass_to("10:00:42");
    assert_eq!(told(&mut harness, began_at, instant("10:00:30")), "31s");
}

/// Whether the engine claims anything now.
fn claims(said: &str) -> bool {
    said.split("; ").any(|it| it.starts_with("claim"))
}

#[test]
fn a_drained_node_claims_nothing_with_leases_and_without() {
    for lease in [None, Some(Timings::default())] {
        let settings = Settings::new("n1".parse().unwrap(), lease, 4);
        let mut harness = Harness::with(settings, &jobs(), "10:00:03");
        harness.pass_to("10:00:02");
        harness.is_draining = true;
        harness.beat();
        let said = harness.at("10:00:04");
        assert!(!claims(&said), "{said}");
        harness.is_draining = false;
        let said = harness.beat();
        assert!(claims(&said), "{said}");
    }
}

#[test]
fn a_claim_that_is_refused_because_of_a_drain_waits_for_the_beat_that_ends_it() {
    let mut harness = Harness::with(Settings::new("n1".parse().unwrap(), None, 4), &jobs(), "10:00");
    let asked = ["a", "b"].map(|key| (key.parse().unwrap(), RunId(7)));
    let answer = Ok(Claims::Draining);
    let said = harness.tell(Event::Claimed { claims: asked.to_vec(), answer });
    assert!(!claims(&said), "{said}");
    assert!(!claims(&harness.at("10:00:02")));
    let said = harness.beat();
    assert!(claims(&said), "{said}");
}

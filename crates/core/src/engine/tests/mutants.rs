//! Rules that are held twice, or whose absence no world shows from outside: each taken out makes a difference here.

use std::collections::BTreeMap;

use super::harness::{Harness, named};
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::engine::{Event, Settings};
use crate::ids::{RunId, SessionId};
use crate::job::Job;
use crate::job::sample::instant;
use crate::lease::{BeatAnswer, Epoch, LeaseOwner, LeaseState, Reign, SessionBeat, Timings, Watcher};
use crate::rules::{Rule, Rules};
use crate::run::Outcome;
use crate::store::{ClaimAnswer, Claims, EndAnswer, StoreDown};
use crate::time::BootTime;

#[track_caller]
fn check(rule: Rule, story: fn(Rules) -> String, expected: &str) {
    assert_eq!(story(Rules::ALL), expected);
    assert_ne!(story(Rules::without(rule)), expected, "nobody notices that {rule:?} is missing");
}

fn node(rules: Rules, lease: Option<Timings>, capacity: u32) -> Settings {
    Settings { rules, ..Settings::new("n1".parse().unwrap(), lease, capacity) }
}

fn jobs() -> Vec<Job> {
    vec![named("a", "every 1h", "30m")]
}

#[test]
fn half_of_the_trust_is_not_enough_to_claim() {
    fn story(rules: Rules) -> String {
        let mut harness = Harness::with(node(rules, Some(Timings::default()), 4), &jobs(), "10:00:12");
        harness.at("10:00:05");
        harness.tell(Event::Beaten { began_at: harness.now().boot, answer: Err(StoreDown(String::new())) });
        // Another answer shows that the store is there, but no beat has succeeded since.
        harness.pass_to("10:00:11");
        harness.tell(Event::Beaten {
            began_at: BootTime::from_millis(1_000_000),
            answer: Ok(crate::store::Beat::Alive {
                epoch: Epoch(1),
                is_open: true,
                now: harness.now().wall,
                is_draining: false,
                runs: Vec::new(),
            }),
        });
        let said = harness.at("10:00:12");
        said.split("; ").filter(|it| it.starts_with("claim")).collect()
    }
    check(Rule::ClaimInTrust, story, "");
}

#[test]
fn what_is_granted_without_trust_is_not_started() {
    fn story(rules: Rules) -> String {
        let mut harness = Harness::with(node(rules, Some(Timings::default()), 4), &jobs(), "10:00");
        let mut row = harness.rows["a"].clone();
        row.version.0 += 1;
        row.n_open = 1;
        harness.pass_to("10:00:20");
        let claims = vec![("a".parse().unwrap(), RunId(1))];
        let answer = Ok(Claims::Answered(vec![ClaimAnswer::Granted(row)]));
        let said = harness.tell(Event::Claimed { claims, answer });
        said.split("; ").filter(|it| it.starts_with("start") || it.starts_with("end")).collect()
    }
    check(Rule::StartInTrust, story, "end a unstarted");
}

#[test]
fn nobody_is_fenced_off_in_a_closed_epoch() {
    fn story(rules: Rules) -> String {
        let timings = Timings::default();
        let mut watcher = Watcher::new(timings, SessionId(1)).by(rules);
        let other = [SessionBeat { session: SessionId(2), beat: 7 }];
        let at = |seconds: i64| BootTime::from_millis(seconds * 1_000);
        for seconds in (0..=60).step_by(5) {
            watcher.read(at(seconds), Epoch(2), &other);
        }
        let closed = Reign::new(Epoch(2), false, at(0));
        watcher.silent(at(60), &closed).len().to_string()
    }
    check(Rule::FenceOnlyInOpenEpoch, story, "0");
}

#[test]
fn what_is_frozen_waits_for_the_quarantine() {
    fn story(rules: Rules) -> String {
        let timings = Timings::default();
        let mut owner = LeaseOwner::new(timings).by(rules);
        let at = |seconds: i64| BootTime::from_millis(seconds * 1_000);
        let alive = |epoch| BeatAnswer::Alive { epoch, is_open: epoch == Epoch(1), runs: BTreeMap::new() };
        owner.beat_answered(at(0), at(0), &alive(Epoch(1)), &BTreeMap::new());
        owner.beat_answered(at(30), at(30), &alive(Epoch(2)), &BTreeMap::new());
        format!("{}", owner.lease_state(at(31)) == LeaseState::Frozen)
    }
    check(Rule::ThawAfterQuarantine, story, "true");
}

fn running(rules: Rules, job: Job) -> Harness {
    let mut harness = Harness::with(node(rules, None, 4), &[job], "10:00");
    harness.starts();
    harness.started("a");
    harness
}

#[test]
fn ends_are_thought_over_and_sent_again() {
    fn stale(rules: Rules) -> String {
        let mut harness = running(rules, named("a", "every 1h", "1m"));
        let run = harness.run_of("a");
        harness.pass_to("10:01");
        harness.tell(Event::Ended { run, over: harness.over(Outcome::Succeeded) });
        let mut row = harness.rows["a"].clone();
        row.version.0 += 1;
        harness.tell(Event::EndAnswered { runs: vec![run], answer: Ok(vec![EndAnswer::Stale(row)]) })
    }
    fn unheard(rules: Rules) -> String {
        let mut harness = running(rules, named("a", "every 1h", "1m"));
        let run = harness.run_of("a");
        harness.pass_to("10:01");
        harness.tell(Event::Ended { run, over: harness.over(Outcome::Succeeded) });
        let answer = Err(StoreDown(String::new()));
        harness.tell(Event::EndAnswered { runs: vec![run], answer });
        harness.beat()
    }
    check(Rule::RethinkStaleEnd, stale, "end a succeeded");
    check(Rule::ResendEnd, unheard, "end a succeeded");
}

#[test]
fn a_blackout_ends_what_runs() {
    fn story(rules: Rules) -> String {
        let mut job = named("a", "every 1h", "1m");
        let period = BlackoutPeriod::new("10:20".parse().unwrap(), "10:40".parse().unwrap(), Weekdays::ALL);
        job.blackouts = Blackouts::new(vec![period.unwrap()]).unwrap();
        let said = running(rules, job).at("10:20");
        said.split("; ").filter(|it| it.starts_with("stop")).collect()
    }
    check(Rule::BlackoutEndsRun, story, "stop a blackout");
}

#[test]
fn a_failure_does_not_suspend_the_schedule() {
    fn story(rules: Rules) -> String {
        let mut harness = running(rules, named("a", "every 1m", "1s"));
        harness.pass_to("10:00:10");
        harness.ends("a", Outcome::Failed);
        let said = harness.at("10:01");
        said.split("; ").filter(|it| it.starts_with("claim")).collect()
    }
    check(Rule::RegularAfterFailure, story, "claim a");
}

#[test]
fn late_work_has_only_its_share() {
    fn story(rules: Rules) -> String {
        let late = (0..6).map(|n| named(&format!("late{n}"), "every 10m", "30m"));
        let savable = (0..4).map(|n| named(&format!("savable{n}"), "every 4h", "30m"));
        let jobs: Vec<Job> = late.chain(savable).collect();
        let mut harness = Harness::with(node(rules, None, 4), &jobs, "10:00");
        assert_eq!(harness.now().wall, instant("10:00"));
        harness.starts().split(' ').filter(|it| it.starts_with("late")).count().to_string()
    }
    check(Rule::LateShare, story, "2");
}

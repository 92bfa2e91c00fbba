use evenbeat_core::ids::ExtraId;
use evenbeat_core::job::Extra;
use evenbeat_core::run::Trigger;
use evenbeat_core::store::RunPhase;

use super::*;
use crate::checkers::fact_builder::{FactBuilder, cron, every, fresh, instant};
use crate::checkers::fake_store::FakeStore;

const OVER: RunPhase = RunPhase::Ended(Outcome::Succeeded);
const FAILED: RunPhase = RunPhase::Ended(Outcome::Failed);
const LOST: RunPhase = RunPhase::Ended(Outcome::Lost);

#[track_caller]
fn check(fact_builder: FactBuilder, fake_store: &FakeStore, expected: &[&str]) {
    fact_builder.check_with(fake_store, Conservation::new(), expected);
}

/// A job every 10 s from 10:00 on; it is 35 s past.
fn told() -> FactBuilder {
    FactBuilder::new().put(every("a", 10_000)).at(35_000)
}

/// Its first two occurrences have a run.
fn two_served(pending: i64) -> FakeStore {
    FakeStore::default()
        .job(every("a", 10_000), 0, Some(pending))
        .run(1, "a", 0, OVER)
        .run(2, "a", 10_000, FAILED)
}

#[test]
fn a_run_a_record_or_pending() {
    check(told(), &two_served(30_000).record("a", 20_000, 20_000, 1), &[]);
    check(told(), &two_served(20_000), &[]);
    check(told(), &two_served(10_000), &[]);
    check(told(), &two_served(50_000).record("a", 20_000, 40_000, 3), &[]);
    check(told(), &two_served(30_000).run(3, "a", 20_000, RunPhase::Running), &[]);
    check(told(), &two_served(30_000).waiting(20_000, Trigger::Retry), &[]);
    let minutely = FactBuilder::new().put(cron("c", "* * * * *")).at(150_000);
    let fake_store =
        |n| FakeStore::default().job(cron("c", "* * * * *"), 0, Some(120_000)).record("c", 0, 60_000, n);
    check(minutely, &fake_store(2), &[]);
}

#[test]
fn what_has_neither_is_caught() {
    check(
        told(),
        &two_served(30_000),
        &[
            "at 35s: a: 1 occurrences from 2026-02-04T10:00:20Z on have neither run nor record, and are not pending (pending 2026-02-04T10:00:30Z)",
        ],
    );
    check(
        told(),
        &FakeStore::default().job(every("a", 10_000), 0, Some(30_000)),
        &["a: 3 occurrences from 2026-02-04T10:00:00Z on"],
    );
    check(told(), &FakeStore::default().job(every("a", 10_000), 0, None), &["a: 4 occurrences from"]);
    check(told(), &FakeStore::default(), &["a: was put and not removed, and the store does not have it"]);
    // A run that was taken back does not count.
    let back = told().granted(2, "a", 2).taken_back(2);
    check(back, &two_served(20_000), &["a: 1 occurrences from 2026-02-04T10:00:10Z on"]);
    check(
        FactBuilder::new().put(cron("c", "0 4 * * *")),
        &FakeStore::default().job(cron("c", "0 4 * * *"), 0, Some(0)),
        &["c: nobody taught this checker to read `0 4 * * *`"],
    );
}

#[test]
fn nothing_counts_twice() {
    let fake_store = || two_served(40_000).record("a", 20_000, 30_000, 2);
    check(
        told(),
        &fake_store().record("a", 30_000, 30_000, 1),
        &["a: the occurrence of 2026-02-04T10:00:30Z lies in 2 records"],
    );
    check(
        told(),
        &fake_store().run(3, "a", 20_000, FAILED),
        &["the occurrence of 2026-02-04T10:00:20Z lies in a record and has a run"],
    );
    check(
        told(),
        &fake_store().run(3, "a", 0, OVER),
        &["the occurrence of 2026-02-04T10:00:00Z succeeded 2 times"],
    );
    check(told(), &fake_store().run(3, "a", 0, LOST), &[]);
    check(
        told(),
        &two_served(20_000).record("a", 20_000, 20_000, 1),
        &["the occurrence of 2026-02-04T10:00:20Z is pending and lies in a record"],
    );
    check(told(), &two_served(0), &["is pending and has succeeded", "comes after what is open"]);
    check(told(), &two_served(10_000).record("a", 20_000, 20_000, 1), &["comes after what is open"]);
}

#[test]
fn a_record_counts_what_lies_in_it() {
    let fake_store = |first, last, count| two_served(20_000).record("a", first, last, count);
    check(
        told(),
        &fake_store(20_000, 30_000, 3),
        &["the record missed(late) of 2026-02-04T10:00:20Z to 2026-02-04T10:00:30Z says 3, but 2 lie there"],
    );
    check(told(), &fake_store(20_000, 30_000, 1), &["says 1, but 2 lie there"]);
    check(told(), &fake_store(20_001, 20_001, 1), &["says 1, but no placement of the job had both"]);
    check(told(), &fake_store(-10_000, -10_000, 1), &["says 1, but no placement of the job had both"]);
    check(
        told(),
        &two_served(20_001),
        &["2026-02-04T10:00:20.001Z is pending, and no occurrence of its placement", "a: 1 occurrences"],
    );
}

#[test]
fn one_may_be_kept_for_its_turn() {
    let kept = |settled| two_served(20_000).but(move |row| row.state.settled_until = Some(instant(settled)));
    check(told(), &kept(35_000).record("a", 30_000, 30_000, 1), &[]);
    check(told(), &kept(35_000), &["a: 1 occurrences from 2026-02-04T10:00:30Z on"]);
    check(told(), &kept(25_000), &[]);
}

#[test]
fn a_new_placement_settles_the_old_one() {
    let moved = || {
        FactBuilder::new().put(every("a", 10_000)).at(25_000).put_at(every("a", 10_000), 33_000).at(50_000)
    };
    let fake_store = || {
        let fake_store =
            FakeStore::default().job(every("a", 10_000), 33_000, Some(43_000)).run(1, "a", 0, OVER);
        fake_store.run(2, "a", 10_000, OVER).run(3, "a", 33_000, OVER)
    };
    check(moved(), &fake_store().record("a", 20_000, 20_000, 1), &[]);
    check(moved(), &fake_store(), &["a: 1 occurrences from 2026-02-04T10:00:20Z on"]);
    check(
        moved(),
        &fake_store().record("a", 20_000, 20_000, 1).record("a", 23_000, 23_000, 1),
        &["says 1, but no placement of the job had both"],
    );
    // A new placement at the very instant of an occurrence: the last of the old, and the first of the new.
    let at_once =
        || FactBuilder::new().put(every("a", 10_000)).at(20_000).put_at(every("a", 7_000), 20_000).at(21_000);
    let two = |pending| {
        let fake_store =
            FakeStore::default().job(every("a", 7_000), 20_000, Some(pending)).run(1, "a", 0, OVER);
        fake_store.run(2, "a", 10_000, OVER).record("a", 20_000, 20_000, 1)
    };
    check(at_once(), &two(20_000), &[]);
    check(at_once(), &two(27_000).run(3, "a", 20_000, OVER), &[]);
    // An edit that leaves the placement alone settles nothing.
    let edited = FactBuilder::new().put(every("a", 10_000)).at(25_000).put(every("a", 10_000)).at(35_000);
    check(edited, &two_served(20_000), &[]);
    // The move was lost: the old rhythm goes on.
    let lost = || moved().failed_over(24_000, 2);
    check(lost(), &two_served(50_000).record("a", 20_000, 40_000, 3), &[]);
    check(
        lost(),
        &fake_store().record("a", 20_000, 20_000, 1),
        &["2026-02-04T10:00:43Z is pending, and no occurrence", "a: 2 occurrences"],
    );
}

#[test]
fn what_is_removed_owes_nothing_more() {
    let removed = || told().removed("a");
    let gone = || FakeStore::default().run(1, "a", 0, OVER);
    check(removed(), &gone(), &[]);
    check(removed(), &gone().run(2, "a", 20_000, OVER), &[]);
    check(
        removed(),
        &gone().run(2, "a", 30_000, OVER),
        &["a: 2 occurrences from 2026-02-04T10:00:10Z on have neither"],
    );
    check(removed(), &gone().record("a", 0, 10_000, 2), &["lies in a record and has a run"]);
    // One that comes back may be due at an instant of its earlier life; within one life it may not.
    let again = || told().removed("a").put(every("a", 10_000));
    check(again(), &two_served(20_000).record("a", 10_000, 10_000, 1), &[]);
    check(again(), &two_served(20_000).run(3, "a", 0, OVER), &[]);
    // What the new life serves says nothing about the old one.
    let later = told().removed("a").at(40_000).put_at(every("a", 10_000), 50_000).at(55_000);
    check(later, &gone().job(every("a", 10_000), 50_000, Some(60_000)).run(2, "a", 50_000, OVER), &[]);
    check(told().put_unplaced(every("a", 10_000)), &gone().job(every("a", 10_000), 0, None), &[]);
}

#[test]
fn a_run_that_was_asked_for_is_had_once() {
    let asked = || FactBuilder::new().put(every("a", 60_000)).at(5_000).triggered("a").at(9_000);
    let fake_store = || FakeStore::default().job(every("a", 60_000), 0, Some(0));
    let had = |phase| fake_store().run_of(1, "a", 5_000, phase, Trigger::Manual);
    check(asked(), &had(OVER), &[]);
    check(asked(), &had(RunPhase::Claimed), &[]);
    check(asked(), &had(LOST), &[]);
    check(asked(), &fake_store().waiting(5_000, Trigger::Manual), &[]);
    let again = |fake_store: FakeStore, phase| {
        fake_store.run_of(2, "a", 5_000, phase, Trigger::Manual).run_but(2, |row| row.due.attempt = 2)
    };
    let waits_again = |fake_store: FakeStore| {
        fake_store.but(|row| {
            let waiting = Extra { attempt: 1, ..Extra::manual(ExtraId(9), instant(5_000)) };
            row.state.extras.push(waiting);
        })
    };
    check(asked(), &again(had(LOST), OVER), &[]);
    check(asked(), &again(had(FAILED), OVER), &[]);
    check(asked(), &again(had(FAILED), RunPhase::Claimed), &[]);
    check(asked(), &waits_again(had(FAILED)), &[]);
    let left = "a: 1 runs were asked for at 2026-02-04T10:00:05Z, and 2 have succeeded, are open or wait";
    check(asked(), &again(had(OVER), OVER), &[left]);
    check(asked(), &waits_again(again(had(FAILED), OVER)), &[left]);
    check(
        asked(),
        &fake_store(),
        &["a: 1 runs were asked for at 2026-02-04T10:00:05Z, and 0 were had or still wait"],
    );
    check(asked(), &fake_store().waiting(5_001, Trigger::Manual), &["and 0 were had or still wait"]);
    check(
        asked(),
        &had(OVER).waiting(5_000, Trigger::Manual),
        &["a: 1 runs were asked for at 2026-02-04T10:00:05Z, and there are 2"],
    );
    check(asked(), &had(OVER).run_of(2, "a", 5_000, FAILED, Trigger::Manual), &["and there are 2"]);
    check(asked().triggered("a").at(9_000).failed_over(6_000, 2), &had(OVER), &[]);
    check(asked().removed("a"), &FakeStore::default(), &[]);
}

#[test]
fn a_fresh_job_has_one_occurrence_after_the_other() {
    let told = || {
        FactBuilder::new().put(fresh("f", 60_000, 1_000)).at(1_000).granted_for(
            1,
            "f",
            1_000,
            Trigger::Scheduler,
        )
    };
    let fake_store = FakeStore::default().job(fresh("f", 60_000, 1_000), 0, Some(90_000));
    let next = |due| told().at(2_000).ended(1).at(9_000).granted_for(2, "f", due, Trigger::Scheduler);
    check(next(3_000), &fake_store, &[]);
    check(
        next(1_000),
        &fake_store,
        &[
            "f: run ..2 is due at 2026-02-04T10:00:01Z, not after run ..1 of 2026-02-04T10:00:01Z, which is over since 2s",
        ],
    );
    check(next(900), &fake_store, &["f: run ..2 is due at 2026-02-04T10:00:00.9Z, not after run ..1"]);
    check(told().failed(1).granted_for(2, "f", 1_000, Trigger::Retry), &fake_store, &[]);
    check(
        told().at(2_000).granted_for(2, "f", 3_000, Trigger::Scheduler),
        &fake_store,
        &["at 2s: f: run ..2 is granted while run ..1, granted at 1s, is open"],
    );
    check(
        told().at(2_000).ended(1).failed_over(500, 2).granted_for(2, "f", 900, Trigger::Scheduler),
        &fake_store,
        &[],
    );
    check(told().granted_for(2, "f", 500, Trigger::Manual), &fake_store, &[]);
}

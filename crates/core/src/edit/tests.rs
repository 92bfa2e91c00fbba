//! Each thing that people do, as a line: the job before, what is done, what is written.

use super::*;
use crate::ids::{ExtraId, Fence, JobKey, RunId};
use crate::job::sample::{instant, job, placed};
use crate::job::{CommandTarget, EXTRAS_MAX, Overlap, Owner, Target};
use crate::occurrence::Serves;
use crate::run::{Outcome, Trigger};
use crate::store::{Revision, Version};
use crate::time::Duration;
use crate::urgency;
use crate::zone::Zone;

fn row_of(job: Job, state: JobState) -> JobRow {
    JobRow {
        job: Arc::new(job),
        state,
        revision: Revision(3),
        version: Version(7),
        fence: Fence(5),
        n_open: 0,
        is_deleted: false,
    }
}

/// A job that was placed so that its first occurrence is this, and a change to its row.
fn row(schedule: &str, anchor: &str, change: impl FnOnce(&mut JobRow)) -> JobRow {
    let job = job(schedule);
    let state = placed(&job, anchor);
    let mut row = row_of(job, state);
    change(&mut row);
    row
}

fn as_it_is(_: &mut JobRow) {}

fn removed(row: &mut JobRow) {
    row.is_deleted = true;
}

fn paused_by(by: PausedBy) -> impl FnOnce(&mut JobRow) {
    move |row| row.state.pause = Some(Box::new(Pause { by, reason: None }))
}

fn disabled(row: &mut JobRow) {
    change_terms(row, |terms| terms.enabled = false);
}

fn change_terms(row: &mut JobRow, change: impl FnOnce(&mut Terms)) {
    let mut job = Job::clone(&row.job);
    change(&mut job.terms);
    row.job = Arc::new(job);
}

/// The pending occurrence failed, and waits for its retry.
fn failed_once(row: &mut JobRow) {
    row.state.attempt = 1;
    row.state.attempt_outcome = Some(Outcome::Failed);
    row.state.failure_count = 1;
}

/// The pending occurrence is being served.
fn running(row: &mut JobRow) {
    row.n_open = 1;
    row.state.attempt = 1;
    row.state.owner = Some(Box::new(Owner {
        node: "n1".parse().unwrap(),
        name: "main".to_owned(),
        tag: RunId(1),
        started_at: row.state.created_at,
    }));
}

fn open_runs(row: &JobRow) -> Vec<Due> {
    let due = row.state.next_run_at.filter(|_| 0 < row.n_open).map(|due_at| Due {
        due_at,
        attempt: 1,
        trigger: Trigger::Scheduler,
        serves: Serves::Pending,
        losses: 0,
        last_outcome: None,
        params: None,
    });
    due.into_iter().collect()
}

fn clock(at: Timestamp) -> String {
    at.to_string()[11..16].to_owned()
}

fn told(answer: &Result<PutJob, Refusal>) -> String {
    let put = match answer {
        Ok(put) => put,
        Err(refusal) => return refusal.to_string(),
    };
    let state = &put.state;
    let mut words = vec![match state.next_run_at {
        Some(at) => format!("next {}", clock(at)),
        None if state.placement.is_none() => "not placed".to_owned(),
        None => "never".to_owned(),
    }];
    if 0 < state.attempt {
        words.push(format!("attempt {}", state.attempt));
    }
    words.extend(state.pause.as_ref().map(|pause| format!("paused by {:?}", pause.by)));
    words.extend(put.records.iter().map(|it| {
        let range = it.range;
        format!("{}..{} x{} {}", clock(range.first), clock(range.last), range.count, it.what)
    }));
    words.extend(state.extras.iter().map(|it| format!("owes {} {}", clock(it.due_at), it.kind)));
    if put.is_deleted {
        words.push("removed".to_owned());
    }
    if put.is_revision {
        words.push("revised".to_owned());
    }
    words.join(", ")
}

fn placement(anchor: &str, now: Timestamp) -> Option<Placement> {
    (!anchor.is_empty()).then(|| Placement::at(instant(anchor), now))
}

#[track_caller]
fn check_create(schedule: &str, before: Option<&JobRow>, change: impl FnOnce(&mut Job), expected: &str) {
    let mut job = job(schedule);
    change(&mut job);
    let now = instant("10:00");
    let anchor = if schedule == "manual" { "" } else { "10:20" };
    assert_eq!(told(&create(Arc::new(job), before, placement(anchor, now), now)), expected);
}

#[test]
fn a_new_job_is_placed() {
    check_create("every 1h", None, |_| {}, "next 10:20, revised");
    check_create("manual", None, |_| {}, "not placed, revised");
    check_create("every 1h", None, |job| job.enabled = false, "not placed, revised");
    let paused = |job: &mut Job| job.paused = Some(Pause { by: PausedBy::Operator, reason: None });
    check_create("every 1h", None, paused, "next 10:20, paused by Operator, revised");
}

#[test]
fn a_key_is_free_again_after_a_removal() {
    let living = row("every 1h", "09:00", as_it_is);
    check_create(
        "every 1h",
        Some(&living),
        |_| {},
        "a job with this key already exists; edit it, or choose another key",
    );
    let tombstone = row("every 1h", "09:00", removed);
    check_create("every 1h", Some(&tombstone), |_| {}, "next 10:20, revised");
    let seen = |before| create(tombstone.job.clone(), before, None, instant("10:00")).unwrap().seen;
    assert_eq!(seen(Some(&tombstone)), Seen::Version(Version(7)));
    assert_eq!(seen(None), Seen::Nothing);
}

/// At 12:10, with a placement at 12:30 at hand: the old schedule, what happened to it, the new one.
#[track_caller]
fn check_edit(old: &str, change: impl FnOnce(&mut JobRow), new: &str, expected: &str) {
    check_edit_to(old, change, |terms| terms.schedule = job(new).terms.schedule, expected);
}

#[track_caller]
fn check_edit_to(
    old: &str,
    change: impl FnOnce(&mut JobRow),
    edit_terms: impl FnOnce(&mut Terms),
    expected: &str,
) {
    let row = row(old, "10:00", change);
    let mut job = Job::clone(&row.job);
    edit_terms(&mut job.terms);
    let now = instant("12:10");
    let is_manual = job.schedule.kind() == "manual";
    let placement = placement(if is_manual { "" } else { "12:30" }, now);
    assert_eq!(told(&edit(&row, &open_runs(&row), Arc::new(job), placement, now)), expected);
}

#[test]
fn an_edit_that_leaves_the_schedule_as_it_is_moves_nothing() {
    check_edit("every 1h", as_it_is, "every 1h", "next 10:00");
    let cheaper = |terms: &mut Terms| terms.place.cost = 2;
    check_edit_to("every 1h", as_it_is, cheaper, "next 10:00, revised");
    check_edit_to("every 1h", failed_once, cheaper, "next 10:00, attempt 1, revised");
    check_edit_to("every 1h", paused_by(PausedBy::Quota), cheaper, "next 10:00, paused by Quota, revised");
}

#[test]
fn another_schedule_is_placed_afresh_and_what_was_due_goes_on_record() {
    check_edit("every 1h", as_it_is, "every 2h", "next 12:30, 10:00..12:00 x3 missed(replaced), revised");
    check_edit("every 6h", as_it_is, "every 2h", "next 12:30, 10:00..10:00 x1 missed(replaced), revised");
    check_edit(
        "cron 15 * * * *",
        as_it_is,
        "every 2h",
        "next 12:30, 10:15..11:15 x2 missed(replaced), revised",
    );
    check_edit("fresh 24h", as_it_is, "every 2h", "next 12:30, 10:00..10:00 x1 missed(replaced), revised");
    check_edit("every 1h", as_it_is, "manual", "not placed, 10:00..12:00 x3 missed(replaced), revised");
    check_edit("manual", as_it_is, "every 1h", "next 12:30, revised");
    let ends_soon = |terms: &mut Terms| terms.bounds.ends_at = Some(instant("13:00"));
    let expected = "next 12:30, 10:00..12:00 x3 missed(replaced), revised";
    check_edit_to("every 1h", as_it_is, ends_soon, expected);
    check_edit_to("every 1h", as_it_is, |terms| terms.zone = Zone::named("Asia/Tokyo").unwrap(), expected);
    // What is not due yet goes without a record.
    let next_is_later = |row: &mut JobRow| row.state.next_run_at = Some(instant("13:00"));
    check_edit("every 1h", next_is_later, "every 2h", "next 12:30, revised");
}

/// At 12:10: how many failures are counted after an edit of a job whose 12:00 has failed for the third time, and
/// when it can start next.
fn after_failures(edit_job: impl FnOnce(&mut Job)) -> (u32, u16, String) {
    let failed = |row: &mut JobRow| {
        change_terms(row, |terms| terms.retry.holds_schedule = true);
        row.state.next_run_at = Some(instant("12:00"));
        failed_once(row);
        row.state.failure_count = 3;
        row.state.blackout_failures = 1;
        row.state.last_end_at = Some(instant("12:05"));
        row.state.last_outcome = Some(Outcome::Failed);
    };
    let row = row("every 1h", "10:00", failed);
    let mut job = Job::clone(&row.job);
    edit_job(&mut job);
    let now = instant("12:10");
    let put = edit(&row, &[], Arc::new(job), None, now).unwrap();
    let can_start = urgency::can_start_by(&put.job.key, &put.job, &put.state, now).unwrap();
    (put.state.failure_count, put.state.blackout_failures, clock(can_start))
}

#[test]
fn another_target_starts_a_new_count_of_failures_and_is_tried_at_once() {
    let corrected = |job: &mut Job| {
        let argv = vec!["fetch".to_owned(), "--all".to_owned()];
        job.target = Target::Command(CommandTarget { argv, ..CommandTarget::default() });
    };
    assert_eq!(after_failures(corrected), (0, 0, "12:00".to_owned()));
    // Anything else leaves them as they are.
    assert_eq!(after_failures(|job| job.terms.place.cost = 2), (3, 1, "16:05".to_owned()));
}

#[test]
fn what_was_asked_for_and_waits_for_a_retry_comes_at_once_with_another_target() {
    let waits = |row: &mut JobRow| {
        let extra = Extra {
            attempt: 1,
            last_outcome: Some(Outcome::Failed),
            not_before: instant("15:00"),
            ..Extra::manual(ExtraId(1), instant("12:00"))
        };
        row.state.extras.push(extra);
    };
    let row = row("manual", "10:00", waits);
    let mut job = Job::clone(&row.job);
    job.target = Target::Command(CommandTarget { argv: vec!["new".to_owned()], ..CommandTarget::default() });
    let put = edit(&row, &[], Arc::new(job), None, instant("12:10")).unwrap();
    assert_eq!(put.state.extras.first().map(|it| it.not_before), Some(instant("12:10")));
}

#[test]
fn a_resumed_job_starts_a_new_count_of_failures() {
    let paused = |row: &mut JobRow| {
        failed_once(row);
        row.state.failure_count = 3;
        row.state.last_end_at = Some(instant("12:05"));
        paused_by(PausedBy::Failures)(row);
        let extra = Extra {
            attempt: 1,
            last_outcome: Some(Outcome::Failed),
            not_before: instant("15:00"),
            ..Extra::manual(ExtraId(1), instant("12:00"))
        };
        row.state.extras.push(extra);
    };
    let now = instant("12:10");
    let put = resume(&row("every 1h", "10:00", paused), &[], placement("12:30", now), now).unwrap();
    assert_eq!((put.state.failure_count, put.state.failures()), (0, None));
    assert_eq!(put.state.extras.first().map(|it| it.not_before), Some(now));
}

#[test]
fn what_waits_for_a_retry_ends_with_its_schedule() {
    let expected = "next 12:30, 11:00..12:00 x2 missed(replaced), revised";
    check_edit("every 1h", failed_once, "every 2h", expected);
    let row = row("every 1h", "10:00", failed_once);
    let now = instant("12:10");
    let put = edit(&row, &[], Arc::new(job("every 2h")), placement("12:30", now), now).unwrap();
    assert_eq!(
        (put.state.n_served, put.state.failure_count),
        (1, 1),
        "it was served, and its failure counts"
    );
}

#[test]
fn what_a_run_serves_ends_with_the_run() {
    let expected = "next 12:30, 11:00..12:00 x2 missed(replaced), revised";
    check_edit("every 1h", running, "every 2h", expected);
    let row = row("every 1h", "10:00", running);
    let now = instant("12:10");
    let put = edit(&row, &open_runs(&row), Arc::new(job("every 2h")), placement("12:30", now), now).unwrap();
    assert_eq!((put.state.n_served, put.state.attempt), (0, 0));
}

#[test]
fn a_fresh_jobs_minted_occurrence_is_not_forgotten() {
    let minted = |row: &mut JobRow| row.state.next_run_at = Some(instant("11:30"));
    check_edit("fresh 24h", minted, "every 2h", "next 12:30, 11:30..11:30 x1 missed(replaced), revised");
}

#[test]
fn a_job_that_is_enabled_again_is_placed_as_after_a_pause() {
    let enabled = |terms: &mut Terms| terms.enabled = true;
    check_edit_to("every 1h", disabled, enabled, "next 12:30, 10:00..12:00 x3 missed(paused), revised");
    check_edit_to("every 1h", as_it_is, |terms| terms.enabled = false, "next 10:00, revised");
}

#[test]
fn an_edit_mends_what_could_not_be_read_and_leaves_other_pauses() {
    check_edit(
        "every 1h",
        paused_by(PausedBy::Invalid),
        "every 2h",
        "next 12:30, 10:00..12:00 x3 missed(paused), revised",
    );
    check_edit(
        "every 1h",
        paused_by(PausedBy::Operator),
        "every 2h",
        "next 12:30, paused by Operator, 10:00..12:00 x3 missed(paused), revised",
    );
    check_edit("every 1h", removed, "every 2h", "the job was removed; create it again");
}

#[track_caller]
fn check_pause(change: impl FnOnce(&mut JobRow), by: PausedBy, expected: &str) {
    let row = row("every 1h", "10:00", change);
    assert_eq!(told(&pause(&row, by, Some("busy".to_owned()))), expected);
}

#[test]
fn a_pause_keeps_everything_else() {
    check_pause(as_it_is, PausedBy::Operator, "next 10:00, paused by Operator, revised");
    check_pause(failed_once, PausedBy::Failures, "next 10:00, attempt 1, paused by Failures, revised");
    check_pause(running, PausedBy::Quota, "next 10:00, attempt 1, paused by Quota, revised");
    check_pause(removed, PausedBy::Operator, "the job was removed; create it again");
    let put = pause(&row("every 1h", "10:00", as_it_is), PausedBy::Quota, Some("full".to_owned())).unwrap();
    assert_eq!(put.state.pause.unwrap().reason.as_deref(), Some("full"));
}

#[test]
fn a_persons_pause_takes_the_place_of_the_systems() {
    let by_operator = "next 10:00, paused by Operator, revised";
    check_pause(paused_by(PausedBy::Quota), PausedBy::Operator, by_operator);
    check_pause(paused_by(PausedBy::Failures), PausedBy::Operator, by_operator);
    let unreadable = "the job's schedule cannot be read; edit the job to fix it";
    check_pause(paused_by(PausedBy::Invalid), PausedBy::Operator, unreadable);
}

#[test]
fn a_job_that_is_paused_already_can_be_paused_again() {
    #[track_caller]
    fn check(before: Option<&str>, by: PausedBy, reason: Option<&str>, expected: &str) {
        let text = |it: &str| it.to_owned();
        let pause_before = Pause { by: PausedBy::Operator, reason: before.map(text) };
        let row = row("every 1h", "10:00", |row| row.state.pause = Some(Box::new(pause_before)));
        let put = pause(&row, by, reason.map(text)).unwrap();
        let now = put.state.pause.unwrap();
        let revised = if put.is_revision { ", revised" } else { "" };
        assert_eq!(format!("{:?} {}{revised}", now.by, now.reason.unwrap_or_default()), expected);
    }
    check(None, PausedBy::Operator, None, "Operator ");
    check(Some("moving"), PausedBy::Operator, None, "Operator moving");
    check(Some("moving"), PausedBy::Operator, Some("moving"), "Operator moving");
    check(Some("moving"), PausedBy::Operator, Some("broken"), "Operator broken, revised");
    // What a person paused stays theirs.
    check(Some("moving"), PausedBy::Quota, Some("full"), "Operator moving");
}

/// At 12:10, with a placement at 12:30 at hand.
#[track_caller]
fn check_resume(schedule: &str, change: impl FnOnce(&mut JobRow), expected: &str) {
    let row = row(schedule, "10:00", change);
    let now = instant("12:10");
    let placement = placement(if schedule == "manual" { "" } else { "12:30" }, now);
    assert_eq!(told(&resume(&row, &open_runs(&row), placement, now)), expected);
}

#[test]
fn a_resumed_job_is_placed_afresh_without_catch_up() {
    let expected = "next 12:30, 10:00..12:00 x3 missed(paused), revised";
    check_resume("every 1h", paused_by(PausedBy::Operator), expected);
    check_resume("every 1h", paused_by(PausedBy::Quota), expected);
    check_resume("manual", paused_by(PausedBy::Operator), "not placed, revised");
    let still_running = |row: &mut JobRow| {
        running(row);
        paused_by(PausedBy::Operator)(row);
    };
    check_resume("every 1h", still_running, "next 12:30, 11:00..12:00 x2 missed(paused), revised");
    let also_disabled = |row: &mut JobRow| {
        disabled(row);
        paused_by(PausedBy::Operator)(row);
    };
    check_resume("every 1h", also_disabled, "not placed, 10:00..12:00 x3 missed(paused), revised");
}

#[test]
fn only_what_is_paused_can_be_resumed() {
    check_resume("every 1h", as_it_is, "the job is not paused");
    check_resume(
        "every 1h",
        paused_by(PausedBy::Invalid),
        "the job's schedule cannot be read; edit the job to fix it",
    );
    check_resume("every 1h", removed, "the job was removed; create it again");
}

#[track_caller]
fn check_mend(schedule: &str, change: impl FnOnce(&mut JobRow), expected: &str) {
    let row = row(schedule, "10:00", change);
    let now = instant("12:10");
    let placement = placement(if schedule == "manual" { "" } else { "12:30" }, now);
    assert_eq!(told(&mend(&row, placement, now)), expected);
}

fn pending(at: &str) -> impl FnOnce(&mut JobRow) {
    let at = instant(at);
    move |row| row.state.next_run_at = Some(at)
}

#[test]
fn a_job_whose_next_run_cannot_be_is_placed_afresh_and_what_it_may_have_owed_goes_on_record() {
    check_mend("every 1h", pending("11:11"), "next 12:30, 11:00..12:00 x2 missed(late), revised");
    let ran_since = |row: &mut JobRow| {
        row.state.last_start_at = Some(instant("11:05"));
        row.state.next_run_at = Some(instant("1970-01-01T00:00:00Z"));
    };
    check_mend("every 1h", ran_since, "next 12:30, 12:00..12:00 x1 missed(late), revised");
    check_mend("manual", pending("11:11"), "not placed, revised");
    // Its one instant is over, and a wrong one does not bring it back.
    check_mend("once 11:00", pending("11:11"), "never, 11:00..11:00 x1 missed(late), revised");
}

#[test]
fn what_is_sound_is_not_mended() {
    check_mend("every 1h", as_it_is, "the job's next run already matches its schedule");
    check_mend("every 1h", removed, "the job was removed; create it again");
}

#[track_caller]
fn check_trigger(change: impl FnOnce(&mut JobRow), expected: &str) {
    let row = row("every 1h", "10:00", change);
    assert_eq!(told(&trigger(&row, Extra::manual(ExtraId(1), instant("09:30")))), expected);
}

fn with_overlap(overlap: Overlap) -> impl FnOnce(&mut JobRow) {
    move |row| {
        running(row);
        change_terms(row, |terms| terms.overlap = overlap);
    }
}

#[test]
fn a_trigger_is_owed_beside_the_schedule() {
    check_trigger(as_it_is, "next 10:00, owes 09:30 manual");
    check_trigger(with_overlap(Overlap::Queue), "next 10:00, attempt 1, owes 09:30 manual");
    let row = row("every 1h", "10:00", with_overlap(Overlap::Skip));
    let of_the_past = Extra::backfill(ExtraId(1), instant("07:00"), instant("09:30"));
    assert_eq!(told(&trigger(&row, of_the_past)), "next 10:00, attempt 1, owes 07:00 backfill");
}

#[test]
fn a_trigger_that_cannot_be_taken_says_why() {
    let running =
        "the job is running, and `overlap = \"skip\"` does not queue runs; try again when the run has ended";
    check_trigger(with_overlap(Overlap::Skip), running);
    check_trigger(paused_by(PausedBy::Quota), "the job is paused; resume it first");
    check_trigger(disabled, "the job is disabled; enable it first");
    check_trigger(removed, "the job was removed; create it again");
    let owes = |ids: std::ops::Range<usize>| {
        move |row: &mut JobRow| {
            for id in ids {
                row.state.extras.push(Extra::manual(ExtraId(id as u128), instant("09:00")));
            }
        }
    };
    check_trigger(owes(1..2), "this run was already requested");
    check_trigger(owes(2..2 + EXTRAS_MAX), "too many runs of the job are already waiting; try again later");
}

#[test]
fn the_first_run_of_a_request_has_its_id_and_later_ones_do_not() {
    let mut row = row("manual", "10:00", as_it_is);
    row.version = Version(4 << 32 | 7);
    let put = trigger(&row, Extra::manual(ExtraId(1), instant("09:30"))).unwrap();
    assert_eq!(put.request, Some(RunRequest { id: ExtraId(1), idempotency: None }));
    let waiting = put.state.extras[0].clone();
    assert_eq!(waiting.first_run(4), Some(RunId(1)));
    assert_eq!(waiting.first_run(5), None, "a failover may have lost a run of this id");
    let (due, started) = occurrence::start(&row.job.key, &row.job, &put.state, 0, instant("09:31"));
    let taken_back = occurrence::unstart(&started.state, &due.unwrap()).state.extras[0].clone();
    assert_eq!((taken_back.attempt, taken_back.first_run(4)), (0, None));
    assert_eq!(Extra { attempt: 1, ..waiting }.first_run(4), None);
}

#[test]
fn a_request_is_taken_back_while_it_waits() {
    let owes = |row: &mut JobRow| {
        row.state.extras.push(Extra::manual(ExtraId(1), instant("09:00")));
        row.state.extras.push(Extra { kind: Trigger::Retry, ..Extra::manual(ExtraId(2), instant("09:10")) });
    };
    let row = row("every 1h", "10:00", owes);
    assert_eq!(told(&withdraw(&row, ExtraId(1))), "next 10:00, owes 09:10 retry");
    assert_eq!(told(&withdraw(&row, ExtraId(2))), "no such run request is waiting");
    assert_eq!(told(&withdraw(&row, ExtraId(3))), "no such run request is waiting");
}

#[test]
fn a_removed_job_owes_nothing_and_remembers_what_it_was() {
    let has_a_past = |row: &mut JobRow| {
        failed_once(row);
        row.state.extras.push(Extra::manual(ExtraId(1), instant("09:00")));
        row.state.n_served = 4;
    };
    let row_before = row("every 1h", "10:00", has_a_past);
    let answer = remove(&row_before);
    assert_eq!(told(&answer), "not placed, removed, revised");
    let state = answer.unwrap().state;
    assert_eq!((state.n_served, state.failure_count), (4, 1));
    assert_eq!(told(&remove(&row("every 1h", "10:00", removed))), "the job was removed; create it again");
    let kept = remove(&row("every 1h", "10:00", running)).unwrap();
    assert!(kept.state.owner.is_some(), "its run goes on");
}

/// A plan of some time ago moves 18:00 to 19:15.
#[track_caller]
fn check_move(schedule: &str, change: impl FnOnce(&mut JobRow), now: &str, expected: &str) {
    let has_next = |row: &mut JobRow| {
        row.state.next_run_at = Some(instant("18:00"));
        change(row);
    };
    let row = row(schedule, "06:00", has_next);
    let key: JobKey = row.job.key.clone();
    let (old_time, new_time) = (instant("18:00"), instant("19:15"));
    let placement = Placement::at(new_time, instant("12:00"));
    let gap = Duration::from_hours(13);
    let it = Move { key, old_time, new_time, gap, latest_start: None, placement };
    assert_eq!(told(&apply_move(&row, &it, instant(now))), expected);
}

#[test]
fn a_move_of_a_plan_is_made() {
    check_move("every 12h", as_it_is, "12:05", "next 19:15, revised");
}

#[test]
fn what_is_running_or_protected_stays() {
    check_move("every 12h", running, "12:05", "the job is not moved: job_running");
    check_move("every 12h", as_it_is, "17:40", "the job is not moved: protection_window");
    check_move("every 12h", paused_by(PausedBy::Operator), "12:05", "the job is not moved: paused");
    let just_placed =
        |row: &mut JobRow| row.state.placement = Some(Placement::at(instant("06:00"), instant("11:30")));
    check_move("every 12h", just_placed, "12:05", "the job is not moved: placement_cooldown");
    check_move("cron 0 6,18 * * *", as_it_is, "12:05", "the job is not moved: pinned_schedule");
    check_move("every 12h", removed, "12:05", "the job was removed; create it again");
}

#[test]
fn a_job_that_ran_since_is_moved_to_the_planned_phase() {
    let ran_at = |start: &'static str, next: &'static str| {
        move |row: &mut JobRow| {
            row.state.last_start_at = Some(instant(start));
            row.state.next_run_at = Some(instant(next));
        }
    };
    // Half an interval after the start at 18:00 is midnight; the phase comes around at 07:15.
    let once = ran_at("18:00", "2026-02-05T06:00:00Z");
    check_move("every 12h", once, "18:30", "next 07:15, revised");
    // Three hours later its planned time has passed.
    let once = ran_at("18:00", "2026-02-05T06:00:00Z");
    check_move("every 12h", once, "21:30", "next 07:15, revised");
}

#[test]
fn a_job_whose_planned_time_has_passed_stays() {
    let waits = |row: &mut JobRow| {
        row.state.last_start_at = Some(instant("06:00"));
        row.state.next_run_at = Some(instant("2026-02-05T06:00:00Z"));
    };
    check_move("every 12h", waits, "19:20", "the job is not moved: protection_window");
    check_move("every 12h", as_it_is, "19:15", "the job is not moved: protection_window");
}

#[test]
fn a_job_without_a_next_run_is_not_moved() {
    let is_over = |row: &mut JobRow| row.state.next_run_at = None;
    let old = "the job has no next run that could be moved; make a new plan";
    check_move("every 12h", is_over, "12:05", old);
}

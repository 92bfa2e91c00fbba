use proptest::prelude::*;

use super::*;
use crate::job::sample::{instant, job, length, placed};
use crate::job::{Job, Overlap, Owner, Pause, PausedBy, RunEnd};
use crate::missed::MissedRuns;
use crate::schedule::Placement;
use crate::time::{Duration, TimeWindow};
use crate::urgency;

/// A job's life, told step by step, with all that ended or went on record.
struct Life {
    job: Job,
    state: JobState,
    told: Vec<String>,
    ended: Vec<Ended>,
    records: Vec<Record>,
}

fn clock(at: Timestamp) -> String {
    at.to_string()[11..16].to_owned()
}

impl Life {
    fn new(schedule: &str, anchor: &str) -> Life {
        let job = job(schedule);
        let state = placed(&job, anchor);
        Life { job, state, told: Vec::new(), ended: Vec::new(), records: Vec::new() }
    }

    fn take(&mut self, step: Step) {
        for it in &step.ended {
            self.told.push(format!("{} {}", clock(it.due_at), it.outcome));
        }
        for Record { range, what } in &step.records {
            self.told.push(format!("{}..{} x{} {what}", clock(range.first), clock(range.last), range.count));
        }
        self.ended.extend(&step.ended);
        self.records.extend(&step.records);
        self.state = step.state;
    }

    fn start(&mut self, now: Timestamp) -> Option<Due> {
        let (due, step) = start(&self.job, &self.state, now);
        self.take(step);
        if let Some(due) = due {
            assert_eq!(self.state.next_run_at, Some(due.due_at));
            self.state.owner = Some(Box::new(Owner {
                node: "n1".parse().unwrap(),
                name: String::new(),
                tag: crate::ids::RunId(1),
                started_at: now,
                last_ping_at: now,
                steal_start_at: None,
            }));
        }
        due
    }

    fn finish(&mut self, now: Timestamp, outcome: Outcome, exit_code: Option<i32>) {
        let started_at = self.state.owner.take().unwrap().started_at;
        let end = RunEnd { started_at, ended_at: now, outcome, exit_code, frozen_for: Duration::ZERO };
        self.take(finish(&self.job, &self.state, &end));
    }

    /// `start 10:00`, `good 10:20`, `failed 10:20`, `failed=64 10:20`, `lost 10:20`, `cancelled 10:20`, `wait 11:00`,
    /// `pause 10:00`, `resume 12:00 12:30`.
    fn tell(&mut self, story: &str) {
        for sentence in story.split(", ") {
            let words: Vec<&str> = sentence.split(' ').collect();
            let now = instant(words[1]);
            match words[0] {
                "start" => {
                    let told = match self.start(now) {
                        Some(due) => format!("run {} #{} {}", clock(due.due_at), due.attempt, due.trigger),
                        None => "no run".to_owned(),
                    };
                    self.told.push(told);
                }
                "good" => self.finish(now, Outcome::Succeeded, Some(0)),
                "lost" => self.finish(now, Outcome::Lost, None),
                "cancelled" => self.finish(now, Outcome::Cancelled, None),
                "wait" => self.take(settle(&self.job, &self.state, now)),
                "pause" => self.state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None })),
                "resume" => {
                    let placement = Placement::at(instant(words[2]), now);
                    self.take(resume(&self.job, &self.state, placement, now));
                }
                failed => {
                    let code = failed.strip_prefix("failed=").map_or(1, |code| code.parse().unwrap());
                    self.finish(now, Outcome::Failed, Some(code));
                }
            }
        }
    }
}

/// An hourly job from 10:00 on.
#[track_caller]
fn check(set: impl FnOnce(&mut Job), story: &str, expected: &str) {
    let mut life = Life::new("every 1h", "10:00");
    set(&mut life.job);
    life.tell(story);
    let next = life.state.next_run_at.map_or("none".to_owned(), clock);
    assert_eq!(format!("{}; next {next}", life.told.join(", ")), expected);
}

fn as_is(_: &mut Job) {}

#[test]
fn one_occurrence_after_the_other() {
    check(
        as_is,
        "start 10:00, good 10:20, start 11:00, good 11:10",
        "run 10:00 #1 scheduler, 10:00 succeeded, run 11:00 #1 scheduler, 11:00 succeeded; next 12:00",
    );
    check(as_is, "start 09:59", "no run; next 10:00");
}

#[test]
fn downtime_is_made_up_for_by_policy() {
    check(as_is, "start 13:20", "10:00..12:00 x3 missed(late), run 13:00 #1 catchup; next 13:00");
    check(
        |it| it.missed.runs = MissedRuns::Skip,
        "start 13:20",
        "10:00..13:00 x4 missed(late), no run; next 14:00",
    );
    check(
        |it| it.missed.runs = MissedRuns::All,
        "start 12:20, good 12:25, start 12:25, good 12:30, start 12:30, good 12:35, start 12:36",
        "run 10:00 #1 catchup, 10:00 succeeded, run 11:00 #1 catchup, 11:00 succeeded, run 12:00 #1 catchup, 12:00 succeeded, no run; next 13:00",
    );
    check(
        |it| (it.missed.runs, it.missed.most) = (MissedRuns::All, 2),
        "start 13:20",
        "10:00..11:00 x2 missed(late), run 12:00 #1 catchup; next 12:00",
    );
}

#[test]
fn what_comes_due_during_a_run_goes_by_the_overlap() {
    check(
        as_is,
        "start 10:00, good 12:10, start 13:00",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..12:00 x2 skipped(overlap), run 13:00 #1 scheduler; next 13:00",
    );
    check(
        |it| it.overlap = Overlap::Queue,
        "start 10:00, good 13:10, start 13:10, good 13:20, start 14:00",
        "run 10:00 #1 scheduler, 10:00 succeeded, 12:00..13:00 x2 skipped(overlap), run 11:00 #1 catchup, 11:00 succeeded, run 14:00 #1 scheduler; next 14:00",
    );
    // The queued one waits so long that the next is due: that one runs.
    check(
        |it| it.overlap = Overlap::Queue,
        "start 10:00, good 11:10, start 12:05",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..11:00 x1 missed(late), run 12:00 #1 catchup; next 12:00",
    );
    check(
        |it| it.overlap = Overlap::Allow { max_parallel: 3 },
        "start 10:00, good 11:10",
        "run 10:00 #1 scheduler, 10:00 succeeded; next 11:00",
    );
}

#[test]
fn a_failure_is_tried_again_until_the_next_occurrence_comes() {
    check(
        as_is,
        "start 10:00, failed 10:01, start 10:06, good 10:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded; next 11:00",
    );
    // After the second failure the floor is an hour: 11:00 comes due first and takes its place.
    check(
        as_is,
        "start 10:00, failed 10:01, start 10:06, failed 10:07, wait 11:00, start 11:07, good 11:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 failed, run 11:00 #1 catchup, 11:00 succeeded; next 12:00",
    );
    // Several came due meanwhile: the newest takes the place, the others had no run.
    check(
        as_is,
        "start 10:00, failed 10:01, wait 13:00",
        "run 10:00 #1 scheduler, 10:00 failed, 11:00..12:00 x2 missed(backoff); next 13:00",
    );
    // What came due during the failing run itself was skipped.
    check(
        as_is,
        "start 10:00, failed 11:30, start 11:35, good 11:40",
        "run 10:00 #1 scheduler, 11:00..11:00 x1 skipped(overlap), run 10:00 #2 retry, 10:00 succeeded; next 12:00",
    );
    check(
        |it| it.retry.not_on_exit_codes = vec![64],
        "start 10:00, failed=64 10:01",
        "run 10:00 #1 scheduler, 10:00 failed; next 11:00",
    );
    check(as_is, "start 10:00, cancelled 10:01", "run 10:00 #1 scheduler, 10:00 cancelled; next 11:00");
}

#[test]
fn the_newer_occurrence_inherits_failures_and_floor() {
    let mut life = Life::new("every 1h", "10:00");
    life.tell("start 10:00, failed 10:01, start 10:06, failed 10:50, wait 11:00");
    assert_eq!((life.state.failure_count, life.state.attempt), (2, 0));
    assert_eq!(
        urgency::can_start_by(&life.job.key, &life.job, &life.state, instant("11:00")),
        Some(instant("11:50"))
    );
}

#[test]
fn what_is_made_up_for_is_retried_at_most_once() {
    check(
        |it| it.missed.runs = MissedRuns::All,
        "start 10:30, failed 10:31, start 10:36, failed 10:37",
        "run 10:00 #1 catchup, run 10:00 #2 retry, 10:00 failed; next 11:00",
    );
}

#[test]
fn a_run_that_takes_its_node_down_is_stopped_after_three_losses() {
    check(
        as_is,
        "start 10:00, lost 10:01, start 10:02, lost 10:03, start 10:04, lost 10:05",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, run 10:00 #3 retry, 10:00 lost; next 11:00",
    );
    let mut life = Life::new("every 1h", "10:00");
    life.tell("start 10:00, lost 10:01");
    assert_eq!((life.state.losses, life.state.failure_count), (1, 0), "a loss says nothing about the job");
}

#[test]
fn a_pause_is_one_record_and_a_fresh_place() {
    check(
        as_is,
        "start 10:00, good 10:10, pause 10:30, resume 14:30 14:45",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..14:00 x4 missed(paused); next 14:45",
    );
    check(
        as_is,
        "start 10:00, failed 10:01, pause 10:30, resume 11:30 11:45",
        "run 10:00 #1 scheduler, 10:00 failed, 11:00..11:00 x1 missed(paused); next 11:45",
    );
}

#[test]
fn the_other_kinds_of_schedule() {
    #[track_caller]
    fn check(schedule: &str, story: &str, expected: &str) {
        let mut life = Life::new(schedule, "10:00");
        life.tell(story);
        let next = life.state.next_run_at.map_or("none".to_owned(), clock);
        assert_eq!(format!("{}; next {next}", life.told.join(", ")), expected);
    }
    // A good run mints the next occurrence of a `fresh` job; a failure does not.
    check(
        "fresh 4h cooldown 1h",
        "start 10:00, good 10:20",
        "run 10:00 #1 scheduler, 10:00 succeeded; next 11:20",
    );
    check(
        "fresh 4h cooldown 1h",
        "start 13:00, failed 13:20, start 18:00, good 18:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded; next 19:10",
    );
    check(
        "fresh 4h cooldown 1h",
        "start 10:00, cancelled 10:20",
        "run 10:00 #1 scheduler, 10:00 cancelled; next 11:20",
    );
    check("once 10:00", "start 10:00, good 10:20", "run 10:00 #1 scheduler, 10:00 succeeded; next none");
    check(
        "once 10:00",
        "start 12:00, failed 12:20, start 13:00, good 13:01",
        "run 10:00 #1 catchup, run 10:00 #2 retry, 10:00 succeeded; next none",
    );
    check(
        "cron 0 */4 * * *",
        "start 21:00",
        "12:00..16:00 x2 missed(late), run 20:00 #1 catchup; next 20:00",
    );
    check("manual", "start 12:00", "no run; next none");
}

#[test]
fn max_runs_counts_occurrences_not_attempts() {
    check(
        |it| it.bounds.max_runs = Some(2),
        "start 10:00, failed 10:01, start 10:06, good 10:10, start 11:00, good 11:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded, run 11:00 #1 scheduler, 11:00 succeeded; next none",
    );
}

prop_compose! {
    fn any_life()(
        schedule in prop::sample::select(vec!["every 1h", "every 7m", "cron 0 * * * *", "cron */20 * * * *"]),
        runs in prop::sample::select(vec![MissedRuns::Once, MissedRuns::Skip, MissedRuns::All]),
        overlap in prop::sample::select(vec![Overlap::Skip, Overlap::Queue]),
        most in 1_u32..6,
        steps in prop::collection::vec((0_i64..150, 0..9), 1..60),
    ) -> (Job, Vec<(i64, i32)>) {
        let mut job = job(schedule);
        job.missed.runs = runs;
        job.missed.most = most;
        job.overlap = overlap;
        job.retry.delays = vec![length("5m"), length("40m")];
        job.retry.not_on_exit_codes = vec![64];
        (job, steps)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// due = ended + on record + pending and after, each exactly once, whatever happens.
    #[test]
    fn every_occurrence_ends_exactly_once((job, steps) in any_life()) {
        let state = placed(&job, "10:00");
        let mut life = Life { job, state, told: Vec::new(), ended: Vec::new(), records: Vec::new() };
        let mut now = instant("09:50");
        // What came due under placements that are over.
        let mut n_due_before: u64 = 0;
        for (minutes, what) in steps {
            now = now + Duration::from_mins(minutes);
            match (life.state.owner.is_some(), what) {
                (true, 0..=3) => life.finish(now, Outcome::Succeeded, Some(0)),
                (true, 4..=5) => life.finish(now, Outcome::Failed, Some(1)),
                (true, 6) => life.finish(now, Outcome::Failed, Some(64)),
                (true, 7) => life.finish(now, Outcome::Lost, None),
                (true, _) => life.finish(now, Outcome::Cancelled, None),
                (false, 8) => {
                    let rhythm = urgency::rhythm(&life.job, &life.state).unwrap();
                    n_due_before += rhythm.count_in(TimeWindow::new(Timestamp::MIN, now + length("1ms")));
                    let step = resume(&life.job, &life.state, Placement::at(now + length("3m"), now), now);
                    life.take(step);
                }
                (false, 7) => {
                    let step = settle(&life.job, &life.state, now);
                    life.take(step);
                }
                (false, _) => {
                    let may = urgency::can_start_by(&life.job.key, &life.job, &life.state, now).is_some_and(|at| at <= now);
                    if may {
                        life.start(now);
                    }
                }
            }
            let rhythm = urgency::rhythm(&life.job, &life.state).unwrap();
            let pending = life.state.next_run_at.unwrap();
            let n_due = n_due_before + rhythm.count_in(TimeWindow::new(Timestamp::MIN, now + length("1ms")));
            let unsettled = life.state.settled_until.map_or(pending, |until| until.max(pending)) + length("1ms");
            let n_open = u64::from(pending <= now) + rhythm.count_in(TimeWindow::new(unsettled, now + length("1ms")));
            let n_recorded: u64 = life.records.iter().map(|it| it.range.count).sum();
            prop_assert_eq!(n_due, life.ended.len() as u64 + n_recorded + n_open, "{:#?}", life.told);
        }
        // And none of them twice.
        let mut seen: Vec<(Timestamp, Timestamp)> = life.ended.iter().map(|it| (it.due_at, it.due_at)).collect();
        seen.extend(life.records.iter().map(|it| (it.range.first, it.range.last)));
        seen.sort();
        for pair in seen.windows(2) {
            // An ended one may lie before a range, never inside it.
            prop_assert!(pair[0].1 < pair[1].0, "{:?} meets {:?}: {:#?}", pair[0], pair[1], life.told);
        }
    }
}

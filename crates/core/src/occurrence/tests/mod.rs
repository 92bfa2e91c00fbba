mod clock;
mod extras;
mod properties;
mod schedule;

use super::*;
use crate::ids::{ExtraId, RunId};
use crate::job::sample::{instant, job, placed};
use crate::job::{Extra, Job, Pause, PausedBy, RunEnd};
use crate::schedule::Placement;

/// A job's life, told step by step, with all that ended or went on record.
struct JobLife {
    job: Job,
    state: JobState,
    open: Vec<OpenRun>,
    n_runs: u128,
    n_asked: u128,
    told: Vec<String>,
    ended: Vec<OccurrenceEnd>,
    records: Vec<Record>,
}

struct OpenRun {
    id: RunId,
    due: Due,
    started_at: Timestamp,
}

fn clock(at: Timestamp) -> String {
    at.to_string()[11..16].to_owned()
}

impl JobLife {
    fn new(schedule: &str, anchor: &str) -> JobLife {
        let job = job(schedule);
        let state = placed(&job, anchor);
        JobLife::of(job, state)
    }

    fn of(job: Job, state: JobState) -> JobLife {
        JobLife {
            job,
            state,
            open: Vec::new(),
            n_runs: 0,
            n_asked: 0,
            told: Vec::new(),
            ended: Vec::new(),
            records: Vec::new(),
        }
    }

    fn n_open(&self) -> u32 {
        self.open.len() as u32
    }

    fn take(&mut self, step: Transition) {
        for it in &step.ended {
            let asked = if it.asked.is_some() { "asked " } else { "" };
            self.told.push(format!("{asked}{} {}", clock(it.due_at), it.outcome));
        }
        for Record { range, what } in &step.records {
            self.told.push(format!("{}..{} x{} {what}", clock(range.first), clock(range.last), range.count));
        }
        self.ended.extend(&step.ended);
        self.records.extend(&step.records);
        self.state = step.state;
    }

    fn start(&mut self, now: Timestamp) -> Option<Due> {
        let up = next_up(&self.job.key, &self.job, &self.state, self.n_open(), now);
        let (due, step) = start(&self.job.key, &self.job, &self.state, self.n_open(), now);
        self.take(step);
        let of_up = up.map(|up| (up.due_at, up.trigger, up.serves));
        assert_eq!(of_up, due.as_ref().map(|due| (due.due_at, due.trigger, due.serves)), "{:#?}", self.told);
        let due = due?;
        self.told.push(format!("run {} #{} {}", clock(due.due_at), due.attempt, due.trigger));
        self.n_runs += 1;
        self.open.push(OpenRun { id: RunId(self.n_runs), due: due.clone(), started_at: now });
        Some(due)
    }

    fn finish(&mut self, run_idx: usize, now: Timestamp, outcome: Outcome, exit_code: Option<i32>) {
        let OpenRun { id: run, due, started_at } = self.open.remove(run_idx);
        let end = RunEnd { run, started_at, ended_at: now, outcome, exit_code, frozen_for: Duration::ZERO };
        self.take(finish(&self.job.key, &self.job, &self.state, &due, &end));
    }

    fn unstart(&mut self, run_idx: usize) {
        let run = self.open.remove(run_idx);
        self.take(unstart(&self.state, &run.due));
    }

    fn ask(&mut self, extra: impl FnOnce(ExtraId) -> Extra) {
        let extra = extra(ExtraId(self.n_asked << 80 | 7));
        match ask(&self.job, &self.state, self.n_open(), extra) {
            ExtraAnswer::Taken(step) => {
                self.take(*step);
                self.n_asked += 1;
            }
            refused => self.told.push(format!("{refused:?}").to_lowercase()),
        }
    }

    fn resume(&mut self, now: Timestamp, anchor_at: Timestamp) {
        let open: Vec<Due> = self.open.iter().map(|run| run.due.clone()).collect();
        self.take(resume(&self.job, &self.state, &open, Placement::at(anchor_at, now), now));
    }

    /// `start 10:00`, `good 10:20`, `failed 10:20`, `failed=64 10:20`, `lost 10:20`, `blackout 10:20`,
    /// `cancelled 10:20`, `unstart 10:20` (of the run that has been open longest; `good#2 10:20` is the second longest),
    /// `wait 11:00`, `pause 10:00`, `resume 12:00 12:30`, `trigger 10:05`, `backfill 10:05 07:00`.
    fn tell(&mut self, story: &str) {
        for sentence in story.split(", ") {
            let words: Vec<&str> = sentence.split(' ').collect();
            let now = instant(words[1]);
            let (verb, run_no) = words[0].split_once('#').unwrap_or((words[0], "1"));
            let run_idx = run_no.parse::<usize>().unwrap() - 1;
            match verb {
                "start" => {
                    if self.start(now).is_none() {
                        self.told.push("no run".to_owned());
                    }
                }
                "good" => self.finish(run_idx, now, Outcome::Succeeded, Some(0)),
                "lost" => self.finish(run_idx, now, Outcome::Lost, None),
                "blackout" => self.finish(run_idx, now, Outcome::Blackout, None),
                "cancelled" => self.finish(run_idx, now, Outcome::Cancelled, None),
                "unstart" => self.unstart(run_idx),
                "wait" => self.take(settle(&self.job, &self.state, self.n_open(), now)),
                "pause" => self.state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None })),
                "resume" => self.resume(now, instant(words[2])),
                "trigger" => self.ask(|id| Extra::manual(id, now)),
                "backfill" => self.ask(|id| Extra::backfill(id, instant(words[2]), now)),
                failed => {
                    let code = failed.strip_prefix("failed=").map_or(1, |code| code.parse().unwrap());
                    self.finish(run_idx, now, Outcome::Failed, Some(code));
                }
            }
        }
    }
}

#[track_caller]
fn check_of(schedule: &str, set: impl FnOnce(&mut Job), story: &str, expected: &str) {
    let mut life = JobLife::new(schedule, "10:00");
    set(&mut life.job);
    life.tell(story);
    let next = life.state.next_run_at.map_or("none".to_owned(), clock);
    assert_eq!(format!("{}; next {next}", life.told.join(", ")), expected);
}

/// An hourly job from 10:00 on.
#[track_caller]
fn check(set: impl FnOnce(&mut Job), story: &str, expected: &str) {
    check_of("every 1h", set, story, expected);
}

fn as_is(_: &mut Job) {}

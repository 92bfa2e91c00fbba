//! Places jobs on the time line: as they are, and as Evenbeat would.

use std::cmp::Reverse;

use evenbeat_core::job::{Job, JobState};
use evenbeat_core::placement::{Balance, Ledger};
use evenbeat_core::schedule::{Cron, Placement, Schedule};
use evenbeat_core::slot::{JobLoad, RunWork};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::urgency::{self, Outlook};

use super::habit::Habit;

const TICK: Duration = Duration::from_millis(1);

/// A job with its place on the time line.
#[derive(Clone, Debug)]
pub(super) struct PlacedJob {
    /// The job with the schedule that was placed, which has an `H` where a habit was opened.
    pub(super) job: Job,
    pub(super) placement: Placement,
    /// Its occurrences. `None` if it is paused, disabled or manual.
    pub(super) load: Option<JobLoad>,
}

impl PlacedJob {
    fn new(job: Job, placement: Placement, window: TimeWindow) -> PlacedJob {
        let load = load_of(&job, &placement, window);
        PlacedJob { job, placement, load }
    }

    /// Its cron expression with `H` for the minute, if the minute looks like a habit.
    pub(super) fn opened_habit(&self) -> Option<(String, String)> {
        match &self.job.schedule {
            Schedule::Cron(cron) if !cron.is_hashed() && self.load.is_some() => {
                Some((cron.expr().to_string(), Habit::of(cron.expr())?.open.to_string()))
            }
            _ => None,
        }
    }

    /// Its first occurrence.
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.load.as_ref()?.rhythm().first()
    }

    /// How often it starts within the window.
    pub(super) fn n_starts(&self, window: TimeWindow) -> u64 {
        self.load.as_ref().map_or(0, |load| load.rhythm().count_in(window))
    }

    /// The cron expression without `H`, if there is one.
    pub(super) fn expression(&self) -> Option<String> {
        match &self.job.schedule {
            Schedule::Cron(cron) => cron.expr().resolved_text(&self.placement.choices),
            _ => None,
        }
    }
}

/// Places a job as a plain cron-like scheduler would: an interval counts from whole multiples of itself, `H` follows from
/// the name, and a `fresh` job runs as early as it may.
pub(super) fn as_it_is(job: &Job, window: TimeWindow) -> PlacedJob {
    let start = job.bounds.starts_at.map_or(window.start(), |starts_at| starts_at.max(window.start()));
    let placement = match &job.schedule {
        Schedule::Every { interval, .. } => {
            // Both sides keep the rhythm of another scheduler.
            let grid = job.next_run_hint.unwrap_or(Timestamp::UNIX_EPOCH);
            Placement::at(next_multiple(grid, *interval, start), start)
        }
        Schedule::Fresh { cooldown, .. } => Placement::at(start + *cooldown + run_length(job), start),
        Schedule::Cron(cron) if cron.is_hashed() => {
            let (_, choices) = cron.expr().provisional(job.key.stable_hash());
            Placement { choices: choices.into(), ..Placement::at(start, start) }
        }
        Schedule::Cron(_) | Schedule::Once { .. } | Schedule::Manual => Placement::at(start, start),
    };
    PlacedJob::new(job.clone(), placement, window)
}

/// Places the jobs as Evenbeat would, and returns them in the same order. Places jobs with a fixed time first, then the
/// others, most frequent first. `may_open` tells whether the cron minute of a job may move if it looks like a habit.
pub(super) fn proposed(
    as_is: &[PlacedJob],
    may_open: impl Fn(usize) -> bool,
    window: TimeWindow,
) -> Vec<PlacedJob> {
    let start = window.start();
    let week = TimeWindow::starting_at(start, Duration::from_days(7));
    let mut placed: Vec<PlacedJob> = as_is.to_vec();
    let mut ledger = Ledger::new(Balance::default(), start);
    let mut movable = Vec::new();
    for (idx, it) in as_is.iter().enumerate() {
        match opened(&it.job, may_open(idx)).filter(|_| it.load.is_some()) {
            Some(job) => movable.push((Reverse(it.n_starts(week)), job, idx)),
            None => put(&mut ledger, &it.job, &it.placement, start),
        }
    }
    movable.sort_by(|one, other| (one.0, &one.1.key).cmp(&(other.0, &other.1.key)));
    for (_, job, idx) in movable {
        // Placement chooses strictly later times, so start just before the window to include its first instant.
        let found = ledger.place(&job, &state_of(&job, start), start - TICK);
        let Some((placement, _)) = found else { continue };
        put(&mut ledger, &job, &placement, start);
        if let Some(slot) = placed.get_mut(idx) {
            let is_moved = is_moved(slot, &job, &placement);
            *slot = if is_moved { PlacedJob::new(job, placement, window) } else { slot.clone() };
        }
    }
    placed
}

/// The job with the freedom that placement has. `None` if its time is fixed. A minute that looks like a habit is opened
/// if the caller allows it.
fn opened(job: &Job, may_open: bool) -> Option<Job> {
    match &job.schedule {
        Schedule::Every { .. } => job.next_run_hint.is_none().then(|| job.clone()),
        Schedule::Cron(cron) if cron.is_hashed() => Some(job.clone()),
        Schedule::Cron(cron) if may_open => {
            let open = Habit::of(cron.expr())?.open;
            let mut opened = job.clone();
            opened.schedule = Schedule::Cron(Cron::new(open, cron.finish_within));
            Some(opened)
        }
        _ => None,
    }
}

/// Whether a placement differs from the job's current one.
fn is_moved(was: &PlacedJob, job: &Job, placement: &Placement) -> bool {
    match (&was.job.schedule, &job.schedule) {
        (Schedule::Cron(cron), Schedule::Cron(_)) if !cron.is_hashed() => {
            Habit::of(cron.expr()).is_none_or(|habit| *placement.choices != [habit.choice])
        }
        (Schedule::Cron(_), Schedule::Cron(_)) => was.placement.choices != placement.choices,
        _ => was.placement.anchor_at != placement.anchor_at,
    }
}

/// The first instant at or after `start` that is a whole number of intervals away from another.
fn next_multiple(of: Timestamp, interval: Duration, start: Timestamp) -> Timestamp {
    let over = (start - of).as_millis().rem_euclid(interval.as_millis());
    if over == 0 { start } else { start + interval - Duration::from_millis(over) }
}

fn put(ledger: &mut Ledger, job: &Job, placement: &Placement, start: Timestamp) {
    let mut state = state_of(job, start);
    state.place(job, placement.clone());
    ledger.put(&job.key, job, &state);
}

fn state_of(job: &Job, start: Timestamp) -> JobState {
    JobState { pause: job.paused.clone().map(Box::new), ..JobState::new(start) }
}

fn run_length(job: &Job) -> Duration {
    urgency::expected_length(job, &JobState::new(Timestamp::UNIX_EPOCH), &Outlook::default())
}

fn load_of(job: &Job, placement: &Placement, window: TimeWindow) -> Option<JobLoad> {
    if !job.enabled || job.paused.is_some() {
        return None;
    }
    let first = job.schedule.rhythm(placement, job.bounds, &job.zone).first()?;
    let work = RunWork { length: run_length(job), cost: job.place.cost };
    let load = JobLoad::of(&job.schedule, placement, first, job.bounds, &job.zone, work)?;
    let one_too_many = job.bounds.max_runs.and_then(|most| load.rhythm().nth_in(window, most));
    Some(load.ending_at(one_too_many))
}

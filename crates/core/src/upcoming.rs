//! When the runs of a job will really start (K6).
//!
//! A rhythm says when a job is due. Back-off and blackouts hold runs up: of all occurrences that come due meanwhile, one
//! run serves the latest, or none does, as the job says about what it missed. These are the rules of dispatch,
//! so what is foreseen here is what `explain` says, unless a queue stands in between.

use crate::blackout::Blackouts;
use crate::ids::JobKey;
use crate::job::{JobState, Status, Terms};
use crate::missed::MissedRuns;
use crate::schedule::Rhythm;
use crate::slot::{JobLoad, RunWork};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::urgency::{self, Outlook};
use crate::zone::Zone;

/// How far ahead the starts of one job are looked for.
pub const LOOKAHEAD_MAX: Duration = Duration::from_days(366);

/// No blackout is longer, so what is due earlier is not held up until then.
const REACH: Duration = Duration::from_days(8);

/// How many occurrences before the first requested one are walked through.
const BEFORE_MAX: u64 = 10_000;

/// A job with more occurrences than this in a window is not walked through.
const WALKED_MAX: u64 = 100_000;

const TICK: Duration = Duration::from_millis(1);

/// A run that lies ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpcomingRun {
    /// When it will start.
    pub at: Timestamp,
    /// When it is due.
    pub due_at: Timestamp,
    /// Why it does not start when it is due.
    pub held_up_by: Option<HeldUpBy>,
}

/// What holds a run up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldUpBy {
    /// It failed, and is tried again later.
    Backoff,
    /// It may not run at that time, or would not end before such a time.
    Blackout,
}

impl HeldUpBy {
    /// The word that `explain` uses.
    pub fn as_str(self) -> &'static str {
        match self {
            HeldUpBy::Backoff => "backoff",
            HeldUpBy::Blackout => "blackout",
        }
    }
}

/// Whatever may hold up the runs of a job. Owned, so that a fleet can be looked through without its definitions.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldUps {
    floor: Option<Timestamp>,
    blackouts: Blackouts,
    zone: Zone,
    length: Duration,
    /// A run that would start later than this after it was due does not start at all.
    latest: Option<Duration>,
    /// What is pending is tried again, however late that is.
    retried: Option<Timestamp>,
    /// What is pending is being served.
    is_running: bool,
    n_left: Option<u64>,
}

impl HoldUps {
    /// What may hold up a job whose runs take this long.
    pub fn of(key: &JobKey, terms: &Terms, state: &JobState, length: Duration) -> HoldUps {
        let is_running = state.owner.is_some() && !terms.moves_on_at_start();
        let n_served = state.n_served.saturating_add(u64::from(is_running));
        let skips = terms.missed.runs == MissedRuns::Skip;
        HoldUps {
            floor: urgency::retry_floor(key, terms, state),
            blackouts: terms.blackouts.clone(),
            zone: terms.zone.clone(),
            length,
            latest: skips.then_some(terms.missed.grace),
            retried: state.next_run_at.filter(|_| 0 < state.attempt),
            is_running,
            n_left: terms.bounds.max_runs.map(|most| most.saturating_sub(n_served)),
        }
    }

    /// Whether any run of a job may start later than it is due, or not at all.
    pub fn may_hold_up(terms: &Terms, state: &JobState) -> bool {
        !terms.blackouts.is_empty() || 0 < state.failure_count || terms.bounds.max_runs.is_some()
    }

    /// The starts within a window. None if there are too many to walk through.
    pub fn within(&self, rhythm: Rhythm<'_>, now: Timestamp, window: TimeWindow) -> Option<Vec<UpcomingRun>> {
        let rhythm = self.near(rhythm, window.start());
        let ahead = TimeWindow::new(Timestamp::MIN, window.end());
        if WALKED_MAX < rhythm.count_in(ahead) {
            return None;
        }
        let starts = self.starts(rhythm, now, window.end()).take_while(|start| start.at < window.end());
        Some(starts.filter(|start| window.contains(start.at)).collect())
    }

    /// A rhythm without what is long over at an instant far ahead.
    fn near<'a>(&self, rhythm: Rhythm<'a>, from: Timestamp) -> Rhythm<'a> {
        if self.n_left.is_some() {
            return rhythm;
        }
        let is_short = rhythm.count_in(TimeWindow::new(from - REACH, from)) <= BEFORE_MAX;
        rhythm.starting_at(from - if is_short { REACH } else { Duration::from_hours(1) })
    }

    /// The starts of a rhythm that begins with what is pending, as far as they are due before `until`.
    fn starts<'a>(&'a self, rhythm: Rhythm<'a>, now: Timestamp, until: Timestamp) -> StartWalk<'a> {
        let due = if self.is_running { rhythm.next_after(now) } else { rhythm.first() };
        StartWalk { of: self, rhythm, due, now, until, n_left: self.n_left }
    }
}

/// Walks over the starts of a job.
#[derive(Clone, Debug)]
struct StartWalk<'a> {
    of: &'a HoldUps,
    rhythm: Rhythm<'a>,
    due: Option<Timestamp>,
    now: Timestamp,
    until: Timestamp,
    n_left: Option<u64>,
}

impl Iterator for StartWalk<'_> {
    type Item = UpcomingRun;

    fn next(&mut self) -> Option<UpcomingRun> {
        if self.n_left == Some(0) {
            return None;
        }
        loop {
            let due_at = self.due.take().filter(|due_at| *due_at < self.until)?;
            let floored = self.of.floor.map_or(due_at, |floor| floor.max(due_at));
            let earliest = floored.max(self.now);
            let at = self.of.blackouts.earliest_fit(&self.of.zone, earliest, self.of.length)?;
            let latest = self.of.latest.filter(|_| self.of.retried != Some(due_at));
            if let Some(latest) = latest.filter(|latest| earliest < at && due_at + *latest < at) {
                self.due = self.rhythm.next_after(due_at.max(at - latest - TICK));
                continue;
            }
            let held_up_by = if earliest < at {
                Some(HeldUpBy::Blackout)
            } else if due_at < floored && self.now < floored {
                Some(HeldUpBy::Backoff)
            } else {
                None
            };
            self.due = self.rhythm.next_after(at);
            self.n_left = self.n_left.map(|n_left| n_left - 1);
            return Some(UpcomingRun { at, due_at, held_up_by });
        }
    }
}

/// The next starts of one job, after an instant if one is given; none of a job that is paused, disabled or done.
pub fn of_job(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    outlook: &Outlook,
    now: Timestamp,
    after: Option<Timestamp>,
    most: usize,
) -> Vec<UpcomingRun> {
    let is_over = matches!(state.status(terms), Status::Done | Status::Pending);
    let length = urgency::expected_length(terms, state, outlook);
    let load = || {
        let work = RunWork { length, cost: terms.place.cost };
        let (placement, next_run_at) = (state.placement.as_ref()?, state.next_run_at?);
        JobLoad::of(&terms.schedule, placement, next_run_at, terms.bounds, &terms.zone, work)
    };
    let Some(load) = load().filter(|_| !is_over && terms.enabled && state.pause.is_none()) else {
        return Vec::new();
    };
    let hold_ups = HoldUps::of(key, terms, state, length);
    let until = after.map_or(now, |after| after.max(now)) + LOOKAHEAD_MAX;
    let rhythm = hold_ups.near(load.rhythm(), after.unwrap_or(now));
    let starts = hold_ups.starts(rhythm, now, until);
    starts.skip_while(|start| after.is_some_and(|after| start.at <= after)).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackout::{BlackoutPeriod, Weekdays};
    use crate::job::sample::{instant, job, length, placed};
    use crate::job::{Job, Pause, PausedBy};

    fn dark(mut job: Job, start: &str, end: &str) -> Job {
        let period =
            BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), Weekdays::ALL).unwrap();
        job.terms.blackouts = Blackouts::new(vec![period]).unwrap();
        job
    }

    /// The next four, as `start<due (why)`.
    fn shown(job: &Job, state: &JobState, now: &str) -> Vec<String> {
        let starts = of_job(&job.key, job, state, &Outlook::default(), instant(now), None, 4);
        let clock = |at: Timestamp| at.to_string()[11..].replace(":00Z", "").replace('Z', "");
        let line = |it: &UpcomingRun| match it.held_up_by {
            Some(why) => format!("{} for {} ({})", clock(it.at), clock(it.due_at), why.as_str()),
            None if it.at != it.due_at => format!("{} for {}", clock(it.at), clock(it.due_at)),
            None => clock(it.at),
        };
        starts.iter().map(line).collect()
    }

    #[test]
    fn a_job_that_nothing_holds_up_starts_when_it_is_due() {
        let job = job("every 1h");
        let state = placed(&job, "10:00");
        assert_eq!(shown(&job, &state, "09:30"), ["10:00", "11:00", "12:00", "13:00"]);
        assert_eq!(shown(&job, &state, "10:10"), ["10:10 for 10:00", "11:00", "12:00", "13:00"]);
        let after = |after| {
            let starts = of_job(
                &job.key,
                &job,
                &state,
                &Outlook::default(),
                instant("09:30"),
                Some(instant(after)),
                1,
            );
            starts.first().map(|it| it.at)
        };
        assert_eq!(after("11:00"), Some(instant("12:00")));
        assert_eq!(after("2027-02-04T11:00:00Z"), Some(instant("2027-02-04T12:00:00Z")));
    }

    #[test]
    fn a_blackout_holds_runs_up_until_its_end_and_one_serves_them() {
        let job = dark(job("every 20m"), "10:30", "11:50");
        let state = placed(&job, "10:00");
        assert_eq!(shown(&job, &state, "09:50"), ["10:00", "10:20", "11:50 for 10:40 (blackout)", "12:00"]);
        let mut skipping = job.clone();
        skipping.terms.missed.runs = MissedRuns::Skip;
        assert_eq!(shown(&skipping, &state, "09:50"), ["10:00", "10:20", "12:00", "12:20"]);
        let never = dark(job.clone(), "00:00", "24:00");
        assert_eq!(shown(&never, &state, "09:50"), [] as [&str; 0]);
    }

    #[test]
    fn a_run_that_does_not_fit_before_a_blackout_waits_for_its_end() {
        let mut job = dark(job("every 1h"), "10:10", "10:50");
        job.terms.estimate = Some(length("15m"));
        let state = placed(&job, "10:00");
        assert_eq!(shown(&job, &state, "09:50"), ["10:50 for 10:00 (blackout)", "11:00", "12:00", "13:00"]);
    }

    #[test]
    fn what_failed_starts_after_its_back_off_as_it_would_be_dispatched() {
        let job = job("fresh 6h");
        let mut state = placed(&job, "10:00");
        (state.failure_count, state.attempt) = (1, 1);
        (state.last_start_at, state.last_end_at) = (Some(instant("10:00")), Some(instant("10:10")));
        let starts = shown(&job, &state, "10:12");
        assert_eq!(starts[0], "10:15 for 10:00 (backoff)");
        let planned = urgency::next_start(&job.key, &job, &state, instant("10:12"), &Outlook::default());
        assert_eq!(planned, Some(instant("10:15")));
        assert_eq!(shown(&job, &state, "10:20")[0], "10:20 for 10:00");
    }

    #[test]
    fn a_fresh_job_is_expected_again_and_again() {
        let job = job("fresh 6h");
        let state = placed(&job, "10:00");
        assert_eq!(shown(&job, &state, "09:30"), ["10:00", "13:00", "16:00", "19:00"]);
    }

    #[test]
    fn what_is_used_up_paused_disabled_or_done_does_not_start() {
        let mut job = job("every 1h");
        let mut state = placed(&job, "10:00");
        job.terms.bounds.max_runs = Some(3);
        state.n_served = 1;
        assert_eq!(shown(&job, &state, "09:30"), ["10:00", "11:00"]);
        state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
        assert_eq!(shown(&job, &state, "09:30"), [] as [&str; 0]);
        state.pause = None;
        job.terms.enabled = false;
        assert_eq!(shown(&job, &state, "09:30"), [] as [&str; 0]);
    }
}

//! The distribution of the next day, kept up to date job by job (A11).
//!
//! A walk over a million jobs takes a fifth of a second, and people look at the distribution all the time. So starts are
//! counted by the minute as jobs come and go, for a day and [`REACH`] from an origin on; a day that begins within that
//! reach is read off the cells.
//!
//! # What a job counts for
//!
//! By [`Distribution`], the current slot counts by the rhythm of a job as if it had always gone on, unless its next
//! occurrence is still far away. For one job that depends on the time in two steps only, which is why it can be kept:
//!
//! ```text
//!                    p2            p1           first
//!   ---------x--------x-------------x-------------x-----------x--->
//!   now is before p2:                             x           x      Projection::Ahead
//!   before p1:       x x                          x           x      Projection::ButOne
//!   from p1 on:      x x             x            x           x      Projection::Whole
//! ```
//!
//! Nearly every job waits for the next occurrence of its rhythm, and counts as a whole. The others are queued by the
//! instant at which they count for more.

use std::collections::BTreeSet;

use crate::distribution::{Distribution, JobTotals, second_of};
use crate::ids::JobKey;
use crate::schedule::Rhythm;
use crate::slot::{Slot, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};

/// How long after the origin a day can still begin. The ledger is moved on every hour.
const REACH: Duration = Duration::from_hours(2);

const DAY_MS: i64 = 86_400_000;
const MINUTE_MS: i64 = 60_000;
const MINUTES_A_DAY: usize = 1_440;

/// How much of a rhythm counts; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Projection {
    /// All of it, as if it had always gone on.
    Whole,
    /// All but the occurrence before the next one, which will not take place.
    ButOne,
    /// From the next occurrence on.
    Ahead,
}

/// Starts of jobs by the minute, and jobs by the days in which they start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DayCounts {
    width: SlotWidth,
    window: TimeWindow,
    /// As of when jobs are projected; never goes back.
    now: Timestamp,
    minutes: Box<[u32]>,
    /// For the day that begins with each of the first slots: jobs that start in it.
    in_day: Box<[u32]>,
    /// For each of these days: jobs that first start after it.
    beyond: Box<[u32]>,
    /// Jobs that start in every one of these days.
    n_always: u32,
    /// Jobs by the second of their next occurrence.
    seconds: Box<[u32]>,
    n_overdue: u32,
    /// When jobs count for more.
    turns: BTreeSet<(Timestamp, JobKey)>,
}

impl DayCounts {
    /// Nothing yet, from the slot that `now` lies in.
    pub(crate) fn new(now: Timestamp, width: SlotWidth) -> DayCounts {
        let start = Slot::of(now, width).start(width);
        let window = TimeWindow::new(start, start + Duration::from_millis(DAY_MS) + REACH);
        let cells = |length: i64| usize::try_from(window.length().as_millis() / length).unwrap_or(0);
        let n_days = usize::try_from(REACH.as_millis() / width.length().as_millis()).unwrap_or(0) + 1;
        DayCounts {
            width,
            window,
            now,
            minutes: vec![0; cells(MINUTE_MS)].into(),
            in_day: vec![0; n_days].into(),
            beyond: vec![0; n_days].into(),
            n_always: 0,
            seconds: vec![0; cells(1_000)].into(),
            n_overdue: 0,
            turns: BTreeSet::new(),
        }
    }

    /// The day from the slot of `now` on; none if it begins before the origin or too late after it. A job that counts
    /// for more by then must have been counted again.
    pub(crate) fn distribution(&self, now: Timestamp) -> Option<Distribution> {
        let start = Slot::of(now, self.width).start(self.width);
        let since = (start - self.window.start()).as_millis();
        let day_idx = usize::try_from(since / self.width.length().as_millis()).ok()?;
        let first = usize::try_from(since / MINUTE_MS).ok()?;
        let minutes = self.minutes.get(first..first + MINUTES_A_DAY)?;
        let count = |cells: &[u32]| cells.get(day_idx).copied();
        let jobs = JobTotals {
            in_window: (self.n_always + count(&self.in_day)?) as usize,
            overdue: self.n_overdue as usize,
            beyond: count(&self.beyond)? as usize,
        };
        Some(Distribution::of_minutes(start, self.width, minutes, jobs))
    }

    /// As of when jobs are counted.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Time passes. Returns the jobs that are to be counted again.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Vec<JobKey> {
        if now <= self.now {
            return Vec::new();
        }
        let passed = self.second_idx(self.now).zip(self.second_idx(now).or(Some(self.seconds.len())));
        let passed = passed.and_then(|(from, to)| self.seconds.get(from..to));
        self.n_overdue += passed.map_or(0, |passed| passed.iter().sum::<u32>());
        self.now = now;
        let mut due = Vec::new();
        while self.turns.first().is_some_and(|(at, _)| *at <= now) {
            due.extend(self.turns.pop_first().map(|(_, key)| key));
        }
        due
    }

    /// Counts a job that waits for the first occurrence of this rhythm. Returns for how much.
    pub(crate) fn add(&mut self, key: &JobKey, rhythm: &Rhythm<'_>) -> Projection {
        let Some(first) = rhythm.first() else { return Projection::Whole };
        let (projection, turn_at) = self.projection(rhythm, first);
        if let Some(turn_at) = turn_at {
            self.turns.insert((turn_at, key.clone()));
        }
        self.count_first(first, |cell| *cell += 1);
        self.count_starts(rhythm, first, projection, |cell| *cell += 1);
        projection
    }

    /// Stops counting a job. It must have been counted with this rhythm and for this much.
    pub(crate) fn remove(&mut self, key: &JobKey, rhythm: &Rhythm<'_>, projection: Projection) {
        let Some(first) = rhythm.first() else { return };
        if let Some(turn_at) = turn_of(rhythm, first, projection) {
            self.turns.remove(&(turn_at, key.clone()));
        }
        self.count_first(first, |cell| *cell -= 1);
        self.count_starts(rhythm, first, projection, |cell| *cell -= 1);
    }

    /// Counts a job that has moved on in its rhythm. After a run that is all that happens, and costs next to nothing.
    pub(crate) fn shift(
        &mut self,
        key: &JobKey,
        before: &Rhythm<'_>,
        projection: Projection,
        after: &Rhythm<'_>,
    ) -> Projection {
        // Only a job whose next occurrence lies behind a day is counted as beyond it.
        let day_end = self.window.start() + Duration::from_millis(DAY_MS);
        if let (Projection::Whole, Some(was), Some(is)) = (projection, before.first(), after.first())
            && was.max(is) < day_end
            && let (Projection::Whole, _) = self.projection(after, is)
        {
            self.count_first(was, |cell| *cell -= 1);
            self.count_first(is, |cell| *cell += 1);
            return Projection::Whole;
        }
        self.remove(key, before, projection);
        self.add(key, after)
    }

    /// For how much a job counts now, and when for more.
    fn projection(&self, rhythm: &Rhythm<'_>, first: Timestamp) -> (Projection, Option<Timestamp>) {
        let is_ahead = |at: &Timestamp| self.now < *at;
        match rhythm.nth_before(first, 1).filter(is_ahead) {
            None => (Projection::Whole, None),
            Some(last) => match rhythm.nth_before(first, 2).filter(is_ahead) {
                None => (Projection::ButOne, Some(last)),
                Some(last_but_one) => (Projection::Ahead, Some(last_but_one)),
            },
        }
    }

    fn count_first(&mut self, first: Timestamp, change: impl Fn(&mut u32)) {
        if first < second_of(self.now) {
            change(&mut self.n_overdue);
        }
        if let Some(cell) = self.second_idx(first).and_then(|idx| self.seconds.get_mut(idx)) {
            change(cell);
        }
    }

    fn second_idx(&self, at: Timestamp) -> Option<usize> {
        let is_inside = self.window.contains(at);
        usize::try_from((at - self.window.start()).as_millis() / 1_000).ok().filter(|_| is_inside)
    }

    fn count_starts(
        &mut self,
        rhythm: &Rhythm<'_>,
        first: Timestamp,
        projection: Projection,
        change: impl Fn(&mut u32),
    ) {
        let left_out = match projection {
            Projection::Whole => TimeWindow::new(first, first),
            Projection::ButOne => TimeWindow::new(rhythm.nth_before(first, 1).unwrap_or(first), first),
            Projection::Ahead => TimeWindow::new(Timestamp::MIN, first),
        };
        let width_ms = self.width.length().as_millis();
        let n_days = self.in_day.len();
        let start = self.window.start();
        // A bit for each day; there are at most 121.
        let all_days = u128::MAX >> (128 - n_days);
        let mut days = 0_u128;
        let minutes = &mut self.minutes;
        let whole = rhythm.clone().beginning_at(start);
        whole.for_each_in(self.window, |at| {
            if left_out.contains(at) {
                return;
            }
            let since = (at - start).as_millis();
            if let Some(cell) = usize::try_from(since / MINUTE_MS).ok().and_then(|idx| minutes.get_mut(idx)) {
                change(cell);
            }
            if days != all_days {
                // It lies in the days that begin in its own slot, or up to a day before.
                let newest = bits_up_to(since / width_ms);
                let too_old = if since < DAY_MS { 0 } else { bits_up_to((since - DAY_MS) / width_ms) };
                days |= newest & !too_old & all_days;
            }
        });
        if days == all_days {
            return change(&mut self.n_always);
        }
        for (idx, (in_day, beyond)) in (0_i64..).zip(self.in_day.iter_mut().zip(&mut self.beyond)) {
            let day_end = start + Duration::from_millis(idx * width_ms + DAY_MS);
            if days >> idx & 1 == 1 {
                change(in_day);
            } else if day_end <= first {
                change(beyond);
            }
        }
    }
}

/// When a job counts for more.
fn turn_of(rhythm: &Rhythm<'_>, first: Timestamp, projection: Projection) -> Option<Timestamp> {
    match projection {
        Projection::Whole => None,
        Projection::ButOne => rhythm.nth_before(first, 1),
        Projection::Ahead => rhythm.nth_before(first, 2),
    }
}

/// The bits with these numbers and lower ones.
fn bits_up_to(idx: i64) -> u128 {
    u32::try_from(127 - idx.clamp(0, 127)).map_or(u128::MAX, |shift| u128::MAX >> shift)
}

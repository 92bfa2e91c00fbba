//! What the fleet will start, page by page.
//!
//! The next hour is read off the agenda, which is rebuilt every while; jobs that have changed since are put in as they
//! are now. Any other window is looked through in pieces, each of which holds little more than a page, so that a month of
//! a large fleet takes no more memory than an hour.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenbeat_core::agenda::{Agenda, AgendaError, Source};
use evenbeat_core::ids::JobKey;
use evenbeat_core::placement::{LedgerChanges, LedgerJob, LedgerSnapshot};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::upcoming::UpcomingRun;

use super::agenda::CurrentAgenda;

/// Most starts of a piece of a window, unless they share a millisecond.
const PIECE_MAX: u64 = 200_000;

/// A start of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpcomingStart {
    pub job: JobKey,
    pub run: UpcomingRun,
    /// Whether that is a guess.
    pub is_estimate: bool,
}

/// Some starts of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpcomingStarts {
    /// How many there are in the whole window.
    pub total: usize,
    pub starts: Vec<UpcomingStart>,
    /// Whether there are more after the last of them.
    pub is_more: bool,
}

/// The jobs of a moment and, if there is one, the agenda with what has changed since.
#[derive(Debug)]
pub(super) struct FleetAhead {
    pub(super) jobs: LedgerSnapshot,
    pub(super) agenda: Option<(Arc<CurrentAgenda>, LedgerChanges)>,
}

/// A start, as it is sorted.
type Start = (Timestamp, JobKey, bool);

impl FleetAhead {
    /// Whether the agenda has this window. It does not know what is overdue.
    pub(super) fn is_known(&self, window: TimeWindow, now: Timestamp) -> bool {
        let covers = |it: &TimeWindow| it.start() <= window.start() && window.end() <= it.end();
        let known = self.agenda.as_ref().map(|(current, _)| current.agenda.window());
        now <= window.start() && known.is_some_and(|it| covers(&it))
    }

    pub(super) fn page(
        &self,
        window: TimeWindow,
        after: Option<&(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
    ) -> Result<UpcomingStarts, AgendaError> {
        // One more than wanted tells whether there are more.
        let (total, mut found) = match &self.agenda {
            Some((current, changes)) if self.is_known(window, now) => {
                self.of_agenda(current, changes, window, after, most + 1, now)
            }
            _ => self.of_jobs(window, after, most + 1, now)?,
        };
        let is_more = most < found.len();
        found.truncate(most);
        let starts = found.into_iter().map(|start| self.start(start, now)).collect();
        Ok(UpcomingStarts { total, starts, is_more })
    }

    /// Says what a job is due for that starts then.
    fn start(&self, (at, job, is_estimate): Start, now: Timestamp) -> UpcomingStart {
        let this = TimeWindow::new(at, at + TICK);
        let run = self.jobs.job(&job).and_then(|it| held_up(&it, this, now)?.into_iter().next());
        let run = run.unwrap_or(UpcomingRun { at, due_at: at, held_up_by: None });
        UpcomingStart { job, run, is_estimate }
    }

    fn of_agenda(
        &self,
        current: &CurrentAgenda,
        changes: &LedgerChanges,
        window: TimeWindow,
        after: Option<&(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
    ) -> (usize, Vec<Start>) {
        let mut total = current.agenda.between(window.start(), window.end()).len();
        let mut changed = Vec::new();
        for (key, before) in changes.iter() {
            total -= before.map_or(0, |it| count(&it, window, current.built_at));
            if let Some(job) = self.jobs.job(key) {
                total += count(&job, window, now);
                changed.push(job);
            }
        }
        let from = after.map_or(window.start(), |(at, _)| (*at).max(window.start()));
        let rest = TimeWindow::new(from, window.end());
        let is_after = |at: Timestamp, key: &JobKey| after.is_none_or(|(last, own)| (*last, own) < (at, key));
        let mut walk = ChangedStarts::new(&changed, rest, now);
        let mut found = Vec::new();
        let mut known = current.agenda.between(rest.start(), rest.end()).iter();
        let mut known =
            std::iter::from_fn(|| known.find(|it| is_after(it.at, it.job) && !changes.contains(it.job)))
                .peekable();
        while found.len() < most {
            let is_known_first = match (known.peek(), walk.peek()) {
                (None, None) => break,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(it), Some((at, key))) => (it.at, it.job) < (at, key),
            };
            if is_known_first {
                found.extend(known.next().map(|it| (it.at, it.job.clone(), it.is_estimate)));
            } else {
                found.extend(walk.next().filter(|(at, key, _)| is_after(*at, key)));
            }
        }
        (total, found)
    }

    fn of_jobs(
        &self,
        window: TimeWindow,
        after: Option<&(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
    ) -> Result<(usize, Vec<Start>), AgendaError> {
        let total: usize = self.jobs.jobs().map(|it| count(&it, window, now)).sum();
        let mut found = Vec::new();
        let mut from = after.map_or(window.start(), |(at, _)| (*at).max(window.start()));
        // Begins with a piece that should hold a page if starts are spread evenly.
        let share = window.length().as_millis() / i64::try_from(total / most.max(1)).unwrap_or(1).max(1);
        let mut length = Duration::from_millis(share.max(1_000));
        while from < window.end() && found.len() < most {
            let piece = TimeWindow::new(from, (from + length).min(window.end()));
            let n_in: u64 = self.jobs.jobs().map(|it| it.rhythm.count_in(piece)).sum();
            if PIECE_MAX < n_in && TICK < length {
                length = Duration::from_millis((length.as_millis() / 8).max(1));
                continue;
            }
            let agenda = agenda_of(&self.jobs, piece, now, &Agenda::empty(piece))?;
            let is_after =
                |at: Timestamp, key: &JobKey| after.is_none_or(|(last, own)| (*last, own) < (at, key));
            let wanted = agenda.all().into_iter().filter(|it| is_after(it.at, it.job));
            let wanted = wanted.take(most - found.len());
            found.extend(wanted.map(|it| (it.at, it.job.clone(), it.is_estimate)));
            from = piece.end();
            length = (length * 4).min(window.length());
        }
        Ok((total, found))
    }
}

const TICK: Duration = Duration::from_millis(1);

/// The starts of a job within a window, if its runs may be held up.
pub(super) fn held_up(job: &LedgerJob<'_>, window: TimeWindow, now: Timestamp) -> Option<Vec<UpcomingRun>> {
    job.hold_ups?.within(job.rhythm.clone(), now, window)
}

fn count(job: &LedgerJob<'_>, window: TimeWindow, now: Timestamp) -> usize {
    match held_up(job, window, now) {
        Some(starts) => starts.len(),
        None => usize::try_from(job.rhythm.count_in(window)).unwrap_or(usize::MAX),
    }
}

/// An agenda of these jobs: of when runs will start, which may be later than they are due.
pub(super) fn agenda_of(
    jobs: &LedgerSnapshot,
    window: TimeWindow,
    now: Timestamp,
    before: &Agenda,
) -> Result<Agenda, AgendaError> {
    let jobs: Vec<(LedgerJob<'_>, Option<Vec<Timestamp>>)> = jobs
        .jobs()
        .filter(|it| it.next_run_at < window.end())
        .map(|it| {
            let starts = held_up(&it, window, now).map(|starts| starts.iter().map(|it| it.at).collect());
            (it, starts)
        })
        .collect();
    let sources: Vec<Source<'_>> = jobs
        .iter()
        .map(|(it, starts)| {
            let source = match starts {
                Some(starts) => Source::from_occurrences(it.key, starts),
                None => Source::from_rhythm(it.key, it.rhythm.clone()),
            };
            if it.is_estimate { source.estimated() } else { source }
        })
        .collect();
    // Mostly the same jobs as a moment ago, whose keys need not be copied again.
    before.rebuild(&sources, window)
}

/// Walks over the starts of changed jobs, in their order.
struct ChangedStarts<'a> {
    jobs: &'a [LedgerJob<'a>],
    /// The starts of those whose runs may be held up.
    held_up: Vec<Option<Vec<UpcomingRun>>>,
    /// The next start of each job, by its number.
    next: BinaryHeap<Reverse<(Timestamp, JobKey, usize)>>,
    end: Timestamp,
}

impl<'a> ChangedStarts<'a> {
    fn new(jobs: &'a [LedgerJob<'a>], window: TimeWindow, now: Timestamp) -> ChangedStarts<'a> {
        let held_up = jobs.iter().map(|job| held_up(job, window, now)).collect();
        let mut walk = ChangedStarts { jobs, held_up, next: BinaryHeap::new(), end: window.end() };
        for idx in 0..jobs.len() {
            walk.push_after(idx, window.start() - TICK);
        }
        walk
    }

    fn peek(&self) -> Option<(Timestamp, &JobKey)> {
        self.next.peek().map(|Reverse((at, key, _))| (*at, key))
    }

    fn next(&mut self) -> Option<Start> {
        let Reverse((at, key, idx)) = self.next.pop()?;
        self.push_after(idx, at);
        Some((at, key, self.jobs.get(idx)?.is_estimate))
    }

    fn push_after(&mut self, idx: usize, after: Timestamp) {
        let Some(job) = self.jobs.get(idx) else { return };
        let next = match self.held_up.get(idx) {
            Some(Some(starts)) => starts.iter().map(|start| start.at).find(|at| after < *at),
            _ => job.rhythm.next_after(after),
        };
        if let Some(at) = next.filter(|at| *at < self.end) {
            self.next.push(Reverse((at, job.key.clone(), idx)));
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
    use evenbeat_core::placement::{Balance, Ledger};
    use evenbeat_core::schedule::{Placement, Schedule};
    use proptest::prelude::*;

    use super::*;

    fn job(no: usize, every: i64) -> Job {
        let argv = vec!["true".to_owned()];
        let target = Target::Command(CommandTarget { argv, ..CommandTarget::default() });
        let interval = Duration::from_secs(every);
        let schedule = match no % 4 {
            0 => Schedule::Fresh { max_age: interval * 2, cooldown: interval },
            _ => Schedule::Every { interval, finish_within: None },
        };
        Job::new(format!("job-{no}").parse().unwrap(), target, schedule)
    }

    /// All pages of a window.
    fn pages(
        ahead: &FleetAhead,
        window: TimeWindow,
        most: usize,
        now: Timestamp,
    ) -> (usize, Vec<UpcomingStart>) {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = ahead.page(window, after.as_ref(), most, now).unwrap();
            assert!(page.starts.len() <= most);
            after = page.starts.last().map(|it| (it.run.at, it.job.clone()));
            all.extend(page.starts);
            if !page.is_more {
                return (page.total, all);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Pages of the agenda with what has changed since, and pages of the jobs themselves, are one list.
        #[test]
        fn pages_of_the_agenda_and_of_the_jobs_are_the_same(
            before in prop::collection::vec((0_usize..24, 30_i64..5_000, 0_i64..4_000), 0..40),
            later in prop::collection::vec((0_usize..24, 30_i64..5_000, 0_i64..4_000, 0_u8..4), 0..30),
            passed in 0_i64..60,
            most in 1_usize..50,
        ) {
            let begun: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
            let mut ledger = Ledger::new(Balance::default(), begun);
            let put = |ledger: &mut Ledger, no: usize, every: i64, offset: i64, n_failed: u32, now: Timestamp| {
                let job = job(no, every);
                let mut state = JobState::new(begun);
                state.place(&job, Placement::at(now + Duration::from_secs(offset), begun));
                (state.failure_count, state.attempt) = (n_failed, n_failed);
                state.last_end_at = Some(now);
                ledger.put(&job.key, &job, &state);
            };
            for (no, every, offset) in before {
                put(&mut ledger, no, every, offset, 0, begun);
            }
            let jobs = ledger.begin_agenda();
            let window = TimeWindow::starting_at(begun, Duration::from_hours(2));
            let agenda = agenda_of(&jobs, window, begun, &Agenda::empty(window)).unwrap();
            ledger.end_agenda(true);
            let now = begun + Duration::from_secs(passed);
            ledger.advance(now);
            for (no, every, offset, what) in later {
                match what {
                    0 => ledger.remove(&job(no, every).key),
                    _ => put(&mut ledger, no, every, offset, u32::from(what == 1), now),
                }
            }
            let current = Arc::new(CurrentAgenda { agenda, built_at: begun });
            let agenda = ledger.changes().map(|changes| (current, changes));
            prop_assert!(agenda.is_some());
            let quick = FleetAhead { jobs: ledger.snapshot(), agenda };
            let slow = FleetAhead { jobs: ledger.snapshot(), agenda: None };
            let hour = TimeWindow::starting_at(now, Duration::from_hours(1));
            let whole = pages(&slow, hour, usize::MAX / 2, now);
            prop_assert_eq!(whole.0, whole.1.len());
            prop_assert_eq!(&pages(&quick, hour, most, now), &whole);
            prop_assert_eq!(&pages(&slow, hour, most, now), &whole);
        }
    }

    #[test]
    fn a_month_is_looked_through_in_pieces() {
        let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let mut ledger = Ledger::new(Balance::default(), now);
        for no in 0..40 {
            let job = job(4 * no + 1, 60);
            let mut state = JobState::new(now);
            state.place(&job, Placement::at(now + Duration::from_secs(1), now));
            ledger.put(&job.key, &job, &state);
        }
        let ahead = FleetAhead { jobs: ledger.snapshot(), agenda: None };
        let month = TimeWindow::starting_at(now, Duration::from_days(31));
        let page = ahead.page(month, None, 100, now).unwrap();
        assert_eq!((page.total, page.starts.len(), page.is_more), (40 * 31 * 1_440, 100, true));
        let last = page.starts.last().map(|it| (it.run.at, it.job.clone())).unwrap();
        let next = ahead.page(month, Some(&last), 100, now).unwrap();
        let keys: Vec<_> = page.starts.iter().chain(&next.starts).map(|it| (it.run.at, &it.job)).collect();
        assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    }
}

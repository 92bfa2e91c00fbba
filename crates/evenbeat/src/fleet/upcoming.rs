//! What the fleet will start, page by page.
//!
//! The next hour is read off the agenda, which is rebuilt every while; jobs that have changed since are put in as they
//! are now. What the agenda does not cover is looked through in pieces, each of which holds little more than a page, so
//! that a month of a large fleet takes no more memory than an hour.
//!
//! Only the number of starts in a longer window needs a look at every job. A reader that pages through such a window pays
//! for it once: see [`TotalCache`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// How far a window may begin before now and still count as the time ahead: a request names an instant, and is answered
/// a moment later.
const MOMENT: Duration = Duration::from_secs(1);

impl FleetAhead {
    /// As of when a window is looked at: now, or its start if that was a moment ago.
    pub(super) fn as_of(window: TimeWindow, now: Timestamp) -> Timestamp {
        let is_moment_ago = window.start() <= now && now - window.start() <= MOMENT;
        if is_moment_ago { window.start() } else { now }
    }

    /// Whether the agenda has this window. It does not know what is overdue.
    pub(super) fn is_known(&self, window: TimeWindow, now: Timestamp) -> bool {
        self.known_until(window.start(), now).is_some_and(|end| window.end() <= end)
    }

    /// How far the agenda knows what comes from an instant on.
    fn known_until(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let known = self.agenda.as_ref().map(|(current, _)| current.agenda.window());
        known.filter(|it| now <= from && it.contains(from)).map(|it| it.end())
    }

    /// The starts of a window, counted.
    pub(super) fn total(&self, window: TimeWindow, now: Timestamp) -> usize {
        match &self.agenda {
            Some((current, changes)) if self.is_known(window, now) => {
                let mut total = current.agenda.between(window.start(), window.end()).len();
                for (key, before) in changes.iter() {
                    total -= before.map_or(0, |it| count(&it, window, current.built_at));
                    total += self.jobs.job(key).map_or(0, |it| count(&it, window, now));
                }
                total
            }
            _ => self.jobs.jobs().map(|it| count(&it, window, now)).sum(),
        }
    }

    pub(super) fn page(
        &self,
        window: TimeWindow,
        after: Option<&(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
        total: usize,
    ) -> Result<UpcomingStarts, AgendaError> {
        // One more than wanted tells whether there are more.
        let wanted = most + 1;
        let mut from = after.map_or(window.start(), |(at, _)| (*at).max(window.start()));
        let mut found = Vec::new();
        if let (Some((current, changes)), Some(end)) = (&self.agenda, self.known_until(from, now)) {
            let known = TimeWindow::new(from, end.min(window.end()));
            found = self.of_agenda(current, changes, known, after, wanted, now);
            from = known.end();
        }
        if found.len() < wanted && from < window.end() {
            // Begins with a piece that should hold a page if starts are spread evenly.
            let share = window.length().as_millis() / i64::try_from(total / wanted).unwrap_or(1).max(1);
            let rest = TimeWindow::new(from, window.end());
            self.of_jobs(rest, after, wanted, now, Duration::from_millis(share.max(1_000)), &mut found)?;
        }
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
        rest: TimeWindow,
        after: Option<&(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
    ) -> Vec<Start> {
        let changed: Vec<LedgerJob<'_>> = changes.iter().filter_map(|(key, _)| self.jobs.job(key)).collect();
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
        found
    }

    /// Adds starts of a window, looked through piece by piece. The first piece is of this length.
    fn of_jobs(
        &self,
        window: TimeWindow,
        after: Option<&(Timestamp, JobKey)>,
        most: usize,
        now: Timestamp,
        mut length: Duration,
        found: &mut Vec<Start>,
    ) -> Result<(), AgendaError> {
        let mut from = window.start();
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
        Ok(())
    }
}

/// The numbers of starts of windows that were counted lately, so that the pages of one window are counted once.
#[derive(Debug, Default)]
pub(super) struct TotalCache(Mutex<VecDeque<(TimeWindow, Timestamp, usize)>>);

impl TotalCache {
    /// Most windows that are remembered.
    const WINDOWS_MAX: usize = 16;

    /// How long a number is good enough for the next page.
    const KEPT_FOR: Duration = Duration::from_mins(5);

    pub(super) fn get(&self, window: TimeWindow, now: Timestamp) -> Option<usize> {
        let counted = self.lock();
        let is_it =
            |it: &&(TimeWindow, Timestamp, usize)| it.0 == window && now < it.1 + TotalCache::KEPT_FOR;
        counted.iter().find(is_it).map(|it| it.2)
    }

    pub(super) fn put(&self, window: TimeWindow, now: Timestamp, total: usize) {
        let mut counted = self.lock();
        counted.retain(|it| it.0 != window);
        counted.push_front((window, now, total));
        counted.truncate(TotalCache::WINDOWS_MAX);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(TimeWindow, Timestamp, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::fleet::LOOKAHEAD;

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
            let total = ahead.total(window, now);
            let page = ahead.page(window, after.as_ref(), most, now, total).unwrap();
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
            // The agenda has the beginning of this window only.
            let longer = TimeWindow::starting_at(now, Duration::from_hours(3));
            prop_assert!(!quick.is_known(longer, now));
            prop_assert_eq!(pages(&quick, longer, most, now), pages(&slow, longer, most, now));
        }
    }

    /// A fleet with an agenda of two hours.
    fn with_agenda(now: Timestamp) -> FleetAhead {
        let mut ledger = Ledger::new(Balance::default(), now);
        for no in 0..40 {
            let job = job(4 * no + 1, 60);
            let mut state = JobState::new(now);
            state.place(&job, Placement::at(now + Duration::from_secs(1), now));
            ledger.put(&job.key, &job, &state);
        }
        let jobs = ledger.begin_agenda();
        let window = TimeWindow::starting_at(now, Duration::from_hours(2));
        let agenda = agenda_of(&jobs, window, now, &Agenda::empty(window)).unwrap();
        ledger.end_agenda(true);
        let current = Arc::new(CurrentAgenda { agenda, built_at: now });
        FleetAhead { jobs, agenda: ledger.changes().map(|changes| (current, changes)) }
    }

    #[test]
    fn a_window_that_began_a_moment_ago_is_read_off_the_agenda() {
        let built_at: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let ahead = with_agenda(built_at);
        let check = |late_ms: i64, is_known: bool| {
            let from = built_at + Duration::from_mins(1);
            let (hour, now) =
                (TimeWindow::starting_at(from, LOOKAHEAD), from + Duration::from_millis(late_ms));
            assert_eq!(ahead.is_known(hour, FleetAhead::as_of(hour, now)), is_known, "{late_ms} ms");
        };
        check(0, true);
        check(3, true);
        check(1_000, true);
        // What should have started longer ago than that may be overdue.
        check(1_001, false);
    }

    #[test]
    fn a_total_is_remembered_for_the_next_pages() {
        let now: Timestamp = "2026-02-04T10:00:00Z".parse().unwrap();
        let totals = TotalCache::default();
        let window =
            |no: i64| TimeWindow::starting_at(now + Duration::from_mins(no), Duration::from_days(30));
        for no in 0..20 {
            totals.put(window(no), now, usize::try_from(no).unwrap());
        }
        assert_eq!((totals.get(window(19), now), totals.get(window(4), now)), (Some(19), Some(4)));
        assert_eq!(totals.get(window(3), now), None, "only the latest windows are kept");
        assert_eq!(totals.get(window(19), now + Duration::from_mins(5)), None);
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
        let total = ahead.total(month, now);
        let page = ahead.page(month, None, 100, now, total).unwrap();
        assert_eq!((page.total, page.starts.len(), page.is_more), (40 * 31 * 1_440, 100, true));
        let last = page.starts.last().map(|it| (it.run.at, it.job.clone())).unwrap();
        let next = ahead.page(month, Some(&last), 100, now, total).unwrap();
        let keys: Vec<_> = page.starts.iter().chain(&next.starts).map(|it| (it.run.at, &it.job)).collect();
        assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
    }
}

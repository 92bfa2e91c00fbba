//! The load of a fleet, job by job (A1), and where a job of it goes (A6, A7).

use std::sync::Arc;

use super::changes::{ChangeLog, LedgerChanges};
use super::hashed::place_hashed;
use super::phase::place_every;
use super::protection::MOVE_COOLDOWN;
use super::spot::{PhaseChoice, Spot, Strategy};
use super::wishes::Wishes;
use super::{fine, spot};
use crate::day_counts::{DayCounts, Projection};
use crate::distribution::{Distribution, WindowHoursError};
use crate::expected_running::{ExpectedRunning, RunningSum, usual_length};
use crate::ids::{JobKey, Pool};
use crate::job::{Job, JobState, Status, Terms};
use crate::keyed_parts::KeyedParts;
use crate::schedule::{OnceAt, Placement, Rhythm, Schedule};
use crate::slot::{BalanceBy, JobLoad, RunWork, Slot, SlotLoad, SlotWidth};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::upcoming::HoldUps;
use crate::urgency::{self, Outlook};

/// How a fleet is levelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// How places are chosen.
    pub strategy: Strategy,
    /// What is levelled.
    pub by: BalanceBy,
    /// How wide slots are.
    pub width: SlotWidth,
}

/// The day that is looked at.
const DAY_HOURS: u32 = 24;

/// Two readers of one clock may come in the other order than they have read it.
const CLOCKS_APART: Duration = Duration::from_secs(1);

/// What the jobs of a fleet put on the time line. Kept in memory and rebuilt from what is stored;
/// what is stored is the truth.
#[derive(Clone, Debug)]
pub struct Ledger {
    load: SlotLoad,
    day: DayCounts,
    jobs: LedgerSnapshot,
    changes: ChangeLog,
}

/// Two are the same if they know the same, whatever has changed before.
impl PartialEq for Ledger {
    fn eq(&self, other: &Ledger) -> bool {
        let Ledger { load, day, jobs, changes: _ } = self;
        (load, day, jobs) == (&other.load, &other.day, &other.jobs)
    }
}

/// The jobs of a ledger as they were at one moment. Taking it costs microseconds, so that those who look through the
/// whole fleet do not hold up those who change it.
#[derive(Clone, Debug)]
pub struct LedgerSnapshot {
    balance: Balance,
    known: KeyedParts<LedgerEntry>,
    /// Every pool that a job was ever in, by its number.
    pools: Arc<Vec<Pool>>,
}

/// Two are the same if they know the same jobs, whatever pools there have been before.
impl PartialEq for LedgerSnapshot {
    fn eq(&self, other: &LedgerSnapshot) -> bool {
        let LedgerSnapshot { balance, known, pools: _ } = self;
        (balance, known) == (&other.balance, &other.known)
    }
}

/// The number of a pool in a ledger: a job has no room for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolNo(u16);

/// What the next day asks for, from the current slot on.
#[derive(Clone, Debug, PartialEq)]
pub struct DayOutlook {
    /// As of when.
    pub made_at: Timestamp,
    /// Starts of jobs whose time Evenbeat may choose, by slot.
    pub movable_slots: Vec<u32>,
    /// Number of these jobs.
    pub n_movable: usize,
    /// Number of jobs that will start by themselves.
    pub n_jobs: usize,
    /// How many runs are expected at once.
    pub running: ExpectedRunning,
}

/// What is known of one job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LedgerEntry {
    /// As it was counted.
    pub(super) counted: JobLoad,
    /// Its next occurrence by now.
    pub(super) next_run_at: Timestamp,
    /// Whether its occurrences are guessed.
    pub(super) is_estimate: bool,
    /// Whose capacity it draws on.
    pool: PoolNo,
    /// Whether Evenbeat chose its time, and may choose another.
    pub(super) is_movable: bool,
    /// For how much it counts in the next day.
    projection: Projection,
    /// Of the jobs that have it.
    detail: Option<Arc<LedgerDetail>>,
}

impl LedgerEntry {
    /// From the next occurrence on.
    fn rhythm(&self) -> Rhythm<'_> {
        let load = self.detail.as_ref().and_then(|it| it.projected.as_ref()).unwrap_or(&self.counted);
        load.rhythm().starting_at(self.next_run_at)
    }

    pub(super) fn with<'a>(&'a self, key: &'a JobKey) -> LedgerJob<'a> {
        LedgerJob {
            key,
            next_run_at: self.next_run_at,
            rhythm: self.rhythm(),
            is_estimate: self.is_estimate,
            is_movable: self.is_movable,
            work: self.counted.work,
            hold_ups: self.detail.as_ref().and_then(|it| it.hold_ups.as_ref()),
            pool: self.pool,
        }
    }
}

/// What is known of a job beyond what is counted.
#[derive(Debug, PartialEq)]
struct LedgerDetail {
    /// All its occurrences, where only the next one is counted.
    projected: Option<JobLoad>,
    /// What may hold up its runs.
    hold_ups: Option<HoldUps>,
}

impl LedgerDetail {
    fn of(projected: Option<JobLoad>, hold_ups: Option<HoldUps>) -> Option<Arc<LedgerDetail>> {
        let has_any = projected.is_some() || hold_ups.is_some();
        has_any.then(|| Arc::new(LedgerDetail { projected, hold_ups }))
    }
}

/// The occurrences of one job of a ledger.
#[derive(Clone, Debug)]
pub struct LedgerJob<'a> {
    pub key: &'a JobKey,
    /// The next one.
    pub next_run_at: Timestamp,
    /// From the next one on.
    pub rhythm: Rhythm<'a>,
    /// Whether they are guessed: those of a `fresh` job depend on how its runs go.
    pub is_estimate: bool,
    /// Whether Evenbeat chose its time, and may choose another.
    pub is_movable: bool,
    /// What one run takes up.
    pub work: RunWork,
    /// What may hold up its runs, so that they start later than they are due.
    pub hold_ups: Option<&'a HoldUps>,
    /// Whose capacity they draw on: [`LedgerSnapshot::pool`].
    pub pool: PoolNo,
}

impl LedgerSnapshot {
    /// How the fleet is levelled.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// The jobs that carry something, by key.
    pub fn jobs(&self) -> impl Iterator<Item = LedgerJob<'_>> {
        self.known.iter().map(|(key, known)| known.with(key))
    }

    /// One of them.
    pub fn job(&self, key: &JobKey) -> Option<LedgerJob<'_>> {
        self.known.get(key).map(|(key, known)| known.with(key))
    }

    /// How many jobs there are.
    pub fn n_jobs(&self) -> usize {
        self.known.len()
    }

    /// The pool with this number.
    pub fn pool(&self, no: PoolNo) -> Option<&Pool> {
        self.pools.get(usize::from(no.0))
    }

    /// The number of a pool, if a job was ever in it.
    pub fn pool_no(&self, pool: &Pool) -> Option<PoolNo> {
        let idx = self.pools.iter().position(|it| it == pool)?;
        u16::try_from(idx).ok().map(PoolNo)
    }

    /// The number of a pool, a new one if it has none. There is room for more pools than anybody has; those beyond it have
    /// no name.
    fn number(&mut self, pool: &Pool) -> PoolNo {
        if let Some(no) = self.pool_no(pool) {
            return no;
        }
        let no = u16::try_from(self.pools.len()).unwrap_or(u16::MAX);
        if no == u16::MAX {
            return PoolNo(no);
        }
        Arc::make_mut(&mut self.pools).push(pool.clone());
        PoolNo(no)
    }

    /// What the next day asks for beyond the starts that are counted all the time. Walks over all jobs.
    pub fn outlook(&self, now: Timestamp) -> DayOutlook {
        let width = self.balance.width;
        let mut running = RunningSum::new(now, width, usual_length(self.jobs().map(|job| job.work)));
        for job in self.jobs() {
            running.add(&job.rhythm, job.work);
        }
        let n_movable = self.jobs().filter(|job| job.is_movable).count();
        let movable = self.jobs().filter(|job| job.is_movable).map(|job| job.rhythm);
        let movable = Distribution::of_rhythms(now, DAY_HOURS, width, movable);
        let movable_slots = movable.map(|it| it.slots).unwrap_or_default();
        DayOutlook {
            made_at: now,
            movable_slots,
            n_movable,
            n_jobs: self.n_jobs(),
            running: running.finish(),
        }
    }

    /// How the starts of the next hours are spread. Walks over all jobs.
    pub fn distribution(&self, now: Timestamp, hours: u32) -> Result<Distribution, WindowHoursError> {
        Distribution::of_rhythms(now, hours, self.balance.width, self.jobs().map(|it| it.rhythm))
    }
}

impl Ledger {
    /// Empty, from the slot that `now` lies in.
    pub fn new(balance: Balance, now: Timestamp) -> Ledger {
        Ledger {
            load: SlotLoad::new(now, balance.width, balance.by),
            day: DayCounts::new(now, balance.width),
            jobs: LedgerSnapshot { balance, known: KeyedParts::default(), pools: Arc::default() },
            changes: ChangeLog::default(),
        }
    }

    /// The load of these jobs.
    pub fn of<'a>(
        balance: Balance,
        now: Timestamp,
        jobs: impl IntoIterator<Item = (&'a Job, &'a JobState)>,
    ) -> Ledger {
        let mut ledger = Ledger::new(balance, now);
        for (job, state) in jobs {
            ledger.put(&job.key, job, state);
        }
        ledger
    }

    /// The same from another instant on: time has passed.
    #[must_use]
    pub fn from_instant(mut self, now: Timestamp) -> Ledger {
        let Balance { width, by, .. } = self.balance();
        self.load = SlotLoad::new(now, width, by);
        self.day = DayCounts::new(now, width);
        for (key, known) in self.jobs.known.values_mut() {
            known.counted = known.counted.clone().starting_at(known.next_run_at);
            self.load.add(&known.counted);
            known.projection = self.day.add(key, &known.rhythm());
        }
        self
    }

    /// How the fleet is levelled.
    pub fn balance(&self) -> Balance {
        self.jobs.balance
    }

    /// The jobs as they are now, to look through without the ledger.
    pub fn snapshot(&self) -> LedgerSnapshot {
        self.jobs.clone()
    }

    /// The jobs as they are now, to make an agenda of. Changes are logged from here on, beside those since the last time,
    /// until the agenda is in use.
    pub fn begin_agenda(&mut self) -> LedgerSnapshot {
        self.changes.begin();
        self.snapshot()
    }

    /// The agenda that was begun last is in use now; or it is not, and the one before goes on.
    pub fn end_agenda(&mut self, is_in_use: bool) {
        self.changes.end(is_in_use);
    }

    /// The jobs that will start at other times than the agenda in use says. None if there are too many.
    pub fn changes(&self) -> Option<LedgerChanges> {
        self.changes.current()
    }

    /// The jobs that carry something, by key.
    pub fn jobs(&self) -> impl Iterator<Item = LedgerJob<'_>> {
        self.jobs.jobs()
    }

    /// One of them.
    pub fn job(&self, key: &JobKey) -> Option<LedgerJob<'_>> {
        self.jobs.job(key)
    }

    /// The cells.
    pub fn load(&self) -> &SlotLoad {
        &self.load
    }

    /// How many jobs it knows.
    pub fn n_jobs(&self) -> usize {
        self.jobs.n_jobs()
    }

    /// Whether it knows a job.
    pub fn knows(&self, key: &JobKey) -> bool {
        self.jobs.known.get(key).is_some()
    }

    /// Time passes for what is kept of the next day. Jobs are put as of the latest instant that it was told.
    pub fn advance(&mut self, now: Timestamp) {
        for key in self.day.advance(now) {
            if let Some(known) = self.jobs.known.get_mut(&key) {
                self.day.remove(&key, &known.rhythm(), known.projection);
                known.projection = self.day.add(&key, &known.rhythm());
            }
        }
    }

    /// How the starts of the next day are spread, without a walk over the jobs: as of `now`, or of a moment later that
    /// it was told of. None if `now` is far from the instant from which on the ledger counts; then take a
    /// [`snapshot`](Ledger::snapshot).
    pub fn day(&mut self, now: Timestamp) -> Option<Distribution> {
        self.advance(now);
        let now = if now + CLOCKS_APART < self.day.now() { now } else { self.day.now() };
        self.day.distribution(now).filter(|_| now == self.day.now())
    }

    /// Notes a job as it is now, instead of as it was. One that is paused, disabled, done or not yet
    /// placed carries nothing.
    ///
    /// After a run most jobs are where they were, one occurrence further: that costs nothing.
    pub fn put(&mut self, key: &JobKey, terms: &Terms, state: &JobState) {
        let Some((next_run_at, load, projected)) = self.load_of(terms, state) else {
            return self.remove(key);
        };
        let is_held_up = HoldUps::may_hold_up(terms, state);
        let hold_ups = is_held_up.then(|| HoldUps::of(key, terms, state, load.work.length));
        let detail = LedgerDetail::of(projected, hold_ups);
        let by = self.balance().by;
        let pool = self.jobs.number(&terms.place.pool);
        let weighs_the_same = |known: &LedgerEntry| {
            let is_same_work = by == BalanceBy::Runs || known.counted.work == load.work;
            // Where only the next occurrence is counted, the others may be those of another rhythm.
            let is_counted_whole = known.detail.as_ref().is_none_or(|it| it.projected.is_none());
            known.counted.keeps_time_with(&load) && is_same_work && is_counted_whole
        };
        if let Some(known) = self.jobs.known.get_mut(key)
            && weighs_the_same(known)
            && known.next_run_at <= next_run_at
        {
            // A job that waits for the next occurrence of its rhythm starts as it was expected to.
            let was_expected =
                known.projection == Projection::Whole && known.detail.is_none() && detail.is_none();
            let mut before = (!was_expected).then(|| known.clone());
            if known.next_run_at != next_run_at {
                let rhythm = known.counted.rhythm().starting_at(next_run_at);
                let projection = self.day.shift(key, &known.rhythm(), known.projection, &rhythm);
                if projection != Projection::Whole {
                    before.get_or_insert_with(|| known.clone());
                }
                (known.projection, known.next_run_at) = (projection, next_run_at);
            }
            known.detail = detail;
            known.pool = pool;
            // Only levelling by work counts it, and then it is the same.
            known.counted.work = load.work;
            if before.is_some() {
                self.changes.note(key, before.as_ref());
            }
            return;
        }
        if !self.knows(key) {
            self.changes.note(key, None);
        }
        self.remove(key);
        self.load.add(&load);
        let is_estimate = matches!(terms.schedule, Schedule::Fresh { .. });
        let is_movable = terms.schedule.is_movable();
        let projection = Projection::Whole;
        let counted = load;
        let mut known =
            LedgerEntry { counted, next_run_at, is_estimate, pool, is_movable, projection, detail };
        known.projection = self.day.add(key, &known.rhythm());
        self.jobs.known.insert(key, known);
    }

    /// Forgets a job; one that it does not know is forgotten already.
    pub fn remove(&mut self, key: &JobKey) {
        if let Some(known) = self.jobs.known.remove(key) {
            self.changes.note(key, Some(&known));
            self.load.remove(&known.counted);
            self.day.remove(key, &known.rhythm(), known.projection);
        }
    }

    /// What a job puts on the time line, and all its occurrences where that is only the next one; nothing unless it is
    /// placed and will run.
    fn load_of(&self, terms: &Terms, state: &JobState) -> Option<(Timestamp, JobLoad, Option<JobLoad>)> {
        let carries = matches!(state.status(terms), Status::Scheduled | Status::Running);
        // One that is paused while it runs does not run again.
        let is_active = terms.enabled && state.pause.is_none();
        let next_run_at = state.next_run_at.filter(|_| carries && is_active)?;
        let work = run_work(terms, state);
        let placement = state.placement.as_ref()?;
        let load = JobLoad::of(&terms.schedule, placement, next_run_at, terms.bounds, &terms.zone, work)?;
        Some(match self.balance().strategy {
            // Places are chosen by next runs alone; people still see every occurrence (A6).
            Strategy::LeastLoaded => (next_run_at, JobLoad::single(next_run_at, work), Some(load)),
            Strategy::Phase | Strategy::None => (next_run_at, load, None),
        })
    }

    /// Where a job goes that is new, resumed or has another schedule; none if nothing is ever due.
    /// It must not be in the ledger.
    pub fn place(&self, job: &Job, state: &JobState, now: Timestamp) -> Option<(Placement, Spot)> {
        assert!(!self.knows(&job.key), "{} would be placed around itself", job.key);
        let earliest = job.bounds.starts_at.map_or(now, |starts_at| starts_at.max(now));
        let placed_at = |spot: Spot| (Placement::at(spot.at, now), spot);
        match &job.schedule {
            Schedule::Every { interval, .. } => {
                let spot = self.place_interval(job, state, *interval, earliest)?;
                // A rhythm that another scheduler has set was not chosen a moment ago: a rebalance may move it at once.
                let is_kept = job.next_run_hint.is_some();
                let placed_at = if is_kept { now - MOVE_COOLDOWN } else { now };
                Some((Placement::at(spot.at, placed_at), spot))
            }
            // Its first run sets its rhythm; let it be soon, and not where many start.
            Schedule::Fresh { cooldown, .. } => {
                self.place_interval(job, state, *cooldown, earliest).map(placed_at)
            }
            Schedule::Cron(cron) if cron.is_hashed() => {
                let work = run_work(job, state);
                let wishes = Wishes::of(job, work.length);
                let seed = job.key.stable_hash();
                let before = earliest - Duration::from_millis(1);
                let (spot, choices) = place_hashed(
                    &self.load,
                    cron.expr(),
                    &job.zone,
                    before.max(now),
                    seed,
                    work,
                    wishes.as_ref(),
                )?;
                Some((Placement { choices: choices.into(), ..Placement::at(spot.at, now) }, spot))
            }
            Schedule::Cron(cron) => {
                let before = earliest - Duration::from_millis(1);
                let first = cron.plan(&[])?.next_after(&job.zone, before.max(now))?;
                Some(placed_at(Spot::new(&self.load, first, 0, 0)))
            }
            Schedule::Once { at: OnceAt::Now, .. } => Some(placed_at(Spot::new(&self.load, earliest, 0, 0))),
            Schedule::Once { at: OnceAt::Instant(at), .. } => {
                Some(placed_at(Spot::new(&self.load, *at, 0, 0)))
            }
            Schedule::Manual => None,
        }
    }

    fn place_interval(
        &self,
        job: &Job,
        state: &JobState,
        interval: Duration,
        earliest: Timestamp,
    ) -> Option<Spot> {
        // "Strictly in the future, within one interval" is [earliest + 1 ms, earliest + interval + 1 ms).
        let tick = Duration::from_millis(1);
        let within = job.first_run_within.map_or(interval, |within| within.min(interval));
        let first_in = TimeWindow::new(earliest + tick, earliest + within + tick);
        if let Some(hint) = job.next_run_hint.filter(|_| matches!(job.schedule, Schedule::Every { .. })) {
            // Another scheduler has run it until now: it keeps that rhythm.
            let next = Rhythm::grid(hint, interval).next_after(earliest)?;
            return Some(Spot::new(&self.load, next, 0, 0));
        }
        let work = run_work(job, state);
        let wishes = Wishes::of(job, work.length);
        match self.balance().strategy {
            Strategy::Phase => place_every(&self.load, interval, first_in, work, wishes.as_ref()),
            Strategy::LeastLoaded => self.least_loaded(interval, earliest, job.first_run_within, work),
            Strategy::None => Some(Spot::new(&self.load, earliest + within, 0, 0)),
        }
    }

    /// The emptiest slot from the next whole one on, over a day or an interval; the earliest of
    /// several.
    fn least_loaded(
        &self,
        interval: Duration,
        now: Timestamp,
        within: Option<Duration>,
        work: RunWork,
    ) -> Option<Spot> {
        let width = self.balance().width;
        let from = Slot::of(now, width).plus(1).start(width);
        let reach = within.unwrap_or(interval.max(Duration::from_days(1)));
        let until = (from + reach).min(self.load.window().end());
        let n_covered = spot::n_covered(&self.load, work.length);
        let mut best: Option<(u64, Timestamp)> = None;
        let mut slot_start = from;
        while slot_start < until || best.is_none() {
            let weight = self.load.index(slot_start).map_or(0, |idx| self.load.weight_at(idx, n_covered));
            if best.is_none_or(|(least, _)| weight < least) {
                best = Some((weight, slot_start));
            }
            slot_start = slot_start + width.length();
        }
        let (peak, cell) = best?;
        let choice = PhaseChoice {
            interval: reach.max(width.length()),
            first_in: TimeWindow::new(cell, cell + width.length()),
        };
        let at = fine::refine(&self.load, cell, width.length(), &choice, None)?;
        Some(Spot::new(&self.load, at, peak, 0))
    }
}

/// What one run of a job takes up.
pub(super) fn run_work(terms: &Terms, state: &JobState) -> RunWork {
    RunWork { length: urgency::expected_length(terms, state, &Outlook::default()), cost: terms.place.cost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sample::{instant, job};

    #[test]
    fn a_ledger_knows_what_runs_take_up_and_where() {
        let now = instant("10:07:30");
        let mut job = Job { key: "a".parse().unwrap(), ..job("every 1h") };
        job.estimate = Some(Duration::from_mins(2));
        job.place.pool = "crawl".parse().unwrap();
        let mut state = JobState::new(now);
        state.place(&job, Placement::at(now, now));
        let mut ledger = Ledger::new(Balance::default(), now);
        ledger.put(&job.key, &job, &state);
        let check = |ledger: &Ledger, pool: &str, minutes: i64, cost: u32| {
            let jobs = ledger.snapshot();
            let known = jobs.job(&job.key).unwrap();
            assert_eq!(jobs.pool(known.pool).map(Pool::as_str), Some(pool));
            assert_eq!(known.work, RunWork { length: Duration::from_mins(minutes), cost });
        };
        check(&ledger, "crawl", 2, 1);
        // It keeps its time and takes longer, elsewhere.
        let mut other = job.clone();
        other.estimate = Some(Duration::from_mins(7));
        other.place.cost = 3;
        other.place.pool = "browser".parse().unwrap();
        ledger.put(&other.key, &other, &state);
        check(&ledger, "browser", 7, 3);
        assert_eq!(ledger.snapshot().pool_no(&"nowhere".parse().unwrap()), None);
    }
}

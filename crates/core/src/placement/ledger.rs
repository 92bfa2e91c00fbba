//! The load of a fleet, job by job (A1), and where a job of it goes (A6, A7).

use std::collections::BTreeMap;

use super::hashed::place_hashed;
use super::phase::place_every;
use super::protection::MOVE_COOLDOWN;
use super::spot::{PhaseChoice, Spot, Strategy};
use super::wishes::Wishes;
use super::{fine, spot};
use crate::ids::JobKey;
use crate::job::{Job, JobState, Status, Terms};
use crate::keyed_slab::KeyedSlab;
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

/// What the jobs of a fleet put on the time line. Kept in memory and rebuilt from what is stored;
/// what is stored is the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    balance: Balance,
    load: SlotLoad,
    known: KeyedSlab<LedgerEntry>,
    /// Of the jobs that have it.
    more: BTreeMap<JobKey, LedgerDetail>,
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
}

impl LedgerEntry {
    fn with<'a>(&'a self, key: &'a JobKey, more: Option<&'a LedgerDetail>) -> LedgerJob<'a> {
        let load = more.and_then(|it| it.projected.as_ref()).unwrap_or(&self.counted);
        LedgerJob {
            key,
            next_run_at: self.next_run_at,
            rhythm: load.rhythm().starting_at(self.next_run_at),
            is_estimate: self.is_estimate,
            hold_ups: more.and_then(|it| it.hold_ups.as_ref()),
        }
    }
}

/// What is known of a job beyond what is counted.
#[derive(Clone, Debug, PartialEq)]
struct LedgerDetail {
    /// All its occurrences, where only the next one is counted.
    projected: Option<JobLoad>,
    /// What may hold up its runs.
    hold_ups: Option<HoldUps>,
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
    /// What may hold up its runs, so that they start later than they are due.
    pub hold_ups: Option<&'a HoldUps>,
}

impl Ledger {
    /// Empty, from the slot that `now` lies in.
    pub fn new(balance: Balance, now: Timestamp) -> Ledger {
        Ledger {
            balance,
            load: SlotLoad::new(now, balance.width, balance.by),
            known: KeyedSlab::default(),
            more: BTreeMap::new(),
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
        self.load = SlotLoad::new(now, self.balance.width, self.balance.by);
        for known in self.known.values_mut() {
            known.counted = known.counted.clone().starting_at(known.next_run_at);
            self.load.add(&known.counted);
        }
        self
    }

    /// How the fleet is levelled.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// The jobs that carry something, by key.
    pub fn jobs(&self) -> impl Iterator<Item = LedgerJob<'_>> {
        // Both are in the order of keys.
        let mut others = self.more.iter().peekable();
        self.known.iter().map(move |(key, known)| {
            while others.next_if(|(other, _)| *other < key).is_some() {}
            let more = others.next_if(|(other, _)| *other == key).map(|(_, more)| more);
            known.with(key, more)
        })
    }

    /// One of them.
    pub fn job(&self, key: &JobKey) -> Option<LedgerJob<'_>> {
        let (key, known) = self.known.get(self.known.number(key)?)?;
        Some(known.with(key, self.more.get(key)))
    }

    /// The cells.
    pub fn load(&self) -> &SlotLoad {
        &self.load
    }

    /// How many jobs it knows.
    pub fn n_jobs(&self) -> usize {
        self.known.len()
    }

    /// Whether it knows a job.
    pub fn knows(&self, key: &JobKey) -> bool {
        self.known.number(key).is_some()
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
        let more = LedgerDetail { projected, hold_ups };
        let weighs_the_same = |known: &LedgerEntry| {
            let is_same_work = self.balance.by == BalanceBy::Runs || known.counted.work == load.work;
            known.counted.keeps_time_with(&load) && is_same_work
        };
        if let Some(no) = self.known.number(key)
            && let Some(known) = self.known.get_mut(no)
            && weighs_the_same(known)
            && known.next_run_at <= next_run_at
        {
            known.next_run_at = next_run_at;
            return self.put_more(key, more);
        }
        self.remove(key);
        self.load.add(&load);
        self.put_more(key, more);
        let is_estimate = matches!(terms.schedule, Schedule::Fresh { .. });
        self.known.insert(key, LedgerEntry { counted: load, next_run_at, is_estimate });
    }

    fn put_more(&mut self, key: &JobKey, more: LedgerDetail) {
        if more.projected.is_some() || more.hold_ups.is_some() {
            self.more.insert(key.clone(), more);
        } else if !self.more.is_empty() {
            self.more.remove(key);
        }
    }

    /// Forgets a job; one that it does not know is forgotten already.
    pub fn remove(&mut self, key: &JobKey) {
        if let Some((_, known)) = self.known.number(key).and_then(|no| self.known.remove(no)) {
            self.load.remove(&known.counted);
        }
        if !self.more.is_empty() {
            self.more.remove(key);
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
        Some(match self.balance.strategy {
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
        match self.balance.strategy {
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
        let width = self.balance.width;
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

//! A plan to level a fleet, as a value (A8, A10).
//!
//! The plan begins with every job where it is and looks at the movable ones, the most frequent first:
//! a short interval has few phases and weighs in every slot of each, so it must choose while there is
//! still a choice. A job moves only where neither the peak nor the sum of the slots it falls into
//! grows, and one of them shrinks; so no move can make the fleet worse, a job that is well where it
//! is stays there, and a fleet that is level gives an empty plan. That is repeated until nothing
//! moves, a few times at most.

use std::ops::Deref;

use super::fine::minute_peak;
use super::ledger::{Balance, run_work};
use super::phase::{Candidate, Search, grain_of};
use super::protection::{KeptReason, PROTECTION_MAX};
use super::spot::{Spot, Strategy, n_covered};
use super::wishes::{WishedHours, Wishes};
use super::{place_every, place_hashed};
use crate::distribution::Distribution;
use crate::expected_running::{ExpectedRunning, RunningSum};
use crate::ids::JobKey;
use crate::job::{Job, JobState, Terms};
use crate::schedule::{Choices, Cron, Placement, Schedule};
use crate::slot::{BalanceBy, JobLoad, RunWork, Slot, SlotLoad};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::urgency::{self, Outlook};

/// How often all movable jobs are looked at.
const ROUNDS_MAX: usize = 3;

/// What a rebalance would do. Applying it happens elsewhere, and applies exactly this.
#[derive(Clone, Debug, PartialEq)]
pub struct RebalancePlan {
    /// When it was made.
    pub made_at: Timestamp,
    /// Jobs that move, by key.
    pub moves: Vec<Move>,
    /// Jobs that must not move now, by key.
    pub kept: Vec<Kept>,
    /// Jobs that are well where they are, or were not looked at.
    pub n_unchanged: usize,
    /// Whether no further move would help. Else a limit was reached: apply this plan, then make another.
    pub is_complete: bool,
    /// The next day as it is.
    pub before: Distribution,
    /// The next day as it would be.
    pub after: Distribution,
    /// How many runs are expected at once on that day, as it is.
    pub running_before: ExpectedRunning,
    /// The same as it would be.
    pub running_after: ExpectedRunning,
    /// Jobs that move and would meet a blackout within that day.
    pub n_in_blackout: usize,
}

/// One job that moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub key: JobKey,
    /// Its next occurrence as it is.
    pub old_time: Timestamp,
    /// Its next occurrence as it would be.
    pub new_time: Timestamp,
    /// From its last start to the next: within half an interval and one and a half. For `H` in a cron
    /// expression, whose occurrences have no one distance, simply what it is.
    pub gap: Duration,
    /// The latest start that meets its deadline as it stands before the move; none without a deadline.
    pub latest_start: Option<Timestamp>,
    /// Where it is set down.
    pub placement: Placement,
}

impl Move {
    /// From its new start to its latest start; negative if it starts later than that.
    pub fn room(&self) -> Option<Duration> {
        self.latest_start.map(|latest_start| latest_start - self.new_time)
    }

    /// Whether it would have made its deadline where it is, and does not where it goes.
    pub fn is_past_latest_start(&self) -> bool {
        self.latest_start.is_some_and(|latest| self.old_time <= latest && latest < self.new_time)
    }
}

/// One job that does not, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub key: JobKey,
    pub reason: KeptReason,
}

/// How much a plan may do. Every move helps by itself, so a plan that stops early is still a good one.
#[derive(Debug)]
pub struct PlanLimits<F> {
    /// Most jobs that move.
    pub moves_max: usize,
    /// Asked before each search: whether there is time for it.
    pub has_time: F,
}

/// The plan for a fleet as it is now: the same for the same fleet.
pub fn plan_rebalance(balance: Balance, now: Timestamp, jobs: &[(&Job, &JobState)]) -> RebalancePlan {
    let mut planner = RebalancePlanner::new(balance, now);
    for (job, state) in jobs {
        planner.add(&job.key, &job.terms, WishedHours::of(job), state);
    }
    planner.plan()
}

/// Makes a plan of jobs that are read one after the other. Of each it keeps only what the plan needs, and shares the
/// terms that jobs share.
#[derive(Debug)]
pub struct RebalancePlanner<T> {
    balance: Balance,
    now: Timestamp,
    kept: Vec<Kept>,
    pinned: Vec<JobLoad>,
    seats: Vec<Option<Seat<T>>>,
}

impl<T: Deref<Target = Terms>> RebalancePlanner<T> {
    /// Without jobs yet.
    pub fn new(balance: Balance, now: Timestamp) -> RebalancePlanner<T> {
        RebalancePlanner { balance, now, kept: Vec::new(), pinned: Vec::new(), seats: Vec::new() }
    }

    /// Takes in a job.
    pub fn add(&mut self, key: &JobKey, terms: T, hours: WishedHours, state: &JobState) {
        let (Some(placement), Some(next_run_at)) = (&state.placement, state.next_run_at) else { return };
        let work = run_work(&terms, state);
        let Some(load) =
            JobLoad::of(&terms.schedule, placement, next_run_at, terms.bounds, &terms.zone, work)
        else {
            return;
        };
        let carries_load = state.pause.is_none() && terms.enabled || state.owner.is_some();
        match KeptReason::of(key, &terms, state, next_run_at, self.now) {
            Some(reason) => {
                self.kept.push(Kept { key: key.clone(), reason });
                if carries_load {
                    self.pinned.push(load);
                }
            }
            None => {
                let times = SeatTimes {
                    next_run_at,
                    last_start_at: state.last_start_at,
                    latest_start: urgency::should_start_by(&terms, state, &Outlook::default()),
                };
                let seat = Seat::new(key.clone(), terms, hours, times, work, load);
                self.seats.push(Some(seat));
            }
        }
    }

    /// The whole plan.
    pub fn plan(self) -> RebalancePlan {
        self.plan_within(PlanLimits { moves_max: usize::MAX, has_time: || true })
    }

    /// The plan, or the beginning of it.
    pub fn plan_within(self, limits: PlanLimits<impl FnMut() -> bool>) -> RebalancePlan {
        let RebalancePlanner { balance, now, mut kept, pinned, seats } = self;
        kept.sort_by(|one, other| one.key.cmp(&other.key));
        let (mut seats, order) = most_frequent_first(seats);

        let before = distribution(balance, now, pinned.iter().chain(seats.iter().map(|seat| &seat.load)));
        let is_complete =
            balance.strategy == Strategy::None || level(balance, now, &pinned, &mut seats, limits);
        let mut after = distribution(balance, now, pinned.iter().chain(seats.iter().map(Seat::final_load)));
        let is_worse = after.score() < before.score() || before.peak_slot().1 < after.peak_slot().1;
        if is_worse {
            // Levelling looks at a week; a plan must also stand the look at the next day that people take.
            for seat in &mut seats {
                seat.moved = None;
            }
            after = before.clone();
        }
        let running_before =
            RunningSum::of(now, balance.width, pinned.iter().chain(seats.iter().map(|seat| &seat.load)));
        let running_after =
            RunningSum::of(now, balance.width, pinned.iter().chain(seats.iter().map(Seat::final_load)));
        let n_in_blackout = seats.iter().filter(|seat| seat.meets_blackout(after.window)).count();
        let n_seats = seats.len();
        let moves = seats.into_iter().zip(order).filter_map(|(seat, no)| Some((no, seat.into_move()?)));
        let mut moves: Vec<(usize, Move)> = moves.collect();
        moves.sort_unstable_by_key(|(no, _)| *no);
        let moves: Vec<Move> = moves.into_iter().map(|(_, it)| it).collect();
        let n_unchanged = n_seats - moves.len();
        RebalancePlan {
            made_at: now,
            moves,
            kept,
            n_unchanged,
            is_complete,
            before,
            after,
            running_before,
            running_after,
            n_in_blackout,
        }
    }
}

/// By distance, then by key, and the place of each seat in the order of keys. Only what is compared is sorted: a seat is
/// large, and is moved once.
fn most_frequent_first<T>(mut seats: Vec<Option<Seat<T>>>) -> (Vec<Seat<T>>, Vec<usize>) {
    fn key_of<T>(seat: Option<&Seat<T>>) -> Option<&JobKey> {
        seat.map(|seat| &seat.key)
    }
    // They come from the store in this order, and then no key has to be compared again.
    if !seats.is_sorted_by(|one, other| key_of(one.as_ref()) <= key_of(other.as_ref())) {
        seats.sort_by(|one, other| key_of(one.as_ref()).cmp(&key_of(other.as_ref())));
    }
    let distances = seats.iter().enumerate().filter_map(|(no, seat)| Some((seat.as_ref()?.distance, no)));
    let mut order: Vec<(Duration, usize)> = distances.collect();
    order.sort_unstable();
    let order: Vec<usize> = order.into_iter().map(|(_, no)| no).collect();
    let sorted = order.iter().filter_map(|no| seats.get_mut(*no).and_then(Option::take)).collect();
    (sorted, order)
}

fn distribution<'a>(
    balance: Balance,
    now: Timestamp,
    loads: impl Iterator<Item = &'a JobLoad>,
) -> Distribution {
    const WINDOW_HOURS: u32 = 24;
    match Distribution::of(now, WINDOW_HOURS, balance.width, loads) {
        Ok(distribution) => distribution,
        Err(error) => unreachable!("{error}"),
    }
}

/// Moves seats until none can gain. False if a limit was reached before.
fn level<T: Deref<Target = Terms>>(
    balance: Balance,
    now: Timestamp,
    pinned: &[JobLoad],
    seats: &mut [Seat<T>],
    mut limits: PlanLimits<impl FnMut() -> bool>,
) -> bool {
    let mut load = SlotLoad::new(now, balance.width, balance.by);
    for one in pinned.iter().chain(seats.iter().map(|seat| &seat.load)) {
        load.add(one);
    }
    let mut n_moving = 0;
    for _ in 0..ROUNDS_MAX {
        let mut n_moved = 0;
        let calm = Calm::of(&load);
        for seat in &mut *seats {
            let is_new = seat.moved.is_none();
            if is_new && n_moving == limits.moves_max || !(limits.has_time)() {
                return false;
            }
            if let Some(moved) = seat.take_better_place(&mut load, now, calm) {
                load.add(&moved.load);
                seat.moved = Some(Box::new(moved));
                n_moved += 1;
                n_moving += usize::from(is_new);
            }
        }
        if n_moved == 0 {
            break;
        }
    }
    true
}

/// What spares most jobs of a level fleet the search: who meets no more than this is well placed. In
/// a slot that is one start above the emptiest, in a minute a quarter above the mean.
/// Taken once a round: as the fleet levels out the emptiest slot only fills up.
#[derive(Clone, Copy)]
struct Calm {
    slot: u64,
    minute: u32,
}

impl Calm {
    fn of(load: &SlotLoad) -> Calm {
        let least = load.runs().iter().copied().min().unwrap_or(0);
        let n_minutes = u32::try_from(load.minutes().len()).unwrap_or(1).max(1);
        let mean = load.minutes().iter().sum::<u32>() / n_minutes;
        Calm { slot: u64::from(least) + 1, minute: mean + mean / 4 + 1 }
    }
}

/// A job that may move.
#[derive(Debug)]
struct Seat<T> {
    key: JobKey,
    terms: T,
    hours: WishedHours,
    times: SeatTimes,
    work: RunWork,
    load: JobLoad,
    /// The usual distance of its occurrences: the most frequent choose first.
    distance: Duration,
    moved: Option<Box<Destination>>,
}

/// The instants that a move goes by.
#[derive(Clone, Copy, Debug)]
struct SeatTimes {
    next_run_at: Timestamp,
    last_start_at: Option<Timestamp>,
    /// As it stands before any move.
    latest_start: Option<Timestamp>,
}

#[derive(Debug)]
struct Destination {
    placement: Placement,
    load: JobLoad,
}

/// How much the slots carry that a job's occurrences fall into.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Burden {
    n_unwished: u32,
    peak: u64,
    sum: u64,
    n: u64,
}

impl Burden {
    /// Better in one respect, worse in none. Sums are compared by the occurrence: a phase may have one
    /// more of them within a day than another.
    fn improves_on(&self, other: &Burden) -> bool {
        if self.n_unwished != other.n_unwished {
            return self.n_unwished < other.n_unwished;
        }
        let (ours, theirs) = (self.sum * other.n.max(1), other.sum * self.n.max(1));
        self.peak <= other.peak && ours <= theirs && (self.peak < other.peak || ours < theirs)
    }
}

impl<T: Deref<Target = Terms>> Seat<T> {
    fn new(
        key: JobKey,
        terms: T,
        hours: WishedHours,
        times: SeatTimes,
        work: RunWork,
        load: JobLoad,
    ) -> Seat<T> {
        let distance = match &terms.schedule {
            Schedule::Every { interval, .. } => *interval,
            _ => {
                let week = TimeWindow::starting_at(times.next_run_at, Duration::from_days(7));
                let n = i64::try_from(load.rhythm().count_in(week).max(1)).unwrap_or(i64::MAX);
                Duration::from_millis(Duration::from_days(7).as_millis() / n)
            }
        };
        Seat { key, terms, hours, times, work, load, distance, moved: None }
    }

    fn final_load(&self) -> &JobLoad {
        self.moved.as_ref().map_or(&self.load, |moved| &moved.load)
    }

    /// Where its next occurrence is now, after the moves that are already decided.
    fn next(&self) -> Timestamp {
        self.moved.as_ref().map_or(self.times.next_run_at, |moved| moved.placement.anchor_at)
    }

    /// Takes the job off the load and returns where it would be better off; if there is no such
    /// place, the load is as before.
    fn take_better_place(&self, load: &mut SlotLoad, now: Timestamp, calm: Calm) -> Option<Destination> {
        let wishes = Wishes::of_terms(&self.terms, self.hours, self.work.length);
        let by_runs = load.by() == BalanceBy::Runs;
        let is_plain = by_runs && wishes.is_none();
        if is_plain && self.distance <= load.width().length() {
            // Every phase of it falls into every slot.
            return self.take_better_minute(load, now, calm);
        }
        let here = self.burden(load, self.final_load(), wishes.as_ref());
        if is_plain && here.peak <= calm.slot {
            return self.take_better_minute(load, now, calm);
        }
        match &self.terms.schedule {
            Schedule::Every { interval, .. }
                if is_plain && grain_of(load, *interval) == load.width().length() =>
            {
                // Phases share no slots, so each of ours carries exactly one start of our own.
                let others = Burden { peak: here.peak.saturating_sub(1), sum: here.sum - here.n, ..here };
                let first_in = self.move_window(now, *interval);
                let best = Search::new(load, *interval, first_in, self.work, None).best();
                let Some(best) = best.filter(|best| burden_of(best).improves_on(&others)) else {
                    return self.take_better_minute(load, now, calm);
                };
                load.remove(self.final_load());
                let spot = Search::new(load, *interval, first_in, self.work, None).spot(&best)?;
                Some(self.moved_to(spot, now, Choices::default()))
            }
            Schedule::Every { interval, .. } => {
                load.remove(self.final_load());
                let here = self.burden(load, self.final_load(), wishes.as_ref());
                let search = Search::new(
                    load,
                    *interval,
                    self.move_window(now, *interval),
                    self.work,
                    wishes.as_ref(),
                );
                let best = search.best().filter(|best| burden_of(best).improves_on(&here));
                let spot = best.and_then(|best| search.spot(&best));
                self.moved_or_back(load, spot.map(|spot| (spot, Choices::default())), now)
            }
            Schedule::Cron(cron) => {
                load.remove(self.final_load());
                let here = self.burden(load, self.final_load(), wishes.as_ref());
                let found = self.other_choices(load, now, cron, wishes.as_ref()).filter(|(spot, choices)| {
                    let there = self.moved_to(*spot, now, choices.clone()).load;
                    self.burden(load, &there, wishes.as_ref()).improves_on(&here)
                });
                self.moved_or_back(load, found, now)
            }
            _ => None,
        }
    }

    /// A quieter minute of the same slots, for a job that shares its minute with far too many.
    fn take_better_minute(&self, load: &mut SlotLoad, now: Timestamp, calm: Calm) -> Option<Destination> {
        let Schedule::Every { interval, .. } = &self.terms.schedule else { return None };
        let crowd = minute_peak(load, self.next(), *interval);
        if crowd <= calm.minute {
            return None;
        }
        let slot = Slot::of(self.next(), load.width()).window(load.width());
        let allowed = self.move_window(now, *interval);
        let first_in = TimeWindow::new(slot.start().max(allowed.start()), slot.end().min(allowed.end()));
        load.remove(self.final_load());
        let spot = place_every(load, *interval, first_in, self.work, None);
        // An eighth less at least: it is not worth a move to leave one crowd for another.
        let others = crowd.saturating_sub(1);
        let is_quieter = |spot: &Spot| minute_peak(load, spot.at, *interval) + others / 8 < others;
        let spot = spot.filter(is_quieter);
        self.moved_or_back(load, spot.map(|spot| (spot, Choices::default())), now)
    }

    fn moved_or_back(
        &self,
        load: &mut SlotLoad,
        found: Option<(Spot, Choices)>,
        now: Timestamp,
    ) -> Option<Destination> {
        if found.is_none() {
            load.add(self.final_load());
        }
        found.map(|(spot, choices)| self.moved_to(spot, now, choices))
    }

    /// Over a day, or over all that is known for what comes less often.
    fn burden(&self, load: &SlotLoad, of: &JobLoad, wishes: Option<&Wishes<'_>>) -> Burden {
        let n_covered = n_covered(load, self.work.length);
        let mut burden = Burden { n_unwished: 0, peak: 0, sum: 0, n: 0 };
        let rhythm = of.rhythm();
        let Some(first) = rhythm.first() else { return burden };
        let day = Duration::from_days(1);
        let end = if day < self.distance { load.window().end() } else { first + day };
        rhythm.for_each_in(TimeWindow::new(first, end), |at| {
            let Some(idx) = load.index(at) else { return };
            let weight = load.weight_at(idx, n_covered);
            burden.peak = burden.peak.max(weight);
            burden.sum += weight;
            burden.n += 1;
            burden.n_unwished += u32::from(wishes.is_some_and(|wishes| wishes.is_unwished(at)));
        });
        burden
    }

    fn other_choices(
        &self,
        load: &SlotLoad,
        now: Timestamp,
        cron: &Cron,
        wishes: Option<&Wishes<'_>>,
    ) -> Option<(Spot, Choices)> {
        let seed = self.key.stable_hash();
        let (spot, choices) =
            place_hashed(load, cron.expr(), &self.terms.zone, now, seed, self.work, wishes)?;
        Some((spot, choices.into()))
    }

    fn moved_to(&self, spot: Spot, now: Timestamp, choices: Choices) -> Destination {
        let placement = Placement { choices, ..Placement::at(spot.at, now) };
        let terms = &*self.terms;
        let load = JobLoad::of(&terms.schedule, &placement, spot.at, terms.bounds, &terms.zone, self.work);
        Destination { placement, load: load.unwrap_or_else(|| self.load.clone()) }
    }

    /// When a job last started or, if it never did, when it would have.
    fn last_start(&self) -> Timestamp {
        match (self.times.last_start_at, &self.terms.schedule) {
            (Some(start), _) => start,
            (None, Schedule::Every { interval, .. }) => self.times.next_run_at - *interval,
            (None, _) => self.times.next_run_at,
        }
    }

    /// Where its next occurrence may go: half an interval to one and a half after its last start, and
    /// not so soon that the plan is stale before it is confirmed.
    fn move_window(&self, now: Timestamp, interval: Duration) -> TimeWindow {
        let half = Duration::from_millis(interval.as_millis() / 2);
        let soonest = now + half.min(PROTECTION_MAX) + Duration::from_millis(1);
        let latest = self.last_start() + interval + half + Duration::from_millis(1);
        TimeWindow::new((self.last_start() + half).max(soonest), latest)
    }

    /// Whether a run of it meets a blackout where it moves to.
    fn meets_blackout(&self, window: TimeWindow) -> bool {
        let Terms { blackouts, zone, .. } = &*self.terms;
        let Some(moved) = self.moved.as_ref().filter(|_| !blackouts.is_empty()) else { return false };
        let mut is_met = false;
        moved.load.rhythm().for_each_in(window, |at| {
            is_met |= blackouts.earliest_fit(zone, at, self.work.length) != Some(at);
        });
        is_met
    }

    fn into_move(self) -> Option<Move> {
        let gap_from = self.last_start();
        let moved = self.moved?;
        let key = self.key;
        let new_time = moved.placement.anchor_at;
        let gap = new_time - gap_from;
        let SeatTimes { next_run_at: old_time, latest_start, .. } = self.times;
        Some(Move { key, old_time, new_time, gap, latest_start, placement: moved.placement })
    }
}

fn burden_of(candidate: &Candidate) -> Burden {
    let Candidate { n_unwished, peak, sum, n, .. } = *candidate;
    Burden { n_unwished, peak, sum, n }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burden(n_unwished: u32, peak: u64, sum: u64, n: u64) -> Burden {
        Burden { n_unwished, peak, sum, n }
    }

    #[test]
    fn a_move_is_better_in_one_respect_and_worse_in_none() {
        let here = burden(0, 10, 40, 4);
        assert!(burden(0, 9, 40, 4).improves_on(&here));
        assert!(burden(0, 10, 39, 4).improves_on(&here));
        assert!(!here.improves_on(&here));
        assert!(!burden(0, 9, 41, 4).improves_on(&here), "a lower peak at the cost of the whole");
        assert!(!burden(0, 11, 30, 4).improves_on(&here), "a lower sum at the cost of a new peak");
        // By the occurrence: 49 over five is less than 40 over four.
        assert!(burden(0, 10, 49, 5).improves_on(&here));
        assert!(!burden(0, 10, 50, 5).improves_on(&here));
        // Wishes come before load.
        assert!(here.improves_on(&burden(1, 0, 0, 4)));
    }
}

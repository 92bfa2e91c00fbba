//! Which runs to start now (B3, B6, B11, B12): a plan, which changes nothing.
//!
//! The same plan is carried out by dispatch and read by [explain](crate::explain). Each pool names its next
//! candidate, and the most urgent of these goes first, as long as runs may start at all. Which jobs are passed over,
//! and why, is part of the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::ahead::{self, UpcomingJob};
use super::pool::{Lane, PoolLine};
use super::view::{Entry, JobIdx};
use super::{Engine, Now};
use crate::ids::Pool;
use crate::occurrence::{self, Due, Transition};
use crate::rank::Rank;
use crate::rules::Rule;
use crate::store::{CounterKey, Take};
use crate::time::Timestamp;
use crate::urgency;

/// How many jobs that will soon be due are looked at before capacity is given away.
const LOOK_AT: usize = 32;

/// How many candidates of one pool may be held back before nothing else of it is looked at.
const HELD_MAX: usize = 8;

/// What would be done now.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// These start, in this order.
    pub(crate) picks: Vec<Pick>,
    /// These start nothing: something of them goes on record.
    pub(crate) settles: Vec<(JobIdx, Transition)>,
    /// These were passed over.
    pub(crate) passed: Vec<(JobIdx, PassReason)>,
    /// Those whose deadline has passed, and that give way to what can still be saved.
    pub(crate) gives_way: Vec<JobIdx>,
    /// Why nothing more of a pool starts.
    pub(crate) stops: BTreeMap<Pool, Stop>,
}

/// A run to start.
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) idx: JobIdx,
    pub(crate) due: Due,
    pub(crate) step: Transition,
    pub(crate) takes: Vec<Take>,
    pub(crate) is_late: bool,
    pub(crate) not_before: Timestamp,
}

/// Why a ready job was passed over while others may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PassReason {
    /// A counter has no room.
    Counter(CounterKey),
    /// It must now wait until then.
    Later(Timestamp),
    /// It leaves the room to one that is more urgent and does not fit yet.
    LeavesRoomTo(JobIdx),
    /// It is long, and another will be due before it is over.
    LooksAheadTo(JobIdx),
    /// It can never be in time, and late work has its share.
    GivesWay,
}

/// Why nothing more of a pool starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// No candidate is left.
    Nobody,
    /// Nothing that is left fits.
    Full,
    /// No more runs may start for the moment.
    StartRate,
    /// The batch is full.
    Batch,
}

/// What the runs that are already planned leave of a pool.
struct Draft {
    free: u32,
    late: u32,
    was_late_last: bool,
    /// Jobs that are settled one way or the other.
    done: BTreeSet<JobIdx>,
    /// How far each lane has been looked through, from its front and from the first that can be saved.
    fronts: BTreeMap<Lane, (Rank, JobIdx)>,
    savable_fronts: BTreeMap<Lane, (Rank, JobIdx)>,
    n_held: usize,
    next: Option<(Rank, Pick)>,
    stop: Stop,
}

impl Engine {
    /// What would start now, at most `most` runs.
    pub(crate) fn plan(&self, now: Now, most: usize) -> Plan {
        let time = self.time(now);
        let mut plan = Plan::default();
        let mut counted: BTreeMap<CounterKey, u32> = BTreeMap::new();
        let mut drafts: BTreeMap<&Pool, Draft> = BTreeMap::new();
        for (pool, line) in &self.pools {
            let mut draft = Draft::new(line);
            self.look(line, &mut draft, &mut plan, &counted, time);
            drafts.insert(pool, draft);
        }
        let n_rated = self.start_bucket.available(now.boot);
        while let Some((pool, draft)) = drafts
            .iter_mut()
            .filter(|(_, draft)| draft.next.is_some())
            .min_by_key(|(_, draft)| draft.next_rank())
        {
            if n_rated.min(most) <= plan.picks.len() {
                let stop = if n_rated <= plan.picks.len() { Stop::StartRate } else { Stop::Batch };
                drafts.values_mut().filter(|it| it.next.is_some()).for_each(|it| it.stop = stop);
                break;
            }
            let (Some((_, pick)), Some(line)) = (draft.next.take(), self.pools.get(*pool)) else { break };
            let cost = self.view.get(pick.idx).map_or(1, |entry| entry.terms.place.cost);
            draft.free = draft.free.saturating_sub(cost);
            draft.late = draft.late.saturating_add(if pick.is_late { cost } else { 0 });
            draft.was_late_last = pick.is_late;
            for take in &pick.takes {
                *counted.entry(take.counter.clone()).or_default() += 1;
            }
            plan.picks.push(pick);
            self.look(line, draft, &mut plan, &counted, time);
            // Candidates of other pools may share a counter with this one.
            for (other, draft) in &mut drafts {
                let is_full = draft.next.as_ref().is_some_and(|(_, pick)| {
                    pick.takes.iter().any(|take| self.has_no_room(take, &counted, time))
                });
                if let (true, Some(line)) = (is_full, self.pools.get(*other)) {
                    let idx = draft.next.take().map(|(_, pick)| pick.idx);
                    draft.done.retain(|it| Some(*it) != idx);
                    draft.fronts.clear();
                    draft.savable_fronts.clear();
                    self.look(line, draft, &mut plan, &counted, time);
                }
            }
        }
        plan.stops = drafts.into_iter().map(|(pool, draft)| (pool.clone(), draft.stop)).collect();
        plan
    }

    /// Finds the next candidate of a pool.
    fn look(
        &self,
        line: &PoolLine,
        draft: &mut Draft,
        plan: &mut Plan,
        counted: &BTreeMap<CounterKey, u32>,
        time: Timestamp,
    ) {
        draft.next = None;
        while draft.n_held < HELD_MAX {
            let Some((rank, idx)) = self.first(line, draft, plan, time) else {
                draft.stop =
                    if line.ready.is_empty() || draft.has_seen_all(line) { Stop::Nobody } else { Stop::Full };
                return;
            };
            draft.done.insert(idx);
            let Some(entry) = self.view.get(idx) else { continue };
            let takes = self.takes(&entry.key, &entry.terms);
            if let Some(full) = takes.iter().find(|take| self.has_no_room(take, counted, time)) {
                plan.passed.push((idx, PassReason::Counter(full.counter.clone())));
                continue;
            }
            let not_before = match self.starts_from(entry, time) {
                Some(at) if at <= time => at,
                Some(at) => {
                    plan.passed.push((idx, PassReason::Later(at)));
                    continue;
                }
                None => continue,
            };
            let (due, step) = occurrence::start(&entry.key, &entry.terms, &entry.state, entry.n_open, time);
            let Some(due) = due else {
                plan.settles.push((idx, step));
                continue;
            };
            if let Some(passed) = self.held_back(line, draft, entry, rank, time) {
                draft.n_held += 1;
                plan.passed.push((idx, passed));
                continue;
            }
            let is_late = !rank.is_savable(time);
            draft.next = Some((rank, Pick { idx, due, step, takes, is_late, not_before }));
            return;
        }
        draft.stop = Stop::Full;
    }

    /// The most urgent of those that fit. Late work gives way to what can still be saved once it has its
    /// share.
    fn first(
        &self,
        line: &PoolLine,
        draft: &mut Draft,
        plan: &mut Plan,
        time: Timestamp,
    ) -> Option<(Rank, JobIdx)> {
        let lanes: Vec<Lane> =
            line.ready.keys().copied().filter(|lane| self.fits(line, *lane, draft.free)).collect();
        let (front, lane) = lanes.iter().filter_map(|lane| Some((draft.front(line, *lane)?, *lane))).min()?;
        let cost = self.view.get(front.1).map_or(1, |entry| entry.terms.place.cost);
        let is_savable = front.0.is_savable(time);
        if is_savable && !front.0.is_asked() {
            // What is late for ever stands behind what can be saved, but has its share too.
            let hopeless = lanes.iter().filter_map(|lane| draft.first_hopeless(line, *lane)).min();
            let cost = |idx| self.view.get(idx).map_or(1, |entry| entry.terms.place.cost);
            let has_turn = |it: &(Rank, JobIdx)| !self.is_beyond_share(line, draft, cost(it.1));
            match hopeless {
                Some(hopeless) if has_turn(&hopeless) => return Some(hopeless),
                Some((_, idx)) if plan.gives_way.last() != Some(&idx) => plan.gives_way.push(idx),
                _ => {}
            }
        }
        if is_savable || !self.is_beyond_share(line, draft, cost) {
            draft.fronts.insert(lane, front);
            return Some(front);
        }
        let savable =
            lanes.iter().filter_map(|lane| Some((draft.first_savable(line, *lane, time)?, *lane))).min();
        let Some((first, lane)) = savable else {
            draft.fronts.insert(lane, front);
            return Some(front);
        };
        draft.savable_fronts.insert(lane, first);
        if plan.gives_way.last() != Some(&front.1) {
            plan.gives_way.push(front.1);
        }
        Some(first)
    }

    fn fits(&self, line: &PoolLine, lane: Lane, free: u32) -> bool {
        let usable = if lane.is_small { free } else { free.saturating_sub(line.settings.reserved) };
        lane.cost <= usable || !self.settings.rules.hold(Rule::Capacity)
    }

    fn has_no_room(&self, take: &Take, counted: &BTreeMap<CounterKey, u32>, time: Timestamp) -> bool {
        let n_planned = counted.get(&take.counter).copied().unwrap_or(0);
        self.counters.is_full(&take.counter, &take.limit, n_planned, time)
    }

    /// Whether a run that fits should leave its room to another all the same.
    fn held_back(
        &self,
        line: &PoolLine,
        draft: &Draft,
        entry: &Entry,
        rank: Rank,
        time: Timestamp,
    ) -> Option<PassReason> {
        let expected = urgency::expected_length(&entry.terms, &entry.state, &self.outlook(&entry.terms));
        let ends_at = time + expected;
        larger_before(line, draft, entry, rank, ends_at, time)
            .map(PassReason::LeavesRoomTo)
            .or_else(|| {
                self.savable_before(line, draft, entry, rank, ends_at, time).then_some(PassReason::GivesWay)
            })
            .or_else(|| self.soon_due(line, draft, entry, rank, ends_at, time).map(PassReason::LooksAheadTo))
    }

    /// A job that can never be in time, and has had its share, starts only if it ends before the next job that can be in
    /// time comes due (B6). Otherwise a frequent job could find no room again and again.
    fn savable_before(
        &self,
        line: &PoolLine,
        draft: &Draft,
        entry: &Entry,
        rank: Rank,
        ends_at: Timestamp,
        time: Timestamp,
    ) -> bool {
        if !rank.is_hopeless() || !self.is_beyond_share(line, draft, entry.terms.place.cost) {
            return false;
        }
        let soon = line.waiting.range((time, JobIdx::FIRST)..(ends_at, JobIdx::FIRST)).take(LOOK_AT);
        let mut soon = soon.filter_map(|(_, idx)| self.view.get(*idx));
        let is_savable = |other: &Entry| {
            !urgency::is_hopeless(&other.terms, &other.state, &self.outlook(&other.terms))
                && self.is_preferred(&other.key, &other.terms)
        };
        soon.any(is_savable)
    }

    /// The last room is not given to a long run if before its end a job becomes due that must start earlier than
    /// this one, and nothing else makes room for it (B12).
    fn soon_due(
        &self,
        line: &PoolLine,
        draft: &Draft,
        entry: &Entry,
        rank: Rank,
        ends_at: Timestamp,
        time: Timestamp,
    ) -> Option<JobIdx> {
        if !self.settings.dispatch.lookahead {
            return None;
        }
        let cost = entry.terms.place.cost;
        let left = draft.free.saturating_sub(cost);
        let soon = line.waiting.range((time, JobIdx::FIRST)..(ends_at, JobIdx::FIRST)).take(LOOK_AT);
        let soon: Vec<(Timestamp, JobIdx, &Entry)> =
            soon.filter_map(|(at, idx)| Some((*at, *idx, self.view.get(*idx)?))).collect();
        let wanted = soon.iter().map(|(.., other)| other.terms.place.cost).fold(0, u32::saturating_add);
        if wanted <= left {
            return None;
        }
        // Late work that has its share gives way to whatever can be saved, also to what is not there yet (B6).
        let gives_way = !rank.is_savable(time) && self.is_beyond_share(line, draft, cost);
        let in_need = |(at, idx, other): (Timestamp, JobIdx, &Entry)| {
            let outlook = self.outlook(&other.terms);
            let latest = urgency::should_start_by(&other.terms, &other.state, &outlook)?;
            let is_first = rank.is_later_than(latest) || gives_way;
            let is_in_need = at <= latest && latest < ends_at && is_first;
            let expected = urgency::expected_length(&other.terms, &other.state, &outlook);
            let cost = other.terms.place.cost;
            (is_in_need && self.is_preferred(&other.key, &other.terms)).then_some(UpcomingJob {
                idx,
                at,
                latest,
                cost,
                expected,
            })
        };
        let mut soon: Vec<UpcomingJob> = soon.into_iter().filter_map(in_need).collect();
        soon.sort_by_key(|it| (it.at, it.latest, it.idx));
        let units = |free: u32| {
            let free = std::iter::repeat_n(time, usize::try_from(free.min(wanted)).unwrap_or(0));
            free.chain(line.units_freed_after(time).take(usize::try_from(wanted).unwrap_or(0)))
        };
        let with = ahead::too_late(units(left), &soon);
        if with.is_empty() {
            return None;
        }
        // Jobs that are too late either way gain nothing if room is kept for them.
        let without = ahead::too_late(units(draft.free), &soon);
        (without.len() < with.len()).then(|| with.into_iter().find(|it| !without.contains(it))).flatten()
    }

    /// Whether late work already has its share of a pool.
    fn is_beyond_share(&self, line: &PoolLine, draft: &Draft, cost: u32) -> bool {
        if !self.settings.rules.hold(Rule::LateShare) {
            return false;
        }
        let share = u64::from(line.settings.capacity) * u64::from(self.settings.dispatch.late_share) / 100;
        // A pool too small to be shared is shared by turns.
        if share < u64::from(cost) {
            return draft.was_late_last && self.settings.dispatch.late_share < 100;
        }
        share < u64::from(draft.late.saturating_add(cost))
    }
}

/// A more urgent job that needs more than is free would wait for ever if smaller jobs kept passing it. So a job waits
/// too if it would still be running, and take that room, when the larger one could start.
fn larger_before(
    line: &PoolLine,
    draft: &Draft,
    entry: &Entry,
    rank: Rank,
    ends_at: Timestamp,
    time: Timestamp,
) -> Option<JobIdx> {
    let too_large = |lane: &&Lane| draft.free < lane.cost;
    let (first, cost) = line
        .ready
        .keys()
        .filter(too_large)
        .filter_map(|lane| Some((draft.front(line, *lane)?, lane.cost)))
        .min()
        .filter(|((larger, _), _)| *larger < rank)?;
    let (room_at, spare) = line.room_at(cost, draft.free, time)?;
    (room_at < ends_at && spare < entry.terms.place.cost).then_some(first.1)
}

impl Draft {
    fn new(line: &PoolLine) -> Draft {
        Draft {
            free: line.free(),
            late: line.late_in_use(),
            was_late_last: line.was_late_last(),
            done: BTreeSet::new(),
            fronts: BTreeMap::new(),
            savable_fronts: BTreeMap::new(),
            n_held: 0,
            next: None,
            stop: Stop::Nobody,
        }
    }

    fn next_rank(&self) -> Option<Rank> {
        self.next.as_ref().map(|(rank, _)| *rank)
    }

    /// The first of a lane that has not been looked at.
    fn front(&self, line: &PoolLine, lane: Lane) -> Option<(Rank, JobIdx)> {
        let from = self.fronts.get(&lane).map_or(Bound::Unbounded, |it| Bound::Excluded(*it));
        let mut rest = line.ready.get(&lane)?.range((from, Bound::Unbounded));
        rest.find(|(_, idx)| !self.done.contains(idx)).copied()
    }

    /// The first of a lane that can still be in time and has not been looked at.
    fn first_savable(&self, line: &PoolLine, lane: Lane, time: Timestamp) -> Option<(Rank, JobIdx)> {
        let first = Bound::Included((Rank::first_savable(time), JobIdx::FIRST));
        let from = self.savable_fronts.get(&lane).map_or(first, |it| Bound::Excluded(*it));
        let mut rest = line.ready.get(&lane)?.range((from, Bound::Unbounded));
        rest.find(|(rank, idx)| rank.is_savable(time) && !self.done.contains(idx)).copied()
    }

    /// The first of a lane that can never be in time and has not been looked at.
    fn first_hopeless(&self, line: &PoolLine, lane: Lane) -> Option<(Rank, JobIdx)> {
        let first = Bound::Included((Rank::first_hopeless(), JobIdx::FIRST));
        let mut rest = line.ready.get(&lane)?.range((first, Bound::Unbounded));
        rest.find(|(rank, idx)| !rank.is_hopeless() || !self.done.contains(idx))
            .filter(|(rank, _)| rank.is_hopeless())
            .copied()
    }

    fn has_seen_all(&self, line: &PoolLine) -> bool {
        line.ready.keys().all(|lane| self.front(line, *lane).is_none())
    }
}

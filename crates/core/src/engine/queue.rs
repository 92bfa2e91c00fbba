//! The stage of each job: aside, waiting, ready, parked or requested.

use super::pool::Lane;
use super::preference;
use super::view::{Entry, JobIdx, JobUpdate, Stage};
use super::{Engine, Order};
use crate::estimate::Estimate;
use crate::ids::{JobKey, NodeName};
use crate::job::Terms;
use crate::occurrence::{self, DueRun, Serves};
use crate::rank::Rank;
use crate::repair;
use crate::rules::Rule;
use crate::run::Trigger;
use crate::store::{CounterKey, CounterLimit, SessionRow, Take};
use crate::time::{Duration, Timestamp};
use crate::urgency::{self, Outlook};

/// A job's place in line.
#[derive(Clone, Debug)]
pub(crate) struct QueueEntry {
    pub(crate) lane: Lane,
    pub(crate) rank: Rank,
    /// Since when it could have started.
    since: Timestamp,
    /// The counter that it is parked with.
    pub(crate) parked_at: Option<CounterKey>,
}

impl Engine {
    /// Takes in an update of a job, and finds its stage.
    pub(crate) fn take_in<'a>(&mut self, row: impl Into<JobUpdate<'a>>, time: Timestamp) {
        let row = row.into();
        self.take_in_at(self.view.idx_of(row.key), row, time);
    }

    /// The same for a job that is known by this number, or not yet.
    pub(crate) fn take_in_at(&mut self, before: Option<JobIdx>, row: JobUpdate<'_>, time: Timestamp) {
        let key = row.key;
        if let Some((idx, entry)) = before.and_then(|idx| Some((idx, self.view.get(idx)?))) {
            if row.version < entry.version {
                return;
            }
            let has_ended = row.n_open < entry.n_open;
            let freed = if has_ended { self.takes(key, &entry.terms) } else { Vec::new() };
            self.forget_length(idx);
            self.unqueue(idx);
            for take in freed {
                self.wake_parked(&take.counter, time);
            }
        }
        if row.is_deleted {
            self.view.remove(key);
            self.held.learn_terms(row);
            return;
        }
        let idx = self.view.put(before, row);
        self.learn_length(idx);
        self.enqueue(idx, time);
    }

    /// Finds the stage of a job that is in none.
    pub(crate) fn enqueue(&mut self, idx: JobIdx, time: Timestamp) {
        let Some(entry) = self.view.get(idx) else { return };
        let (stage, queued) = self.stage_of(entry, time, false);
        self.settle_at(idx, stage, queued);
    }

    /// Takes a job out of its stage.
    pub(crate) fn unqueue(&mut self, idx: JobIdx) {
        let Some(entry) = self.view.get_mut(idx) else { return };
        let stage = std::mem::take(&mut entry.stage);
        let Some(line) = self.pools.get_mut(&entry.terms.place.pool) else { return };
        match stage {
            Stage::Aside | Stage::Requested => {}
            Stage::Waiting { at, .. } => {
                line.waiting.remove(&(at, idx));
            }
            Stage::Ready | Stage::Parked => {
                let Some(queued) = self.queued.remove(&idx) else { return };
                match &queued.parked_at {
                    Some(counter) => self.counters.unpark(counter, queued.rank, idx),
                    None => line.take_ready(queued.lane, queued.rank, queued.since, idx),
                }
            }
        }
    }

    /// Jobs whose time has come become ready, or are left to another node for a moment.
    pub(crate) fn promote(&mut self, time: Timestamp) {
        let due: Vec<JobIdx> = self
            .pools
            .values()
            .flat_map(|line| line.waiting.iter().take_while(|(at, _)| *at <= time))
            .map(|(_, idx)| *idx)
            .collect();
        for idx in due {
            let was_left =
                matches!(self.view.get(idx).map(|it| it.stage), Some(Stage::Waiting { is_left: true, .. }));
            self.unqueue(idx);
            let Some(entry) = self.view.get(idx) else { continue };
            let (stage, queued) = self.stage_of(entry, time, was_left);
            self.settle_at(idx, stage, queued);
        }
        for counter in self.counters.due(time) {
            self.wake_parked(&counter, time);
        }
    }

    /// A counter may have room again.
    pub(crate) fn wake_parked(&mut self, counter: &CounterKey, time: Timestamp) {
        for idx in self.counters.come_back(counter) {
            self.unqueue(idx);
            let Some(entry) = self.view.get(idx) else { continue };
            let (stage, queued) = self.stage_of(entry, time, true);
            self.settle_at(idx, stage, queued);
        }
    }

    /// Moves a ready job out of the way, to the counter that has no room for it.
    pub(crate) fn park(&mut self, idx: JobIdx, counter: CounterKey) {
        let Some(queued) = self.queued.get(&idx).filter(|it| it.parked_at.is_none()).cloned() else { return };
        self.unqueue(idx);
        self.counters.park(&counter, queued.rank, idx);
        self.queued.insert(idx, QueueEntry { parked_at: Some(counter), ..queued });
        if let Some(entry) = self.view.get_mut(idx) {
            entry.stage = Stage::Parked;
        }
    }

    /// Puts a job into the waiting set until an instant that the plan or the store has named.
    pub(crate) fn wait_until(&mut self, idx: JobIdx, at: Timestamp) {
        self.unqueue(idx);
        self.settle_at(idx, Stage::Waiting { at, is_left: true }, None);
    }

    fn settle_at(&mut self, idx: JobIdx, stage: Stage, queued: Option<QueueEntry>) {
        let Some(entry) = self.view.get_mut(idx) else { return };
        entry.stage = stage;
        let Some(line) = self.pools.get_mut(&entry.terms.place.pool) else { return };
        if let Stage::Waiting { at, .. } = stage {
            line.waiting.insert((at, idx));
        }
        if let Some(queued) = queued {
            line.make_ready(queued.lane, queued.rank, queued.since, idx);
            self.queued.insert(idx, queued);
        }
    }

    /// The stage that a job belongs to.
    fn stage_of(&self, entry: &Entry, time: Timestamp, was_left: bool) -> (Stage, Option<QueueEntry>) {
        if self.asked.contains_key(&entry.key) {
            return (Stage::Requested, None);
        }
        if !self.may_take(&entry.terms) {
            return (Stage::Aside, None);
        }
        let Some(at) = self.starts_from(entry, time) else { return (Stage::Aside, None) };
        if time < at {
            return (Stage::Waiting { at, is_left: false }, None);
        }
        if repair::is_off_rhythm(&entry.terms, &entry.state) {
            return (Stage::Aside, None);
        }
        let left_until = at + self.settings.dispatch.prefer_for;
        if !was_left && time < left_until && !self.is_preferred(&entry.key, &entry.terms) {
            return (Stage::Waiting { at: left_until, is_left: true }, None);
        }
        (Stage::Ready, Some(self.queued_as(entry, time)))
    }

    /// Whether this node can ever run it.
    pub(crate) fn may_take(&self, terms: &Terms) -> bool {
        let has_room =
            self.pools.get(&terms.place.pool).is_some_and(|line| terms.place.cost <= line.settings.capacity);
        has_room && terms.place.allows(&self.settings.node)
    }

    /// When it may start here, if nothing else stands in its way. None if not before its row changes.
    pub(crate) fn starts_from(&self, entry: &Entry, time: Timestamp) -> Option<Timestamp> {
        let Entry { key, terms, state, n_open, .. } = entry;
        let is_full = terms.max_open() <= *n_open;
        if is_full || !terms.enabled || state.pause.is_some() {
            return None;
        }
        if !self.settings.rules.hold(Rule::NoStartInBlackout) {
            return state.next_run_at;
        }
        if !self.settings.rules.hold(Rule::RegularAfterFailure) {
            let mut terms = Terms::clone(terms);
            terms.retry.holds_schedule = true;
            return urgency::next_start(key, &terms, state, time, &self.outlook(&terms));
        }
        urgency::next_start(key, terms, state, time, &self.outlook(terms))
    }

    pub(crate) fn is_preferred(&self, key: &JobKey, terms: &Terms) -> bool {
        let Some(session) = self.life.session() else { return true };
        preference::preferred(key, terms, self.beating()).is_none_or(|first| first.spec.id == session.id)
    }

    pub(crate) fn preferred_node(&self, key: &JobKey, terms: &Terms) -> Option<NodeName> {
        preference::preferred(key, terms, self.beating()).map(|session| session.spec.node.clone())
    }

    /// The sessions whose beat moves. A dead one is silent long before it may be fenced, and no job should wait for it
    /// meanwhile.
    fn beating(&self) -> impl Iterator<Item = &SessionRow> {
        self.peers.iter().filter(|peer| !self.silent.contains(&peer.spec.id))
    }

    /// The other nodes that take new runs of such a job.
    pub(crate) fn others_able(&self, terms: &Terms) -> Vec<NodeName> {
        let me = self.life.session().map(|session| session.id);
        let others = self.beating().filter(|peer| Some(peer.spec.id) != me);
        others.filter(|peer| preference::can_take(peer, terms)).map(|peer| peer.spec.node.clone()).collect()
    }

    /// The nodes that could take such a job, and are draining.
    pub(crate) fn draining_nodes(&self, terms: &Terms) -> Vec<NodeName> {
        let is_draining = self.is_draining || self.is_drained;
        let own = (is_draining && self.may_take(terms)).then(|| self.settings.node.clone());
        let me = self.life.session().map(|session| session.id);
        let others = self.peers.iter().filter(|peer| Some(peer.spec.id) != me && peer.is_draining);
        let able = others.filter(|peer| {
            preference::can_take(&SessionRow { is_draining: false, ..(*peer).clone() }, terms)
        });
        own.into_iter().chain(able.map(|peer| peer.spec.node.clone())).collect()
    }

    fn queued_as(&self, entry: &Entry, time: Timestamp) -> QueueEntry {
        let Entry { key, terms, state, n_open, .. } = entry;
        let outlook = self.outlook(terms);
        // None if only something goes on record: that is done like anything else that is due.
        let up = occurrence::next_up(key, terms, state, *n_open, time).unwrap_or(DueRun {
            due_at: state.next_run_at.unwrap_or(time),
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            is_backlog: false,
        });
        let rank = match self.settings.dispatch.order {
            Order::LatestStart => Rank::of(key, terms, state, &up, &outlook),
            Order::FirstCome => Rank::first_come(key, terms, state, &up, &outlook),
            Order::ByMinute => Rank::by_minute(key, terms, state, &up, &outlook),
        };
        let is_manual = up.trigger == Trigger::Manual;
        let expected = urgency::expected_length(terms, state, &outlook);
        let is_small = is_manual || (Duration::ZERO < expected && expected <= self.settings.dispatch.short);
        let since = urgency::startable_since(key, terms, state, time).unwrap_or(time);
        QueueEntry { lane: Lane { cost: terms.place.cost, is_small }, rank, since, parked_at: None }
    }

    pub(crate) fn outlook(&self, terms: &Terms) -> Outlook {
        let pool_median = self.pools.get(&terms.place.pool).and_then(|line| line.lengths.median());
        Outlook { pool_median, ..Outlook::default() }
    }

    /// The counters that a run of a job needs room in, in the order in which the store locks them.
    pub(crate) fn takes(&self, key: &JobKey, terms: &Terms) -> Vec<Take> {
        if !self.settings.rules.hold(Rule::AskCounters) {
            return Vec::new();
        }
        let settings = &self.settings;
        let limited = |limit: CounterLimit| (!limit.is_none()).then_some(limit);
        let by_all = limited(settings.all_runs).map(|limit| Take { counter: CounterKey::all_runs(), limit });
        let by_name = terms.max_parallel_of_name.map(|most| Take {
            counter: CounterKey::Name(key.name().into()),
            limit: CounterLimit { max_open: Some(most), ..CounterLimit::default() },
        });
        let by_site = terms.site.as_ref().and_then(|site| {
            let limit = limited(*settings.sites.get(site)?)?;
            Some(Take { counter: CounterKey::Site(site.clone()), limit })
        });
        let by_tenant = terms.tenant.as_ref().and_then(|tenant| {
            let limit = settings.tenants.get(tenant).copied().unwrap_or(settings.other_tenants);
            Some(Take { counter: CounterKey::Tenant(tenant.clone()), limit: limited(limit)? })
        });
        [by_all, by_name, by_site, by_tenant].into_iter().flatten().collect()
    }

    fn learn_length(&mut self, idx: JobIdx) {
        let Some(entry) = self.view.get(idx) else { return };
        if let (Some(length), Some(line)) = (known_length(entry), self.pools.get_mut(&entry.terms.place.pool))
        {
            line.lengths.add(length);
        }
    }

    fn forget_length(&mut self, idx: JobIdx) {
        let Some(entry) = self.view.get(idx) else { return };
        if let (Some(length), Some(line)) = (known_length(entry), self.pools.get_mut(&entry.terms.place.pool))
        {
            line.lengths.remove(length);
        }
    }
}

/// What is known of a job's own runs, for the median of its pool.
fn known_length(entry: &Entry) -> Option<Duration> {
    entry.terms.estimate.or(entry.state.estimate.as_ref().map(Estimate::mean))
}

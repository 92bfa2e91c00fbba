//! Carrying out a plan: asking the store, and what its answers mean.

use std::sync::Arc;

use super::ends::{EndWhat, OpenEnd};
use super::local_runs::{LocalRun, Phase};
use super::plan::{PassReason, Pick, Plan};
use super::pool::Hold;
use super::view::{JobIdx, JobUpdate, Stage, View};
use super::{Command, Engine, Now, Start};
use crate::ids::{JobKey, Pool, RunId};
use crate::job::Exclusive;
use crate::lease::{Epoch, LeaseState};
use crate::occurrence::{Due, Serves};
use crate::rules::Rule;
use crate::store::{Bid, ClaimAnswer, Claims, CounterKey, JobRow, Settle, SettleAnswer, StoreDown};
use crate::time::{Duration, Timestamp};
use crate::urgency;

/// A claim or settlement that the store has not answered yet.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    idx: JobIdx,
    pool: Pool,
    /// None for a settlement, which starts nothing.
    hold: Option<Hold>,
    takes: Vec<CounterKey>,
    due: Option<Due>,
}

impl Engine {
    /// Whether this node may claim runs at all.
    pub(crate) fn may_dispatch(&self, now: Now) -> bool {
        let Some(session) = self.life.session_until_left() else { return false };
        let may_claim = session.may_claim(now.boot) || !self.settings.rules.hold(Rule::ClaimInTrust);
        self.feed.is_loaded && self.is_store_up && !self.is_draining && !self.is_drained && may_claim
    }

    /// Whether another batch may be sent. In a burst, the next batch is sent while the store works on the one before, but
    /// not if other nodes share the store: they keep it busy.
    pub(crate) fn may_ask(&self) -> bool {
        let is_ahead = self.batches.is_burst && self.settings.lease.is_none();
        self.batches.n_claims == 0 || (self.batches.n_claims == 1 && is_ahead)
    }

    pub(super) fn dispatch(&mut self, now: Now, out: &mut Vec<Command>) {
        while self.may_ask() {
            self.ask_for_batch(now, out);
            if !self.batches.is_burst {
                return;
            }
        }
    }

    fn ask_for_batch(&mut self, now: Now, out: &mut Vec<Command>) {
        self.batches.is_burst = false;
        let is_anybody_ready = self.pools.values().any(|line| !line.ready.is_empty());
        if !is_anybody_ready || !self.may_dispatch(now) {
            return;
        }
        let Some(epoch) = self.life.session().map(super::session::Session::epoch) else { return };
        let plan = self.plan(now, self.settings.dispatch.batch);
        self.start_bucket.take(now.boot, plan.picks.len());
        let Plan { picks, settles, passed, .. } = plan;
        for (idx, why) in passed {
            match why {
                PassReason::Counter(counter) => self.park(idx, counter),
                PassReason::Later(at) => self.wait_until(idx, at),
                PassReason::LeavesRoomTo(_) | PassReason::LooksAheadTo(_) | PassReason::GivesWay => {}
            }
        }
        let time = self.time(now);
        let bids: Vec<Bid> = picks.into_iter().filter_map(|pick| self.bid(pick, epoch, time)).collect();
        if !bids.is_empty() {
            if self.batches.n_claims == 0 {
                self.batches.claims_since = now.boot;
            }
            self.batches.n_claims += 1;
            self.batches.is_burst = self.settings.dispatch.batch <= bids.len();
            out.push(Command::Claim { epoch, bids });
        }
        if !self.batches.is_settling {
            let settles: Vec<Settle> =
                settles.into_iter().filter_map(|(idx, step)| self.settle_step(idx, step)).collect();
            if !settles.is_empty() {
                self.batches.is_settling = true;
                out.push(Command::Settle { epoch, settles });
            }
        }
    }

    fn bid(&mut self, pick: Pick, epoch: Epoch, time: Timestamp) -> Option<Bid> {
        let Pick { idx, due, step, takes, is_late, not_before } = pick;
        self.unqueue(idx);
        let entry = self.view.get(idx)?;
        let expected = urgency::expected_length(&entry.terms, &entry.state, &self.outlook(&entry.terms));
        let pool = entry.terms.place.pool.clone();
        let hold = self.pools.get_mut(&pool)?.hold(entry.terms.place.cost, is_late, time + expected);
        let counters: Vec<CounterKey> = takes.iter().map(|take| take.counter.clone()).collect();
        self.counters.asked(&counters);
        let records = if self.settings.rules.hold(Rule::RecordMissed) { step.records } else { Vec::new() };
        // Where nodes share a store, each claim has an id of its own: a claim whose answer was lost may be open already, and
        // a second one under the same id would pass for it.
        let request = match due.serves {
            Serves::Extra(id) if self.settings.lease.is_none() => {
                entry.state.extras.iter().find(|extra| extra.id == id)
            }
            Serves::Extra(_) | Serves::Pending | Serves::Beside => None,
        };
        let bid = Bid {
            key: entry.key.clone(),
            run: request.and_then(|extra| extra.first_run(epoch.0)),
            seen: entry.version,
            max_open: entry.terms.max_open(),
            not_before,
            due: due.clone(),
            state: step.state,
            records,
            takes,
            is_published: entry.is_published,
        };
        self.asked.insert(
            entry.key.clone(),
            PendingRequest { idx, pool, hold: Some(hold), takes: counters, due: Some(due) },
        );
        let advances_early = !self.settings.rules.hold(Rule::AdvanceOnAnswer);
        if let Some(entry) = self.view.get_mut(idx) {
            entry.stage = Stage::Requested;
            if advances_early {
                entry.state = bid.state.clone();
            }
        }
        Some(bid)
    }

    fn settle_step(&mut self, idx: JobIdx, step: crate::occurrence::Transition) -> Option<Settle> {
        self.unqueue(idx);
        let entry = self.view.get_mut(idx)?;
        entry.stage = Stage::Requested;
        let pool = entry.terms.place.pool.clone();
        let asked = PendingRequest { idx, pool, hold: None, takes: Vec::new(), due: None };
        self.asked.insert(entry.key.clone(), asked);
        let records = if self.settings.rules.hold(Rule::RecordMissed) { step.records } else { Vec::new() };
        Some(Settle { key: entry.key.clone(), seen: entry.version, state: step.state, records })
    }

    pub(super) fn claimed(
        &mut self,
        now: Now,
        claims: Vec<(JobKey, RunId)>,
        answer: Result<Claims, StoreDown>,
        out: &mut Vec<Command>,
    ) {
        self.batches.n_claims = self.batches.n_claims.saturating_sub(1);
        let time = self.time(now);
        let answers = match answer {
            Ok(Claims::Answered(answers)) => answers,
            // The claims may or may not have been granted; the next beat shows which. Send nothing until then.
            Err(_) | Ok(Claims::Closed) => {
                self.is_store_up = false;
                for (key, _) in &claims {
                    self.not_granted(key, time);
                }
                return;
            }
            // Known before the next beat could say it. A later beat says when draining is over.
            Ok(Claims::Draining) => {
                self.is_drained = true;
                for (key, _) in &claims {
                    self.not_granted(key, time);
                }
                return;
            }
            Ok(Claims::SessionDead) => {
                for (key, _) in &claims {
                    self.not_granted(key, time);
                }
                return self.session_died(now, out);
            }
        };
        for ((key, run), answer) in claims.into_iter().zip(answers) {
            match answer {
                ClaimAnswer::Granted(row) => self.granted(now, run, &row, out),
                ClaimAnswer::Lost(row) => {
                    self.not_granted(&key, time);
                    self.take_in(&row, time);
                }
                ClaimAnswer::Gone => {
                    self.not_granted(&key, time);
                    if let Some(idx) = self.view.idx_of(&key) {
                        self.unqueue(idx);
                        self.view.remove(&key);
                    }
                }
                ClaimAnswer::NotYet { until, now: store_now } => {
                    self.hear_time(now, self.batches.claims_since, store_now);
                    self.not_granted(&key, time);
                    if let Some(idx) = self.view.idx_of(&key) {
                        self.wait_until(idx, until);
                    }
                }
                ClaimAnswer::Limited { by, until } => {
                    self.counters.refused(&by, until, time);
                    self.not_granted(&key, time);
                    if let Some(idx) = self.view.idx_of(&key) {
                        self.park(idx, by);
                    }
                }
            }
        }
    }

    /// A claim came to nothing: what was set aside for it is free again, and the job back in line.
    fn not_granted(&mut self, key: &JobKey, time: Timestamp) {
        let Some(asked) = self.asked.remove(key) else { return };
        if let (Some(hold), Some(line)) = (asked.hold, self.pools.get_mut(&asked.pool)) {
            line.let_go(hold);
        }
        self.counters.answered(&asked.takes, false);
        if let Some(idx) = self.view.idx_near(asked.idx, key) {
            self.unqueue(idx);
            self.enqueue(idx, time);
        }
    }

    fn granted(&mut self, now: Now, run: RunId, row: &JobRow, out: &mut Vec<Command>) {
        let time = self.time(now);
        let key = &row.job.key;
        let Some(PendingRequest { idx, pool, hold, takes, due: Some(due) }) = self.asked.remove(key) else {
            return;
        };
        self.counters.answered(&takes, true);
        let lease_state = self.life.session().map(|session| session.lease_state(now.boot));
        self.take_in_at(self.view.idx_near(idx, key), row.into(), time);
        let counters = takes.clone();
        let lease_until = match lease_state {
            Some(LeaseState::Trusted { until }) => until,
            _ if !self.settings.rules.hold(Rule::StartInTrust) => now.boot + Duration::from_hours(24),
            _ => {
                // Trust ran out while the answer was on its way: nothing of it has begun, and nothing will.
                if let (Some(hold), Some(line)) = (hold, self.pools.get_mut(&pool)) {
                    line.let_go(hold);
                }
                self.counters.released(&counters);
                let (key, what) = (key.clone(), EndWhat::Unstarted);
                self.ends.insert(run, OpenEnd { key, fence: row.fence, due, what, waits_until: None });
                return;
            }
        };
        let idx = self.view.idx_near(idx, key);
        let terms = idx.and_then(|idx| self.view.get(idx)).map(|entry| Arc::clone(&entry.terms));
        let is_published = row.job.target.is_published();
        let held = LocalRun {
            idx: idx.unwrap_or(JobIdx::FIRST),
            key: key.clone(),
            fence: row.fence,
            due: due.clone(),
            phase: if is_published { Phase::Published } else { Phase::Starting },
            terms: Some(terms.unwrap_or_else(|| Arc::new(row.job.terms.clone()))),
            hold,
            takes,
            keeps_end: row.job.target.keeps_end(),
            since: now.boot,
            started_at: None,
            worked_before: Duration::ZERO,
        };
        self.held.by_id.insert(run, held);
        if is_published {
            self.await_worker(now, run);
            self.mind_blackout(now, run);
        }
        let is_strict = row.job.exclusive == Exclusive::Strict && self.settings.lease.is_some();
        out.push(Command::Start(Box::new(Start {
            run,
            fence: row.fence,
            job: Arc::clone(&row.job),
            due,
            lease_until: is_strict.then_some(lease_until),
            deadline: urgency::deadline(&row.job, &row.state),
            last_good_start_at: row.state.last_good_start_at,
        })));
        // Jobs that wait for the same counters may be next.
        for counter in counters {
            self.wake_parked(&counter, time);
        }
    }

    pub(super) fn settled(
        &mut self,
        now: Now,
        keys: Vec<JobKey>,
        answer: Result<Vec<SettleAnswer>, StoreDown>,
    ) {
        self.batches.is_settling = false;
        let time = self.time(now);
        let Ok(answers) = answer else {
            self.is_store_up = false;
            for key in &keys {
                self.not_granted(key, time);
            }
            return;
        };
        for (key, answer) in keys.into_iter().zip(answers) {
            self.not_granted(&key, time);
            match answer {
                SettleAnswer::Settled(row) | SettleAnswer::Stale(row) => self.take_in(&row, time),
                SettleAnswer::Gone => {
                    if let Some(idx) = self.view.idx_of(&key) {
                        self.unqueue(idx);
                        self.view.remove(&key);
                    }
                }
                SettleAnswer::Refused => self.is_store_up = false,
            }
        }
    }

    /// A row that came with an answer. It may be of a job that was removed, whose runs still have to end.
    pub(super) fn keep_row(&mut self, row: &JobRow, time: Timestamp) {
        if row.is_deleted {
            // It has nothing pending: it stands aside until its last run has ended.
            return self.take_in(JobUpdate { is_deleted: false, ..row.into() }, time);
        }
        self.take_in(row, time);
    }

    /// Forgets all jobs, but not open requests and runs.
    pub(super) fn forget_jobs(&mut self) {
        let all: Vec<JobIdx> = self.view.indices().collect();
        for idx in all {
            self.unqueue(idx);
        }
        self.queued.clear();
        self.view = View::default();
        for line in self.pools.values_mut() {
            line.lengths = super::lengths::Lengths::default();
        }
    }
}

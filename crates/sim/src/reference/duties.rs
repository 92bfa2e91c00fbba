//! Every duty of the store, in the order of the contract.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{
    ApplyPlan, Beat, Cancelled, Changes, Claim, Claims, CounterKey, CounterRow, Cursor, End, EndAnswer,
    Fencing, Joined, Lives, Mark, MarkKind, NewPlan, OutboxRow, PLAN_LIFE, PLANS_MAX, PLANS_PER_CALLER,
    PlanAnswer, PlanRow, PutAnswer, PutJob, Retention, RunPhase, RunRow, SessionKind, SessionRow,
    SessionSpec, Settle, SettleAnswer, Store, StoreDown, Trimmed, Watch, WorkerStart,
};
use evenbeat_core::time::{CLOCK_SLACK, Duration, Timestamp};

use super::{ReferenceStore, Weakness};

impl Store for ReferenceStore {
    fn join(&mut self, session: &SessionSpec, timings: &Timings) -> Result<Joined, StoreDown> {
        let cluster = *self.timings.get_or_insert(*timings);
        if cluster != *timings {
            return Ok(Joined::OtherTimings(cluster));
        }
        self.know(session);
        Ok(Joined::Welcome { epoch: self.epoch, is_open: self.is_open, now: self.now })
    }

    fn adopt(&mut self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown> {
        let Some(mine) = self.living(me).map(|it| it.spec.clone()) else { return Ok(Vec::new()) };
        let is_earlier_life = |it: &SessionRow| {
            let SessionSpec { id, node, boot_id, home, kind, .. } = &it.spec;
            let is_over = match lives {
                Lives::OfThisBoot => (node, boot_id, home) == (&mine.node, &mine.boot_id, &mine.home),
                Lives::OfAllNodes => true,
            };
            !it.is_dead && *id != me && *kind == SessionKind::Node && is_over
        };
        let is_fenced = !self.is(Weakness::AdoptWithoutFencing);
        for life in self.sessions.values_mut().filter(|it| is_earlier_life(it)) {
            life.is_dead = is_fenced;
            for run in self.open.values_mut().filter(|run| run.session == life.spec.id) {
                run.session = me;
            }
        }
        Ok(self.open_runs_of(me))
    }

    fn beat(&mut self, me: SessionId) -> Result<Beat, StoreDown> {
        let dead_may = self.is(Weakness::DeadMayBeat);
        let Some(session) = self.sessions.get_mut(&me).filter(|it| !it.is_dead || dead_may) else {
            return Ok(Beat::Dead);
        };
        session.beat += 1;
        let is_draining = session.is_draining;
        self.beaten_at.insert(me, self.now);
        let runs = self.open_runs_of(me);
        Ok(Beat::Alive { epoch: self.epoch, is_open: self.is_open, now: self.now, is_draining, runs })
    }

    fn drain(&mut self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        let session = self.living(session);
        Ok(session.map(|it| it.is_draining = is_draining).is_some())
    }

    fn leave(&mut self, me: SessionId) -> Result<bool, StoreDown> {
        let is_free = self.open_runs_of(me).is_empty();
        if let Some(session) = self.living(me).filter(|_| is_free) {
            session.is_dead = true;
        }
        Ok(is_free)
    }

    fn watch(&mut self, most_runs: usize) -> Result<Watch, StoreDown> {
        let sessions = self.sessions.values().filter(|it| !it.is_dead).cloned().collect();
        let orphans = self.open.values().filter(|run| self.is_dead(run.session));
        let orphans = orphans.take(most_runs).cloned().collect();
        Ok(Watch { epoch: self.epoch, is_open: self.is_open, now: self.now, sessions, orphans })
    }

    fn fence(&mut self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown> {
        if !self.is_current_and_open(epoch) {
            return Ok(vec![Fencing::Closed; silent.len()]);
        }
        let any_beat = self.is(Weakness::NoBeatCheckOnFence);
        let mut fence_one = |it: &Silent| match self.living(it.session) {
            Some(session) if session.beat == it.beat || any_beat => {
                session.is_dead = true;
                Fencing::Fenced
            }
            _ => Fencing::NotAsSeen,
        };
        Ok(silent.iter().map(&mut fence_one).collect())
    }

    fn doubt(&mut self, silent: &[Silent]) -> Result<(), StoreDown> {
        for it in silent {
            let is_as_seen = self.sessions.get(&it.session).is_some_and(|session| session.beat == it.beat);
            let is_noted = self.doubts.get(&it.session).is_some_and(|(beat, _)| *beat == it.beat);
            if is_as_seen && !is_noted {
                self.doubts.insert(it.session, (it.beat, self.now));
            }
        }
        Ok(())
    }

    fn open_epoch(&mut self, epoch: Epoch) -> Result<bool, StoreDown> {
        self.is_open |= self.epoch == epoch;
        Ok(self.epoch == epoch)
    }

    fn claim(&mut self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims, StoreDown> {
        if !self.is_current_and_open(epoch) {
            return Ok(Claims::Closed);
        }
        let dead_may = self.is(Weakness::NoSessionCheckOnClaim);
        let Some(session) = self.sessions.get(&me).filter(|it| !it.is_dead || dead_may) else {
            return Ok(Claims::SessionDead);
        };
        if session.is_draining {
            return Ok(Claims::Draining);
        }
        let spec = session.spec.clone();
        Ok(Claims::Answered(claims.iter().map(|claim| self.open_run(&spec, claim)).collect()))
    }

    fn mark(&mut self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown> {
        let mut mark_one = |mark: &Mark| {
            let MarkKind::Started(at) = mark.kind;
            self.held(mark.run, mark.fence).map(|run| {
                run.phase = RunPhase::Running;
                run.started_at.get_or_insert(at);
            })
        };
        Ok(marks.iter().map(|mark| mark_one(mark).is_some()).collect())
    }

    fn end(&mut self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown> {
        Ok(ends.iter().map(|end| self.end_run(epoch, end)).collect())
    }

    fn settle(
        &mut self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        if !self.is_current_and_open(epoch) || self.living(me).is_none() {
            return Ok(vec![SettleAnswer::Refused; settles.len()]);
        }
        let settle_one = |settle: &Settle| {
            let Some(mut row) = self.row(&settle.key) else { return SettleAnswer::Gone };
            if row.is_deleted || !self.is_as_seen(&row, settle.seen) {
                return SettleAnswer::Stale(row);
            }
            let owner = row.state.owner.take();
            row.state = settle.state.clone();
            row.state.owner = owner;
            SettleAnswer::Settled(self.write(row, &settle.records))
        };
        Ok(settles.iter().map(settle_one).collect())
    }

    fn start_on_worker(
        &mut self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown> {
        let Some(found) = self.held(run, fence).cloned() else { return Ok(WorkerStart::Taken) };
        let is_again = found.session == worker.id;
        let is_at_node =
            self.sessions.get(&found.session).is_some_and(|it| it.spec.kind == SessionKind::Node);
        let is_free = is_at_node && found.phase != RunPhase::Running;
        if !is_again && !is_free || self.is_dead(worker.id) {
            return Ok(WorkerStart::Taken);
        }
        if !is_again && !self.is_current_and_open(self.epoch) {
            return Ok(WorkerStart::Closed);
        }
        // A failover may have lost its start and its end, and later leases of the same job.
        if !is_again && fence < self.least_fence() {
            return Ok(WorkerStart::Taken);
        }
        self.know(worker);
        self.outbox.retain(|it| it.run != run);
        let started_at = found.started_at.or(Some(self.now));
        let won = RunRow { session: worker.id, phase: RunPhase::Running, started_at, ..found };
        self.open.insert(run, won.clone());
        Ok(WorkerStart::Won(Box::new(won)))
    }

    fn put_jobs(&mut self, puts: &[PutJob]) -> Result<Vec<PutAnswer>, StoreDown> {
        Ok(puts.iter().map(|put| self.put_job(put)).collect())
    }

    fn put_plan(&mut self, plan: &NewPlan) -> Result<(), StoreDown> {
        let NewPlan { id, caller, text } = plan.clone();
        let made_at = self.now;
        self.plans.retain(|it| it.id != id && made_at < it.made_at + PLAN_LIFE);
        self.plans.push(PlanRow { id, caller: caller.clone(), made_at, text });
        let n_callers = self.plans.iter().filter(|it| it.caller == caller).count();
        let mut n_over = n_callers.saturating_sub(PLANS_PER_CALLER);
        self.plans.retain(|it| {
            let goes = it.caller == caller && 0 < n_over;
            n_over -= usize::from(goes);
            !goes
        });
        let n_over = self.plans.len().saturating_sub(PLANS_MAX);
        self.plans.drain(..n_over);
        Ok(())
    }

    fn apply_plan(&mut self, plan: &ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        if self.live_plan(plan.id).is_none() {
            return Ok(PlanAnswer::Gone);
        }
        let mut after = self.clone();
        let answers: Vec<PutAnswer> = plan.puts.iter().map(|put| after.put_job(put)).collect();
        let is_whole = answers.iter().all(|it| matches!(it, PutAnswer::Put(_)));
        if !is_whole && !self.is(Weakness::PlanInPieces) {
            let stale = answers.into_iter().filter_map(|it| match it {
                PutAnswer::Stale(row) => Some(row),
                PutAnswer::Put(_) | PutAnswer::Gone | PutAnswer::Repeated(_) => None,
            });
            return Ok(PlanAnswer::Stale(stale.collect()));
        }
        *self = after;
        self.plans.retain(|it| it.id != plan.id);
        let rows = answers.into_iter().filter_map(|it| match it {
            PutAnswer::Put(row) => Some(row),
            PutAnswer::Stale(_) | PutAnswer::Gone | PutAnswer::Repeated(_) => None,
        });
        Ok(PlanAnswer::Applied(rows.collect()))
    }

    fn cancel(&mut self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown> {
        let cancel_one = |run: &RunId| match (self.open.get_mut(run), self.over.get(run).map(|it| it.phase)) {
            (Some(open), _) => {
                open.is_cancel_asked = true;
                Cancelled::Asked
            }
            (None, Some(RunPhase::Ended(outcome))) => Cancelled::Over(outcome),
            _ => Cancelled::Unknown,
        };
        Ok(runs.iter().map(cancel_one).collect())
    }

    fn changes(&mut self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        if since.is_some_and(|it| it.epoch != self.epoch) {
            return Ok(Changes::Reset);
        }
        let from = since.map_or(0, |it| it.position);
        let page: Vec<_> = self.feed.range(from + 1..).take(most).collect();
        let position = page.last().map_or(from, |(position, _)| **position);
        let rows = page.iter().filter_map(|(_, key)| Some(self.jobs.get(*key)?.row.news())).collect();
        let is_last = self.feed.range(position + 1..).next().is_none();
        Ok(Changes::Rows { rows, next: Cursor { epoch: self.epoch, position }, is_last })
    }

    fn recount(&mut self) -> Result<Vec<CounterRow>, StoreDown> {
        let mut counted: BTreeMap<&CounterKey, u32> = BTreeMap::new();
        for counter in self.open.values().flat_map(|run| &run.takes) {
            *counted.entry(counter).or_default() += 1;
        }
        let mut wrong = Vec::new();
        let (now, latest) = (self.now, self.now + CLOCK_SLACK);
        for (key, counter) in &mut self.counters {
            for claimed_at in counter.claimed_at.iter_mut().chain(&mut counter.last_claim_at) {
                if latest < *claimed_at {
                    *claimed_at = now;
                }
            }
            let n_open = counted.get(key).copied().unwrap_or(0);
            if counter.n_open != n_open {
                wrong.push(counter.row(key));
                counter.n_open = n_open;
            }
        }
        Ok(wrong)
    }

    fn outbox(&mut self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        Ok(self.outbox.iter().take(most).cloned().collect())
    }

    fn published(&mut self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown> {
        for (run, fence) in runs {
            if let Some(held) = self.held(*run, *fence) {
                if held.phase == RunPhase::Claimed {
                    held.phase = RunPhase::Published;
                }
                self.outbox.retain(|it| it.run != *run);
            }
        }
        Ok(())
    }

    fn trim(&mut self, retention: &Retention) -> Result<Trimmed, StoreDown> {
        let Retention { runs, records, audit, tombstones, most } = *retention;
        let now = self.now;
        let is_old = |at: Timestamp, keep_for: Duration| at < now - keep_for;
        let old_runs: BTreeSet<RunId> = self
            .over
            .values()
            .filter(|run| run.ended.is_some_and(|it| is_old(it.ended_at, runs)))
            .map(|run| run.run)
            .take(most)
            .collect();
        self.over.retain(|run, _| !old_runs.contains(run));
        let n_records = drop_first(&mut self.records, most, |it| is_old(it.recorded_at, records));
        // Only from the beginning on: the entries that are kept stay one unbroken chain.
        let n_audit = self.audit.iter().take(most).take_while(|(at, _)| is_old(*at, audit)).count();
        self.audit.drain(..n_audit);
        let n_tombstones = self.trim_tombstones(now - tombstones, most);

        let named: BTreeSet<SessionId> =
            self.open.values().chain(self.over.values()).map(|it| it.session).collect();
        let mut n_sessions = 0;
        self.sessions.retain(|id, session| {
            let goes = session.is_dead && !named.contains(id) && n_sessions < most;
            n_sessions += usize::from(goes);
            !goes
        });
        Ok(Trimmed { n_runs: old_runs.len(), n_records, n_audit, n_tombstones, n_sessions })
    }
}

impl ReferenceStore {
    /// Takes a session in; one that is known stays as it is, dead or not.
    fn know(&mut self, spec: &SessionSpec) {
        let newcomer = SessionRow { spec: spec.clone(), beat: 0, is_dead: false, is_draining: false };
        self.sessions.entry(spec.id).or_insert(newcomer);
        self.beaten_at.entry(spec.id).or_insert(self.now);
    }

    /// Forgets jobs that were found removed before an instant, have not changed since, and have no history left.
    fn trim_tombstones(&mut self, before: Timestamp, most: usize) -> usize {
        let removed = self.jobs.iter().filter(|(_, it)| it.row.is_deleted);
        let stamped = removed.map(|(key, it)| {
            let known = self.tombstones.get(key).filter(|(version, _)| *version == it.row.version);
            (key.clone(), known.copied().unwrap_or((it.row.version, self.now)))
        });
        self.tombstones = stamped.collect();

        let mut named: BTreeSet<&JobKey> =
            self.open.values().chain(self.over.values()).map(|run| &run.key).collect();
        named.extend(self.records.iter().map(|it| &it.key));
        let is_old = |(key, (_, since)): &(&JobKey, &(_, Timestamp))| *since < before && !named.contains(key);
        let mut old: Vec<(Timestamp, JobKey)> =
            self.tombstones.iter().filter(is_old).map(|(key, (_, since))| (*since, key.clone())).collect();
        old.sort();
        old.truncate(most);
        for (_, key) in &old {
            self.tombstones.remove(key);
            let Some(gone) = self.jobs.remove(key) else { continue };
            self.feed.remove(&gone.position);
            if !self.is(Weakness::TrimForgetsFence) {
                self.fence_floor = self.fence_floor.max(gone.row.fence);
            }
            self.version_floor = self.version_floor.max(gone.row.version);
        }
        old.len()
    }

    /// The open run, if it is held under this lease.
    fn held(&mut self, run: RunId, fence: Fence) -> Option<&mut RunRow> {
        self.open.get_mut(&run).filter(|it| it.fence == fence)
    }

    fn open_runs_of(&self, session: SessionId) -> Vec<RunRow> {
        self.open.values().filter(|run| run.session == session).cloned().collect()
    }
}

/// Drops up to `most` old rows, and returns how many went.
fn drop_first<T>(rows: &mut Vec<T>, most: usize, is_old: impl Fn(&T) -> bool) -> usize {
    let mut n_gone = 0;
    rows.retain(|it| {
        let goes = n_gone < most && is_old(it);
        n_gone += usize::from(goes);
        !goes
    });
    n_gone
}

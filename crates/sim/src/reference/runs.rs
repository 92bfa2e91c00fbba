//! How a run is opened, and how it ends: the two transactions that everything else rests on.

use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::job::{Owner, RunEnd};
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Bid, Claim, ClaimAnswer, CounterKey, End, EndAnswer, EndBy, JobRow, LateResult, OutboxRow, RunEnded,
    RunPhase, RunRow, SessionSpec, Take,
};
use evenbeat_core::time::{Duration, Timestamp};

use super::{ReferenceStore, Weakness};

const HOUR: Duration = Duration::from_hours(1);

/// When a counter has room.
enum Room {
    Now,
    From(Timestamp),
    /// Not before a run ends, or a limit is raised.
    NotByTime,
}

impl ReferenceStore {
    /// The caller has made sure that the epoch is open and the asker lives.
    pub(super) fn open_run(&mut self, me: &SessionSpec, Claim { run, bid }: &Claim) -> ClaimAnswer {
        let Some(row) = self.row(&bid.key) else { return ClaimAnswer::Gone };
        if let Some(known) = self.open.get(run).or_else(|| self.over.get(run)) {
            // Asked again. The row's fence must be the run's: an answer tells the asker its lease.
            let is_mine = known.phase.is_open() && known.session == me.id && known.key == bid.key;
            return if is_mine && known.fence == row.fence {
                ClaimAnswer::Granted(row)
            } else {
                ClaimAnswer::Lost(row)
            };
        }
        if !self.is_as_seen(&row, bid.seen) || row.is_deleted || bid.max_open <= row.n_open {
            return ClaimAnswer::Lost(row);
        }
        if self.now < bid.not_before && !self.is(Weakness::NoNotBefore) {
            return ClaimAnswer::NotYet { until: bid.not_before, now: self.now };
        }
        for take in bid.takes.iter().filter(|_| !self.is(Weakness::CountersNotChecked)) {
            let by = take.counter.clone();
            match self.room(take) {
                Room::Now => {}
                Room::From(at) => return ClaimAnswer::Limited { by, until: Some(at) },
                Room::NotByTime => return ClaimAnswer::Limited { by, until: None },
            }
        }
        ClaimAnswer::Granted(self.grant(me, *run, bid, row))
    }

    fn grant(&mut self, me: &SessionSpec, run: RunId, bid: &Bid, mut row: JobRow) -> JobRow {
        row.fence = self.next_fence(row.fence);
        row.n_open += 1;
        row.state = bid.state.clone();
        row.state.owner = Some(Box::new(Owner {
            node: me.node.clone(),
            name: me.name.clone(),
            tag: run,
            started_at: self.now,
        }));
        let takes: Vec<CounterKey> = bid.takes.iter().map(|take| take.counter.clone()).collect();
        for counter in &takes {
            self.take(counter);
        }
        if bid.is_published {
            self.outbox.push(OutboxRow { run, key: bid.key.clone(), fence: row.fence });
        }
        let opened = RunRow {
            run,
            key: bid.key.clone(),
            due: bid.due.clone(),
            session: me.id,
            fence: row.fence,
            phase: RunPhase::Claimed,
            claimed_at: self.now,
            started_at: None,
            ended: None,
            report: None,
            late: None,
            is_cancel_asked: false,
            takes,
        };
        self.open.insert(run, opened);
        self.write(row, &bid.records)
    }

    /// Never below the epoch, shifted up: also greater than what a failover has lost.
    fn next_fence(&self, last: Fence) -> Fence {
        let next = if self.is(Weakness::FenceDoesNotGrow) { last.0 } else { last.0 + 1 };
        Fence(next).max(self.least_fence())
    }

    /// What no lease of the current epoch lies below.
    pub(super) fn least_fence(&self) -> Fence {
        Fence(if self.is(Weakness::FenceIgnoresEpoch) { 0 } else { self.epoch.0 << 32 })
    }

    fn room(&self, Take { counter, limit }: &Take) -> Room {
        let counter = self.counters.get(counter).cloned().unwrap_or_default();
        if limit.max_open.is_some_and(|most| most <= counter.n_open) || limit.max_per_hour == Some(0) {
            return Room::NotByTime;
        }
        let after_gap = limit.min_gap.and_then(|gap| Some(counter.last_claim_at? + gap));
        let in_hour: Vec<Timestamp> =
            counter.claimed_at.into_iter().filter(|claimed_at| self.now < *claimed_at + HOUR).collect();
        let after_hour = limit.max_per_hour.and_then(|most| {
            let n_too_many = in_hour.len().checked_sub(usize::try_from(most).ok()?)?;
            in_hour.get(n_too_many).map(|claimed_at| *claimed_at + HOUR)
        });
        match after_gap.max(after_hour) {
            Some(at) if self.now < at => Room::From(at),
            _ => Room::Now,
        }
    }

    fn take(&mut self, counter: &CounterKey) {
        let now = self.now;
        let counter = self.counters.entry(counter.clone()).or_default();
        counter.n_open += 1;
        counter.last_claim_at = Some(now);
        counter.claimed_at.retain(|claimed_at| now < *claimed_at + HOUR);
        counter.claimed_at.push(now);
    }

    pub(super) fn end_run(&mut self, epoch: Epoch, end: &End) -> EndAnswer {
        let is_owner = |run: &RunRow| {
            let is_release = matches!(end.by, EndBy::Release { .. });
            is_release || run.session == end.me || self.is(Weakness::NoOwnerCheckOnEnd)
        };
        let held =
            |run: &&RunRow| is_owner(run) && (run.fence == end.fence || self.is(Weakness::NoFenceCheckOnEnd));
        let Some(run) = self.open.get(&end.run).filter(held).filter(|run| run.key == end.key) else {
            self.keep_late_result(end);
            return EndAnswer::Late;
        };
        let is_allowed = match end.by {
            EndBy::Owner(_) => true,
            // What executes cannot be as if it had never been.
            EndBy::Unstarted => run.phase != RunPhase::Running,
            EndBy::Release { dead, .. } => {
                let is_orphan =
                    run.session == dead && self.is_dead(dead) || self.is(Weakness::ReleaseWithoutDeath);
                is_orphan && self.is_current_and_open(epoch)
            }
        };
        if !is_allowed {
            return EndAnswer::Refused;
        }
        let Some(row) = self.row(&end.key) else { unreachable!("a job with an open run has a row") };
        if !self.is_as_seen(&row, end.seen) {
            return EndAnswer::Stale(row);
        }
        self.close(end);
        EndAnswer::Ended(self.free(end, row))
    }

    /// The one place where a run leaves the open phases.
    fn close(&mut self, end: &End) {
        let Some(mut run) = self.open.remove(&end.run) else { return };
        self.outbox.retain(|it| it.run != run.run);
        let are_released = !self.is(Weakness::CountersNotReleased);
        for counter in run.takes.iter().filter(|_| are_released) {
            self.counters.entry(counter.clone()).and_modify(|it| it.n_open = it.n_open.saturating_sub(1));
        }
        let (outcome, ended) = match end.by {
            EndBy::Unstarted => return,
            EndBy::Owner(ended) => (ended.outcome, ended),
            EndBy::Release { end: ended, .. } => (Outcome::Lost, ended),
        };
        run.phase = RunPhase::Ended(outcome);
        let RunEnd { started_at, ended_at, exit_code, frozen_for, .. } = ended;
        // A run that has ended has begun, even without a mark, and not after its end.
        run.started_at = Some(run.started_at.unwrap_or(started_at).min(ended_at));
        run.ended = Some(RunEnded { ended_at, exit_code, frozen_for });
        run.report.clone_from(&end.report);
        self.over.insert(run.run, run);
    }

    fn free(&mut self, end: &End, mut row: JobRow) -> JobRow {
        row.n_open -= 1;
        if matches!(end.by, EndBy::Release { .. }) {
            row.fence.0 += 1;
        }
        let owner = row.state.owner.take().filter(|_| 0 < row.n_open);
        row.state = end.state.clone();
        row.state.owner = owner;
        self.write(row, &end.records)
    }

    /// A result that comes after its run was given up is kept beside it, the first one that comes.
    fn keep_late_result(&mut self, end: &End) {
        let late_counts = self.is(Weakness::LateResultCounts);
        if let EndBy::Owner(RunEnd { outcome, ended_at, exit_code, .. }) = end.by
            && let Some(run) = self.over.get_mut(&end.run)
            && run.fence == end.fence
            && run.phase == RunPhase::Ended(Outcome::Lost)
        {
            run.late = Some(LateResult { outcome, ended_at });
            if let Some(ended) = &mut run.ended {
                ended.exit_code = exit_code;
            }
            run.report.clone_from(&end.report);
            run.phase = RunPhase::Ended(if late_counts { outcome } else { Outcome::Superseded });
        }
    }
}

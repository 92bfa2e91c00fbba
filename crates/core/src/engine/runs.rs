//! The life of a run on this node: it starts, may be stopped, ends, and its end is sent to the store.

use super::ends::{EndWhat, OpenEnd};
use super::local_runs::{Alarm, LocalRun, Phase, lost_end};
use super::view::JobIdx;
use super::{Command, Engine, Now, RunOver};
use crate::ids::{RunId, SessionId};
use crate::job::{JobState, RunEnd, Terms};
use crate::notice::Notice;
use crate::occurrence;
use crate::rules::Rule;
use crate::run::Outcome;
use crate::slot::Slot;
use crate::store::{BATCH_MAX, End, EndAnswer, EndBy, JobRow, Mark, MarkKind, StoreDown, Version};
use crate::time::{BootTime, Duration, Timestamp};
use crate::urgency;

/// Two readings of one instant are no further apart than this.
const NEAR_MS: i64 = 1_000;

impl Engine {
    pub(super) fn started(&mut self, now: Now, run: RunId, at: BootTime, out: &mut Vec<Command>) {
        let at = self.time_at(now, at);
        let worked = self.life.session().map_or(Duration::ZERO, |it| it.worked(now.boot));
        let Some(held) = self.held.by_id.get_mut(&run) else { return };
        held.started_at = Some(at);
        held.worked_before = worked;
        if matches!(held.phase, Phase::Starting | Phase::Published) {
            held.phase = Phase::Running;
        }
        out.push(Command::Mark(vec![Mark { run, fence: held.fence, kind: MarkKind::Started(at) }]));
        self.set_alarms(now, run);
    }

    /// Sets the alarms of a run that executes.
    pub(super) fn set_alarms(&mut self, now: Now, run: RunId) {
        let time = self.time(now);
        let Some(held) = self.held.by_id.get(&run) else { return };
        let (Some(terms), worked) = (held.terms.clone(), held.worked_before) else { return };
        if !terms.blackouts.is_empty() {
            let inside = terms.blackouts.contains(&terms.zone, time).then_some(time);
            let begins = inside.or_else(|| terms.blackouts.next_start(&terms.zone, time));
            if let Some(at) = begins {
                self.held.alarm_at(at, run, Alarm::Blackout);
            }
        }
        // Where a person says how long a run should take, what is usual does not matter.
        match terms.limits.max_expected {
            Some(longest) => self.held.alarm_after_work(worked + longest, run, Alarm::Overrun),
            None => {
                if let Some((slow, _)) = self.slow_after(run) {
                    self.held.alarm_after_work(worked + slow, run, Alarm::Slow);
                }
            }
        }
        if let Some(longest) = self.settings.run_time.longest(&terms) {
            self.held.alarm_after_work(worked + longest, run, Alarm::TooLong);
        }
        self.set_overlap_alarm(run, time);
    }

    /// How long a run must take to be called slow, and how long runs of its job usually take.
    fn slow_after(&self, run: RunId) -> Option<(Duration, Duration)> {
        let held = self.held.by_id.get(&run)?;
        let estimate = self.view.find(&held.key)?.state.estimate?;
        Some((estimate.slow_after()?, estimate.mean()))
    }

    /// When a run that waits for a worker is given up.
    pub(super) fn await_worker(&mut self, now: Now, run: RunId) {
        let worked = self.life.session().map_or(Duration::ZERO, |it| it.worked(now.boot));
        self.held.alarm_after_work(worked + self.settings.start_within, run, Alarm::NotTakenUp);
    }

    /// When a blackout begins in which no worker should start it.
    pub(super) fn mind_blackout(&mut self, now: Now, run: RunId) {
        let time = self.time(now);
        let terms = self.held.by_id.get(&run).and_then(|held| held.terms.clone());
        if let Some(at) = terms.and_then(|terms| terms.blackouts.next_start(&terms.zone, time)) {
            self.held.alarm_at(at, run, Alarm::Blackout);
        }
    }

    /// When the next occurrence comes due while the run goes on.
    fn set_overlap_alarm(&mut self, run: RunId, after: Timestamp) {
        let Some(held) = self.held.by_id.get(&run) else { return };
        let Some(entry) = self.view.find_near(held.idx, &held.key) else { return };
        if entry.terms.overlap != crate::job::Overlap::Skip {
            return;
        }
        let next = urgency::rhythm(&entry.terms, &entry.state).and_then(|rhythm| rhythm.next_after(after));
        if let Some(at) = next {
            self.held.alarm_at(at, run, Alarm::Overlap);
        }
    }

    /// Whether an occurrence that comes due now gets no run, even if the one that goes on were to end well.
    fn is_skipped(&self, held: &LocalRun, run: RunId, time: Timestamp) -> bool {
        let Some(entry) = self.view.find_near(held.idx, &held.key) else { return true };
        let end = RunEnd { outcome: Outcome::Succeeded, ..lost_end(run, held.started_at, time, time) };
        let after = occurrence::finish(&held.key, &entry.terms, &entry.state, &held.due, &end).state;
        after.next_run_at.is_none_or(|next| time < next)
    }

    pub(super) fn ring_alarms(&mut self, now: Now, out: &mut Vec<Command>) {
        let Some(session) = self.life.session() else { return };
        let (time, worked) = (self.time(now), session.worked(now.boot));
        for (run, alarm) in self.held.due(time, worked) {
            let Some(held) = self.held.by_id.get(&run) else { continue };
            let key = held.key.clone();
            match alarm {
                // No worker has begun it: it waits for the end of the blackout like any other run.
                Alarm::Blackout if held.phase == Phase::Published => self.over(run, EndWhat::Unstarted),
                Alarm::Blackout if self.settings.rules.hold(Rule::BlackoutEndsRun) => {
                    out.push(Command::Notice(Notice::EndedByBlackout { key, run }));
                    let until = held.terms.as_ref().and_then(|it| it.blackouts.exit(&it.zone, time));
                    let limit = until.map(|until| format!("blackout until {until}"));
                    self.stop(now, run, Outcome::Blackout, limit, out);
                }
                Alarm::Blackout => {}
                Alarm::TooLong => {
                    out.push(Command::Notice(Notice::TookTooLong { key, run }));
                    let limit = held.terms.as_ref().and_then(|it| self.settings.run_time.limit(it));
                    let limit = limit.map(|(length, name)| format!("{name} {length}"));
                    self.stop(now, run, Outcome::TimedOut, limit, out);
                }
                Alarm::NotTakenUp => {
                    if held.phase == Phase::Published {
                        out.push(Command::Notice(Notice::NotTakenUp { key, run }));
                        self.give_up(run, Outcome::Lost, time);
                    }
                }
                Alarm::Overrun => out.push(Command::Notice(Notice::Overrunning { key, run })),
                Alarm::Slow => {
                    if let Some((slow, usual)) = self.slow_after(run) {
                        out.push(Command::Notice(Notice::RunSlow { key, run, slow, usual }));
                    }
                }
                Alarm::Overlap => {
                    if self.is_skipped(held, run, time) {
                        out.push(Command::Notice(Notice::SkippedByOverlap { key, due_at: time }));
                    }
                    self.set_overlap_alarm(run, time);
                }
            }
        }
    }

    /// Ends a run for a reason, once.
    pub(super) fn stop(
        &mut self,
        now: Now,
        run: RunId,
        outcome: Outcome,
        limit: Option<String>,
        out: &mut Vec<Command>,
    ) {
        let time = self.time(now);
        let Some(held) = self.held.by_id.get_mut(&run) else { return };
        if held.phase == Phase::Published {
            return self.give_up(run, outcome, time);
        }
        if matches!(held.phase, Phase::Starting | Phase::Running) {
            held.phase = Phase::Stopping;
            out.push(Command::Stop { run, outcome, limit });
        }
    }

    /// Ends a published run that no worker has begun, as far as is known here. If a worker was faster, the store says
    /// so, and the run is the worker's.
    fn give_up(&mut self, run: RunId, outcome: Outcome, time: Timestamp) {
        let end = RunEnd { outcome, ..lost_end(run, None, time, time) };
        self.over(run, EndWhat::Owner(end));
    }

    pub(super) fn run_ended(&mut self, now: Now, run: RunId, over: RunOver) {
        // Each reading of two clocks may be a millisecond off, and clocks are set: a run takes as long as the boot clock
        // says, from the start that is on record unless the clock was set since.
        let started_at = self.time_at(now, over.started_at);
        let is_near = |noted: &Timestamp| (*noted - started_at).as_millis().abs() <= NEAR_MS;
        let noted = self.held.by_id.get(&run).and_then(|held| held.started_at).filter(is_near);
        let started_at = noted.unwrap_or(started_at);
        let end = RunEnd {
            run,
            started_at,
            ended_at: started_at + (over.ended_at - over.started_at).max(Duration::ZERO),
            outcome: over.outcome,
            exit_code: over.exit_code,
            frozen_for: over.frozen_for,
        };
        let patience = self.settings.dispatch.ends_wait;
        let waits_until = self.may_wait(now, run, &end).then(|| now.boot + patience);
        self.over_until(run, EndWhat::Owner(end), waits_until);
    }

    /// Whether an end may be written a little later, so that other runs start earlier.
    fn may_wait(&self, now: Now, run: RunId, end: &RunEnd) -> bool {
        // A shared store writes both at once, and every beat reads all open runs.
        let has_one_writer = self.settings.lease.is_none();
        if !self.batches.is_burst || !has_one_writer || end.outcome != Outcome::Succeeded {
            return false;
        }
        let is_free = |held: &&LocalRun| held.keeps_end && held.takes.is_empty();
        let Some(held) = self.held.by_id.get(&run).filter(is_free) else { return false };
        self.view.find_near(held.idx, &held.key).is_some_and(|job| {
            let after = occurrence::finish(&held.key, &job.terms, &job.state, &held.due, end).state;
            let soon = self.time(now) + self.settings.dispatch.ends_wait;
            after.extras.is_empty() && after.next_run_at.is_none_or(|next| soon < next)
        })
    }

    pub(super) fn not_started(&mut self, run: RunId) {
        self.over(run, EndWhat::Unstarted);
    }

    /// A run has ended. The store decides whether it is still ours to end; if not, it keeps the result as a late one.
    fn over(&mut self, run: RunId, what: EndWhat) {
        self.over_until(run, what, None);
    }

    fn over_until(&mut self, run: RunId, what: EndWhat, waits_until: Option<BootTime>) {
        self.leave_room(run);
        let Some(held) = self.held.by_id.get_mut(&run) else { return };
        held.phase = Phase::Over;
        let (key, due) = (held.key.clone(), held.due.clone());
        self.ends.insert(run, OpenEnd { key, fence: held.fence, due, what, waits_until });
    }

    /// Frees the units of a run of which nothing executes.
    pub(super) fn leave_room(&mut self, run: RunId) {
        self.held.forget_alarms(run);
        let Some(held) = self.held.by_id.get_mut(&run) else { return };
        let (hold, takes) = (held.hold.take(), std::mem::take(&mut held.takes));
        let pool = held.terms.as_ref().map(|terms| terms.place.pool.clone());
        if let (Some(hold), Some(line)) = (hold, pool.and_then(|pool| self.pools.get_mut(&pool))) {
            line.let_go(hold);
        }
        // The store frees the counters when it hears of the end; only then is it worth asking.
        self.counters.released(&takes);
    }

    pub(super) fn send_ends(&mut self, now: Now, out: &mut Vec<Command>) {
        let Some(session) = self.life.session_until_left() else { return };
        if self.batches.is_ending || self.ends.is_empty() || !self.is_store_up {
            return;
        }
        if self.batches.is_burst && self.ends.may_wait(now.boot) {
            return;
        }
        let (me, epoch) = (session.id, session.epoch());
        let time = self.time(now);
        let ends: Vec<End> = self
            .ends
            .iter()
            .take(BATCH_MAX)
            .map(|(run, open)| self.worked_out(me, *run, open, time))
            .collect();
        self.batches.is_ending = true;
        out.push(Command::End { epoch, ends });
    }

    /// What an end leads to, from what is known of the job. Where nothing is known, the store answers with the row.
    fn worked_out(&self, me: SessionId, run: RunId, open: &OpenEnd, time: Timestamp) -> End {
        let nothing = Terms::new(crate::schedule::Schedule::Manual);
        let (terms, state, seen) = match self.view.find_near(self.idx_of_run(run), &open.key) {
            Some(entry) => (&*entry.terms, &entry.state, entry.version),
            None => (&nothing, &JobState::new(time), Version(0)),
        };
        let step = match &open.what {
            EndWhat::Owner(end) | EndWhat::Release { end, .. } => {
                occurrence::finish(&open.key, terms, state, &open.due, end)
            }
            EndWhat::Unstarted => occurrence::unstart(state, &open.due),
        };
        let by = match open.what {
            EndWhat::Owner(end) => EndBy::Owner(end),
            EndWhat::Unstarted => EndBy::Unstarted,
            EndWhat::Release { dead, end } => EndBy::Release { dead, end },
        };
        let (fence, key) = (open.fence, open.key.clone());
        End { run, fence, me, key, seen, by, state: step.state, records: step.records, report: None }
    }

    pub(super) fn end_answered(
        &mut self,
        now: Now,
        runs: Vec<RunId>,
        answer: Result<Vec<EndAnswer>, StoreDown>,
        out: &mut Vec<Command>,
    ) {
        self.batches.is_ending = false;
        let Ok(answers) = answer else {
            self.is_store_up = false;
            if !self.settings.rules.hold(Rule::ResendEnd) {
                for run in runs {
                    self.forget(run);
                }
            }
            return;
        };
        let time = self.time(now);
        for (run, answer) in runs.into_iter().zip(answers) {
            match answer {
                EndAnswer::Ended(row) => {
                    let idx = self.view.idx_near(self.idx_of_run(run), &row.job.key);
                    self.tell_of_end(run, idx, &row, out);
                    self.forget(run);
                    self.take_in_at(idx, (&row).into(), time);
                    for take in self.takes(&row.job.key, &row.job.terms) {
                        self.wake_parked(&take.counter, time);
                    }
                }
                EndAnswer::Stale(row) => {
                    self.keep_row(&row, time);
                    if !self.settings.rules.hold(Rule::RethinkStaleEnd) {
                        self.forget(run);
                    }
                }
                EndAnswer::Late | EndAnswer::Refused => self.forget(run),
            }
        }
    }

    /// The notices of a run that is on record: its job goes on in its rhythm, or was paused by the run.
    fn tell_of_end(&self, run: RunId, idx: Option<JobIdx>, row: &JobRow, out: &mut Vec<Command>) {
        let Some(open) = self.ends.get(run) else { return };
        let key = &row.job.key;
        let known = idx.and_then(|idx| self.view.get(idx));
        let was_paused = known.is_some_and(|it| it.state.pause.is_some());
        match (&row.state.pause, row.state.next_run_at) {
            (Some(pause), _) if !was_paused => {
                let reason = pause.reason.clone().unwrap_or_default();
                out.push(Command::Notice(Notice::PausedBySystem { key: key.clone(), reason }));
            }
            (None, Some(next_run_at)) if open.due.due_at < next_run_at => {
                let width = self.settings.slot_width;
                let slot = |at| Slot::of(at, width).start(width);
                out.push(Command::Notice(Notice::Rescheduled {
                    key: key.clone(),
                    old_slot: slot(open.due.due_at),
                    new_slot: slot(next_run_at),
                }));
            }
            _ => {}
        }
    }

    /// The number that the job of a run had, as a hint for looking it up.
    fn idx_of_run(&self, run: RunId) -> JobIdx {
        self.held.by_id.get(&run).map_or(JobIdx::FIRST, |held| held.idx)
    }

    fn forget(&mut self, run: RunId) {
        self.ends.remove(run);
        self.held.by_id.remove(&run);
    }
}

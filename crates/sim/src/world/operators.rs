//! What people do: they look at a row, think for a moment, and write what they thought out, if the row is
//! still the same. Else they look again.

use std::sync::Arc;

use evenbeat_core::edit;
use evenbeat_core::ids::{ExtraId, JobKey, RunId};
use evenbeat_core::job::{Extra, Job, PausedBy};
use evenbeat_core::occurrence::Due;
use evenbeat_core::placement::{Balance, plan_rebalance};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::{BATCH_MAX, JobRow, PutAnswer, PutJob, RunFilter, Views};
use evenbeat_core::time::{Duration, Timestamp};

use super::network::Party;
use super::{AtNode, ForScheduler, Happening, World};
use crate::faults::CutWay;
use crate::setup::{ActKind, JobSetup};

/// How often a person tries again when the row has changed.
const TRIES_MAX: u32 = 5;
/// How many of a hundred nodes hear of news at once; all others find it with their next poll.
const NUDGED_PERCENT: u32 = 80;

/// An edit that has not been written yet.
#[derive(Debug)]
pub(super) struct Edit {
    /// What for, by its place in the setup.
    act: usize,
    n_tries: u32,
    put: PutJob,
    /// When the run is requested, if this requests one.
    asked_for: Option<Timestamp>,
}

impl World {
    /// The jobs that are there from the beginning.
    pub(super) fn put_first_jobs(&mut self) {
        let now = self.store_now();
        let puts: Vec<PutJob> = self.setup.jobs.iter().map(|it| new_job(it, None, now)).collect();
        for batch in puts.chunks(BATCH_MAX) {
            self.database.put(batch, &mut self.trace);
        }
    }

    /// A person does something.
    pub(super) fn act(&mut self, idx: usize) {
        if self.database_is_away().is_some() || self.is_healed {
            return;
        }
        self.trace.line(format_args!("operator {:?}", self.setup.acts[idx].what));
        match self.setup.acts[idx].what {
            ActKind::Cancel => self.cancel_some_run(),
            ActKind::Rebalance => self.rebalance(idx),
            ActKind::Drain(node) => self.drain(node, true),
            ActKind::Undrain(node) => self.drain(node, false),
            ActKind::Restart(node) => self.tell_scheduler(node, ForScheduler::Drain(true)),
            _ => self.think(idx, 0),
        }
    }

    /// A person reads a job and works out an edit.
    fn think(&mut self, act: usize, n_tries: u32) {
        let now = self.store_now();
        let id = ExtraId(self.dice.wide_number());
        let what = &self.setup.acts[act].what;
        let Some(key) = subject(what) else { return };
        let row = self.store().job(key).expect("the reference store always answers");
        let open = self.open_dues(key);
        let asked_for = match what {
            ActKind::Trigger(_) => Some(now),
            ActKind::Backfill { ago, .. } => Some(now - *ago),
            _ => None,
        };
        // A refused edit is not tried again.
        let Some(put) = self.decide(what, row.as_ref(), &open, id, now) else { return };
        let at = if self.dice.chance(70) { self.after(0, 20) } else { self.after(20, 3_000) };
        self.queue.put(at, Happening::Write(Box::new(Edit { act, n_tries, put, asked_for })));
    }

    fn decide(
        &self,
        what: &ActKind,
        row: Option<&JobRow>,
        open: &[Due],
        id: ExtraId,
        now: Timestamp,
    ) -> Option<PutJob> {
        match (what, row) {
            (ActKind::Put(it), row) if row.is_none_or(|row| row.is_deleted) => Some(new_job(it, row, now)),
            (ActKind::Restore(key), Some(row)) if row.is_deleted => {
                let it = self.setup.all_jobs().find(|it| it.job.key == *key)?;
                Some(new_job(it, Some(row), now))
            }
            (ActKind::Reschedule { schedule, first_after, .. }, Some(row)) => {
                let mut job = Job::clone(&row.job);
                job.schedule = schedule.clone();
                let placement = placement(&job.schedule, *first_after, now);
                edit::edit(row, open, Arc::new(job), placement, now).ok()
            }
            (ActKind::Relabel(_), Some(row)) => {
                let mut job = Job::clone(&row.job);
                job.labels.insert("touched".to_owned(), now.to_string());
                edit::edit(row, open, Arc::new(job), row.state.placement.clone(), now).ok()
            }
            (ActKind::Pause(_), Some(row)) => edit::pause(row, PausedBy::Operator, None).ok(),
            (ActKind::Resume(_), Some(row)) => {
                let placement = placement(&row.job.schedule, Duration::from_millis(500), now);
                edit::resume(row, open, placement, now).ok()
            }
            (ActKind::Remove(_), Some(row)) => edit::remove(row).ok(),
            (ActKind::Trigger(_), Some(row)) => edit::trigger(row, Extra::manual(id, now)).ok(),
            (ActKind::Backfill { ago, .. }, Some(row)) => {
                edit::trigger(row, Extra::backfill(id, now - *ago, now)).ok()
            }
            _ => None,
        }
    }

    /// Writes an edit, unless the row has changed meanwhile.
    pub(super) fn write_edit(&mut self, edit: &Edit) {
        if self.database_is_away().is_some() || self.is_healed {
            return;
        }
        let answers = match edit.asked_for {
            Some(due_at) => self.database.put_trigger(&edit.put, due_at, &mut self.trace),
            None => self.database.put(std::slice::from_ref(&edit.put), &mut self.trace),
        };
        match answers.first() {
            Some(PutAnswer::Put(_)) => self.nudge(),
            Some(PutAnswer::Stale(_)) if edit.n_tries < TRIES_MAX && !self.is_rebalance(edit.act) => {
                self.think(edit.act, edit.n_tries + 1);
            }
            _ => {}
        }
    }

    fn is_rebalance(&self, act: usize) -> bool {
        self.setup.acts[act].what == ActKind::Rebalance
    }

    /// A person rebalances the fleet: a plan, and then its moves one by one.
    fn rebalance(&mut self, act: usize) {
        let now = self.store_now();
        let rows = self.store().jobs(None, BATCH_MAX).expect("the reference store always answers");
        let fleet: Vec<_> = rows.iter().map(|row| (&*row.job, &row.state)).collect();
        let plan = plan_rebalance(Balance::default(), now, &fleet);
        for it in &plan.moves {
            let row = rows.iter().find(|row| row.job.key == it.key);
            let Some(put) = row.and_then(|row| edit::apply_move(row, it, now).ok()) else { continue };
            let at = self.after(0, 2_000);
            self.queue.put(at, Happening::Write(Box::new(Edit { act, n_tries: 0, put, asked_for: None })));
        }
    }

    fn cancel_some_run(&mut self) {
        let open = RunFilter { is_open: true, ..RunFilter::default() };
        let rows = self.store().runs(&open, None, BATCH_MAX).expect("the reference store always answers");
        let runs: Vec<RunId> = rows.iter().map(|row| row.run).collect();
        if !runs.is_empty() {
            let run = *self.dice.pick(&runs);
            self.database.cancel(run, &mut self.trace);
            self.nudge();
        }
    }

    fn drain(&mut self, node: usize, is_draining: bool) {
        let session = self.nodes[node].scheduler.as_ref().and_then(|it| it.session);
        if let Some(session) = session {
            self.database.drain(session, is_draining, self.now);
        }
    }

    /// Whatever was drained takes new runs again.
    pub(super) fn undrain(&mut self, node: usize) {
        self.drain(node, false);
        self.tell_scheduler(node, ForScheduler::Drain(false));
    }

    /// Tells every node that can be reached that there is news; some messages are lost.
    fn nudge(&mut self) {
        for node in 0..self.nodes.len() {
            if self.dice.chance(NUDGED_PERCENT) && !self.is_cut(Party::Node(node), CutWay::Answers) {
                self.tell_scheduler(node, ForScheduler::Nudge);
            }
        }
    }

    fn tell_scheduler(&mut self, node: usize, what: ForScheduler) {
        let at = self.after(1, 50);
        if let Some(life) = self.nodes[node].scheduler.as_ref().map(|it| it.life) {
            self.queue.put(at, Happening::At(node, AtNode::Scheduler(life, what)));
        }
    }

    /// What the open runs of a job serve.
    fn open_dues(&self, key: &JobKey) -> Vec<Due> {
        let open = RunFilter { is_open: true, key: Some(key.clone()) };
        let rows = self.store().runs(&open, None, BATCH_MAX).expect("the reference store always answers");
        rows.into_iter().map(|row| row.due).collect()
    }
}

/// The job that an act is about.
fn subject(what: &ActKind) -> Option<&JobKey> {
    match what {
        ActKind::Put(it) => Some(&it.job.key),
        ActKind::Reschedule { key, .. }
        | ActKind::Relabel(key)
        | ActKind::Pause(key)
        | ActKind::Resume(key)
        | ActKind::Remove(key)
        | ActKind::Restore(key)
        | ActKind::Trigger(key)
        | ActKind::Backfill { key, .. } => Some(key),
        ActKind::Cancel
        | ActKind::Rebalance
        | ActKind::Drain(_)
        | ActKind::Undrain(_)
        | ActKind::Restart(_) => None,
    }
}

fn new_job(it: &JobSetup, before: Option<&JobRow>, now: Timestamp) -> PutJob {
    let placement = placement(&it.job.schedule, it.first_after, now);
    edit::create(it.job.clone(), before, placement, now).expect("a job that is not there can be created")
}

/// Where a job is set down: an interval where it was drawn, everything else where its schedule puts it.
fn placement(schedule: &Schedule, first_after: Duration, now: Timestamp) -> Option<Placement> {
    let after = match schedule {
        Schedule::Every { interval, .. } => first_after.as_millis() % interval.as_millis(),
        Schedule::Manual => return None,
        Schedule::Fresh { .. } | Schedule::Cron(_) | Schedule::Once { .. } => 0,
    };
    Some(Placement::at(now + Duration::from_millis(after), now))
}

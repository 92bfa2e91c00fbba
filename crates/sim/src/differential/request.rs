//! What can be asked of a store, as values, and answers in a form that can be compared.

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{
    ApplyPlan, Beat, Changes, Claim, Cursor, End, Lives, Mark, NewPlan, PutJob, Retention, RunFilter, RunRow,
    SessionSpec, Settle, Store, Views,
};
use evenbeat_core::time::Timestamp;

use super::TestStore;
use super::story::PLANS;

const MANY: usize = 1_000_000;

/// Something that is asked of a store, or done to it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the duties of the contract, by their names")]
pub enum Request {
    Clock(Timestamp),
    FailOver,
    Join(SessionSpec, Timings),
    Adopt(SessionId, Lives),
    Beat(SessionId),
    Drain(SessionId, bool),
    Leave(SessionId),
    Watch,
    Fence(Epoch, Vec<Silent>),
    OpenEpoch(Epoch),
    Claim(SessionId, Epoch, Vec<Claim>),
    Mark(Vec<Mark>),
    End(Epoch, Vec<End>),
    Settle(SessionId, Epoch, Vec<Settle>),
    StartOnWorker(RunId, Fence, SessionSpec),
    Put(Vec<PutJob>),
    PutPlan(NewPlan),
    ApplyPlan(ApplyPlan),
    Cancel(Vec<RunId>),
    /// What has changed since the last such request, in pages of this size.
    Changes(usize),
    Recount,
    Outbox,
    Published(Vec<(RunId, Fence)>),
    Trim(Retention),
}

/// Who asks, and where it stands in the feed.
#[derive(Debug, Default)]
pub(super) struct Asker {
    cursor: Option<Cursor>,
    /// Whether the last look at the feed had to start from the beginning.
    pub(super) was_reset: bool,
}

impl Asker {
    /// Reads the feed from its beginning the next time.
    pub(super) fn begin_anew(&mut self) {
        self.cursor = None;
    }

    /// Asks, and tells the answer as text.
    pub(super) fn ask<S: TestStore>(&mut self, held: &mut S, request: &Request) -> String {
        let asked: Result<String, _> = match request {
            Request::Clock(now) => {
                held.set_now(*now);
                Ok(String::new())
            }
            Request::FailOver => {
                held.fail_over();
                Ok(String::new())
            }
            Request::Join(spec, timings) => held.store().join(spec, timings).map(text),
            Request::Adopt(me, lives) => held.store().adopt(*me, *lives).map(by_id).map(text),
            Request::Beat(me) => held.store().beat(*me).map(|beat| match beat {
                Beat::Alive { epoch, is_open, now, is_draining, runs } => {
                    text(Beat::Alive { epoch, is_open, now, is_draining, runs: by_id(runs) })
                }
                Beat::Dead => text(Beat::Dead),
            }),
            Request::Drain(session, is_draining) => held.store().drain(*session, *is_draining).map(text),
            Request::Leave(me) => held.store().leave(*me).map(text),
            Request::Watch => held.store().watch(MANY).map(|mut watch| {
                watch.sessions.sort_by_key(|it| it.spec.id);
                watch.orphans = by_id(watch.orphans);
                text(watch)
            }),
            Request::Fence(epoch, silent) => held.store().fence(*epoch, silent).map(text),
            Request::OpenEpoch(epoch) => held.store().open_epoch(*epoch).map(text),
            Request::Claim(me, epoch, claims) => held.store().claim(*me, *epoch, claims).map(text),
            Request::Mark(marks) => held.store().mark(marks).map(text),
            Request::End(epoch, ends) => held.store().end(*epoch, ends).map(text),
            Request::Settle(me, epoch, settles) => held.store().settle(*me, *epoch, settles).map(text),
            Request::StartOnWorker(run, fence, worker) => {
                held.store().start_on_worker(*run, *fence, worker).map(text)
            }
            Request::Put(puts) => held.store().put_jobs(puts).map(text),
            Request::PutPlan(plan) => held.store().put_plan(plan).map(text),
            Request::ApplyPlan(plan) => held.store().apply_plan(plan).map(text),
            Request::Cancel(runs) => held.store().cancel(runs).map(text),
            Request::Changes(most) => Ok(self.changes(held.store(), *most)),
            Request::Recount => held.store().recount().map(text),
            Request::Outbox => held.store().outbox(MANY).map(text),
            Request::Published(runs) => held.store().published(runs).map(text),
            Request::Trim(retention) => held.store().trim(retention).map(text),
        };
        asked.unwrap_or_else(|down| down.to_string())
    }

    /// Reads the feed to its end. Jobs that one transaction changed have no order among each other, and one that changed
    /// often may be told with several pages, each time as it is now.
    fn changes<S: Store>(&mut self, store: &mut S, most: usize) -> String {
        let mut seen = Vec::new();
        let mut resets = 0;
        self.was_reset = false;
        loop {
            match store.changes(self.cursor, most) {
                Ok(Changes::Rows { rows, next, is_last }) => {
                    assert!(rows.len() <= most, "a page of {} rows, and {most} were asked for", rows.len());
                    seen.extend(rows);
                    self.cursor = Some(next);
                    if is_last {
                        break;
                    }
                }
                Ok(Changes::Reset) => {
                    self.cursor = None;
                    seen.clear();
                    resets += 1;
                    self.was_reset = true;
                    assert!(resets < 3, "a feed that never begins");
                }
                Err(down) => return down.to_string(),
            }
        }
        seen.sort_by(|one, other| one.key.cmp(&other.key));
        seen.dedup();
        text(seen)
    }
}

/// Everything that a store shows, one text for each thing that can be looked at.
pub(super) fn shown<S: Views>(store: &S) -> Vec<String> {
    let mut shown = Vec::new();
    let jobs = store.jobs(None, MANY);
    shown.push(text(&jobs));
    shown.push(text(store.runs(&RunFilter::default(), None, MANY)));
    shown.push(text(store.runs(&RunFilter { key: None, is_open: true }, None, 3)));
    shown.push(text(store.sessions().map(|mut them| {
        them.sort_by_key(|it| it.spec.id);
        them
    })));
    shown.push(text(store.counters().map(|mut them| {
        them.sort_by(|one, other| one.counter.cmp(&other.counter));
        them
    })));
    shown.push(text(store.audit(MANY)));
    shown.extend(PLANS.map(|id| text(store.plan(id))));
    for row in jobs.into_iter().flatten() {
        let key: &JobKey = &row.job.key;
        shown.push(text(store.job(key)));
        shown.push(text(store.records(key, None, MANY)));
        shown.push(text(store.runs(&RunFilter { key: Some(key.clone()), is_open: false }, None, 5)));
        shown.push(text(store.jobs(Some(key), 2)));
    }
    shown
}

fn by_id(mut runs: Vec<RunRow>) -> Vec<RunRow> {
    runs.sort_by_key(|it| it.run);
    runs
}

fn text(answer: impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}

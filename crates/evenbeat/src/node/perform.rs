//! The second door for writing: what the engine decided is done, and what came of it becomes an event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::engine::{Command, Event};
use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::job::{JobState, RunEnd};
use evenbeat_core::lease::{Epoch, Timings};
use evenbeat_core::notice::Notice;
use evenbeat_core::run::{Outcome, RunReport};
use evenbeat_core::store::{
    Claim, End, EndAnswer, EndBy, Joined, RunPhase, SessionKind, SessionSpec, StoreDown, Version,
};
use evenbeat_core::time::{BootTime, Duration};
use evenbeat_core::zone::Zone;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::doubts::Doubts;
use super::feed_reader::FeedReader;
use super::open_runs::{EndingRun, OpenRuns};
use super::outcomes;
use super::reports::Reports;
use super::start_writer::StartWriter;
use super::telemetry::Telemetry;
use super::trouble;
use super::{Message, NodeIdentity};
use crate::clock::Clock;
use crate::exec::Router;
use crate::mint::mint;
use crate::outbound::Pings;
use crate::point::point;
use crate::store::any::AnyStore;

/// The first pause before another attempt to join.
const BACKOFF_MIN: Length = Length::from_millis(100);

/// Number of runs of dead sessions per request.
const ORPHANS_MAX: usize = 500;

/// The first and the longest pause between two attempts to keep the result of a run that was given up.
const LATE_PAUSE_MIN: Length = Length::from_millis(500);
const LATE_PAUSE_MAX: Length = Length::from_secs(15);

/// Does what the engine says.
#[derive(Debug)]
pub(super) struct Performer {
    pub(super) store: AnyStore,
    pub(super) exec: Router,
    pub(super) telemetry: Telemetry,
    /// Calls to the addresses of jobs.
    pub(super) pings: Pings,
    pub(super) identity: NodeIdentity,
    pub(super) timings: Timings,
    /// Whether the store has leases, and is not one process's own.
    pub(super) is_leased: bool,
    pub(super) inbox: mpsc::Sender<Message>,
    /// Whose commands these are.
    pub(super) session: Option<SessionId>,
    /// Whether the session before this one was drained. A drain lasts as long as the process, across sessions.
    pub(super) is_drained: bool,
    pub(super) marks: StartWriter,
    pub(super) pages: FeedReader,
    /// What runs reported and how they came to their end, until that is on record.
    pub(super) reports: Reports,
    /// What runs are for, until their end is on record.
    pub(super) open_runs: OpenRuns,
    /// Sessions that have been silent.
    pub(super) doubts: Doubts,
    /// What time it is.
    pub(super) clock: Clock,
}

impl Performer {
    /// Never waits. Every question to the store is answered by one word, later.
    pub(super) fn perform(&self, command: Command) {
        match command {
            Command::Join => self.join(),
            Command::Start(start) => {
                self.pings.follow(start.run, &start.job);
                self.open_runs.ordered(&start, self.clock.store_now());
                self.exec.start(&start);
            }
            Command::Extend { until } => self.exec.extend(until),
            Command::Stop { run, outcome, limit } => {
                self.reports.stopped(run, limit);
                self.exec.stop(run, outcome);
            }
            Command::Revoke { run } => {
                self.open_runs.forget(run);
                self.exec.revoke(run);
            }
            Command::Notice(notice) => self.telemetry.tell(notice),
            Command::Watch => self.watch(),
            Command::Fence { epoch, silent } => self.ask("fence", |store| async move {
                let answer = store.fence(epoch, silent.clone()).await;
                Event::Fenced { silent, answer }
            }),
            Command::OpenEpoch(epoch) => {
                self.ask(
                    "open_epoch",
                    |store| async move { Event::EpochOpened(store.open_epoch(epoch).await) },
                );
            }
            Command::Changes(since) => {
                let pages = self.pages.clone();
                self.ask("changes", |_| async move { Event::Changed(pages.read(since).await) });
            }
            Command::End { epoch, mut ends } => {
                let (exec, reports, open_runs) =
                    (self.exec.clone(), self.reports.clone(), self.open_runs.clone());
                for end in &mut ends {
                    end.report = reports.of(end.run);
                }
                let runs: Vec<RunId> = ends.iter().map(|it| it.run).collect();
                let marks = self.marks.take(runs.iter().copied());
                let (telemetry, told) = (self.telemetry.clone(), outcomes::of_ends(&ends));
                let ending = self.open_runs.ending(&ends);
                self.ask("end", |store| async move {
                    point("end.asked");
                    let answer = store.end(epoch, marks, ends).await;
                    point("end.answered");
                    telemetry.tell_all(outcomes::ended(told, &answer));
                    tell_of_ends(&telemetry, &ending, &answer);
                    for run in on_record(&runs, &answer) {
                        exec.forget(run);
                        reports.forget(run);
                        open_runs.forget(run);
                    }
                    point("end.forgotten");
                    Event::EndAnswered { runs, answer }
                });
            }
            Command::Mark(marks) => self.marks.note(marks),
            Command::Beat | Command::Claim { .. } | Command::Settle { .. } | Command::Leave => {
                let Some(me) = self.session else {
                    unreachable!("the engine beats, claims, settles and leaves only in a session");
                };
                self.perform_in_session(me, command);
            }
        }
    }

    fn perform_in_session(&self, me: SessionId, command: Command) {
        match command {
            Command::Beat => {
                // Counted from before anything is sent.
                let began_at = self.clock.boot();
                self.ask(
                    "beat",
                    |store| async move { Event::Beaten { began_at, answer: store.beat(me).await } },
                );
            }
            Command::Claim { epoch, bids } => {
                let now = self.clock.now();
                let claims: Vec<Claim> = bids
                    .into_iter()
                    .map(|bid| Claim { run: bid.run.unwrap_or_else(|| RunId(mint(now))), bid })
                    .collect();
                let (telemetry, told) = (self.telemetry.clone(), outcomes::of_claims(&claims));
                self.ask("claim", |store| async move {
                    let named = claims.iter().map(|it| (it.bid.key.clone(), it.run)).collect();
                    point("claim.asked");
                    let answer = store.claim(me, epoch, claims).await;
                    point("claim.answered");
                    telemetry.tell_all(outcomes::claimed(told, &answer));
                    Event::Claimed { claims: named, answer }
                });
            }
            Command::Settle { epoch, settles } => {
                let (telemetry, told) = (self.telemetry.clone(), outcomes::of_settles(&settles));
                self.ask("settle", |store| async move {
                    let keys = settles.iter().map(|it| it.key.clone()).collect();
                    point("settle.asked");
                    let answer = store.settle(me, epoch, settles).await;
                    point("settle.answered");
                    telemetry.tell_all(outcomes::settled(told, &answer));
                    Event::Settled { keys, answer }
                });
            }
            Command::Leave => {
                let (store, inbox) = (self.store.clone(), self.inbox.clone());
                tokio::spawn(async move {
                    // A session that could not say goodbye is found silent, or taken over by the next life.
                    point("leave.asked");
                    let _ = store.leave(me).await;
                    point("leave.answered");
                    let _ = inbox.send(Message::Left).await;
                });
            }
            other => unreachable!("{other:?} needs no session"),
        }
    }

    fn watch(&self) {
        let (doubts, is_leased, clock) = (self.doubts.clone(), self.is_leased, self.clock.clone());
        let self_fence = self.timings.spec().self_fence;
        self.ask("watch", |store| async move {
            let answer = store.watch(ORPHANS_MAX).await;
            if let (Ok(watch), true) = (&answer, is_leased) {
                let silent = doubts.look(&watch.sessions, clock.boot(), self_fence);
                if !silent.is_empty() {
                    // Shown to people, no decision depends on it. If it fails, the next silence is noticed again.
                    tokio::spawn(async move { store.doubt(silent).await });
                }
            }
            Event::Watched(answer)
        });
    }

    /// A run that an earlier process of this node started has ended, and is no longer ours. Once the others have given
    /// it up, its result is kept beside it (L5).
    pub(super) fn keep_late_result(&self, run: RunId, end: RunEnd) {
        let (store, exec, reports) = (self.store.clone(), self.exec.clone(), self.reports.clone());
        let telemetry = self.telemetry.clone();
        tokio::spawn(async move {
            let mut pause = LATE_PAUSE_MIN;
            loop {
                match keep_late_result(&store, run, end, reports.of(run)).await {
                    LateResult::Kept(key) => {
                        telemetry.tell(Notice::LateResultKept { key, run, outcome: end.outcome });
                        break;
                    }
                    LateResult::NotNeeded => break,
                    LateResult::TryAgain => tokio::time::sleep(pause).await,
                }
                pause = (pause * 2).min(LATE_PAUSE_MAX);
            }
            exec.forget(run);
            reports.forget(run);
        });
    }

    /// Asks the store, and sends on what the answer means.
    fn ask<A>(&self, duty: &'static str, question: impl FnOnce(AnyStore) -> A)
    where
        A: Future<Output = Event> + Send + 'static,
    {
        let (answer, inbox) = (question(self.store.clone()), self.inbox.clone());
        let metrics = self.telemetry.metrics().clone();
        tokio::spawn(async move {
            let began = Instant::now();
            let event = answer.await;
            let is_done = trouble::answer(&event).is_none_or(|(_, done)| done.is_ok());
            metrics.store_answered(duty, began.elapsed(), is_done);
            // A node that is gone wants to hear nothing.
            let _ = inbox.send(Message::Event(event)).await;
        });
    }

    /// Begins a session under a new id, again and again until the store answers. Whatever came of an earlier attempt is
    /// taken over with the rest.
    fn join(&self) {
        let (store, exec, inbox) = (self.store.clone(), self.exec.clone(), self.inbox.clone());
        let (identity, telemetry, pings) =
            (self.identity.clone(), self.telemetry.clone(), self.pings.clone());
        let (clock, open_runs) = (self.clock.clone(), self.open_runs.clone());
        let (timings, is_leased, is_drained) = (self.timings, self.is_leased, self.is_drained);
        tokio::spawn(async move {
            let cap = Length::from_millis(timings.spec().backoff_cap.as_millis().unsigned_abs());
            let mut backoff = BACKOFF_MIN;
            loop {
                let spec = identity.session(SessionId(mint(clock.now())));
                let (began_at, began) = (clock.boot(), Instant::now());
                let joined =
                    join_once(&store, (&exec, &pings), spec, began_at, timings, is_leased, is_drained).await;
                telemetry.metrics().store_answered("join", began.elapsed(), joined.is_ok());
                let word = match joined {
                    Ok(word) => word,
                    Err(StoreDown(why)) => {
                        let again_in =
                            Duration::from_millis(i64::try_from(backoff.as_millis()).unwrap_or(i64::MAX));
                        telemetry.tell(Notice::StoreUnreachable { why, again_in });
                        tokio::time::sleep(backoff).await;
                        backoff = (backoff * 2).min(cap);
                        continue;
                    }
                };
                if let Message::Event(Event::Joined { adopted, .. }) = &word {
                    open_runs.adopted(adopted);
                }
                if let Message::Event(Event::Joined { adopted, .. }) = &word
                    && !adopted.is_empty()
                {
                    telemetry.tell(Notice::RunsAdopted { n_runs: adopted.len() });
                }
                let _ = inbox.send(word).await;
                return;
            }
        });
    }
}

async fn join_once(
    store: &AnyStore,
    (exec, pings): (&Router, &Pings),
    spec: SessionSpec,
    began_at: BootTime,
    timings: Timings,
    is_leased: bool,
    is_drained: bool,
) -> Result<Message, StoreDown> {
    let session = spec.id;
    point("join.asked");
    match store.join(spec, timings).await? {
        Joined::OtherTimings(theirs) => Ok(Message::OtherTimings(theirs)),
        Joined::Welcome { epoch, is_open, now } => {
            point("join.answered");
            if is_drained {
                store.drain(session, true).await?;
            }
            let adopted = store.adopt(session).await?;
            point("adopt.answered");
            // Runs at a broker are not watched by a node.
            let ours: Vec<_> = adopted.iter().filter(|it| it.phase != RunPhase::Published).cloned().collect();
            let keys: BTreeSet<JobKey> = ours.iter().map(|it| it.key.clone()).collect();
            let jobs = store.jobs_of(keys.into_iter().collect()).await?;
            for run in &ours {
                if let Some(row) = jobs.iter().find(|it| it.job.key == run.key) {
                    pings.follow(run.run, &row.job);
                }
            }
            exec.adopt(&ours, &jobs, is_leased).await;
            point("adopt.done");
            Ok(Message::Event(Event::Joined { session, began_at, epoch, is_open, store_now: now, adopted }))
        }
    }
}

/// What came of the attempt to keep the result of a run that was given up.
enum LateResult {
    Kept(JobKey),
    /// The run ended otherwise, or its record is gone.
    NotNeeded,
    /// The store did not answer, or the run has not been given up yet.
    TryAgain,
}

async fn keep_late_result(
    store: &AnyStore,
    run: RunId,
    end: RunEnd,
    report: Option<Arc<RunReport>>,
) -> LateResult {
    let row = match store.run(run).await {
        Ok(Some(row)) if row.phase.is_open() => return LateResult::TryAgain,
        Ok(Some(row)) if row.phase == RunPhase::Ended(Outcome::Lost) => row,
        Ok(_) => return LateResult::NotNeeded,
        Err(_) => return LateResult::TryAgain,
    };
    let late = End {
        run,
        fence: row.fence,
        me: row.session,
        key: row.key.clone(),
        // It frees no job: that was done when the run was given up.
        seen: Version(0),
        by: EndBy::Owner(end),
        state: JobState::new(end.ended_at),
        records: Vec::new(),
        report,
    };
    match store.end(Epoch(0), Vec::new(), vec![late]).await {
        Ok(_) => LateResult::Kept(row.key),
        Err(_) => LateResult::TryAgain,
    }
}

/// Tells of the runs whose end was written.
fn tell_of_ends(
    telemetry: &Telemetry,
    ending: &[Option<EndingRun>],
    answer: &Result<Vec<EndAnswer>, StoreDown>,
) {
    let answers = answer.as_deref().unwrap_or_default();
    for (ending, answer) in ending.iter().zip(answers) {
        if let (Some(ending), EndAnswer::Ended(row)) = (ending, answer) {
            telemetry.run_ended(ending, &row.job.terms.place.pool);
        }
    }
}

/// The runs whose end the store has on record.
fn on_record<'a>(
    runs: &'a [RunId],
    answer: &'a Result<Vec<EndAnswer>, StoreDown>,
) -> impl Iterator<Item = RunId> + 'a {
    let answers = answer.as_deref().unwrap_or_default();
    let are_over = runs.iter().zip(answers);
    are_over.filter(|(_, it)| matches!(it, EndAnswer::Ended(_) | EndAnswer::Late)).map(|(run, _)| *run)
}

impl NodeIdentity {
    fn session(&self, id: SessionId) -> SessionSpec {
        SessionSpec {
            id,
            node: self.node.clone(),
            name: self.instance.clone(),
            boot_id: self.boot_id,
            home: self.home,
            kind: SessionKind::Node,
            pools: self.pools.clone(),
            zone_data: Zone::data_version().to_owned(),
        }
    }
}

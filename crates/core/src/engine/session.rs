//! The node's session: joining, beats, trust, watching the others, epochs, leaving.

use std::collections::BTreeMap;

use super::life::Life;
use super::poll::Poll;
use super::{Command, Engine, Now};
use crate::ids::SessionId;
use crate::lease::{BeatAnswer, Epoch, LeaseOwner, LeaseState, SessionBeat, Silent, Timings, Watcher};
use crate::notice::Notice;
use crate::rules::Rule;
use crate::store::{Beat, Fencing, RunRow, StoreDown, Watch};
use crate::time::{BootTime, Duration, Timestamp};

/// A session of this node.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// None where the store's own lock is the lease.
    pub(crate) lease: Option<SessionLease>,
    beat: Poll,
    watch: Poll,
    is_fencing: bool,
    is_opening: bool,
    epoch: Epoch,
    /// How long runs of this session were frozen, up to the last time they thawed.
    frozen_for: Duration,
    frozen_since: Option<BootTime>,
    began_at: BootTime,
}

/// The node's lease, and its view of the others'.
#[derive(Debug)]
pub(crate) struct SessionLease {
    timings: Timings,
    pub(crate) owner: LeaseOwner,
    watcher: Watcher,
}

impl Session {
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn lease_state(&self, now: BootTime) -> LeaseState {
        match &self.lease {
            Some(lease) => lease.owner.lease_state(now),
            None => LeaseState::Trusted { until: BootTime::MAX },
        }
    }

    pub(crate) fn may_claim(&self, now: BootTime) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.owner.may_claim(now))
    }

    /// Whether another session's beat has stood still for as long as it trusts its own lease.
    pub(crate) fn is_in_doubt(&self, now: BootTime, other: SessionId) -> bool {
        self.lease.as_ref().is_some_and(|lease| {
            let since = lease.watcher.beat_seen_at(other);
            since.is_some_and(|since| lease.timings.self_fence() <= now - since)
        })
    }

    fn is_open(&self) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.owner.reign().is_some_and(crate::lease::Reign::is_open))
    }

    /// How long runs of this session could execute, up to now.
    pub(crate) fn worked(&self, now: BootTime) -> Duration {
        let frozen_now = self.frozen_since.map_or(Duration::ZERO, |since| now - since);
        now - self.began_at - self.frozen_for - frozen_now
    }
}

impl Engine {
    pub(super) fn joined(
        &mut self,
        now: Now,
        id: SessionId,
        began_at: BootTime,
        (epoch, is_open): (Epoch, bool),
        store_now: Timestamp,
        adopted: Vec<RunRow>,
    ) {
        self.hear_time(now, began_at, store_now);
        self.is_store_up = true;
        let rules = self.settings.rules;
        // Runs that were taken over may be frozen, and in a young epoch another node may have been given them.
        let must_wait = !adopted.is_empty() && !is_open;
        let lease = self.settings.lease.map(|timings| SessionLease {
            timings,
            owner: if must_wait { LeaseOwner::inheriting(timings) } else { LeaseOwner::new(timings) }
                .by(rules),
            watcher: Watcher::new(timings, id).by(rules),
        });
        self.life = Life::In(Session {
            id,
            lease,
            beat: Poll::default(),
            watch: Poll::default(),
            is_fencing: false,
            is_opening: false,
            epoch,
            frozen_for: Duration::ZERO,
            frozen_since: None,
            began_at,
        });
        self.reload();
        self.adopt(now, adopted);
    }

    /// The store has news: of jobs, or of runs that were cancelled.
    pub(super) fn nudged(&mut self) {
        self.feed.poll.at_once();
        if let Some(session) = self.life.session_mut() {
            session.beat.at_once();
        }
    }

    /// Does what is due about the session: joins, leaves, or beats and watches.
    pub(super) fn keep_session(&mut self, now: Now, out: &mut Vec<Command>) {
        match self.life {
            Life::Out => self.join(out),
            Life::Joining => {}
            Life::In(_) if self.may_leave() => self.leave(out),
            Life::In(_) => self.beat_and_watch(now, out),
            Life::Lost(_) => {
                if !self.held.any_executes() && !self.is_answer_awaited() {
                    self.join(out);
                }
            }
            Life::Left(_) => {
                if !self.is_draining && !self.is_answer_awaited() {
                    self.join(out);
                }
            }
        }
    }

    fn join(&mut self, out: &mut Vec<Command>) {
        self.life = Life::Joining;
        out.push(Command::Join);
    }

    fn leave(&mut self, out: &mut Vec<Command>) {
        if let Life::In(session) = std::mem::take(&mut self.life) {
            self.life = Life::Left(session);
            out.push(Command::Leave);
        }
    }

    fn may_leave(&self) -> bool {
        // In this order: the last check looks at every run.
        self.is_draining && self.ends.is_empty() && self.asked.is_empty() && !self.held.any_executes()
    }

    fn beat_and_watch(&mut self, now: Now, out: &mut Vec<Command>) {
        let Life::In(session) = &mut self.life else { return };
        if session.beat.is_due(now.boot) {
            session.beat.asked();
            out.push(Command::Beat);
        }
        session.note_frozen(now.boot);
        let Some(lease) = &session.lease else { return };
        if session.watch.is_due(now.boot) {
            session.watch.asked();
            out.push(Command::Watch);
        }
        let Some(reign) = lease.owner.reign().copied() else { return };
        let may_open = reign.may_be_opened(now.boot, &lease.timings)
            || !self.settings.rules.hold(Rule::OpenAfterQuarantine);
        if may_open && !reign.is_open() && !session.is_opening && self.is_store_up {
            session.is_opening = true;
            out.push(Command::OpenEpoch(reign.epoch()));
        }
        let is_trusted = matches!(lease.owner.lease_state(now.boot), LeaseState::Trusted { .. });
        if !session.is_fencing && is_trusted {
            let silent = lease.watcher.silent(now.boot, &reign);
            if !silent.is_empty() {
                session.is_fencing = true;
                out.push(Command::Fence { epoch: reign.epoch(), silent });
            }
        }
    }

    /// Whether an answer is outstanding that a new session must not mistake for its own.
    fn is_answer_awaited(&self) -> bool {
        let of_session = self
            .life
            .session()
            .is_some_and(|it| it.beat.is_asked() || it.watch.is_asked() || it.is_fencing || it.is_opening);
        of_session || self.batches.is_any_open()
    }

    pub(super) fn beaten(
        &mut self,
        now: Now,
        began_at: BootTime,
        answer: Result<Beat, StoreDown>,
        out: &mut Vec<Command>,
    ) {
        let held = self.held.for_lease(&self.ends, began_at);
        let poll_every = self.settings.poll_every;
        let Some(session) = self.life.session_mut() else { return };
        let (beat_every, cap) = match &session.lease {
            Some(lease) => (lease.timings.heartbeat(), lease.timings.backoff_cap()),
            None => (poll_every, poll_every),
        };
        let (epoch, is_open, store_now, runs) = match answer {
            Err(_) => {
                session.beat.failed(now.boot, cap);
                self.is_store_up = false;
                return;
            }
            Ok(Beat::Dead) => {
                session.beat.answered(now.boot);
                return self.session_died(now, out);
            }
            Ok(Beat::Alive { epoch, is_open, now, is_draining, runs }) => {
                self.is_drained = is_draining;
                (epoch, is_open, now, runs)
            }
        };
        session.beat.answered((began_at + beat_every).max(now.boot));
        self.is_store_up = true;
        self.hear_time(now, began_at, store_now);
        let Some(session) = self.life.session_mut() else { return };
        let is_new_epoch = session.epoch < epoch;
        session.epoch = session.epoch.max(epoch);
        let was_frozen = session.lease_state(now.boot);
        let fences: BTreeMap<_, _> = runs.iter().map(|row| (row.run, row.fence)).collect();
        let verdict = match &mut session.lease {
            Some(lease) => {
                let answer = BeatAnswer::Alive { epoch, is_open, runs: fences };
                lease.owner.beat_answered(began_at, now.boot, &answer, &held)
            }
            None => crate::lease::Verdict::default(),
        };
        // Revoke first: a frozen run that is no longer ours must not thaw, not for a moment.
        self.revoke(verdict.revoke, out);
        let Some(session) = self.life.session_mut() else { return };
        let lease_state = session.lease_state(now.boot);
        if let (LeaseState::Trusted { until }, Some(_)) = (lease_state, &session.lease) {
            session.thaw(now.boot, was_frozen);
            out.push(Command::Extend { until });
        }
        if is_new_epoch {
            self.reload();
        }
        self.give_back(now, &verdict.release, &runs);
        self.stop_cancelled(now, &runs, out);
    }

    /// Others have taken over: everything of ours that still executes must stop.
    pub(super) fn session_died(&mut self, now: Now, out: &mut Vec<Command>) {
        let held = self.held.for_lease(&self.ends, now.boot);
        let Some(session) = self.life.session_mut() else { return };
        if let Some(lease) = &mut session.lease {
            lease.owner.beat_answered(now.boot, now.boot, &BeatAnswer::Dead, &held);
        }
        self.life.lose();
        out.push(Command::Notice(Notice::SessionLost { n_runs: held.len() }));
        let all = self.held.by_id.keys().copied().collect();
        self.revoke(all, out);
    }

    pub(super) fn watched(&mut self, now: Now, answer: Result<Watch, StoreDown>) {
        let Some(session) = self.life.session_mut() else { return };
        let Some(lease) = &mut session.lease else { return };
        let Ok(watch) = answer else {
            return session.watch.failed(now.boot, lease.timings.backoff_cap());
        };
        session.watch.answered(now.boot + lease.timings.probe());
        let beats: Vec<SessionBeat> =
            watch.sessions.iter().map(|row| SessionBeat { session: row.spec.id, beat: row.beat }).collect();
        lease.watcher.read(now.boot, watch.epoch, &beats);
        let seen_at = |session| lease.watcher.beat_seen_at(session);
        self.nodes.read(now.boot, &lease.timings, &watch.sessions, seen_at);
        let is_silent = |it: &SessionId| {
            let still_for = seen_at(*it).map_or(Duration::ZERO, |since| now.boot - since);
            *it != session.id && lease.timings.beat_seen_within() <= still_for
        };
        self.silent = watch.sessions.iter().map(|row| row.spec.id).filter(is_silent).collect();
        let may_release = session.is_open() && session.epoch == watch.epoch;
        self.peers = watch.sessions;
        self.watched_at = Some(watch.now);
        if may_release && self.settings.rules.hold(Rule::ReleaseOrphans) {
            self.release_orphans(now, watch.orphans);
        }
    }

    pub(super) fn fenced(
        &mut self,
        now: Now,
        silent: &[Silent],
        answer: Result<Vec<Fencing>, StoreDown>,
        out: &mut Vec<Command>,
    ) {
        let Some(session) = self.life.session_mut() else { return };
        session.is_fencing = false;
        let Ok(answers) = answer else {
            // Wait for the next reading, which shows whether it was done.
            return;
        };
        session.watch.answered(now.boot);
        let fenced = silent.iter().zip(answers).filter(|(_, answer)| *answer == Fencing::Fenced);
        let node_of = |session| {
            let row = self.peers.iter().find(|row| row.spec.id == session);
            row.map(|row| row.spec.node.clone())
        };
        out.extend(fenced.map(|(it, _)| {
            let node = node_of(it.session);
            Command::Notice(Notice::SessionFenced { session: it.session, node })
        }));
    }

    pub(super) fn epoch_opened(&mut self, now: Now, answer: &Result<bool, StoreDown>) {
        let Some(session) = self.life.session_mut() else { return };
        session.is_opening = false;
        if answer.is_ok() {
            // Beat now: the answer says whether it is open.
            session.beat.answered(now.boot);
        }
    }

    pub(super) fn session_wakes_at(&self, now: Now) -> Option<BootTime> {
        let session = match &self.life {
            Life::Out => return Some(now.boot),
            Life::Joining | Life::Lost(_) | Life::Left(_) => return None,
            Life::In(session) => session,
        };
        let beat = session.beat.wakes_at(now.boot);
        let Some(lease) = &session.lease else { return beat };
        let watch = session.watch.wakes_at(now.boot);
        let silent = lease.watcher.next_silent_at().filter(|at| now.boot < *at && !session.is_fencing);
        [beat, watch, silent].into_iter().flatten().min()
    }

    pub(super) fn work_wakes_at(&self, now: Now) -> Option<BootTime> {
        let session = self.life.session()?;
        let next = self.held.next_work()?;
        let is_trusted = matches!(session.lease_state(now.boot), LeaseState::Trusted { .. });
        is_trusted.then(|| now.boot + (next - session.worked(now.boot)).max(Duration::from_millis(1)))
    }
}

impl Session {
    /// Notes that trust has run out: the runs are frozen from now on.
    fn note_frozen(&mut self, now: BootTime) {
        if self.lease_state(now) == LeaseState::Frozen && self.frozen_since.is_none() {
            self.frozen_since = Some(now);
        }
    }

    fn thaw(&mut self, now: BootTime, was: LeaseState) {
        if let (LeaseState::Frozen, Some(since)) = (was, self.frozen_since.take()) {
            self.frozen_for = self.frozen_for + (now - since);
        }
    }
}

//! The node's session: beats, trust, watching the others, epochs, news from the store.

use std::collections::BTreeMap;

use super::{Command, Engine, Now};
use crate::ids::SessionId;
use crate::lease::{BeatAnswer, Epoch, Owner, SessionBeat, Silent, Standing, Timings, Watcher};
use crate::notice::Notice;
use crate::rules::Rule;
use crate::store::{Beat, Changes, Fencing, RunRow, StoreDown, Watch};
use crate::time::{BootTime, Duration, Timestamp};

/// Before the first pause between two questions is doubled.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A question that is asked again and again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Question {
    is_asked: bool,
    next_at: Option<BootTime>,
    n_failures: u32,
}

impl Question {
    pub(crate) fn is_due(&self, now: BootTime) -> bool {
        !self.is_asked && self.next_at.is_none_or(|at| at <= now)
    }

    pub(crate) fn asked(&mut self) {
        self.is_asked = true;
    }

    pub(crate) fn answered(&mut self, next_at: BootTime) {
        *self = Question { is_asked: false, next_at: Some(next_at), n_failures: 0 };
    }

    /// Not answered: again after a pause that doubles up to a cap.
    pub(crate) fn failed(&mut self, now: BootTime, cap: Duration) {
        let doubled = FIRST_PAUSE.as_millis() << self.n_failures.min(16);
        let pause = Duration::from_millis(doubled).min(cap);
        *self = Question { is_asked: false, next_at: Some(now + pause), n_failures: self.n_failures + 1 };
    }

    pub(crate) fn at_once(&mut self) {
        self.next_at = None;
    }

    pub(crate) fn wakes_at(&self, now: BootTime) -> Option<BootTime> {
        (!self.is_asked).then(|| self.next_at.unwrap_or(now).max(now))
    }
}

/// One life of the node in the store.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// None where the store's own lock is the lease.
    pub(crate) lease: Option<SessionLease>,
    beat: Question,
    watch: Question,
    is_fencing: bool,
    is_opening: bool,
    epoch: Epoch,
    /// How long runs of this session have stood frozen, up to the last time they thawed.
    frozen_for: Duration,
    frozen_since: Option<BootTime>,
    began_at: BootTime,
}

/// The node's lease, and its view of the others'.
#[derive(Debug)]
pub(crate) struct SessionLease {
    timings: Timings,
    pub(crate) owner: Owner,
    watcher: Watcher,
}

impl Session {
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn standing(&self, now: BootTime) -> Standing {
        match &self.lease {
            Some(lease) => lease.owner.standing(now),
            None => Standing::Trusted { until: BootTime::MAX },
        }
    }

    pub(crate) fn may_claim(&self, now: BootTime) -> bool {
        self.lease.as_ref().is_none_or(|lease| lease.owner.may_claim(now))
    }

    fn is_dead(&self, now: BootTime) -> bool {
        self.standing(now) == Standing::Dead
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
        self.is_joining = false;
        self.is_store_up = true;
        let rules = self.settings.rules;
        // What was taken over may be frozen, and in a young epoch nobody knows who else was given it.
        let must_wait = !adopted.is_empty() && !is_open;
        let lease = self.settings.lease.map(|timings| SessionLease {
            timings,
            owner: if must_wait { Owner::inheriting(timings) } else { Owner::new(timings) }.by(rules),
            watcher: Watcher::new(timings, id).by(rules),
        });
        self.session = Some(Session {
            id,
            lease,
            beat: Question::default(),
            watch: Question::default(),
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

    /// Everything is to be read again.
    fn reload(&mut self) {
        self.cursor = None;
        self.is_loaded = false;
        // What was asked before would go on from where nobody is any more.
        self.is_answer_void = self.changes.is_asked;
        self.changes.at_once();
        self.forget_jobs();
    }

    /// The store has news: of jobs, and of runs that someone wants to end.
    pub(super) fn nudged(&mut self) {
        self.changes.at_once();
        if let Some(session) = &mut self.session {
            session.beat.at_once();
        }
    }

    pub(super) fn keep_session(&mut self, now: Now, out: &mut Vec<Command>) {
        // Looked at in this order: there may be many ends, and all runs that are over are looked through.
        let is_done =
            self.is_draining && self.ends.is_empty() && self.asked.is_empty() && !self.held.any_executes();
        let Some(session) = &mut self.session else {
            if !self.is_joining && !self.has_left {
                self.is_joining = true;
                out.push(Command::Join);
            }
            return;
        };
        if session.is_dead(now.boot) {
            // A new life begins when nothing of the old one executes any more.
            if !self.held.any_executes() && !self.is_answer_awaited() {
                self.session = None;
                self.is_joining = true;
                out.push(Command::Join);
            }
            return;
        }
        if is_done && !self.has_left {
            self.has_left = true;
            out.push(Command::Leave);
        }
        if self.has_left {
            // Called back: a session that has left does not come back, a new one begins.
            if !self.is_draining && !self.is_answer_awaited() {
                self.has_left = false;
                self.session = None;
                self.is_joining = true;
                out.push(Command::Join);
            }
            return;
        }
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
        let is_trusted = matches!(lease.owner.standing(now.boot), Standing::Trusted { .. });
        if !session.is_fencing && is_trusted {
            let silent = lease.watcher.silent(now.boot, &reign);
            if !silent.is_empty() {
                session.is_fencing = true;
                out.push(Command::Fence { epoch: reign.epoch(), silent });
            }
        }
    }

    /// Whether an answer is on its way that a new session must not mistake for its own.
    fn is_answer_awaited(&self) -> bool {
        let of_session = self
            .session
            .as_ref()
            .is_some_and(|it| it.beat.is_asked || it.watch.is_asked || it.is_fencing || it.is_opening);
        of_session || 0 < self.n_claiming || self.is_ending || self.is_settling
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
        let Some(session) = &mut self.session else { return };
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
        let Some(session) = &mut self.session else { return };
        let is_new_epoch = session.epoch < epoch;
        session.epoch = session.epoch.max(epoch);
        let was_frozen = session.standing(now.boot);
        let fences: BTreeMap<_, _> = runs.iter().map(|row| (row.run, row.fence)).collect();
        let verdict = match &mut session.lease {
            Some(lease) => {
                let answer = BeatAnswer::Alive { epoch, is_open, runs: fences };
                lease.owner.beat_answered(began_at, now.boot, &answer, &held)
            }
            None => crate::lease::Verdict::default(),
        };
        // First of all: what is frozen and not ours any more must not thaw, not for a moment.
        self.revoke(verdict.revoke, out);
        let Some(session) = &mut self.session else { return };
        let standing = session.standing(now.boot);
        if let (Standing::Trusted { until }, Some(_)) = (standing, &session.lease) {
            session.thaw(now.boot, was_frozen);
            out.push(Command::Extend { until });
        }
        if is_new_epoch {
            self.reload();
        }
        self.give_back(now, &verdict.release, &runs);
        self.stop_cancelled(now, &runs, out);
    }

    /// Others have taken over: whatever of ours still executes must not.
    pub(super) fn session_died(&mut self, now: Now, out: &mut Vec<Command>) {
        let held = self.held.for_lease(&self.ends, now.boot);
        let Some(session) = &mut self.session else { return };
        if let Some(lease) = &mut session.lease {
            lease.owner.beat_answered(now.boot, now.boot, &BeatAnswer::Dead, &held);
        } else {
            self.session = None;
        }
        out.push(Command::Notice(Notice::SessionLost { n_runs: held.len() }));
        let all = self.held.by_id.keys().copied().collect();
        self.revoke(all, out);
    }

    pub(super) fn watched(&mut self, now: Now, answer: Result<Watch, StoreDown>) {
        let Some(session) = &mut self.session else { return };
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
        let Some(session) = &mut self.session else { return };
        session.is_fencing = false;
        let Ok(answers) = answer else {
            // Not before the next reading: by then it is known whether it was done.
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
        let Some(session) = &mut self.session else { return };
        session.is_opening = false;
        if answer.is_ok() {
            // The next beat tells whether it is open.
            session.beat.answered(now.boot);
        }
    }

    pub(super) fn ask_changes(&mut self, now: Now, out: &mut Vec<Command>) {
        let is_alive =
            self.session.as_ref().is_some_and(|session| !session.is_dead(now.boot)) && !self.has_left;
        if is_alive && self.is_store_up && self.changes.is_due(now.boot) {
            self.changes.asked();
            out.push(Command::Changes(self.cursor));
        }
    }

    pub(super) fn changed(&mut self, now: Now, answer: Result<Changes, StoreDown>) {
        if std::mem::take(&mut self.is_answer_void) {
            return self.changes.answered(now.boot);
        }
        let cap = self.settings.lease.map_or(self.settings.poll_every, |it| it.backoff_cap());
        match answer {
            Err(_) => self.changes.failed(now.boot, cap),
            Ok(Changes::Reset) => {
                self.changes.answered(now.boot);
                self.reload();
            }
            Ok(Changes::Rows { rows, next, is_last }) => {
                let pause = if is_last { self.settings.poll_every } else { Duration::ZERO };
                self.changes.answered(now.boot + pause);
                // Of an epoch that we have not heard of, or that is over.
                if self.session.as_ref().is_some_and(|session| session.epoch() != next.epoch) {
                    return;
                }
                let time = self.time(now);
                for row in &rows {
                    self.take_in(row, time);
                }
                self.cursor = Some(next);
                if is_last && !self.is_loaded {
                    self.is_loaded = true;
                    self.complete_adopted(now);
                }
            }
        }
    }

    pub(super) fn session_wakes_at(&self, now: Now) -> Option<BootTime> {
        let Some(session) = &self.session else {
            return (!self.is_joining && !self.has_left).then_some(now.boot);
        };
        if session.is_dead(now.boot) || self.has_left {
            return None;
        }
        let beat = session.beat.wakes_at(now.boot);
        let Some(lease) = &session.lease else { return beat };
        let watch = session.watch.wakes_at(now.boot);
        let silent = lease.watcher.next_silent_at().filter(|at| now.boot < *at && !session.is_fencing);
        [beat, watch, silent].into_iter().flatten().min()
    }

    pub(super) fn changes_wake_at(&self, now: Now) -> Option<BootTime> {
        let is_alive =
            self.session.as_ref().is_some_and(|session| !session.is_dead(now.boot)) && !self.has_left;
        self.changes.wakes_at(now.boot).filter(|_| is_alive && self.is_store_up)
    }

    pub(super) fn work_wakes_at(&self, now: Now) -> Option<BootTime> {
        let session = self.session.as_ref()?;
        let next = self.held.next_work()?;
        let is_trusted = matches!(session.standing(now.boot), Standing::Trusted { .. });
        is_trusted.then(|| now.boot + (next - session.worked(now.boot)).max(Duration::from_millis(1)))
    }
}

impl Session {
    /// Trust has run out since we last looked: the runs stand still since then.
    fn note_frozen(&mut self, now: BootTime) {
        if self.standing(now) == Standing::Frozen && self.frozen_since.is_none() {
            self.frozen_since = Some(now);
        }
    }

    fn thaw(&mut self, now: BootTime, was: Standing) {
        if let (Standing::Frozen, Some(since)) = (was, self.frozen_since.take()) {
            self.frozen_for = self.frozen_for + (now - since);
        }
    }
}

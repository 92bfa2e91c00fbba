//! A run that executes: frozen and thawed, terminated and killed, until nothing of it is left.
//!
//! Everything here is a step: it does what is due by now and says when the next one is due. Nothing waits, so the end of
//! a lease, a message and output are each noticed at once.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};

use super::lock::JobLock;
use super::tree::{ProcessTree, WaitResult};
use crate::target::command::order::Bounds;
use crate::target::command::protocol::FromShim;

/// How long processes that a run leaves behind may take to end after SIGTERM.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// First and longest pause between two checks of something that is expected at any moment.
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(50);

/// How often a freeze is checked before anything else gets its turn.
const HALT_LOOKS: u32 = 3;

/// First and longest pause between two checks of a frozen run. Another process might resume it, most likely soon: a
/// tool that has stopped many processes resumes them one by one.
const FROZEN_LOOK_MIN: Duration = Duration::from_millis(20);
const FROZEN_LOOK_MAX: Duration = Duration::from_secs(1);

/// First and longest pause between two samples of memory, and of children that were left behind.
const SAMPLE_MIN: Duration = Duration::from_millis(100);
const SAMPLE_MAX: Duration = Duration::from_mins(1);

/// A run that has begun and has not ended.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) began_at: BootTime,
    bounds: Bounds,
    tree: ProcessTree,
    /// Held until nothing of the run is left.
    _lock: JobLock,
    /// `None` once it has ended and was waited for. Until then its pid, and that of its group, are not reused.
    first: Option<FirstProcess>,
    /// The group of the first process, also after its end.
    group: Pid,
    exit: Option<ProcessExit>,
    /// Why it was made to end. Without this, its exit code decides.
    forced: Option<ForcedEnd>,
    freeze: Freeze,
    frozen_for: Duration,
    ending: Ending,
    sample_at: BootTime,
    sample_pause: Duration,
    max_rss_kib: Option<u64>,
    /// Whether its first process was still alive at the end of its grace.
    ignored_term: bool,
    /// The names of processes that outlived the first one.
    left_behind: Vec<String>,
    is_empty: bool,
}

#[derive(Debug)]
struct FirstProcess {
    pid: Pid,
    pidfd: OwnedFd,
}

/// How the first process of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessExit {
    pub(super) code: i32,
    pub(super) signal: Option<i32>,
}

/// Why a run was made to end, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForcedEnd {
    pub(super) outcome: Outcome,
    pub(super) reason: EndReason,
    /// The limit that it exceeded, if the shim itself enforces it.
    pub(super) limit: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freeze {
    No,
    /// Everything gets SIGSTOP; whether it has stopped is checked again.
    Stopping {
        since: BootTime,
        look_at: BootTime,
        pause: Duration,
    },
    /// Nothing executes.
    Frozen {
        since: BootTime,
        look_at: BootTime,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    /// It got SIGTERM, and gets another at half time. Processes outside its group get one when the first process is
    /// gone: until then, ending them is its own task.
    Terminating {
        again_at: Option<BootTime>,
        kill_at: BootTime,
        are_all_signalled: bool,
    },
    /// It is being killed.
    Killing {
        since: BootTime,
        is_reported: bool,
    },
}

/// What is known of a run after its last process has ended.
#[derive(Clone, Debug)]
pub(super) struct RunSummary {
    pub(super) exit: Option<ProcessExit>,
    pub(super) forced: Option<ForcedEnd>,
    pub(super) frozen_for: Duration,
    pub(super) max_rss_kib: Option<u64>,
    pub(super) ignored_term: bool,
    pub(super) left_behind: Vec<String>,
}

impl LiveRun {
    pub(super) fn new(
        first: Pid,
        pidfd: OwnedFd,
        tree: ProcessTree,
        lock: JobLock,
        bounds: Bounds,
        now: BootTime,
    ) -> LiveRun {
        LiveRun {
            began_at: now,
            bounds,
            tree,
            _lock: lock,
            first: Some(FirstProcess { pid: first, pidfd }),
            group: first,
            exit: None,
            forced: None,
            freeze: Freeze::No,
            frozen_for: Duration::ZERO,
            ending: Ending::No,
            sample_at: now + SAMPLE_MIN,
            sample_pause: SAMPLE_MIN,
            max_rss_kib: None,
            ignored_term: false,
            left_behind: Vec::new(),
            is_empty: false,
        }
    }

    /// Whether its last process has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Becomes readable when the first process has ended.
    pub(super) fn first(&self) -> Option<BorrowedFd<'_>> {
        self.first.as_ref().map(|it| it.pidfd.as_fd())
    }

    /// The messages for a scheduler that has just connected.
    pub(super) fn report(&self) -> Vec<FromShim> {
        let mut messages = vec![FromShim::Started(self.began_at)];
        if let Freeze::Frozen { since, .. } = self.freeze {
            messages.push(FromShim::Frozen(since));
        }
        if let Ending::Killing { is_reported: true, .. } = self.ending {
            messages.push(FromShim::Unkillable);
        }
        messages
    }

    /// Sums the run up after its end.
    pub(super) fn summary(self, now: BootTime) -> RunSummary {
        let halted =
            if let Freeze::Frozen { since, .. } = self.freeze { now - since } else { Duration::ZERO };
        RunSummary {
            exit: self.exit,
            forced: self.forced,
            frozen_for: self.frozen_for + halted,
            max_rss_kib: self.max_rss_kib,
            ignored_term: self.ignored_term,
            left_behind: self.left_behind,
        }
    }

    /// Does what is due by now under this lease. Returns the messages for the scheduler.
    pub(super) fn step(&mut self, now: BootTime, lease_until: Option<BootTime>) -> Vec<FromShim> {
        let mut messages = Vec::new();
        self.wait_for_children();
        if self.is_empty {
            return messages;
        }
        if lease_until.is_some_and(|until| until <= now) && self.freeze == Freeze::No {
            self.lease_is_over(now);
        }
        self.end_leftovers(now);
        self.continue_freezing(now, &mut messages);
        self.continue_ending(now, &mut messages);
        self.sample(now);
        messages
    }

    /// When the next step is due.
    pub(super) fn next_at(&self, lease_until: Option<BootTime>) -> BootTime {
        let of_lease = lease_until.filter(|_| self.freeze == Freeze::No && !self.is_being_killed());
        let of_freeze = match self.freeze {
            Freeze::Stopping { look_at, .. } | Freeze::Frozen { look_at, .. } if !self.is_being_killed() => {
                Some(look_at)
            }
            _ => None,
        };
        let of_ending = match self.ending {
            Ending::Terminating { again_at, kill_at, .. } => Some(again_at.unwrap_or(kill_at)),
            Ending::No | Ending::Killing { .. } => None,
        };
        [of_lease, of_freeze, of_ending].into_iter().flatten().fold(self.sample_at, BootTime::min)
    }

    /// The lease was extended.
    pub(super) fn extended(&mut self, now: BootTime) -> Option<FromShim> {
        if self.freeze == Freeze::No || self.is_being_killed() {
            return None;
        }
        let was_frozen = self.count_frozen(now);
        self.freeze = Freeze::No;
        self.tree.resume();
        was_frozen.then_some(FromShim::Thawed(now))
    }

    /// Ends it in good order.
    pub(super) fn stop(&mut self, now: BootTime, outcome: Outcome, grace: Duration) {
        if self.forced.is_some() || self.exit.is_some() {
            return;
        }
        self.forced = Some(ForcedEnd { outcome, reason: reason_to_stop(outcome), limit: None });
        if self.freeze != Freeze::No {
            return self.kill_all(now);
        }
        self.terminate();
        let half = Duration::from_millis(grace.as_millis() / 2);
        self.ending = Ending::Terminating {
            again_at: Some(now + half),
            kill_at: now + grace,
            are_all_signalled: false,
        };
    }

    /// Kills it, whatever was requested before.
    pub(super) fn kill(&mut self, now: BootTime, forced: ForcedEnd) {
        if self.is_being_killed() && forced.outcome != Outcome::Lost {
            return;
        }
        self.forced = Some(forced);
        self.kill_all(now);
    }

    /// Since when it is frozen, if it is.
    pub(super) fn frozen_since(&self) -> Option<BootTime> {
        if let Freeze::Frozen { since, .. } = self.freeze { Some(since) } else { None }
    }

    pub(super) fn is_being_killed(&self) -> bool {
        matches!(self.ending, Ending::Killing { .. })
    }

    fn wait_for_children(&mut self) {
        loop {
            match ProcessTree::wait() {
                WaitResult::Exited(pid, status) => {
                    if self.first.as_ref().is_some_and(|first| first.pid == pid) {
                        self.first = None;
                        self.exit = Some(ProcessExit::of(status));
                        // Look soon at what it has left behind.
                        (self.sample_at, self.sample_pause) = (self.began_at, LOOK_MIN);
                    }
                }
                WaitResult::NoneYet => return,
                WaitResult::NoChildren => {
                    self.is_empty = true;
                    return;
                }
            }
        }
    }

    fn lease_is_over(&mut self, now: BootTime) {
        match self.ending {
            // It was to end anyway, and nothing of it may execute without a lease.
            Ending::Terminating { .. } => self.kill_all(now),
            Ending::Killing { .. } => {}
            Ending::No => self.freeze = Freeze::Stopping { since: now, look_at: now, pause: LOOK_MIN },
        }
    }

    /// Ends what the first process has left behind.
    fn end_leftovers(&mut self, now: BootTime) {
        if self.first.is_some() {
            return;
        }
        match self.ending {
            Ending::No if self.freeze != Freeze::No => self.kill_all(now),
            Ending::No => {
                self.left_behind = self.tree.names();
                self.tree.terminate_all();
                let kill_at = now + LEFTOVER_GRACE;
                self.ending = Ending::Terminating { again_at: None, kill_at, are_all_signalled: true };
            }
            // They keep the whole grace: a shell may end long before the programs that it has started.
            Ending::Terminating { again_at, kill_at, are_all_signalled: false } => {
                self.tree.terminate_others(self.group);
                self.ending = Ending::Terminating { again_at, kill_at, are_all_signalled: true };
            }
            Ending::Terminating { .. } | Ending::Killing { .. } => {}
        }
    }

    fn continue_freezing(&mut self, now: BootTime, messages: &mut Vec<FromShim>) {
        match self.freeze {
            Freeze::Stopping { since, look_at, pause } if look_at <= now && !self.is_being_killed() => {
                if self.halt() {
                    self.freeze = Freeze::Frozen { since: now, look_at: now + FROZEN_LOOK_MIN };
                    messages.push(FromShim::Frozen(now));
                } else if since + self.bounds.freeze <= now {
                    let limit = Some(format!("lease.freeze_bound {}", self.bounds.freeze));
                    if self.forced.is_none() {
                        let (outcome, reason) = (Outcome::Failed, EndReason::NotFrozen);
                        self.forced = Some(ForcedEnd { outcome, reason, limit });
                    }
                    self.kill_all(now);
                } else {
                    self.freeze = Freeze::Stopping { since, look_at: now + pause, pause: longer(pause) };
                }
            }
            Freeze::Frozen { since, look_at } if look_at <= now && !self.is_being_killed() => {
                if !self.tree.is_halted() {
                    self.halt();
                }
                // Less and less often, the longer it is frozen.
                let tenth = Duration::from_millis((now - since).as_millis() / 10);
                let pause = tenth.clamp(FROZEN_LOOK_MIN, FROZEN_LOOK_MAX);
                self.freeze = Freeze::Frozen { since, look_at: now + pause };
            }
            _ => {}
        }
    }

    /// Stops everything. Returns whether it has: the first walk sends the signals, the next one sees their effect, and
    /// the last one confirms it.
    fn halt(&mut self) -> bool {
        let first = self.first.as_ref().map(|it| it.pid);
        (0..HALT_LOOKS).any(|_| self.tree.halt(first))
    }

    fn continue_ending(&mut self, now: BootTime, messages: &mut Vec<FromShim>) {
        match self.ending {
            Ending::Terminating { kill_at, .. } if kill_at <= now => {
                self.ignored_term = self.first.is_some();
                if self.first.is_none() && self.left_behind.is_empty() {
                    self.left_behind = self.tree.names();
                }
                self.kill_all(now);
            }
            Ending::Terminating { again_at: Some(again_at), kill_at, are_all_signalled }
                if again_at <= now =>
            {
                // Some programs ignore the first one.
                self.terminate();
                self.ending = Ending::Terminating { again_at: None, kill_at, are_all_signalled };
            }
            Ending::No | Ending::Terminating { .. } => {}
            Ending::Killing { since, is_reported } => {
                if self.sample_at <= now {
                    self.tree.kill();
                    self.wait_for_children();
                }
                if !is_reported && !self.is_empty && since + self.bounds.kill <= now {
                    messages.push(FromShim::Unkillable);
                    self.ending = Ending::Killing { since, is_reported: true };
                }
            }
        }
    }

    fn kill_all(&mut self, now: BootTime) {
        self.tree.kill();
        if !self.is_being_killed() {
            self.ending = Ending::Killing { since: now, is_reported: false };
        }
        (self.sample_at, self.sample_pause) = (now + LOOK_MIN, LOOK_MIN);
    }

    /// Sends SIGTERM to the first process and its group, or to what is left after it.
    fn terminate(&self) {
        match &self.first {
            Some(first) => drop(kill_process_group(first.pid, Signal::TERM)),
            None => self.tree.terminate_all(),
        }
    }

    /// Samples what sends no events, each time after a longer pause.
    fn sample(&mut self, now: BootTime) {
        if now < self.sample_at {
            return;
        }
        let is_running = self.first.is_some() && self.ending == Ending::No;
        if is_running && self.freeze == Freeze::No {
            self.max_rss_kib = self.max_rss_kib.max(self.tree.max_rss_kib());
        }
        let pause_max = if is_running { SAMPLE_MAX } else { LOOK_MAX };
        self.sample_at = now + self.sample_pause;
        self.sample_pause = (self.sample_pause * 2).min(pause_max);
    }

    fn count_frozen(&mut self, now: BootTime) -> bool {
        let since = self.frozen_since();
        if let Some(since) = since {
            self.frozen_for = self.frozen_for + (now - since);
        }
        since.is_some()
    }
}

fn reason_to_stop(outcome: Outcome) -> EndReason {
    match outcome {
        Outcome::TimedOut => EndReason::TimeLimit,
        Outcome::Blackout => EndReason::Blackout,
        Outcome::Lost => EndReason::Revoked,
        _ => EndReason::Cancelled,
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(Duration::from_millis(10))
}

impl ProcessExit {
    fn of(status: WaitStatus) -> ProcessExit {
        let signal = status.terminating_signal();
        let code = signal.map_or(status.exit_status().unwrap_or(-1), |signal| 128 + signal);
        ProcessExit { code, signal }
    }
}

//! A run that has begun: frozen and thawed, asked to end and killed, until nothing of it is left.
//!
//! Everything here is a step: what is due by now is done, and when the next step is due is said. Nothing waits, so
//! that a lease that ends, a word and output are each heard at once, whatever else is going on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};

use super::lock::Lock;
use super::tree::{Tree, Waited};
use crate::target::command::order::Bounds;
use crate::target::command::word::FromShim;

/// How long what a run leaves behind may take to end after it is asked to.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// The first and the longest pause between two looks at something that is expected at any moment.
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(50);

/// How many looks a freeze is given before anything else gets its turn.
const HALT_LOOKS: u32 = 3;

/// The first and the longest pause between two looks at a frozen run: somebody might have let it go on, and most likely
/// soon, while whatever has stopped everybody lets them go on one by one.
const FROZEN_LOOK_MIN: Duration = Duration::from_millis(20);
const FROZEN_LOOK_MAX: Duration = Duration::from_secs(1);

/// The first and the longest pause between two looks at memory, and at children that nobody waits for.
const SAMPLE_MIN: Duration = Duration::from_millis(100);
const SAMPLE_MAX: Duration = Duration::from_mins(1);

/// A run that has begun and is not over.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) began_at: BootTime,
    bounds: Bounds,
    tree: Tree,
    /// Held until nothing of the run is left.
    _lock: Lock,
    /// Until it is over and waited for. So long its number is its own, and that of its group.
    first: Option<First>,
    /// The group of the first process, also when that is gone.
    group: Pid,
    exit: Option<Exit>,
    /// What becomes of it, if that is not for its exit code to say.
    verdict: Option<Verdict>,
    freeze: Freeze,
    frozen_for: Duration,
    ending: Ending,
    sample_at: BootTime,
    sample_pause: Duration,
    max_rss_kib: Option<u64>,
    /// Whether its first process was still there when its grace was over.
    ignored_term: bool,
    /// The names of processes that outlived the first one.
    left_behind: Vec<String>,
    is_empty: bool,
}

#[derive(Debug)]
struct First {
    pid: Pid,
    pidfd: OwnedFd,
}

/// How the first process of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) signal: Option<i32>,
}

/// Why a run was made to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) reason: EndReason,
    /// The limit that it exceeded, where the shim itself watches it.
    pub(super) limit: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freeze {
    No,
    /// Everything was told to stop; whether it has is looked at again.
    Asked {
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
    /// It was asked; once more at half time, if that is still to come. Those outside its group are asked when the first
    /// process is gone: until then they are its own business.
    Asked {
        again_at: Option<BootTime>,
        kill_at: BootTime,
        are_all_asked: bool,
    },
    /// It is being killed.
    Killed {
        since: BootTime,
        is_told: bool,
    },
}

/// What is known of a run when nothing of it is left.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    pub(super) exit: Option<Exit>,
    pub(super) verdict: Option<Verdict>,
    pub(super) frozen_for: Duration,
    pub(super) max_rss_kib: Option<u64>,
    pub(super) ignored_term: bool,
    pub(super) left_behind: Vec<String>,
}

impl Run {
    pub(super) fn new(
        first: Pid,
        pidfd: OwnedFd,
        tree: Tree,
        lock: Lock,
        bounds: Bounds,
        now: BootTime,
    ) -> Run {
        Run {
            began_at: now,
            bounds,
            tree,
            _lock: lock,
            first: Some(First { pid: first, pidfd }),
            group: first,
            exit: None,
            verdict: None,
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

    /// Whether nothing of it is left.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// What becomes readable when the first process is over.
    pub(super) fn first(&self) -> Option<BorrowedFd<'_>> {
        self.first.as_ref().map(|it| it.pidfd.as_fd())
    }

    /// What to say to a scheduler that has just connected.
    pub(super) fn report(&self) -> Vec<FromShim> {
        let mut words = vec![FromShim::Started(self.began_at)];
        if let Freeze::Frozen { since, .. } = self.freeze {
            words.push(FromShim::Frozen(since));
        }
        if let Ending::Killed { is_told: true, .. } = self.ending {
            words.push(FromShim::Unkillable);
        }
        words
    }

    /// Everything is over; what is to be said of it.
    pub(super) fn gone(self, now: BootTime) -> Gone {
        let halted =
            if let Freeze::Frozen { since, .. } = self.freeze { now - since } else { Duration::ZERO };
        Gone {
            exit: self.exit,
            verdict: self.verdict,
            frozen_for: self.frozen_for + halted,
            max_rss_kib: self.max_rss_kib,
            ignored_term: self.ignored_term,
            left_behind: self.left_behind,
        }
    }

    /// Does what is due by now, under a lease until then; says what others must hear.
    pub(super) fn step(&mut self, now: BootTime, lease_until: Option<BootTime>) -> Vec<FromShim> {
        let mut words = Vec::new();
        self.wait_for_children();
        if self.is_empty {
            return words;
        }
        if lease_until.is_some_and(|until| until <= now) && self.freeze == Freeze::No {
            self.lease_is_over(now);
        }
        self.see_to_leftovers(now);
        self.go_on_freezing(now, &mut words);
        self.go_on_ending(now, &mut words);
        self.sample(now);
        words
    }

    /// When the next step is due.
    pub(super) fn next_at(&self, lease_until: Option<BootTime>) -> BootTime {
        let of_lease = lease_until.filter(|_| self.freeze == Freeze::No && !self.is_being_killed());
        let of_freeze = match self.freeze {
            Freeze::Asked { look_at, .. } | Freeze::Frozen { look_at, .. } if !self.is_being_killed() => {
                Some(look_at)
            }
            _ => None,
        };
        let of_ending = match self.ending {
            Ending::Asked { again_at, kill_at, .. } => Some(again_at.unwrap_or(kill_at)),
            Ending::No | Ending::Killed { .. } => None,
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

    /// It is to end in good order.
    pub(super) fn stop(&mut self, now: BootTime, outcome: Outcome, grace: Duration) {
        if self.verdict.is_some() || self.exit.is_some() {
            return;
        }
        self.verdict = Some(Verdict { outcome, reason: reason_to_stop(outcome), limit: None });
        if self.freeze != Freeze::No {
            return self.kill_all(now);
        }
        self.ask();
        let half = Duration::from_millis(grace.as_millis() / 2);
        self.ending =
            Ending::Asked { again_at: Some(now + half), kill_at: now + grace, are_all_asked: false };
    }

    /// It is to end at once, whatever was wanted before.
    pub(super) fn kill(&mut self, now: BootTime, verdict: Verdict) {
        if self.is_being_killed() && verdict.outcome != Outcome::Lost {
            return;
        }
        self.verdict = Some(verdict);
        self.kill_all(now);
    }

    /// How long it has been frozen by now, if it is.
    pub(super) fn frozen_since(&self) -> Option<BootTime> {
        if let Freeze::Frozen { since, .. } = self.freeze { Some(since) } else { None }
    }

    pub(super) fn is_being_killed(&self) -> bool {
        matches!(self.ending, Ending::Killed { .. })
    }

    fn wait_for_children(&mut self) {
        loop {
            match Tree::wait() {
                Waited::For(pid, status) => {
                    if self.first.as_ref().is_some_and(|first| first.pid == pid) {
                        self.first = None;
                        self.exit = Some(Exit::of(status));
                        // Whatever it has left behind is looked at soon.
                        (self.sample_at, self.sample_pause) = (self.began_at, LOOK_MIN);
                    }
                }
                Waited::Later => return,
                Waited::Empty => {
                    self.is_empty = true;
                    return;
                }
            }
        }
    }

    fn lease_is_over(&mut self, now: BootTime) {
        match self.ending {
            // It was to end anyway; nobody may run beside what is left of it.
            Ending::Asked { .. } => self.kill_all(now),
            Ending::Killed { .. } => {}
            Ending::No => self.freeze = Freeze::Asked { since: now, look_at: now, pause: LOOK_MIN },
        }
    }

    /// What the first process has left behind ends too.
    fn see_to_leftovers(&mut self, now: BootTime) {
        if self.first.is_some() {
            return;
        }
        match self.ending {
            Ending::No if self.freeze != Freeze::No => self.kill_all(now),
            Ending::No => {
                self.left_behind = self.tree.names();
                self.tree.ask_all();
                let kill_at = now + LEFTOVER_GRACE;
                self.ending = Ending::Asked { again_at: None, kill_at, are_all_asked: true };
            }
            // They keep the whole grace: a shell may be gone long before what it has started.
            Ending::Asked { again_at, kill_at, are_all_asked: false } => {
                self.tree.ask_others(self.group);
                self.ending = Ending::Asked { again_at, kill_at, are_all_asked: true };
            }
            Ending::Asked { .. } | Ending::Killed { .. } => {}
        }
    }

    fn go_on_freezing(&mut self, now: BootTime, words: &mut Vec<FromShim>) {
        match self.freeze {
            Freeze::Asked { since, look_at, pause } if look_at <= now && !self.is_being_killed() => {
                if self.halt() {
                    self.freeze = Freeze::Frozen { since: now, look_at: now + FROZEN_LOOK_MIN };
                    words.push(FromShim::Frozen(now));
                } else if since + self.bounds.freeze <= now {
                    let limit = Some(format!("lease.freeze_bound {}", self.bounds.freeze));
                    if self.verdict.is_none() {
                        let (outcome, reason) = (Outcome::Failed, EndReason::NotFrozen);
                        self.verdict = Some(Verdict { outcome, reason, limit });
                    }
                    self.kill_all(now);
                } else {
                    self.freeze = Freeze::Asked { since, look_at: now + pause, pause: longer(pause) };
                }
            }
            Freeze::Frozen { since, look_at } if look_at <= now && !self.is_being_killed() => {
                if !self.tree.stands_still() {
                    self.halt();
                }
                // Ever less often, the longer it stands.
                let tenth = Duration::from_millis((now - since).as_millis() / 10);
                let pause = tenth.clamp(FROZEN_LOOK_MIN, FROZEN_LOOK_MAX);
                self.freeze = Freeze::Frozen { since, look_at: now + pause };
            }
            _ => {}
        }
    }

    /// Has everything stop, and says whether it has: one look tells them, the next sees it, the last is sure of it.
    fn halt(&mut self) -> bool {
        let first = self.first.as_ref().map(|it| it.pid);
        (0..HALT_LOOKS).any(|_| self.tree.halt(first))
    }

    fn go_on_ending(&mut self, now: BootTime, words: &mut Vec<FromShim>) {
        match self.ending {
            Ending::Asked { kill_at, .. } if kill_at <= now => {
                self.ignored_term = self.first.is_some();
                if self.first.is_none() && self.left_behind.is_empty() {
                    self.left_behind = self.tree.names();
                }
                self.kill_all(now);
            }
            Ending::Asked { again_at: Some(again_at), kill_at, are_all_asked } if again_at <= now => {
                // Some take the first as a hint, and only the second as an order.
                self.ask();
                self.ending = Ending::Asked { again_at: None, kill_at, are_all_asked };
            }
            Ending::No | Ending::Asked { .. } => {}
            Ending::Killed { since, is_told } => {
                if self.sample_at <= now {
                    self.tree.kill();
                    self.wait_for_children();
                }
                if !is_told && !self.is_empty && since + self.bounds.kill <= now {
                    words.push(FromShim::Unkillable);
                    self.ending = Ending::Killed { since, is_told: true };
                }
            }
        }
    }

    fn kill_all(&mut self, now: BootTime) {
        self.tree.kill();
        if !self.is_being_killed() {
            self.ending = Ending::Killed { since: now, is_told: false };
        }
        (self.sample_at, self.sample_pause) = (now + LOOK_MIN, LOOK_MIN);
    }

    /// Asks the first process and its group to end, or what is left without it.
    fn ask(&self) {
        match &self.first {
            Some(first) => drop(kill_process_group(first.pid, Signal::TERM)),
            None => self.tree.ask_all(),
        }
    }

    /// Looks at what says nothing by itself, each time after a longer pause.
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

impl Exit {
    fn of(status: WaitStatus) -> Exit {
        let signal = status.terminating_signal();
        let code = signal.map_or(status.exit_status().unwrap_or(-1), |signal| 128 + signal);
        Exit { code, signal }
    }
}

//! The process tree of a run: everything below its shim. No process can leave it: one that loses its parent becomes a
//! child of the shim.
//!
//! Where the run has a cgroup, the kernel freezes and kills it as a whole. But a process can be in another cgroup than
//! its parent: `systemd-run --scope` and container tools put it there. So the tree is walked and signalled as well, until
//! a walk finds nothing more; without a cgroup that is the only way. In both cases the kernel says when the tree is empty: a
//! process without children has none below.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use super::cgroup::Cgroup;
use crate::target::command::proc::{self, ProcessIdentity, ProcessInfo};

/// Includes children that were created in unusual ways (`__WALL`).
const WAIT_ALL: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);

/// Largest number of process names that are kept.
const N_NAMES_MAX: usize = 20;

/// The tree below this process.
#[derive(Debug)]
pub(super) struct ProcessTree {
    shim: i32,
    cgroup: Option<Cgroup>,
    /// What the last walk found, if all of it was halted.
    halted: Option<Vec<ProcessIdentity>>,
    /// The processes that got SIGSTOP and no SIGCONT since.
    stopped: Vec<ProcessIdentity>,
    /// Whether we sent SIGSTOP, which only SIGCONT undoes.
    is_stopped: bool,
}

/// The result of a wait for children.
#[derive(Clone, Copy, Debug)]
pub(super) enum WaitResult {
    /// This one has ended.
    Exited(Pid, WaitStatus),
    /// All children still execute.
    NoneYet,
    /// There are no children: the tree is empty.
    NoChildren,
}

impl ProcessTree {
    pub(super) fn new(shim: Pid, cgroup: Option<Cgroup>) -> ProcessTree {
        ProcessTree {
            shim: shim.as_raw_nonzero().get(),
            cgroup,
            halted: None,
            stopped: Vec::new(),
            is_stopped: false,
        }
    }

    /// Waits for a child that has ended. Never blocks.
    pub(super) fn wait() -> WaitResult {
        loop {
            match wait(WaitOptions::NOHANG | WAIT_ALL) {
                Ok(Some((pid, status))) => return WaitResult::Exited(pid, status),
                Ok(None) => return WaitResult::NoneYet,
                Err(Errno::INTR) => {}
                Err(_) => return WaitResult::NoChildren,
            }
        }
    }

    /// Stops everything. Returns whether all of it has stopped; call it again until it has.
    ///
    /// Processes in the cgroup get SIGSTOP too, once it is frozen. That signal stays pending: it takes effect only when a
    /// process is moved to another cgroup, where it would otherwise continue.
    pub(super) fn halt(&mut self, first: Option<Pid>) -> bool {
        self.is_stopped = true;
        // A cgroup that cannot be frozen counts as no cgroup.
        let frozen = self.cgroup.as_mut().and_then(|cgroup| {
            let is_asked = cgroup.is_frozen() || cgroup.freeze().is_ok();
            is_asked.then(|| (cgroup.is_frozen(), cgroup.members()))
        });
        if let (Some(first), None, None) = (first, &self.halted, &frozen) {
            // Most runs are one process group, which one call stops as a whole.
            let _ = kill_process_group(first, Signal::STOP);
        }
        let walk = proc::below(self.shim);
        let is_inside =
            |it: &ProcessInfo| frozen.as_ref().is_some_and(|(_, inside)| inside.contains(&it.pid));
        let is_frozen =
            |it: &ProcessInfo| frozen.as_ref().is_some_and(|(is_frozen, _)| *is_frozen) && is_inside(it);
        let was_told = |it: &ProcessInfo| self.stopped.contains(&it.identity());
        let is_awake = |it: &ProcessInfo| !is_frozen(it) && !it.is_halted(was_told(it));
        // While the cgroup is not frozen yet, those inside are left to it: a signal would show to their parents.
        let must_hear = |it: &&ProcessInfo| {
            is_awake(it) && !is_inside(it) || is_frozen(it) && !it.is_over() && !was_told(it)
        };
        let unheard: Vec<ProcessInfo> = walk.members.iter().filter(must_hear).copied().collect();
        let are_all_halted = !walk.members.iter().any(is_awake);
        for it in &unheard {
            if self.signal(it, Signal::STOP) {
                self.stopped.push(it.identity());
            }
        }
        // One walk may miss a process whose parent ends meanwhile; but then the parent is missing, or has ended, in the
        // next walk. Two equal walks with everything halted have missed nothing: no process is left that could have
        // done anything between them.
        let found = (are_all_halted && !walk.is_torn)
            .then(|| walk.members.iter().map(ProcessInfo::identity).collect::<Vec<_>>());
        let is_same = found.is_some() && found == self.halted;
        self.halted = found;
        is_same
    }

    /// Whether everything that was halted still is. Checks only those processes: a halted process creates no others.
    pub(super) fn is_halted(&mut self) -> bool {
        let inside = match &mut self.cgroup {
            Some(cgroup) => {
                if cgroup.is_frozen() {
                    cgroup.members()
                } else {
                    Vec::new()
                }
            }
            None => Vec::new(),
        };
        let is_halted = |it: &ProcessIdentity| {
            it.look().is_none_or(|now| inside.contains(&now.pid) || now.is_halted(self.stopped.contains(it)))
        };
        let is_still = self.halted.as_ref().is_some_and(|members| members.iter().all(is_halted));
        if !is_still {
            // A process that was resumed has no stop signal pending, even if it waits inside the kernel again.
            self.halted = None;
            self.stopped.clear();
        }
        is_still
    }

    /// Resumes everything.
    pub(super) fn resume(&mut self) {
        self.halted = None;
        self.stopped.clear();
        // First, while the cgroup is frozen: this removes a pending stop before it takes effect.
        if std::mem::take(&mut self.is_stopped) {
            self.signal_all(Signal::CONT);
        }
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.thaw();
        }
    }

    /// Sends SIGTERM to everything.
    pub(super) fn terminate_all(&self) {
        self.signal_all(Signal::TERM);
    }

    /// Sends SIGTERM to everything outside of a group, which got it before.
    pub(super) fn terminate_others(&self, group: Pid) {
        let members = proc::below(self.shim).members;
        let is_other = |it: &&ProcessInfo| !it.is_over() && it.group != group.as_raw_nonzero().get();
        for it in members.iter().filter(is_other) {
            self.signal(it, Signal::TERM);
        }
    }

    /// Kills everything. Call it again until the tree is empty.
    pub(super) fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.kill();
            if proc::below(self.shim).members.iter().all(ProcessInfo::is_over) {
                return;
            }
        } else {
            // A stopped process creates no children while the others are killed.
            self.signal_all(Signal::STOP);
        }
        self.signal_all(Signal::KILL);
    }

    /// The names of all processes that have not ended, in the order of their pids.
    pub(super) fn names(&self) -> Vec<String> {
        let members = proc::below(self.shim).members;
        let alive = members.iter().filter(|it| !it.is_over());
        alive.take(N_NAMES_MAX).filter_map(|it| proc::name(it.pid)).collect()
    }

    /// The largest memory use of any process.
    pub(super) fn max_rss_kib(&self) -> Option<u64> {
        proc::below(self.shim).members.iter().filter_map(|it| proc::max_rss_kib(it.pid)).max()
    }

    fn signal_all(&self, signal: Signal) {
        for it in proc::below(self.shim).members.iter().filter(|it| !it.is_over()) {
            self.signal(it, signal);
        }
    }

    /// Signals a process if it is still part of the tree: its parent is the same as before, or is the shim by now.
    fn signal(&self, it: &ProcessInfo, signal: Signal) -> bool {
        it.signal(signal, |now| now.parent == it.parent || now.parent == self.shim)
    }
}

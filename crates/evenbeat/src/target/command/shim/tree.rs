//! The process tree of a run: everything below its shim. Nothing can leave it: whoever loses its parent becomes a
//! child of the shim.
//!
//! Where the run has a cgroup the kernel freezes and kills it as one. But a process can be in another cgroup than its
//! parent: `systemd-run --scope` and container tools put it there. So the tree is walked and signalled as well, until
//! nothing new turns up; without a cgroup that is all there is. Whether the tree is empty the kernel says in both
//! cases: a process without children has none below.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, wait};

use super::cgroup::Cgroup;
use crate::target::command::proc::{self, Identity, Seen};

/// Also children that were made in unusual ways.
const WAIT_ALL: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);

/// Of more processes than this the names are not kept.
const N_NAMES_MAX: usize = 20;

/// The tree below this process.
#[derive(Debug)]
pub(super) struct Tree {
    shim: i32,
    cgroup: Option<Cgroup>,
    /// What the last walk found, if all of it was halted.
    halted: Option<Vec<Identity>>,
    /// Who was told to stop, and not to go on since.
    told: Vec<Identity>,
    /// Whether signals have stopped it, which only signals undo.
    is_stopped: bool,
}

/// What waiting for children has shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waited {
    /// This one is over.
    For(Pid, WaitStatus),
    /// Those that there are go on.
    Later,
    /// There are none: the tree is empty.
    Empty,
}

impl Tree {
    pub(super) fn new(shim: Pid, cgroup: Option<Cgroup>) -> Tree {
        Tree { shim: shim.as_raw_nonzero().get(), cgroup, halted: None, told: Vec::new(), is_stopped: false }
    }

    /// Waits for one child that is over, not for one that goes on.
    pub(super) fn wait() -> Waited {
        loop {
            match wait(WaitOptions::NOHANG | WAIT_ALL) {
                Ok(Some((pid, status))) => return Waited::For(pid, status),
                Ok(None) => return Waited::Later,
                Err(Errno::INTR) => {}
                Err(_) => return Waited::Empty,
            }
        }
    }

    /// Has everything stop, and says whether all of it has. To be asked again until it does.
    ///
    /// With a cgroup, whoever is in it gets a stop signal too, once it is frozen. That signal waits: it takes effect only
    /// when somebody moves the process to another cgroup, which would otherwise set it free.
    pub(super) fn halt(&mut self, first: Option<Pid>) -> bool {
        self.is_stopped = true;
        // One that cannot be frozen is as good as none.
        let frozen = self.cgroup.as_mut().and_then(|cgroup| {
            let is_asked = cgroup.is_frozen() || cgroup.freeze().is_ok();
            is_asked.then(|| (cgroup.is_frozen(), cgroup.members()))
        });
        if let (Some(first), None, None) = (first, &self.halted, &frozen) {
            // Most runs are one group: that is one call, and all of it stops at once.
            let _ = kill_process_group(first, Signal::STOP);
        }
        let walk = proc::below(self.shim);
        let is_inside = |it: &Seen| frozen.as_ref().is_some_and(|(_, inside)| inside.contains(&it.pid));
        let is_frozen = |it: &Seen| frozen.as_ref().is_some_and(|(is_frozen, _)| *is_frozen) && is_inside(it);
        let was_told = |it: &Seen| self.told.contains(&it.identity());
        let is_awake = |it: &Seen| !is_frozen(it) && !it.is_halted(was_told(it));
        // While the cgroup is not frozen yet, those inside are left to it: a signal would show to their parents.
        let must_hear =
            |it: &&Seen| is_awake(it) && !is_inside(it) || is_frozen(it) && !it.is_over() && !was_told(it);
        let unheard: Vec<Seen> = walk.members.iter().filter(must_hear).copied().collect();
        let are_all_halted = !walk.members.iter().any(is_awake);
        for it in &unheard {
            if self.signal(it, Signal::STOP) {
                self.told.push(it.identity());
            }
        }
        // One walk may miss a process whose parent ends meanwhile; but then the parent is missing, or over, in the
        // next. Two walks that show the same, all of it halted, have missed nothing: nobody is left who could do
        // anything between them.
        let found = (are_all_halted && !walk.is_torn)
            .then(|| walk.members.iter().map(Seen::identity).collect::<Vec<_>>());
        let is_same = found.is_some() && found == self.halted;
        self.halted = found;
        is_same
    }

    /// Whether all that had stopped still stands still. A quick look, at those alone: who stands still makes no others.
    pub(super) fn stands_still(&mut self) -> bool {
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
        let is_halted = |it: &Identity| {
            it.look().is_none_or(|now| inside.contains(&now.pid) || now.is_halted(self.told.contains(it)))
        };
        let is_still = self.halted.as_ref().is_some_and(|members| members.iter().all(is_halted));
        if !is_still {
            // Whoever was let go on has forgotten what it was told, also if it waits inside the kernel again by now.
            self.halted = None;
            self.told.clear();
        }
        is_still
    }

    /// Lets everything go on.
    pub(super) fn resume(&mut self) {
        self.halted = None;
        self.told.clear();
        // First, while the cgroup is frozen: that takes back a stop that waits, and nobody will have noticed it.
        if std::mem::take(&mut self.is_stopped) {
            self.signal_all(Signal::CONT);
        }
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.thaw();
        }
    }

    /// Asks everything to end.
    pub(super) fn ask_all(&self) {
        self.signal_all(Signal::TERM);
    }

    /// Asks everything to end that is not of a group, which was asked before.
    pub(super) fn ask_others(&self, group: Pid) {
        let members = proc::below(self.shim).members;
        let is_other = |it: &&Seen| !it.is_over() && it.group != group.as_raw_nonzero().get();
        for it in members.iter().filter(is_other) {
            self.signal(it, Signal::TERM);
        }
    }

    /// Kills everything. To be called again until the tree is empty.
    pub(super) fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            let _ = cgroup.kill();
            if proc::below(self.shim).members.iter().all(Seen::is_over) {
                return;
            }
        } else {
            // Nobody who is stopped makes children while the others are killed.
            self.signal_all(Signal::STOP);
        }
        self.signal_all(Signal::KILL);
    }

    /// The names of all processes that are not over, in the order of their ids.
    pub(super) fn names(&self) -> Vec<String> {
        let members = proc::below(self.shim).members;
        let alive = members.iter().filter(|it| !it.is_over());
        alive.take(N_NAMES_MAX).filter_map(|it| proc::name(it.pid)).collect()
    }

    /// The most memory that any process was seen to use.
    pub(super) fn max_rss_kib(&self) -> Option<u64> {
        proc::below(self.shim).members.iter().filter_map(|it| proc::max_rss_kib(it.pid)).max()
    }

    fn signal_all(&self, signal: Signal) {
        for it in proc::below(self.shim).members.iter().filter(|it| !it.is_over()) {
            self.signal(it, signal);
        }
    }

    /// Signals one of the tree, if it still is one: its parent is the one that was seen, or has become the shim.
    fn signal(&self, it: &Seen, signal: Signal) -> bool {
        it.signal(signal, |now| now.parent == it.parent || now.parent == self.shim)
    }
}

//! What a process does between `fork` and `exec`, and the handling of signals. This needs unsafe code.
//!
//! After a fork only async-signal-safe calls are allowed: nothing here allocates, locks or panics. All but two are system
//! calls through `rustix`; the two that it has no stable name for, `signal` and `sigprocmask`, are declared here.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use evenbeat_core::time::BootTime;
use rustix::fs::Mode;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit, setsid,
    umask,
};

use crate::target::command::boot;
use crate::target::command::order::ResourceLimits;

/// The error of a child whose lease was over before it could begin.
pub(super) const LEASE_OVER: Errno = Errno::TIME;

/// What a child does before it becomes the program of a run.
#[derive(Debug)]
pub(super) struct Preparation {
    pub(super) shim: Pid,
    /// The lock that it keeps. The descriptor stays open for as long as the command exists.
    pub(super) lock: RawFd,
    /// Where it enters its cgroup, if it has one.
    pub(super) cgroup_procs: Option<RawFd>,
    /// Descriptors that were left open by accident.
    pub(super) strays: Vec<RawFd>,
    pub(super) limits: ResourceLimits,
    pub(super) umask: Mode,
    pub(super) lease_until: Option<BootTime>,
}

/// Has a command prepare its process like that.
pub(super) fn prepare(command: &mut Command, with: Preparation) {
    // SAFETY: the closure makes system calls and nothing else; it does not allocate, lock or panic. The vector in it
    // was filled before and is only read.
    unsafe { command.pre_exec(move || Ok(with.carry_out()?)) };
}

impl Preparation {
    fn carry_out(&self) -> Result<(), Errno> {
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(self.shim) {
            // The shim died before the line above, so its death would not kill us.
            return Err(Errno::SRCH);
        }
        if let Some(procs) = self.cgroup_procs {
            // SAFETY: the descriptor was open in the parent when this process was forked, and nothing has closed it.
            rustix::io::write(unsafe { BorrowedFd::borrow_raw(procs) }, b"0")?;
        }
        limit(Resource::Core, Some(0))?;
        limit(Resource::Nofile, self.limits.n_files)?;
        limit(Resource::As, self.limits.address_space)?;
        limit(Resource::Nproc, self.limits.n_processes)?;
        umask(self.umask);
        for stray in &self.strays {
            // SAFETY: a descriptor that is closed by now gives an error, which does no harm.
            let _ = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(*stray) }, FdFlags::CLOEXEC);
        }
        // SAFETY: as for the cgroup.
        fcntl_setfd(unsafe { BorrowedFd::borrow_raw(self.lock) }, FdFlags::empty())?;
        every_signal(SIG_DFL);
        // The last check of the lease, as close to the first instruction of the run as possible.
        match self.lease_until {
            Some(until) if until <= boot::now() => Err(LEASE_OVER),
            _ => Ok(()),
        }
    }
}

fn limit(what: Resource, to: Option<u64>) -> Result<(), Errno> {
    let Some(to) = to else { return Ok(()) };
    // A limit that we may not raise stays at its maximum.
    let most = getrlimit(what).maximum.map_or(to, |most| most.min(to));
    setrlimit(what, Rlimit { current: Some(most), maximum: Some(most) })
}

/// Lets nothing but SIGKILL end this process, and lets it wait for its children, whatever its parent had set.
///
/// A machine that shuts down sends SIGTERM to every process. The run gets its own and ends in its own way; if the shim
/// ended too, it would kill the run.
pub(super) fn ignore_signals() {
    every_signal(SIG_IGN);
    // SAFETY: see `every_signal`. If SIGCHLD were ignored, the kernel would reap our children.
    unsafe { signal(Signal::CHILD.as_raw(), SIG_DFL) };
}

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_SETMASK: c_int = 2;
const N_SIGNALS: c_int = 64;

/// Sets the handling of every signal, and blocks none.
fn every_signal(how: usize) {
    let faults =
        [Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE, Signal::TRAP, Signal::SYS, Signal::ABORT];
    for no in 1..=N_SIGNALS {
        let is_fault = faults.iter().any(|it| it.as_raw() == no);
        if how == SIG_DFL || !is_fault {
            // SAFETY: POSIX allows this call after a fork. No handler is set that could run code; signals that cannot
            // be set give an error, which does no harm.
            unsafe { signal(no, how) };
        }
    }
    let none = [0_u64; 16];
    // SAFETY: as above. A set of signals is 1,024 bits on Linux, and all bits clear is the empty one.
    unsafe { sigprocmask(SIG_SETMASK, (&raw const none).cast(), std::ptr::null_mut()) };
}

unsafe extern "C" {
    fn signal(no: c_int, handler: usize) -> usize;
    fn sigprocmask(how: c_int, set: *const u64, old: *mut u64) -> c_int;
}

/// Whether a command was not started because its lease was over.
pub(super) fn was_lease_over(error: &io::Error) -> bool {
    error.raw_os_error() == Some(LEASE_OVER.raw_os_error())
}

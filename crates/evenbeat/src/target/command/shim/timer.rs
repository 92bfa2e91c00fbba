//! The timer of a shim, on the clock that also counts the time a machine is suspended.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::time::BootTime;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::target::command::boot;

/// A timer that fires once.
#[derive(Debug)]
pub(super) struct TimerFd {
    fd: OwnedFd,
    set_for: Option<BootTime>,
}

impl TimerFd {
    pub(super) fn new() -> io::Result<TimerFd> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(TimerFd { fd: timerfd_create(TimerfdClockId::Boottime, flags)?, set_for: None })
    }

    /// Sets the instant at which it fires. Replaces the one before.
    pub(super) fn set(&mut self, at: Option<BootTime>) -> io::Result<()> {
        if at == self.set_for {
            return Ok(());
        }
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The kernel takes zero as never.
        let it_value = at.map_or(never, |at| boot::to_timespec(at.max(BootTime::from_millis(1))));
        let spec = Itimerspec { it_interval: never, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec)?;
        self.set_for = at;
        Ok(())
    }

    /// Acknowledges that it has fired. It is silent until it is set again.
    pub(super) fn acknowledge(&mut self) {
        let mut n_times = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut n_times);
        self.set_for = None;
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

//! The one timer of a shim, on the clock that counts time spent asleep too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::time::BootTime;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::target::command::boot;

/// Goes off at one instant.
#[derive(Debug)]
pub(super) struct Timer {
    fd: OwnedFd,
    set_for: Option<BootTime>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer { fd: timerfd_create(TimerfdClockId::Boottime, flags)?, set_for: None })
    }

    /// Has it go off then, and not at any instant that was set before. What it said before is forgotten.
    pub(super) fn set(&mut self, at: Option<BootTime>) -> io::Result<()> {
        if at == self.set_for {
            return Ok(());
        }
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The beginning of time means never to the kernel.
        let it_value = at.map_or(never, |at| boot::to_timespec(at.max(BootTime::from_millis(1))));
        let spec = Itimerspec { it_interval: never, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &spec)?;
        self.set_for = at;
        Ok(())
    }

    /// It has gone off, and is silent until it is set again.
    pub(super) fn has_gone_off(&mut self) {
        let mut n_times = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut n_times);
        self.set_for = None;
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

//! Waiting for an instant of the boot clock, and noticing when the wall clock is set.
//!
//! The runtime's own timers stand still while a machine sleeps; these do not.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;

use evenbeat_core::engine::Now;
use evenbeat_core::time::BootTime;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use super::{Clock, Source};

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Further away than anybody waits, and not so far that the kernel would mind.
const FAR: Timespec = Timespec { tv_sec: 4_000_000_000, tv_nsec: 0 };

/// One alarm, by the boot clock of a [`Clock`].
#[derive(Debug)]
pub(crate) enum Timer {
    /// By the machine's.
    System(BootTimer),
    /// By one that a test drives.
    Manual(watch::Receiver<Now>),
}

impl Timer {
    /// Must be called within the runtime.
    pub(crate) fn new(clock: &Clock) -> io::Result<Timer> {
        match &clock.inner.source {
            Source::System => BootTimer::new().map(Timer::System),
            Source::Manual(now) => Ok(Timer::Manual(now.subscribe())),
        }
    }

    /// Waits until then; forever if there is no such instant. Dropping the future and asking again does no harm.
    pub(crate) async fn until(&mut self, at: Option<BootTime>) -> io::Result<()> {
        match (self, at) {
            (Timer::System(timer), at) => timer.until(at).await,
            (Timer::Manual(now), Some(at)) => {
                // A clock that is gone comes to no other instant.
                if now.wait_for(|now| at <= now.boot).await.is_err() {
                    pending::<()>().await;
                }
                Ok(())
            }
            (Timer::Manual(_), None) => pending().await,
        }
    }
}

/// One alarm on the machine's boot clock.
#[derive(Debug)]
pub(crate) struct BootTimer {
    fd: AsyncFd<OwnedFd>,
    armed_at: Option<BootTime>,
}

impl BootTimer {
    /// Must be called within the runtime.
    fn new() -> io::Result<BootTimer> {
        Ok(BootTimer { fd: made(TimerfdClockId::Boottime)?, armed_at: None })
    }

    async fn until(&mut self, at: Option<BootTime>) -> io::Result<()> {
        if at != self.armed_at {
            self.armed_at = at;
            // A zero alarm would disarm the timer.
            let at = at.map_or(ZERO, |at| timespec(at.as_millis().max(1)));
            set(&self.fd, at, TimerfdTimerFlags::ABSTIME)?;
        }
        loop {
            let mut ready = self.fd.readable().await?;
            match rustix::io::read(self.fd.get_ref(), &mut [0; 8]) {
                Ok(_) => {
                    self.armed_at = None;
                    return Ok(());
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Notices when the wall clock is set.
#[derive(Debug)]
pub(crate) struct WallSteps {
    /// None for a clock that a test drives: it moves on, and is never set.
    fd: Option<AsyncFd<OwnedFd>>,
}

impl WallSteps {
    /// Must be called within the runtime.
    pub(crate) fn new(clock: &Clock) -> io::Result<WallSteps> {
        if matches!(clock.inner.source, Source::Manual(_)) {
            return Ok(WallSteps { fd: None });
        }
        let fd = made(TimerfdClockId::Realtime)?;
        arm_for_steps(&fd)?;
        Ok(WallSteps { fd: Some(fd) })
    }

    /// Waits until it is set. Dropping the future and asking again does no harm.
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        let Some(fd) = &self.fd else { return pending().await };
        loop {
            let mut ready = fd.readable().await?;
            match rustix::io::read(fd.get_ref(), &mut [0; 8]) {
                Err(Errno::CANCELED) => return arm_for_steps(fd),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Ok(_) => arm_for_steps(fd)?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn arm_for_steps(fd: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    match set(fd, FAR, flags) {
        // It was set while we looked away: then there is something to tell, and the alarm stands.
        Err(error) if error.raw_os_error() == Some(Errno::CANCELED.raw_os_error()) => Ok(()),
        done => done,
    }
}

fn made(clock: TimerfdClockId) -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(clock, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // SAFETY: an `OwnedFd` is open for as long as it lives, and it is never taken out of the `AsyncFd`.
    #[expect(unsafe_code, reason = "the runtime cannot know that a descriptor stays open")]
    let fd = unsafe { AsyncFd::register(timer)? };
    Ok(fd)
}

fn set(fd: &AsyncFd<OwnedFd>, at: Timespec, flags: TimerfdTimerFlags) -> io::Result<()> {
    timerfd_settime(fd.get_ref(), flags, &Itimerspec { it_interval: ZERO, it_value: at })?;
    Ok(())
}

fn timespec(millis: i64) -> Timespec {
    Timespec { tv_sec: millis / 1_000, tv_nsec: millis % 1_000 * 1_000_000 }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::{Duration, Timestamp};

    use super::*;

    #[tokio::test]
    async fn an_alarm_goes_off_at_its_instant_and_can_be_put_off_or_brought_forward() {
        let clock = Clock::system();
        let mut timer = Timer::new(&clock).unwrap();
        let far = clock.boot() + Duration::from_hours(1);
        tokio::select! {
            biased;
            it = timer.until(Some(far)) => panic!("an hour is not over: {it:?}"),
            () = tokio::task::yield_now() => {}
        }
        let near = clock.boot() + Duration::from_millis(5);
        timer.until(Some(near)).await.unwrap();
        assert!(near <= clock.boot());
        let past = BootTime::from_millis(0);
        timer.until(Some(past)).await.unwrap();
        // Asked once more for the same instant, it goes off once more.
        timer.until(Some(past)).await.unwrap();
    }

    #[tokio::test]
    async fn no_instant_is_never() {
        let clock = Clock::system();
        let mut timer = Timer::new(&clock).unwrap();
        timer.until(Some(clock.boot())).await.unwrap();
        tokio::select! {
            biased;
            it = timer.until(None) => panic!("no alarm is set: {it:?}"),
            () = tokio::task::yield_now() => {}
        }
    }

    #[tokio::test]
    async fn a_wall_clock_that_nobody_sets_says_nothing() {
        let mut steps = WallSteps::new(&Clock::system()).unwrap();
        tokio::select! {
            biased;
            it = steps.next() => panic!("it was not set: {it:?}"),
            () = tokio::task::yield_now() => {}
        }
    }

    #[tokio::test]
    async fn an_alarm_on_a_manual_clock_waits_for_the_test() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut timer = Timer::new(&clock).unwrap();
        let at = clock.boot() + Duration::from_mins(1);
        tokio::select! {
            biased;
            it = timer.until(Some(at)) => panic!("a minute is not over: {it:?}"),
            () = tokio::task::yield_now() => {}
        }
        clock.advance(Duration::from_mins(1));
        timer.until(Some(at)).await.unwrap();
    }
}

//! The only place that reads a clock. Everything else is handed the time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use evenbeat_core::engine::Now;
use evenbeat_core::time::{BootTime, Duration, Steady, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// One for the process: whatever is written down by one part of it is never in another's future.
static STEADY: Mutex<Steady> = Mutex::new(Steady::not_before(Timestamp::UNIX_EPOCH));

/// The time: the wall clock's, but if that is set back, time goes on ([`Steady`]).
pub(crate) fn now() -> Timestamp {
    both().wall
}

/// Time had come so far already, as somebody has written down who was here before.
pub(crate) fn not_before(told: Timestamp) {
    let mut steady = steady();
    *steady = Steady::not_before(told.max(steady.tell(wall(), boot())));
}

/// How far the wall clock is behind the time: it was set back, and is waited for.
pub(crate) fn behind() -> Duration {
    steady().behind()
}

fn steady() -> MutexGuard<'static, Steady> {
    STEADY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wall clock, cut off to whole milliseconds.
pub(crate) fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_millis(millis)
}

/// How long this machine has been up, time asleep included: the clock that leases go by. It never steps.
pub(crate) fn boot() -> BootTime {
    let since_boot = clock_gettime(ClockId::Boottime);
    BootTime::from_millis(since_boot.tv_sec * 1_000 + since_boot.tv_nsec / 1_000_000)
}

/// Both, for the engine.
pub(crate) fn both() -> Now {
    let mut steady = steady();
    // Under the lock: else the later of two readings could be told first.
    let boot = boot();
    Now { wall: steady.tell(wall(), boot), boot }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_is_the_kernels_own_and_never_goes_back() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: i64 = uptime.split('.').next().unwrap().parse().unwrap();
        let first = boot();
        assert!(seconds * 1_000 <= first.as_millis(), "{first:?} and {uptime}");
        assert!((0..1_000).map(|_| boot()).is_sorted());
    }
}

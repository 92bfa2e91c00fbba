//! The only place that reads a clock. Everything else is handed the time.

use std::time::{SystemTime, UNIX_EPOCH};

use evenbeat_core::engine::Now;
use evenbeat_core::time::{BootTime, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The wall clock's time, cut off to whole milliseconds.
pub(crate) fn now() -> Timestamp {
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
    Now { wall: now(), boot: boot() }
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

//! The clock that leases use, and the boot of the machine that it counts from.

use std::sync::OnceLock;

use evenbeat_core::time::BootTime;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The time of the boot clock, rounded down to milliseconds.
pub fn now() -> BootTime {
    to_boot(clock_gettime(ClockId::Boottime))
}

/// The id of the boot that the boot clock counts from. Read once: a process that runs out of file descriptors later must
/// not take its own runs for those of another boot.
pub fn id() -> String {
    static ID: OnceLock<String> = OnceLock::new();
    if let Some(id) = ID.get() {
        return id.clone();
    }
    match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(id) => ID.get_or_init(|| id.trim().to_owned()).clone(),
        Err(_) => "unknown".to_owned(),
    }
}

fn to_boot(at: Timespec) -> BootTime {
    BootTime::from_millis(at.tv_sec.saturating_mul(1_000).saturating_add(at.tv_nsec / 1_000_000))
}

/// An instant as the kernel writes it.
pub(super) fn to_timespec(at: BootTime) -> Timespec {
    let millis = at.as_millis().max(0);
    Timespec { tv_sec: millis / 1_000, tv_nsec: (millis % 1_000) * 1_000_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_comes_back_from_the_kernel_as_it_was() {
        for millis in [0, 1, 999, 1_000, 86_400_001] {
            assert_eq!(to_boot(to_timespec(BootTime::from_millis(millis))), BootTime::from_millis(millis));
        }
    }

    #[test]
    fn what_was_before_the_start_is_the_start() {
        assert_eq!(to_boot(to_timespec(BootTime::from_millis(-5))), BootTime::from_millis(0));
    }
}

//! Clocks: none of them shows real time.

use evenbeat_core::engine::Now;
use evenbeat_core::time::{BootTime, Duration, Timestamp};

use crate::fact::RealTime;

const MILLION: i128 = 1_000_000;

/// The clocks of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeClock {
    /// What the boot clock said at `booted_at`.
    boot_offset: i64,
    booted_at: RealTime,
    drift_ppm: i64,
    /// What the clock on the wall says when real time is 0.
    wall_at_zero: Timestamp,
    /// Whether what should be a boot clock is a clock on the wall.
    boot_is_wall: bool,
}

impl NodeClock {
    pub(super) fn new(boot_offset: Duration, drift_ppm: i64, wall_at_zero: Timestamp) -> NodeClock {
        NodeClock {
            boot_offset: boot_offset.as_millis(),
            booted_at: RealTime(0),
            drift_ppm,
            wall_at_zero,
            boot_is_wall: false,
        }
    }

    /// The same with leases that go by the clock on the wall.
    pub(super) fn with_boot_from_wall(self) -> NodeClock {
        NodeClock { boot_is_wall: true, ..self }
    }

    /// The machine was started again.
    pub(super) fn reboot(&mut self, at: RealTime, offset: Duration) {
        (self.booted_at, self.boot_offset) = (at, offset.as_millis());
    }

    /// The clock on the wall is set.
    pub(super) fn step_wall(&mut self, by: Duration) {
        self.wall_at_zero = self.wall_at_zero + by;
    }

    pub(super) fn now(&self, at: RealTime) -> Now {
        Now { wall: self.wall(at), boot: self.boot(at) }
    }

    pub(super) fn wall(&self, at: RealTime) -> Timestamp {
        self.wall_at_zero + Duration::from_millis(at.0)
    }

    pub(super) fn boot(&self, at: RealTime) -> BootTime {
        if self.boot_is_wall {
            return BootTime::from_millis(self.wall(at).as_millis());
        }
        let passed = i128::from(at.0 - self.booted_at.0) * (MILLION + i128::from(self.drift_ppm));
        let passed = i64::try_from(passed.div_euclid(MILLION)).unwrap_or(i64::MAX);
        BootTime::from_millis(self.boot_offset.saturating_add(passed))
    }

    /// The first instant of real time at which the boot clock shows this, or has shown it already.
    pub(super) fn real(&self, boot: BootTime) -> RealTime {
        if self.boot_is_wall {
            return RealTime(boot.as_millis().saturating_sub(self.wall_at_zero.as_millis()));
        }
        let passed = i128::from(boot.as_millis().saturating_sub(self.boot_offset)) * MILLION;
        let rate = MILLION + i128::from(self.drift_ppm);
        let real = -(-passed).div_euclid(rate);
        RealTime(i64::try_from(real).unwrap_or(i64::MAX / 4).saturating_add(self.booted_at.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_reached_at_its_instant_and_not_before() {
        for drift_ppm in [-9_900, -37, 0, 400, 9_900] {
            let mut clock =
                NodeClock::new(Duration::from_millis(123_457), drift_ppm, Timestamp::from_second(9));
            clock.reboot(RealTime(77_000), Duration::from_millis(5_001));
            for millis in [5_002, 6_000, 77_777, 1_234_567] {
                let boot = BootTime::from_millis(millis);
                let at = clock.real(boot);
                assert!(boot <= clock.boot(at), "{drift_ppm}: {boot:?} at {at:?}");
                assert!(clock.boot(RealTime(at.0 - 1)) < boot, "{drift_ppm}: {boot:?} before {at:?}");
            }
        }
    }

    #[test]
    fn a_step_moves_the_wall_and_not_the_boot_clock() {
        let mut clock = NodeClock::new(Duration::ZERO, 0, Timestamp::from_second(100));
        let before = clock.now(RealTime(1_000));
        clock.step_wall(Duration::from_secs(-40));
        let after = clock.now(RealTime(1_000));
        assert_eq!(after.boot, before.boot);
        assert_eq!(after.wall, Timestamp::from_second(61));
    }
}

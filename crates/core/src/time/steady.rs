//! A wall clock that is set back, and time that does not go back with it.
//!
//! Clocks are put right by small steps all the time. If time went back with each of them, either what ran already would
//! come due again, or nothing would come due until the clock is back where it was. So time goes on, at half its speed,
//! until the clock has caught up: what is due every second is due every other second meanwhile, nothing twice and nothing
//! never. A larger step says that the clock was wrong. It is believed at once, and what was stored meanwhile is repaired.

use super::{BootTime, Duration, Timestamp};

/// The largest step back that is waited for: it is over within a minute, and nothing stored needs a repair.
pub const CLOCK_SLACK: Duration = Duration::from_secs(30);

/// Tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    told: Timestamp,
    /// The time, and since when it goes slowly, if it does.
    slow_from: Option<(Timestamp, BootTime)>,
    behind: Duration,
}

impl Steady {
    /// Time that was at least this, once.
    pub const fn not_before(told: Timestamp) -> Steady {
        Steady { told, slow_from: None, behind: Duration::ZERO }
    }

    /// The time, from what both clocks show.
    pub fn tell(&mut self, wall: Timestamp, boot: BootTime) -> Timestamp {
        let slowed = self.slow_from.map_or(self.told, |(from, since)| {
            let elapsed = (boot - since).max(Duration::ZERO);
            from + Duration::from_millis(elapsed.as_millis() / 2)
        });
        let time = self.told.max(slowed);
        if time <= wall || wall + CLOCK_SLACK < self.told {
            *self = Steady::not_before(wall);
            return wall;
        }
        self.slow_from.get_or_insert((time, boot));
        self.told = time;
        self.behind = self.told - wall;
        self.told
    }

    /// How far the wall clock was behind it when it was last told.
    pub fn behind(&self) -> Duration {
        self.behind
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000;
    const HOUR: i64 = 3_600 * SECOND;

    fn tell(steady: &mut Steady, wall: i64, boot: i64) -> i64 {
        steady.tell(Timestamp::from_millis(wall), BootTime::from_millis(boot)).as_millis()
    }

    #[test]
    fn a_small_step_back_is_waited_for_at_half_speed() {
        let mut steady = Steady::not_before(Timestamp::from_millis(0));
        assert_eq!(tell(&mut steady, 10 * HOUR, 0), 10 * HOUR);
        assert_eq!(tell(&mut steady, 10 * HOUR + 7, 7), 10 * HOUR + 7);
        // Back by 20 s: 40 s later it has caught up.
        for passed in [0, 1_000, 10_000, 40_000] {
            let time = tell(&mut steady, 10 * HOUR + 7 - 20 * SECOND + passed, 7 + passed);
            assert_eq!(time, 10 * HOUR + 7 + passed / 2, "after {passed}");
            assert_eq!(steady.behind().as_millis(), 20 * SECOND - passed / 2);
        }
        let later = 41 * SECOND;
        assert_eq!(
            tell(&mut steady, 10 * HOUR + 7 - 20 * SECOND + later, 7 + later),
            10 * HOUR + 7 + 21 * SECOND
        );
        assert_eq!(steady.behind(), Duration::ZERO);
    }

    #[test]
    fn asked_ever_so_often_it_goes_as_fast() {
        let mut steady = Steady::not_before(Timestamp::from_millis(30 * SECOND));
        let last = (0..=1_000).map(|boot| tell(&mut steady, boot, boot)).last();
        assert_eq!(last, Some(30 * SECOND + 500));
    }

    #[test]
    fn a_larger_step_back_is_believed_at_once() {
        for ahead in [30 * SECOND + 1, 2 * HOUR, 48 * HOUR, 720 * HOUR] {
            let mut steady = Steady::not_before(Timestamp::from_millis(0));
            tell(&mut steady, 1_000 * HOUR + ahead, 0);
            assert_eq!(tell(&mut steady, 1_000 * HOUR, 0), 1_000 * HOUR, "back by {ahead}");
            assert_eq!(steady.behind(), Duration::ZERO);
            assert_eq!(tell(&mut steady, 1_000 * HOUR + SECOND, SECOND), 1_000 * HOUR + SECOND);
        }
    }

    proptest! {
        /// Whatever small steps the clock makes: time never goes back, never stands for long, is never behind the clock,
        /// and is the clock's again once that is left alone.
        #[test]
        fn time_goes_on(steps in prop::collection::vec((1_i64..100_000, 0..25 * SECOND), 1..20)) {
            let mut steady = Steady::not_before(Timestamp::from_millis(0));
            let (mut boot, mut before) = (0, i64::MIN);
            for (passed, ahead) in steps {
                boot += passed;
                let wall = 100 * HOUR + boot + ahead;
                let time = tell(&mut steady, wall, boot);
                prop_assert!(before <= time && wall <= time);
                prop_assert_eq!(steady.behind().as_millis(), time - wall);
                let (wall, boot_later) = (wall + 2_000, boot + 2_000);
                before = tell(&mut steady, wall, boot_later);
                prop_assert!(time + 999 <= before && before <= time + 2_000);
                boot = boot_later;
            }
            let wall = 200 * HOUR;
            prop_assert_eq!(tell(&mut steady, wall, boot), wall);
        }
    }
}

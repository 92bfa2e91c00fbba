//! A wall clock that is set back, and time that does not go back with it.
//!
//! If it did, either what ran already would come due again, or nothing would come due until the clock is back where it
//! was. So time goes on, at half its speed, until the clock has caught up: what is due every minute is due every other
//! minute meanwhile, nothing twice and nothing never.

use super::{BootTime, Duration, Timestamp};

/// A clock that goes back further was wrong altogether, and whoever set it right wants it to be so at once.
const FURTHEST: Duration = Duration::from_days(1);

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
        if self.told <= wall || wall + FURTHEST < self.told {
            *self = Steady::not_before(wall);
            return wall;
        }
        let (from, since) = *self.slow_from.get_or_insert((self.told, boot));
        let elapsed = (boot - since).max(Duration::ZERO);
        self.told = self.told.max(from + Duration::from_millis(elapsed.as_millis() / 2));
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

    const HOUR: i64 = 3_600_000;

    fn tell(steady: &mut Steady, wall: i64, boot: i64) -> i64 {
        steady.tell(Timestamp::from_millis(wall), BootTime::from_millis(boot)).as_millis()
    }

    #[test]
    fn a_clock_that_is_set_back_is_waited_for_at_half_speed() {
        let mut steady = Steady::not_before(Timestamp::from_millis(0));
        assert_eq!(tell(&mut steady, 10 * HOUR, 0), 10 * HOUR);
        assert_eq!(tell(&mut steady, 10 * HOUR + 7, 7), 10 * HOUR + 7);
        // Back by an hour: two hours later it has caught up.
        for passed in [0, 1_000, 60_000, HOUR, 2 * HOUR] {
            let time = tell(&mut steady, 9 * HOUR + 7 + passed, 7 + passed);
            assert_eq!(time, 10 * HOUR + 7 + passed / 2, "after {passed}");
            assert_eq!(steady.behind().as_millis(), HOUR - passed / 2);
        }
        let later = 2 * HOUR + 1_000;
        assert_eq!(tell(&mut steady, 9 * HOUR + 7 + later, 7 + later), 11 * HOUR + 1_007);
        assert_eq!(steady.behind(), Duration::ZERO);
    }

    #[test]
    fn asked_ever_so_often_it_goes_as_fast() {
        let mut steady = Steady::not_before(Timestamp::from_millis(HOUR));
        let last = (0..=1_000).map(|boot| tell(&mut steady, boot, boot)).last();
        assert_eq!(last, Some(HOUR + 500));
    }

    #[test]
    fn a_clock_that_was_wrong_by_more_than_a_day_is_believed() {
        let mut steady = Steady::not_before(Timestamp::from_millis(0));
        tell(&mut steady, 1_000 * HOUR, 0);
        assert_eq!(tell(&mut steady, 975 * HOUR, 0), 975 * HOUR);
        assert_eq!(tell(&mut steady, 951 * HOUR, 0), 975 * HOUR, "a day is waited for");
    }

    proptest! {
        /// Whatever is done to the clock within a day: time never goes back, never stands for long, is never behind
        /// the clock, and is the clock's again once that is left alone.
        #[test]
        fn time_goes_on(steps in prop::collection::vec((1_i64..100_000, -20 * HOUR..20 * HOUR), 1..20)) {
            let mut steady = Steady::not_before(Timestamp::from_millis(0));
            let (mut boot, mut before) = (0, i64::MIN);
            for (passed, ahead) in steps {
                boot += passed;
                let wall = 100 * HOUR + boot + ahead.rem_euclid(20 * HOUR);
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

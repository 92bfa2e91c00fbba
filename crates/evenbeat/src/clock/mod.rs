//! The one source of time, handed to everything that needs it. Nothing else in the product reads a clock.
//!
//! A [`Clock`] knows three times: the wall clock (for people, and for what is due where a node has the store to itself), the
//! boot clock (for leases; it never steps), and the store's time (for what is due where nodes share a store). Tests drive a
//! clock of their own by hand, so several nodes can live in one process, each with its own time.

mod timer;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use evenbeat_core::engine::Now;
use evenbeat_core::time::{BootTime, Duration, Steady, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

pub(crate) use timer::{Timer, WallSteps};

/// No store has told its time yet.
const NO_OFFSET: i64 = i64::MIN;

/// The clocks of one process. Clones share everything.
#[derive(Clone)]
pub struct Clock {
    inner: Arc<ClockState>,
}

struct ClockState {
    source: Source,
    steady: Mutex<Steady>,
    /// The store's time less the boot clock, in milliseconds.
    store_offset: AtomicI64,
}

/// Where the time comes from.
enum Source {
    /// The clocks of the machine.
    System,
    /// A test, which moves the time by hand.
    Manual(watch::Sender<Now>),
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.both()).finish_non_exhaustive()
    }
}

impl Clock {
    /// The clocks of this machine.
    pub fn system() -> Clock {
        Clock::of(Source::System)
    }

    /// A clock that stands still until [`Clock::advance`] moves it.
    pub fn manual(wall: Timestamp) -> Clock {
        let now = Now { wall, boot: BootTime::from_millis(1_000) };
        Clock::of(Source::Manual(watch::channel(now).0))
    }

    fn of(source: Source) -> Clock {
        let steady = Mutex::new(Steady::not_before(Timestamp::UNIX_EPOCH));
        Clock { inner: Arc::new(ClockState { source, steady, store_offset: AtomicI64::new(NO_OFFSET) }) }
    }

    /// Lets time pass on a clock that is driven by hand; wakes the timers whose instant has come.
    ///
    /// # Panics
    /// If this is the machine's clock.
    pub fn advance(&self, by: Duration) {
        let Source::Manual(now) = &self.inner.source else { panic!("the machine's clock cannot be moved") };
        now.send_modify(|now| *now = Now { wall: now.wall + by, boot: now.boot + by });
    }

    /// The time by this node's own clock. If the wall clock is set back, time goes on ([`Steady`]).
    pub fn now(&self) -> Timestamp {
        self.both().wall
    }

    /// The time that occurrences go by: the store's where nodes share one, else the node's own.
    pub fn store_now(&self) -> Timestamp {
        let now = self.both();
        match self.inner.store_offset.load(Ordering::Relaxed) {
            NO_OFFSET => now.wall,
            offset => Timestamp::from_millis(now.boot.as_millis()) + Duration::from_millis(offset),
        }
    }

    /// How far the store's time is from the boot clock, as the engine last heard it.
    pub(crate) fn set_store_offset(&self, offset: Option<Duration>) {
        let offset = offset.map_or(NO_OFFSET, Duration::as_millis);
        self.inner.store_offset.store(offset, Ordering::Relaxed);
    }

    /// Time had come this far already, as an earlier process has written down.
    pub(crate) fn not_before(&self, told: Timestamp) {
        let mut steady = self.steady();
        let Now { wall, boot } = self.read();
        *steady = Steady::not_before(told.max(steady.tell(wall, boot)));
    }

    /// How far the wall clock is behind the time: it was set back, and is waited for.
    pub(crate) fn behind(&self) -> Duration {
        self.steady().behind()
    }

    /// The wall clock, cut off to whole milliseconds.
    pub(crate) fn wall(&self) -> Timestamp {
        self.read().wall
    }

    /// How long this machine has been up, time asleep included: the clock that leases go by. It never steps.
    pub fn boot(&self) -> BootTime {
        self.read().boot
    }

    /// Wall and boot clock in one reading, for the engine.
    pub fn both(&self) -> Now {
        let mut steady = self.steady();
        // Read under the lock: otherwise the later of two readings could be told first.
        let Now { wall, boot } = self.read();
        Now { wall: steady.tell(wall, boot), boot }
    }

    fn steady(&self) -> MutexGuard<'_, Steady> {
        self.inner.steady.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Now {
        match &self.inner.source {
            Source::System => Now { wall: wall(), boot: boot() },
            Source::Manual(now) => *now.borrow(),
        }
    }
}

fn wall() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_millis(millis)
}

fn boot() -> BootTime {
    let since_boot = clock_gettime(ClockId::Boottime);
    BootTime::from_millis(since_boot.tv_sec * 1_000 + since_boot.tv_nsec / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_is_the_kernels_own_and_never_goes_back() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: i64 = uptime.split('.').next().unwrap().parse().unwrap();
        let clock = Clock::system();
        let first = clock.boot();
        assert!(seconds * 1_000 <= first.as_millis(), "{first:?} and {uptime}");
        assert!((0..1_000).map(|_| clock.boot()).is_sorted());
    }

    #[test]
    fn the_store_has_a_time_of_its_own_once_it_has_told_it() {
        let clock = Clock::manual(Timestamp::from_millis(5_000));
        assert_eq!(clock.store_now(), Timestamp::from_millis(5_000));
        let boot = clock.boot().as_millis();
        clock.set_store_offset(Some(Duration::from_millis(90_000 - boot)));
        clock.advance(Duration::from_millis(7));
        assert_eq!(clock.store_now(), Timestamp::from_millis(90_007));
        assert_eq!(clock.now(), Timestamp::from_millis(5_007));
        clock.set_store_offset(None);
        assert_eq!(clock.store_now(), clock.now());
    }

    #[test]
    fn clocks_of_two_nodes_in_one_process_are_their_own() {
        let (one, other) = (Clock::manual(Timestamp::UNIX_EPOCH), Clock::manual(Timestamp::UNIX_EPOCH));
        one.advance(Duration::from_hours(1));
        assert_eq!(other.now(), Timestamp::UNIX_EPOCH);
        assert_eq!(one.clone().now(), Timestamp::UNIX_EPOCH + Duration::from_hours(1));
    }
}

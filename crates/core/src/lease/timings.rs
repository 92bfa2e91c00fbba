//! The lengths of time that the protocol rests on, and the inequality between them.

use crate::time::Duration;

/// How much faster or slower than real time any clock is assumed to run, at most: one part in a
/// hundred. Real ones stay below one in two thousand.
pub const DRIFT: f64 = 0.01;

/// The same for every node of a cluster, and valid together: there is no way to make others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings(TimingsSpec);

/// What timings are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingsSpec {
    /// H: how often a session beats.
    pub heartbeat: Duration,
    /// R: how long one attempt to reach the store may take; then its connection is dropped.
    pub attempt: Duration,
    /// F: how long after the beginning of its last successful beat an owner trusts its lease.
    pub self_fence: Duration,
    /// K: how long a freeze or a kill may take to be effective.
    pub stop_bound: Duration,
    /// `K_f`: how long a freeze may take to be verified; then it becomes a kill.
    pub freeze_bound: Duration,
    /// S: how long a watcher must see a beat stand still.
    pub window: Duration,
    /// O: how often a watcher reads.
    pub probe: Duration,
    /// How far apart two readings may lie before a window must start again.
    pub gap: Duration,
    /// Q: how long a new epoch is watched before it is opened.
    pub quarantine: Duration,
    /// The longest pause between two attempts to reconnect.
    pub backoff_cap: Duration,
}

impl TimingsSpec {
    /// For production: a dead node's runs go on elsewhere within about a minute.
    pub const DEFAULT: TimingsSpec = TimingsSpec {
        heartbeat: Duration::from_secs(5),
        attempt: Duration::from_secs(3),
        self_fence: Duration::from_secs(20),
        stop_bound: Duration::from_secs(5),
        freeze_bound: Duration::from_secs(2),
        window: Duration::from_secs(45),
        probe: Duration::from_secs(5),
        gap: Duration::from_secs(10),
        quarantine: Duration::from_secs(45),
        backoff_cap: Duration::from_secs(5),
    };

    /// For clusters with a quick and quiet network.
    pub const FAST: TimingsSpec = TimingsSpec {
        heartbeat: Duration::from_secs(1),
        attempt: Duration::from_millis(800),
        self_fence: Duration::from_secs(5),
        stop_bound: Duration::from_secs(2),
        freeze_bound: Duration::from_millis(800),
        window: Duration::from_secs(12),
        probe: Duration::from_secs(1),
        gap: Duration::from_millis(2_500),
        quarantine: Duration::from_secs(12),
        backoff_cap: Duration::from_secs(1),
    };

    /// For tests with real processes.
    pub const TEST: TimingsSpec = TimingsSpec {
        heartbeat: Duration::from_millis(500),
        attempt: Duration::from_millis(300),
        self_fence: Duration::from_secs(2),
        stop_bound: Duration::from_millis(500),
        freeze_bound: Duration::from_millis(200),
        window: Duration::from_millis(4_500),
        probe: Duration::from_millis(500),
        gap: Duration::from_secs(1),
        quarantine: Duration::from_millis(4_500),
        backoff_cap: Duration::from_millis(500),
    };
}

/// Why timings are refused; each names the rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingFault {
    /// Something takes no time at all.
    #[error("`{what}` must be longer than nothing")]
    NotPositive { what: &'static str },
    /// Attempts would overtake each other.
    #[error("`attempt` ({attempt}) is longer than `heartbeat` ({heartbeat})")]
    AttemptTooLong { attempt: Duration, heartbeat: Duration },
    /// One lost beat would freeze everything.
    #[error("`self_fence` ({self_fence}) is shorter than two heartbeats and an attempt ({least})")]
    SelfFenceTooShort { self_fence: Duration, least: Duration },
    /// Two copies could run.
    #[error(
        "`window` ({window}) must be longer than {least}: an owner's `self_fence` and `stop_bound`, with 1% of drift on both sides"
    )]
    WindowTooShort { window: Duration, least: Duration },
    /// A freeze that fails would leave no time for a kill.
    #[error("`freeze_bound` ({freeze_bound}) is longer than half of `stop_bound` ({stop_bound})")]
    FreezeBoundTooLong { freeze_bound: Duration, stop_bound: Duration },
    /// A watcher would not notice that it saw nothing.
    #[error("`gap` ({gap}) is longer than a quarter of `window` ({window})")]
    GapTooLong { gap: Duration, window: Duration },
    /// A watcher that reads in time would never complete a window.
    #[error("`gap` ({gap}) is shorter than `probe` and `attempt` together ({least})")]
    GapTooShort { gap: Duration, least: Duration },
    /// An owner that lives might not come back in time after an outage.
    #[error("`backoff_cap` and `attempt` together ({sum}) are longer than a third of `window` ({window})")]
    BackoffTooLong { sum: Duration, window: Duration },
    /// An owner whose beat a failover lost might still run when others may claim.
    #[error("`quarantine` ({quarantine}) is shorter than `window` ({window})")]
    QuarantineTooShort { quarantine: Duration, window: Duration },
}

impl Timings {
    /// These timings, or every rule that they break.
    pub fn new(spec: TimingsSpec) -> Result<Timings, Vec<TimingFault>> {
        let TimingsSpec {
            heartbeat,
            attempt,
            self_fence,
            stop_bound,
            freeze_bound,
            window,
            probe,
            gap,
            quarantine,
            backoff_cap,
        } = spec;
        let mut faults = Vec::new();
        let mut refuse_if = |broken: bool, fault: TimingFault| {
            if broken {
                faults.push(fault);
            }
        };
        for (what, length) in [
            ("heartbeat", heartbeat),
            ("attempt", attempt),
            ("self_fence", self_fence),
            ("stop_bound", stop_bound),
            ("freeze_bound", freeze_bound),
            ("window", window),
            ("probe", probe),
            ("gap", gap),
            ("quarantine", quarantine),
            ("backoff_cap", backoff_cap),
        ] {
            refuse_if(length <= Duration::ZERO, TimingFault::NotPositive { what });
        }
        refuse_if(heartbeat < attempt, TimingFault::AttemptTooLong { attempt, heartbeat });
        let least = heartbeat * 2 + attempt;
        refuse_if(self_fence < least, TimingFault::SelfFenceTooShort { self_fence, least });
        let least = spec.owner_stops_within();
        refuse_if(window <= least, TimingFault::WindowTooShort { window, least });
        refuse_if(
            stop_bound < freeze_bound * 2,
            TimingFault::FreezeBoundTooLong { freeze_bound, stop_bound },
        );
        refuse_if(window < gap * 4, TimingFault::GapTooLong { gap, window });
        let least = probe + attempt;
        refuse_if(gap < least, TimingFault::GapTooShort { gap, least });
        let sum = backoff_cap + attempt;
        refuse_if(window < sum * 3, TimingFault::BackoffTooLong { sum, window });
        refuse_if(quarantine < window, TimingFault::QuarantineTooShort { quarantine, window });
        if faults.is_empty() { Ok(Timings(spec)) } else { Err(faults) }
    }

    /// How long an owner of runs trusts its lease.
    pub fn self_fence(&self) -> Duration {
        self.0.self_fence
    }

    /// How often a session beats.
    pub fn heartbeat(&self) -> Duration {
        self.0.heartbeat
    }

    /// How often a watcher reads.
    pub fn probe(&self) -> Duration {
        self.0.probe
    }

    /// How long a beat must stand still.
    pub fn window(&self) -> Duration {
        self.0.window
    }

    /// How long a beat that moves may seem to stand still: it is written once a period, looked at once a period, and
    /// either may take as long as one attempt.
    pub fn beat_seen_within(&self) -> Duration {
        self.0.heartbeat.max(self.0.probe) + self.0.attempt
    }

    /// How far apart two readings may lie.
    pub fn gap(&self) -> Duration {
        self.0.gap
    }

    /// The longest pause between two attempts to reach the store.
    pub fn backoff_cap(&self) -> Duration {
        self.0.backoff_cap
    }

    /// How long a new epoch is watched before it is opened to claims, fencing and release.
    pub fn quarantine(&self) -> Duration {
        self.0.quarantine
    }

    /// How long after the beginning of a new epoch a frozen run may be thawed: when every other owner
    /// that could hold the same run has stopped, and some more.
    pub fn thaw_after(&self) -> Duration {
        let stops = (self.0.self_fence + self.0.stop_bound).as_millis_f64();
        Duration::from_millis_f64((stops * 1.05).ceil())
    }

    /// A session that has not beaten for this long claims nothing: a claim in flight while its session
    /// is being fenced must never start a process.
    pub fn claim_trust(&self) -> Duration {
        Duration::from_millis(self.0.self_fence.as_millis() / 2)
    }

    /// All of them.
    pub fn spec(&self) -> TimingsSpec {
        self.0
    }
}

impl Default for Timings {
    fn default() -> Timings {
        Timings(TimingsSpec::DEFAULT)
    }
}

impl TimingsSpec {
    /// `(F(1+ρ) + K)(1+ρ)`: what a watcher's window must be longer than.
    fn owner_stops_within(&self) -> Duration {
        let trusted = self.self_fence.as_millis_f64() * (1.0 + DRIFT) + self.stop_bound.as_millis_f64();
        Duration::from_millis_f64((trusted * (1.0 + DRIFT)).ceil())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut TimingsSpec), expected: &[&str]) {
        let mut spec = TimingsSpec::DEFAULT;
        change(&mut spec);
        let faults: Vec<String> =
            Timings::new(spec).err().unwrap_or_default().iter().map(ToString::to_string).collect();
        assert_eq!(faults, expected);
    }

    fn secs(seconds: i64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_three_profiles_are_valid() {
        for spec in [TimingsSpec::DEFAULT, TimingsSpec::FAST, TimingsSpec::TEST] {
            assert_eq!(Timings::new(spec).map(|it| it.spec()), Ok(spec));
        }
        assert_eq!(Timings::default().spec(), TimingsSpec::DEFAULT);
        assert_eq!(Timings::default().thaw_after(), Duration::from_millis(26_250));
        assert_eq!(Timings::default().claim_trust(), secs(10));
    }

    #[test]
    fn every_rule_is_held() {
        check(|it| it.probe = Duration::ZERO, &["`probe` must be longer than nothing"]);
        check(
            |it| it.attempt = secs(6),
            &[
                "`attempt` (6s) is longer than `heartbeat` (5s)",
                "`gap` (10s) is shorter than `probe` and `attempt` together (11s)",
            ],
        );
        check(
            |it| it.self_fence = secs(12),
            &["`self_fence` (12s) is shorter than two heartbeats and an attempt (13s)"],
        );
        // (20 * 1.01 + 5) * 1.01 = 25.452
        check(
            |it| {
                (it.window, it.gap, it.quarantine) =
                    (Duration::from_millis(25_452), Duration::from_millis(8_000), secs(45));
            },
            &[
                "`window` (25s452ms) must be longer than 25s452ms: an owner's `self_fence` and `stop_bound`, with 1% of drift on both sides",
                "`gap` (8s) is longer than a quarter of `window` (25s452ms)",
            ],
        );
        check(
            |it| it.freeze_bound = secs(3),
            &["`freeze_bound` (3s) is longer than half of `stop_bound` (5s)"],
        );
        check(|it| it.gap = secs(12), &["`gap` (12s) is longer than a quarter of `window` (45s)"]);
        check(|it| it.gap = secs(7), &["`gap` (7s) is shorter than `probe` and `attempt` together (8s)"]);
        check(
            |it| it.backoff_cap = secs(13),
            &["`backoff_cap` and `attempt` together (16s) are longer than a third of `window` (45s)"],
        );
        check(|it| it.quarantine = secs(44), &["`quarantine` (44s) is shorter than `window` (45s)"]);
    }

    /// The failure that made others declare healthy tasks dead: a heartbeat as long as the threshold.
    #[test]
    fn a_heartbeat_as_long_as_the_window_is_refused() {
        let thirty = TimingsSpec {
            heartbeat: secs(30),
            self_fence: secs(30),
            window: secs(30),
            ..TimingsSpec::DEFAULT
        };
        let faults = Timings::new(thirty).unwrap_err();
        assert!(faults.iter().any(|it| matches!(it, TimingFault::WindowTooShort { .. })), "{faults:?}");
        assert!(faults.iter().any(|it| matches!(it, TimingFault::SelfFenceTooShort { .. })), "{faults:?}");
    }
}

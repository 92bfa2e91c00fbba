//! Counts wrong secrets by address. Guessing is hopeless, but each guess costs a lookup.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use evenbeat_core::time::{BootTime, Duration};

/// Wrong secrets that one address may show within [`WINDOW`].
pub(super) const ATTEMPTS_MAX: u32 = 20;
const WINDOW: Duration = Duration::from_mins(1);

/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 10_000;

/// Wrong secrets by address.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<HashMap<IpAddr, AttemptCount>>);

#[derive(Clone, Copy, Debug)]
struct AttemptCount {
    since: BootTime,
    n: u32,
}

impl Attempts {
    /// Whether an address has used up its attempts.
    pub(super) fn are_used_up(&self, from: IpAddr, now: BootTime) -> bool {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&key(from)).is_some_and(|it| now - it.since < WINDOW && ATTEMPTS_MAX <= it.n)
    }

    /// Counts one more.
    pub(super) fn count(&self, from: IpAddr, now: BootTime) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ADDRESSES_MAX <= counts.len() {
            counts.retain(|_, it| now - it.since < WINDOW);
        }
        if ADDRESSES_MAX <= counts.len() {
            counts.clear();
        }
        let count = counts.entry(key(from)).or_insert(AttemptCount { since: now, n: 0 });
        if WINDOW <= now - count.since {
            *count = AttemptCount { since: now, n: 0 };
        }
        count.n = count.n.saturating_add(1);
    }
}

/// One customer has many IPv6 addresses but one network, so these count by network.
fn key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !0_u128 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_of_wrong_secrets() {
        let attempts = Attempts::default();
        let (here, there): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let at = |seconds: i64| BootTime::from_millis(0) + Duration::from_secs(seconds);
        for _ in 0..ATTEMPTS_MAX {
            assert!(!attempts.are_used_up(here, at(1)));
            attempts.count(here, at(1));
        }
        assert!(attempts.are_used_up(here, at(2)));
        assert!(!attempts.are_used_up(there, at(2)));
        assert!(!attempts.are_used_up(here, at(61)), "a minute later it has a new one");
    }

    #[test]
    fn a_network_counts_as_one() {
        let key = |text: &str| key(text.parse().unwrap()).to_string();
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(key("::ffff:192.0.2.1"), "192.0.2.1");
    }
}

//! How many connections come from one address (S13).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Network;

/// Connections by address. Copies share the count.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    most: usize,
    exempt: Arc<[Network]>,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One connection of an address, counted until this is dropped.
#[derive(Debug)]
pub(super) struct AddressPlace {
    crowd: Crowd,
    address: IpAddr,
    is_crowded: bool,
}

impl Crowd {
    pub(super) fn new(most: usize, exempt: Vec<Network>) -> Crowd {
        Crowd { most, exempt: exempt.into(), counts: Arc::default() }
    }

    pub(super) fn enter(&self, address: IpAddr) -> AddressPlace {
        let address = address.to_canonical();
        let n_open = {
            let mut counts = self.counts();
            let n = counts.entry(address).or_default();
            *n += 1;
            *n
        };
        let is_exempt = self.exempt.iter().any(|network| network.contains(address));
        AddressPlace { crowd: self.clone(), address, is_crowded: !is_exempt && self.most < n_open }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AddressPlace {
    /// Whether the address is over its limit.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut counts = self.crowd.counts();
        let left = counts.get_mut(&self.address).map(|n| {
            *n = n.saturating_sub(1);
            *n
        });
        if left == Some(0) {
            counts.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections_and_a_proxy_any_number() {
        let crowd = Crowd::new(2, vec!["10.0.0.0/8".parse().unwrap()]);
        let enter = |address: &str| crowd.enter(address.parse().unwrap());
        let (one, two) = (enter("192.0.2.1"), enter("::ffff:192.0.2.1"));
        assert!(!one.is_crowded() && !two.is_crowded());
        assert!(enter("192.0.2.1").is_crowded());
        assert!(!enter("192.0.2.2").is_crowded());
        drop(one);
        assert!(!enter("192.0.2.1").is_crowded());
        let proxy: Vec<AddressPlace> = (0..10).map(|_| enter("10.1.1.1")).collect();
        assert!(proxy.iter().all(|it| !it.is_crowded()));
        drop((two, proxy));
        assert!(crowd.counts().is_empty(), "nothing is kept of those who left");
    }
}

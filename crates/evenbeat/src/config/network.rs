//! Networks: an address, or all addresses with the same first bits.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, such as `10.0.0.0/8`. A single address is one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    n_bits: u8,
}

/// A text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotANetwork;

impl Network {
    /// Whether an address belongs to it. An IPv4 address that is written as IPv6 counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.n_bits);
                (u64::from(own.to_bits()) >> shift) == (u64::from(other.to_bits()) >> shift)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = own.to_bits() ^ other.to_bits();
                u32::from(self.n_bits) <= differing.leading_zeros()
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Network, NotANetwork> {
        let (address, n_bits) = match text.split_once('/') {
            Some((address, n_bits)) => (address, Some(n_bits.parse::<u8>().map_err(|_| NotANetwork)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let n_bits_max = if address.is_ipv4() { 32 } else { 128 };
        let n_bits = n_bits.unwrap_or(n_bits_max);
        if n_bits_max < n_bits { Err(NotANetwork) } else { Ok(Network { address, n_bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.n_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(network: &str, address: &str, expected: bool) {
        let network: Network = network.parse().unwrap();
        assert_eq!(network.contains(address.parse().unwrap()), expected, "{address} in {network}");
    }

    #[test]
    fn a_network_has_the_addresses_with_its_first_bits() {
        check("10.1.0.0/16", "10.1.255.1", true);
        check("10.1.0.0/16", "10.2.0.1", false);
        check("10.1.2.3", "10.1.2.3", true);
        check("10.1.2.3", "10.1.2.4", false);
        check("0.0.0.0/0", "192.0.2.1", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("10.1.0.0/16", "::ffff:10.1.0.1", true);
        check("2001:db8::/32", "2001:db8:1::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("::/0", "2001:db9::1", true);
        check("::1", "::1", true);
    }

    #[test]
    fn what_is_not_a_network_is_told() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::/129", "proxy.example", "10.0.0.0/-1"] {
            assert_eq!(text.parse::<Network>(), Err(NotANetwork), "{text}");
        }
    }
}

//! Which addresses may be called (S6).
//!
//! A request whose address a job or a message chooses must not reach what only this machine can reach: its own services,
//! the network around it, and the addresses at which clouds hand out credentials. Names are resolved first and every
//! address is checked, whatever spelling it had; then exactly that address is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::HttpSettings;

/// Why an address is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressKind {
    Private,
    Loopback,
    LinkLocal,
    Multicast,
    SharedByCarriers,
    Reserved,
    Tunnel,
    Metadata,
}

impl AddressKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            AddressKind::Private => "private",
            AddressKind::Loopback => "loopback",
            AddressKind::LinkLocal => "link-local",
            AddressKind::Multicast => "multicast",
            AddressKind::SharedByCarriers => "shared by carriers",
            AddressKind::Reserved => "reserved",
            AddressKind::Tunnel => "a tunnel",
            AddressKind::Metadata => "a metadata service",
        }
    }
}

/// Addresses at which clouds hand out credentials.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 169, 253),
    Ipv4Addr::new(100, 100, 100, 200),
];
const METADATA_V6: [Ipv6Addr; 1] = [Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)];

/// Checks one address.
pub(super) fn check(settings: &HttpSettings, address: IpAddr) -> Result<(), AddressKind> {
    let address = address.to_canonical();
    let Some(kind) = kind_of(address) else { return Ok(()) };
    let is_allowed = settings.allow_private.iter().any(|it| it.contains(address));
    match kind {
        AddressKind::Metadata if is_allowed && settings.allow_metadata => Ok(()),
        AddressKind::Metadata => Err(kind),
        _ if is_allowed => Ok(()),
        _ => Err(kind),
    }
}

/// What an address is, if it is not a public one.
fn kind_of(address: IpAddr) -> Option<AddressKind> {
    match address {
        IpAddr::V4(v4) => kind_of_v4(v4),
        IpAddr::V6(v6) => kind_of_v6(v6),
    }
}

fn kind_of_v4(v4: Ipv4Addr) -> Option<AddressKind> {
    let [a, b, c, _] = v4.octets();
    Some(match (a, b, c) {
        _ if METADATA_V4.contains(&v4) => AddressKind::Metadata,
        (127, ..) => AddressKind::Loopback,
        (10, ..) | (192, 168, _) | (172, 16..=31, _) => AddressKind::Private,
        (100, 64..=127, _) => AddressKind::SharedByCarriers,
        (169, 254, _) => AddressKind::LinkLocal,
        (224..=239, ..) => AddressKind::Multicast,
        (0 | 240..=255, ..) | (192, 0, 0 | 2) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            AddressKind::Reserved
        }
        (192, 88, 99) => AddressKind::Tunnel,
        _ => return None,
    })
}

fn kind_of_v6(v6: Ipv6Addr) -> Option<AddressKind> {
    let segments = v6.segments();
    let v4_in = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    Some(match segments {
        _ if METADATA_V6.contains(&v6) => AddressKind::Metadata,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Reserved,
        // An IPv4 address in another spelling, or behind a translator: what it leads to counts.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x0064, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => return kind_of_v4(v4_in(high, low)),
        [0x0064, 0xff9b, ..] | [0x2001, 0, ..] => AddressKind::Tunnel,
        [0x2001, 0x0db8, ..] | [0x2001, 0x0002, 0, ..] | [0x0100, 0, 0, 0, ..] | [0x3fff, ..] => {
            AddressKind::Reserved
        }
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Everything that is public today begins with these bits.
        [0x2000..=0x3fff, ..] => return None,
        _ => AddressKind::Reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(settings: &HttpSettings, address: &str) -> Option<&'static str> {
        check(settings, address.parse().unwrap()).err().map(AddressKind::as_str)
    }

    #[test]
    fn nothing_but_public_addresses_is_called() {
        let none = HttpSettings::default();
        for (address, expected) in [
            ("8.8.8.8", None),
            ("2606:4700::1111", None),
            ("64:ff9b::808:808", None),
            ("2002:808:808::1", None),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("0.0.0.0", Some("reserved")),
            ("0.1.2.3", Some("reserved")),
            ("10.1.2.3", Some("private")),
            ("172.16.0.1", Some("private")),
            ("172.31.255.255", Some("private")),
            ("192.168.1.1", Some("private")),
            ("100.64.0.1", Some("shared by carriers")),
            ("100.127.255.255", Some("shared by carriers")),
            ("169.254.1.1", Some("link-local")),
            ("169.254.169.254", Some("a metadata service")),
            ("169.254.170.2", Some("a metadata service")),
            ("100.100.100.200", Some("a metadata service")),
            ("224.0.0.1", Some("multicast")),
            ("239.255.255.250", Some("multicast")),
            ("255.255.255.255", Some("reserved")),
            ("240.0.0.1", Some("reserved")),
            ("192.0.2.1", Some("reserved")),
            ("198.18.0.1", Some("reserved")),
            ("::1", Some("loopback")),
            ("::", Some("reserved")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:10.0.0.1", Some("private")),
            ("::ffff:169.254.169.254", Some("a metadata service")),
            ("::127.0.0.1", Some("loopback")),
            ("64:ff9b::7f00:1", Some("loopback")),
            ("64:ff9b::a9fe:a9fe", Some("a metadata service")),
            ("64:ff9b:1::7f00:1", Some("a tunnel")),
            ("2002:7f00:1::1", Some("loopback")),
            ("2002:a9fe:a9fe::", Some("a metadata service")),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Some("a tunnel")),
            ("fc00::1", Some("private")),
            ("fd00:ec2::254", Some("a metadata service")),
            ("fe80::1", Some("link-local")),
            ("fec0::1", Some("private")),
            ("ff02::1", Some("multicast")),
            ("2001:db8::1", Some("reserved")),
            ("4000::1", Some("reserved")),
        ] {
            assert_eq!(refused(&none, address), expected, "{address}");
        }
    }

    #[test]
    fn what_is_allowed_is_called_but_metadata_needs_a_second_word() {
        let mut settings = HttpSettings {
            allow_private: vec!["127.0.0.0/8".parse().unwrap(), "169.254.0.0/16".parse().unwrap()],
            allow_metadata: false,
        };
        assert_eq!(refused(&settings, "127.0.0.1"), None);
        assert_eq!(refused(&settings, "::ffff:127.0.0.1"), None);
        assert_eq!(refused(&settings, "10.0.0.1"), Some("private"));
        assert_eq!(refused(&settings, "169.254.1.1"), None);
        assert_eq!(refused(&settings, "169.254.169.254"), Some("a metadata service"));
        settings.allow_metadata = true;
        assert_eq!(refused(&settings, "169.254.169.254"), None);
    }
}

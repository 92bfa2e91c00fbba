//! What a reverse proxy says about the client behind it. Only proxies that are trusted are believed.

use std::net::IpAddr;

use axum::http::header::HeaderName;
use axum::http::{Extensions, HeaderMap, HeaderValue};

use super::caller::Peer;
use super::cookie::SessionScheme;
use super::serve::Encrypted;
use crate::config::Network;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The address that a request comes from. Through the socket it has none.
///
/// Behind trusted proxies it is the last address that they name and that is not one of theirs: whatever stands before it
/// was written by the client.
pub fn client_address(proxies: &[Network], peer: Peer, headers: &HeaderMap) -> Option<IpAddr> {
    let Peer::Tcp(address) = peer else { return None };
    let address = address.ip().to_canonical();
    let is_proxy = |it: IpAddr| proxies.iter().any(|network| network.contains(it));
    if !is_proxy(address) {
        return Some(address);
    }
    let named = headers.get_all(FORWARDED_FOR).iter().filter_map(|it| it.to_str().ok());
    let named: Vec<&str> = named.flat_map(|it| it.split(',')).map(str::trim).collect();
    for text in named.into_iter().rev() {
        match text.parse::<IpAddr>() {
            Ok(it) if is_proxy(it) => {}
            Ok(it) => return Some(it.to_canonical()),
            Err(_) => break,
        }
    }
    Some(address)
}

/// How the browser reaches us.
pub fn scheme_of(proxies: &[Network], extensions: &Extensions, headers: &HeaderMap) -> SessionScheme {
    if is_https(proxies, extensions, headers) {
        return SessionScheme::Https;
    }
    let from = extensions.get::<Peer>().and_then(|it| client_address(proxies, *it, headers));
    if from.is_some_and(|it| !it.is_loopback()) {
        SessionScheme::PlainNetwork
    } else {
        SessionScheme::PlainLoopback
    }
}

/// Whether the client speaks HTTPS, to us or to a trusted proxy.
fn is_https(proxies: &[Network], extensions: &Extensions, headers: &HeaderMap) -> bool {
    if extensions.get::<Encrypted>().is_some() {
        return true;
    }
    let Some(Peer::Tcp(address)) = extensions.get::<Peer>() else { return false };
    let is_proxy = proxies.iter().any(|network| network.contains(address.ip()));
    is_proxy && headers.get(FORWARDED_PROTO).map(HeaderValue::as_bytes) == Some(b"https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, forwarded: &[&str], expected: &str) {
        let proxies = ["10.0.0.0/8".parse().unwrap(), "127.0.0.1".parse().unwrap()];
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let peer = Peer::Tcp(format!("{peer}:4711").parse().unwrap());
        let found = client_address(&proxies, peer, &headers).unwrap();
        assert_eq!(found.to_string(), expected, "{forwarded:?}");
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        check("192.0.2.1", &[], "192.0.2.1");
        check("192.0.2.1", &["198.51.100.1"], "192.0.2.1");
        check("127.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("127.0.0.1", &["203.0.113.9, 198.51.100.1, 10.1.1.1"], "198.51.100.1");
        check("127.0.0.1", &["203.0.113.9", "198.51.100.1"], "198.51.100.1");
        check("127.0.0.1", &["198.51.100.1, nonsense"], "127.0.0.1");
        check("127.0.0.1", &[], "127.0.0.1");
        assert_eq!(client_address(&[], Peer::Socket { uid: 0 }, &HeaderMap::new()), None);
    }
}

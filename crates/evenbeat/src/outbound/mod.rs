//! Requests to others, as safe as they can be made (S6): only HTTP, only to addresses that were checked, without
//! redirects, with a limit on time and on what is read.

mod address;
mod pings;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration as Length;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use self::pings::Pings;
use crate::config::HttpSettings;

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 4;

/// Calls others. Copies share the certificates that are trusted.
#[derive(Clone)]
pub struct Outbound {
    settings: HttpSettings,
    tls: Arc<OnceLock<Option<TlsConnector>>>,
}

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbound").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A request.
pub struct OutboundRequest<'a> {
    /// `GET` or `POST`.
    pub method: Method,
    /// Where to. May hold a secret, and is never shown.
    pub url: &'a str,
    /// Besides those that every request has.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// How long all of it may take.
    pub within: Length,
}

/// Shows nothing, because all of it may be a secret.
impl fmt::Debug for OutboundRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundAnswer {
    /// The status code.
    pub status: u16,
    /// What it says, as text, as far as it was read.
    pub body: String,
}

impl OutboundAnswer {
    /// Whether the receiver has accepted the request.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no answer. Shows the host and nothing else of an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// Not an address of a web server.
    #[error("the address is not a URL such as `https://host/path`, without a user name in it")]
    BadUrl,
    /// A port that no web server has.
    #[error("port {0} is not allowed; use 80, 443 or a port from 1024 on")]
    Port(u16),
    /// The name is unknown.
    #[error("`{host}` cannot be resolved: {why}")]
    Resolve {
        /// The name.
        host: String,
        /// What the system says.
        why: String,
    },
    /// The address must not be called.
    #[error("`{host}` leads to {address}, which is {kind}; add it to `http.allow_private` to allow it")]
    Refused {
        /// The name.
        host: String,
        /// Its address.
        address: IpAddr,
        /// What that is.
        kind: &'static str,
    },
    /// The host does not answer.
    #[error("`{host}` cannot be reached: {why}")]
    Connect {
        /// The name.
        host: String,
        /// What the system says.
        why: String,
    },
    /// It answers something else.
    #[error("`{host}` did not answer properly: {why}")]
    Protocol {
        /// The name.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// It took too long.
    #[error("no answer within {0:?}")]
    TimedOut(Length),
}

impl Outbound {
    /// Calls what the settings allow.
    pub fn new(settings: HttpSettings) -> Outbound {
        Outbound { settings, tls: Arc::default() }
    }

    /// Sends a request and reads the answer, whatever its status. Redirects are not followed.
    pub async fn send(&self, request: OutboundRequest<'_>) -> Result<OutboundAnswer, OutboundError> {
        let within = request.within;
        let sent = tokio::time::timeout(within, self.exchange(request)).await;
        sent.unwrap_or(Err(OutboundError::TimedOut(within)))
    }

    async fn exchange(&self, request: OutboundRequest<'_>) -> Result<OutboundAnswer, OutboundError> {
        let destination = Destination::parse(request.url)?;
        let stream = self.connect(&destination).await?;
        let http = destination.request(request)?;
        if destination.is_tls {
            let host = destination.host.clone();
            let wrong = |why: String| OutboundError::Protocol { host: host.clone(), why };
            let name = ServerName::try_from(destination.host.clone());
            let name = name.map_err(|_| wrong("the name cannot have a certificate".to_owned()))?;
            let tls = self.tls().ok_or_else(|| wrong("this machine trusts no certificates".to_owned()))?;
            let stream = tls.connect(name, stream).await.map_err(|error| wrong(error.to_string()))?;
            converse(stream, http, &destination.host).await
        } else {
            converse(stream, http, &destination.host).await
        }
    }

    /// Connects to an address that was checked, and to no other.
    async fn connect(&self, destination: &Destination) -> Result<TcpStream, OutboundError> {
        let host = || destination.host.clone();
        let found = tokio::net::lookup_host((destination.host.as_str(), destination.port)).await;
        let found = found.map_err(|error| OutboundError::Resolve { host: host(), why: error.to_string() })?;
        let addresses: Vec<SocketAddr> = found.collect();
        for address in &addresses {
            address::check(&self.settings, address.ip()).map_err(|kind| OutboundError::Refused {
                host: host(),
                address: address.ip(),
                kind: kind.as_str(),
            })?;
        }
        let mut why = "it has no address".to_owned();
        for address in addresses.into_iter().take(ADDRESSES_MAX) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => why = error.to_string(),
            }
        }
        Err(OutboundError::Connect { host: host(), why })
    }

    fn tls(&self) -> Option<&TlsConnector> {
        self.tls.get_or_init(tls_connector).as_ref()
    }
}

/// Trusts what the machine trusts.
fn tls_connector() -> Option<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return None;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
}

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
struct Destination {
    is_tls: bool,
    host: String,
    port: u16,
    /// The host as the header has it.
    authority: String,
    path: String,
}

impl Destination {
    fn parse(url: &str) -> Result<Destination, OutboundError> {
        let uri: Uri = url.trim().parse().map_err(|_| OutboundError::BadUrl)?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(OutboundError::BadUrl),
        };
        let authority = uri.authority().ok_or(OutboundError::BadUrl)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(OutboundError::BadUrl);
        }
        let has_port = authority.as_str().len() != authority.host().len();
        let port = match authority.port_u16() {
            Some(port) => port,
            None if has_port => return Err(OutboundError::BadUrl),
            None if is_tls => 443,
            None => 80,
        };
        if !matches!(port, 80 | 443 | 1024..) {
            return Err(OutboundError::Port(port));
        }
        let path = uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        Ok(Destination { is_tls, host, port, authority: authority.to_string(), path })
    }

    fn request(&self, request: OutboundRequest<'_>) -> Result<Request<Full<Bytes>>, OutboundError> {
        let mut http = Request::builder()
            .method(request.method)
            .uri(&self.path)
            .header("host", &self.authority)
            .header("user-agent", concat!("evenbeat/", env!("CARGO_PKG_VERSION")))
            .header("connection", "close");
        for (name, value) in request.headers {
            http = http.header(name, value);
        }
        let http = http.body(Full::new(request.body.into()));
        http.map_err(|error| OutboundError::Protocol { host: self.host.clone(), why: error.to_string() })
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    host: &str,
) -> Result<OutboundAnswer, OutboundError> {
    let wrong = |why: hyper::Error| OutboundError::Protocol { host: host.to_owned(), why: why.to_string() };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(wrong)?;
    // The task ends with the answer, or when this side is dropped.
    let connection = tokio::spawn(connection);
    let answered = async {
        let answer = sender.send_request(request).await.map_err(wrong)?;
        let status = answer.status().as_u16();
        let mut body = answer.into_body();
        let mut bytes = Vec::new();
        // An answer that breaks off, or is too long, is still an answer: its status counts.
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(data) = frame.data_ref() {
                let room = ANSWER_BYTES_MAX - bytes.len();
                bytes.extend(data.iter().take(room));
            }
            if ANSWER_BYTES_MAX <= bytes.len() {
                break;
            }
        }
        Ok(OutboundAnswer { status, body: String::from_utf8_lossy(&bytes).into_owned() })
    };
    let answer = answered.await;
    connection.abort();
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<(&str, u16), OutboundError>) {
        let found = Destination::parse(url).map(|it| (it.host, it.port));
        assert_eq!(found, expected.map(|(host, port)| (host.to_owned(), port)), "{url}");
    }

    #[test]
    fn an_address_is_read_in_one_way() {
        check("https://a.example/x?y=1", Ok(("a.example", 443)));
        check("http://a.example", Ok(("a.example", 80)));
        check("http://[::1]:8080/", Ok(("::1", 8080)));
        check("http://127.1:9000/", Ok(("127.1", 9000)));
        for bad in [
            "",
            "a.example",
            "/x",
            "ftp://a.example/",
            "file:///etc/passwd",
            "gopher://a.example/",
            "https://user:pass@a.example/",
            "https://a.example@evil.example/",
            "https:///x",
            "https://a.example:99999/",
            "https://a.example:/",
            "http://a b/",
            "HTTP//x",
        ] {
            check(bad, Err(OutboundError::BadUrl));
        }
        check("http://a.example:25/", Err(OutboundError::Port(25)));
        check("http://a.example:22/", Err(OutboundError::Port(22)));
    }

    /// Spellings of addresses that must not be reached, as attackers write them.
    #[tokio::test]
    async fn no_spelling_leads_inside() {
        let outbound = Outbound::new(HttpSettings::default());
        for url in [
            "http://127.0.0.1/",
            "http://localhost/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://0/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:ffff:7f00:1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://10.0.0.1/",
            "http://192.168.0.1:8080/",
            "http://[fd00:ec2::254]/",
            "http://[fe80::1]/",
            "https://user@127.0.0.1/",
            "http://127.0.0.1:22/",
        ] {
            let request = OutboundRequest {
                method: Method::GET,
                url,
                headers: Vec::new(),
                body: Vec::new(),
                within: Length::from_secs(30),
            };
            let error = outbound.send(request).await.unwrap_err();
            assert!(
                matches!(
                    error,
                    OutboundError::Refused { .. }
                        | OutboundError::BadUrl
                        | OutboundError::Port(_)
                        | OutboundError::Resolve { .. }
                ),
                "{url}: {error:?}"
            );
            assert!(!error.to_string().contains("meta-data"), "{error}");
        }
    }
}

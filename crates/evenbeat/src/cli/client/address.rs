//! The address of a server: `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH`.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Default port of a server.
const PORT: u16 = 8060;

/// File name of the socket.
const SOCKET: &str = "evenbeat.sock";

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerAddress {
    /// A host name or IP address as written in a URL, and a port.
    Tcp { scheme: HttpScheme, host: String, port: u16 },
    /// A Unix socket on this machine.
    Unix(PathBuf),
}

/// Whether a connection over TCP is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpScheme {
    Http,
    Https,
}

impl HttpScheme {
    fn prefix(self) -> &'static str {
        match self {
            HttpScheme::Http => "http://",
            HttpScheme::Https => "https://",
        }
    }

    fn port(self) -> u16 {
        match self {
            HttpScheme::Http => 80,
            HttpScheme::Https => 443,
        }
    }
}

/// Why a text is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServerAddressError {
    #[error("`{0}` is not a server address; write `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH`")]
    Unknown(String),
    #[error("`unix:` has no path; write `unix:PATH`")]
    NoPath,
    #[error("`{0}` has a path; a server address ends after the port")]
    HasPath(String),
}

impl FromStr for ServerAddress {
    type Err = ServerAddressError;

    fn from_str(text: &str) -> Result<ServerAddress, ServerAddressError> {
        let unknown = || ServerAddressError::Unknown(shown(text));
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err(ServerAddressError::NoPath)
            } else {
                Ok(ServerAddress::Unix(path.into()))
            };
        }
        let parts = [HttpScheme::Https, HttpScheme::Http]
            .into_iter()
            .find_map(|scheme| Some((scheme, text.strip_prefix(scheme.prefix())?)));
        let (scheme, rest) = parts.ok_or_else(unknown)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(ServerAddressError::HasPath(shown(text)));
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| unknown())?),
            _ => (rest, scheme.port()),
        };
        let is_named = !host.is_empty() && !host.contains(['@', ' ']);
        let is_bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        if !is_named || is_bare_ipv6 {
            return Err(unknown());
        }
        Ok(ServerAddress::Tcp { scheme, host: host.to_owned(), port })
    }
}

/// The text without what may be a password: whatever comes before an `@`, and the query.
fn shown(text: &str) -> String {
    let (scheme, rest) =
        text.split_once("://").map_or(("", text), |(_, rest)| text.split_at(text.len() - rest.len()));
    let (rest, parameters) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}…@{host}{parameters}"),
        None => format!("{scheme}{rest}{parameters}"),
    }
}

impl ServerAddress {
    /// The default address: the socket in the user's data directory if it exists, otherwise the default port.
    pub(crate) fn usual(variable: impl Fn(&str) -> Option<OsString>) -> ServerAddress {
        let from = |name: &str| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let data = from("STATE_DIRECTORY")
            .or_else(|| from("XDG_STATE_HOME").map(|it| it.join("evenbeat")))
            .or_else(|| from("HOME").map(|it| it.join(".local/state/evenbeat")));
        match data.map(|it| it.join(SOCKET)).filter(|it| it.exists()) {
            Some(socket) => ServerAddress::Unix(socket),
            None => ServerAddress::Tcp { scheme: HttpScheme::Http, host: "127.0.0.1".to_owned(), port: PORT },
        }
    }

    /// The value of the `Host` header.
    pub(super) fn host(&self) -> String {
        match self {
            ServerAddress::Tcp { host, port, .. } => format!("{host}:{port}"),
            ServerAddress::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Tcp { scheme, host, port } => write!(f, "{}{host}:{port}", scheme.prefix()),
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = text
            .parse::<ServerAddress>()
            .map_or_else(|error| error.to_string(), |address| address.to_string());
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_place_is_an_address_or_a_socket() {
        check("http://127.0.0.1:8060", "http://127.0.0.1:8060");
        check("http://even.example", "http://even.example:80");
        check("https://even.example", "https://even.example:443");
        check("https://[::1]:8060/", "https://[::1]:8060");
        check("http://[::1]:8060/", "http://[::1]:8060");
        check("http://[::1]", "http://[::1]:80");
        check("unix:/run/evenbeat.sock", "unix:/run/evenbeat.sock");
        check("unix:///run/evenbeat.sock", "unix:/run/evenbeat.sock");
    }

    #[test]
    fn what_is_no_place_is_told() {
        let unknown = |text: &str| {
            check(
                text,
                &format!(
                    "`{text}` is not a server address; write `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH`"
                ),
            );
        };
        for text in ["", "localhost:8060", "http://", "http://:8060", "http://a:b", "http://::1:80"] {
            unknown(text);
        }
        check(
            "http://ann:secret@h:1",
            "`http://…@h:1` is not a server address; write `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH`",
        );
        check("http://h:1?token=secret@x", "`http://h:1?…` has a path; a server address ends after the port");
        check("unix:", "`unix:` has no path; write `unix:PATH`");
        check("http://h:1/api", "`http://h:1/api` has a path; a server address ends after the port");
        check("https://h:1/api", "`https://h:1/api` has a path; a server address ends after the port");
    }

    #[test]
    fn without_a_socket_it_is_the_usual_port() {
        assert_eq!(ServerAddress::usual(|_| None).to_string(), "http://127.0.0.1:8060");
        assert_eq!(ServerAddress::usual(|_| Some("/nowhere".into())).to_string(), "http://127.0.0.1:8060");
    }
}

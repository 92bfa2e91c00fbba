//! An address of another server, as in `http://127.0.0.1:4318`.

use std::fmt;
use std::str::FromStr;

/// The port of OpenTelemetry collectors.
const PORT_DEFAULT: u16 = 4318;

/// A server that is spoken to over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpEndpoint {
    /// A name or an address; an IPv6 address has its brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Stands before every path: empty, or `/…` without a slash at its end.
    pub path: String,
}

impl FromStr for HttpEndpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<HttpEndpoint, &'static str> {
        if text.starts_with("https://") {
            return Err(
                "https is not supported here; send to a collector on this machine, which can encrypt",
            );
        }
        let rest = text.strip_prefix("http://").ok_or("it does not begin with `http://`")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if path.contains(['?', '#']) || authority.contains('@') {
            return Err("it has a user, a query or a fragment");
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "its port is not a number up to 65535")?)
            }
            _ => (authority, PORT_DEFAULT),
        };
        if host.is_empty()
            || !host.is_ascii()
            || host.contains(|it: char| it.is_whitespace() || it.is_control())
        {
            return Err("it names no host");
        }
        Ok(HttpEndpoint { host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_host_a_port_and_perhaps_a_path() {
        let check = |text: &str, expected: &str| {
            let read = text.parse::<HttpEndpoint>().map_or_else(str::to_owned, |it| it.to_string());
            assert_eq!(read, expected, "{text}");
        };
        check("http://127.0.0.1:4318", "http://127.0.0.1:4318");
        check("http://collector/", "http://collector:4318");
        check("http://[::1]", "http://[::1]:4318");
        check("http://[::1]:99/otlp/", "http://[::1]:99/otlp");
        check("collector:4318", "it does not begin with `http://`");
        check("http://:4318", "it names no host");
        check("http://a:b", "its port is not a number up to 65535");
        check("http://user@a", "it has a user, a query or a fragment");
    }
}

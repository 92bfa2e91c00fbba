//! A page of another site must not reach this API through a user's browser (G5).
//!
//! Two tricks are known. A name of theirs that suddenly means 127.0.0.1: then `Host` is that name, and is refused. A
//! form or a script of theirs that posts here: then the browser says so in `Sec-Fetch-Site` or `Origin`, and nothing is
//! changed. A request with neither header does not come from a browser.

use axum::extract::{Request, State};
use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::Peer;
use super::problem::{Code, Problem};
use super::router::Api;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names of this machine for itself.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Lets requests through that may be meant for this server.
pub(super) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    // The socket's file keeps others out. This holds even where someone has changed its mode.
    let peer = match request.extensions().get::<Peer>() {
        Some(Peer::Socket { uid }) => api.auth.socket_peer(*uid).map(|_| ()).map_err(Problem::from),
        Some(Peer::Tcp(_)) | None => Ok(()),
    };
    match peer.and_then(|()| check(&api.options.hosts, &request)) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(hosts: &[String], request: &Request) -> Result<(), Problem> {
    let is_socket = matches!(request.extensions().get::<Peer>(), Some(Peer::Socket { .. }));
    let host = host_of(request)?;
    // A Unix socket has no host name.
    if !is_socket && !is_ours(hosts, &host) {
        let detail = format!(
            "`{}` is not a name of this server; use `localhost` or the address that it listens on",
            evenbeat_core::nearest::shortened(&host)
        );
        return Err(Problem::new(Code::HostNotAllowed, detail));
    }
    if [Method::GET, Method::HEAD].contains(request.method()) {
        return Ok(());
    }
    if is_foreign(request.headers(), &host) {
        let detail = "the request comes from a page of another site; send it from a page of this server, or without an `Origin` header";
        return Err(Problem::new(Code::OriginNotAllowed, detail));
    }
    Ok(())
}

/// The host that the request names, with its port.
fn host_of(request: &Request) -> Result<String, Problem> {
    let headers = request.headers();
    let bad = |detail| Problem::new(Code::InvalidHeader, detail);
    if 1 < headers.get_all(HOST).iter().count() {
        return Err(bad("there are several `Host` headers; send one"));
    }
    let said = headers.get(HOST).map(HeaderValue::to_str).transpose();
    let said = said.map_err(|_| bad("`Host` is not a name"))?;
    let asked = request.uri().authority().map(axum::http::uri::Authority::as_str);
    match (asked, said) {
        // A request through a proxy names the host twice.
        (Some(asked), Some(said)) if !asked.eq_ignore_ascii_case(said) => {
            Err(bad("`Host` is not the host of the address"))
        }
        (Some(host), _) | (None, Some(host)) => Ok(host.to_ascii_lowercase()),
        (None, None) => Err(bad("there is no `Host` header; send one")),
    }
}

fn is_ours(hosts: &[String], host: &str) -> bool {
    let name = without_port(host);
    LOCAL.contains(&name) || hosts.iter().any(|it| without_port(it).eq_ignore_ascii_case(name))
}

/// `[::1]:8060` is `[::1]`, and `localhost:8060` is `localhost`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

/// Whether a browser says that this comes from elsewhere.
fn is_foreign(headers: &HeaderMap, host: &str) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return !["same-origin", "none"].iter().any(|it| site.as_bytes() == it.as_bytes());
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let Ok(origin) = origin.to_str() else { return true };
    let origin = origin.to_ascii_lowercase();
    let of = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    of != Some(host)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    const TCP: &str = "127.0.0.1:4711";

    #[track_caller]
    fn verdict(method: &str, headers: &[(&str, &str)]) -> &'static str {
        let mut request = Request::builder().method(method).uri("/api/v1/status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer::Tcp(TCP.parse().unwrap()));
        match check(&["even.example".to_owned(), "192.0.2.7:8060".to_owned()], &request) {
            Ok(()) => "ok",
            Err(problem) => problem.code().as_str(),
        }
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        let check =
            |host: &str, expected: &str| assert_eq!(verdict("GET", &[("host", host)]), expected, "{host}");
        for host in [
            "localhost",
            "LOCALHOST:8060",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8060",
            "even.example:9",
            "192.0.2.7",
        ] {
            check(host, "ok");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", ":80", "[::2]", "::1"]
        {
            check(host, "host_not_allowed");
        }
        assert_eq!(verdict("GET", &[]), "invalid_header");
        assert_eq!(verdict("GET", &[("host", "localhost"), ("host", "evil.example")]), "invalid_header");
    }

    #[test]
    fn pages_of_other_sites_change_nothing() {
        let check = |method: &str, name: &str, value: &str, expected: &str| {
            let headers = [("host", "localhost:8060"), (name, value)];
            assert_eq!(verdict(method, &headers), expected, "{method} {name}: {value}");
        };
        check("POST", "accept", "*/*", "ok");
        check("POST", "sec-fetch-site", "same-origin", "ok");
        check("POST", "sec-fetch-site", "none", "ok");
        check("GET", "sec-fetch-site", "cross-site", "ok");
        check("POST", "origin", "http://localhost:8060", "ok");
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            check(method, "sec-fetch-site", "cross-site", "origin_not_allowed");
            check(method, "sec-fetch-site", "same-site", "origin_not_allowed");
            check(method, "origin", "http://evil.example", "origin_not_allowed");
        }
        check("POST", "origin", "null", "origin_not_allowed");
        check("POST", "origin", "http://localhost:9999", "origin_not_allowed");
        check("POST", "origin", "http://localhost", "origin_not_allowed");
    }

    #[test]
    fn a_socket_has_no_name() {
        let mut request = Request::builder().uri("/").header("host", "anything").body(Body::empty()).unwrap();
        request.extensions_mut().insert(Peer::Socket { uid: 0 });
        assert_eq!(check(&[], &request), Ok(()));
    }
}

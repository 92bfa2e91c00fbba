//! A reader of server-sent events, byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use evenbeat::testing::socket_path::SocketPath;
use serde_json::Value as Json;

use super::served::Served;
use super::wait::PATIENCE;

/// An open stream.
pub(crate) struct EventClient<S: Read> {
    stream: BufReader<S>,
    /// The lines of the head.
    pub(crate) head: Vec<String>,
    /// The last id that was heard, of an event or with a comment.
    pub(crate) last_id: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeardEvent {
    pub(crate) name: String,
    pub(crate) data: Json,
}

impl EventClient<TcpStream> {
    /// Reads from a server, over TCP.
    pub(crate) fn open(served: &Served, query: &str, last_id: Option<&str>) -> EventClient<TcpStream> {
        EventClient::open_as(served, &served.authorization(), query, last_id)
    }

    /// The same with another token.
    pub(crate) fn open_as(
        served: &Served,
        authorization: &str,
        query: &str,
        last_id: Option<&str>,
    ) -> EventClient<TcpStream> {
        let stream = TcpStream::connect(served.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        EventClient::over(stream, Some(authorization), query, last_id)
    }

    /// Reads what open pages hear, with the cookie of a session.
    pub(crate) fn open_page(served: &Served, cookie: &str) -> EventClient<TcpStream> {
        let stream = TcpStream::connect(served.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        EventClient::get(stream, "/live", &format!("Cookie: {cookie}\r\n"))
    }
}

impl EventClient<UnixStream> {
    /// The same through the socket.
    pub(crate) fn open_socket(served: &Served, query: &str) -> EventClient<UnixStream> {
        let stream = UnixStream::connect(SocketPath::to(&served.socket()).unwrap().short()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        EventClient::over(stream, None, query, None)
    }
}

impl<S: Read + Write> EventClient<S> {
    fn over(stream: S, authorization: Option<&str>, query: &str, last_id: Option<&str>) -> EventClient<S> {
        let shown = authorization.map(|it| format!("Authorization: {it}\r\n")).unwrap_or_default();
        let last = last_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        EventClient::get(stream, &format!("/api/v1/events{query}"), &format!("{shown}{last}"))
    }

    fn get(mut stream: S, path: &str, headers: &str) -> EventClient<S> {
        // HTTP/1.0 has no chunks: what is read is what was sent.
        let said = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(said.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_ascii_lowercase()),
            }
        }
        let mut client = EventClient { stream, head, last_id: String::new() };
        if client.status() == "200" {
            // The first block is there at once, so whatever happens from now on is heard.
            let first = client.block().unwrap();
            assert!(first.iter().any(|line| line == "retry: 2000"), "{first:?}");
        }
        client
    }

    pub(crate) fn status(&self) -> &str {
        self.head[0].split(' ').nth(1).unwrap()
    }

    /// The next lines up to an empty one; none at the end of the stream.
    pub(crate) fn block(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end_matches('\n') {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        if let Some(id) = lines.iter().find_map(|line| line.strip_prefix("id: ")) {
            id.clone_into(&mut self.last_id);
        }
        Some(lines)
    }

    /// The next event; none at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<HeardEvent> {
        loop {
            let lines = self.block()?;
            let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
            let Some(name) = field("event: ") else { continue };
            let data = serde_json::from_str(field("data: ").unwrap()).unwrap();
            return Some(HeardEvent { name: name.to_owned(), data });
        }
    }

    /// The next event of a name, whatever comes before it.
    pub(crate) fn next_of(&mut self, name: &str) -> Json {
        loop {
            let event = self.next().unwrap_or_else(|| panic!("the stream ended before `{name}`"));
            if event.name == name {
                return event.data;
            }
        }
    }
}

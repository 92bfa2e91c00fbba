//! Sends requests over HTTP.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::time::Duration as Length;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::{Ask, Place, Trouble};
use crate::socket_path::SocketPath;
use crate::views::model::ProblemBody;

/// Time limit for connecting.
const CONNECT_WITHIN: Length = Length::from_secs(5);

/// Time limit for the answer. Longer than the server's own limit.
const ANSWER_WITHIN: Length = Length::from_mins(1);

/// Largest answer we accept, in bytes.
const ANSWER_MAX: usize = 256 << 20;

/// A client for one server.
#[derive(Debug)]
pub(crate) struct Client {
    place: Place,
    runtime: Runtime,
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    place: Place,
}

impl Client {
    pub(crate) fn new(place: Place) -> io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Client { place, runtime })
    }

    /// The address of the server.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn ask(&self, ask: Ask) -> Result<Answer, Trouble> {
        self.runtime.block_on(self.ask_there(ask))
    }

    /// Waits.
    pub(crate) fn rest(&self, length: Length) {
        // The timer must be created inside the runtime.
        self.runtime.block_on(async { tokio::time::sleep(length).await });
    }

    async fn ask_there(&self, ask: Ask) -> Result<Answer, Trouble> {
        let connected = timeout(CONNECT_WITHIN, async {
            Ok::<_, io::Error>(match &self.place {
                Place::Unix(path) => Stream::Unix(UnixStream::connect(SocketPath::to(path)?.short()).await?),
                Place::Tcp { host, port } => {
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    Stream::Tcp(TcpStream::connect((host, *port)).await?)
                }
            })
        });
        let no_server = |why: String| Trouble::NoServer { place: self.place.clone(), why };
        let stream = match connected.await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Trouble::Closed { place: self.place.clone(), why: error.to_string() });
            }
            Ok(Err(error)) => return Err(no_server(error.to_string())),
            Err(_) => return Err(no_server(format!("no connection within {} s", CONNECT_WITHIN.as_secs()))),
        };
        let answered = timeout(ANSWER_WITHIN, async {
            match stream {
                Stream::Unix(stream) => self.converse(stream, ask).await,
                Stream::Tcp(stream) => self.converse(stream, ask).await,
            }
        });
        answered.await.unwrap_or_else(|_| {
            let why = format!("no answer within {} s", ANSWER_WITHIN.as_secs());
            Err(Trouble::NoAnswer { place: self.place.clone(), why })
        })
    }

    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        ask: Ask,
    ) -> Result<Answer, Trouble> {
        let broken =
            |error: &dyn Error| Trouble::NoAnswer { place: self.place.clone(), why: with_causes(error) };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        // The connection task ends with the request.
        tokio::spawn(connection);
        let request = self.request(ask).map_err(|error| broken(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| broken(error.as_ref()))?.to_bytes();
        let answer = Answer { headers: head.headers, body, place: self.place.clone() };
        if head.status.is_success() { Ok(answer) } else { Err(answer.problem(head.status)) }
    }

    fn request(&self, ask: Ask) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request =
            Request::builder().method(ask.method).uri(ask.target).header(HOST, self.place.host());
        for (name, value) in ask.headers {
            request = request.header(name, value);
        }
        if ask.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(ask.body.unwrap_or_default().into()))
    }
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Answer {
    /// Parses the body.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Trouble> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Trouble::NotOurs { place: self.place.clone(), why: error.to_string() })
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|it| it.to_str().ok())
    }

    fn problem(self, status: StatusCode) -> Trouble {
        match serde_json::from_slice::<ProblemBody>(&self.body) {
            Ok(problem) => Trouble::Problem(Box::new(problem)),
            Err(_) => Trouble::NotOurs { place: self.place, why: format!("it answered {status}") },
        }
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

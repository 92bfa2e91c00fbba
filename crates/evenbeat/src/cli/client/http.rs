//! Sends requests over HTTP.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration as Length;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::http::response;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::tls::{TlsFailure, encrypted};
use super::{ApiRequest, CommandError, HttpScheme, ServerAddress};
use crate::cli::format::with_causes;
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
    address: ServerAddress,
    credentials: Credentials,
    runtime: Runtime,
}

/// What a client shows to a server, and what it believes of it.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    /// The token, if there is one.
    pub(crate) token: Option<String>,
    /// A file of certificates to trust besides those of the machine.
    pub(crate) ca: Option<PathBuf>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("ca", &self.ca).finish_non_exhaustive()
    }
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    address: ServerAddress,
}

impl Client {
    pub(crate) fn new(address: ServerAddress, credentials: Credentials) -> io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Client { address, credentials, runtime })
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn send(&self, request: ApiRequest) -> Result<ApiResponse, CommandError> {
        self.runtime.block_on(self.send_async(request))
    }

    /// Sends a request whose answer goes on. A problem is an error, as for any other request.
    pub(crate) fn open(&self, request: ApiRequest) -> Result<OpenAnswer, CommandError> {
        self.runtime.block_on(async {
            let stream = self.connect().await?;
            let answered = timeout(ANSWER_WITHIN, self.begin(stream, request)).await;
            let (head, body) = answered.unwrap_or_else(|_| Err(self.no_answer()))?;
            if head.status.is_success() {
                return Ok(OpenAnswer(body));
            }
            let (status, answer) = self.collected(head, body).await?;
            Err(answer.problem(status))
        })
    }

    /// The next part of an answer that goes on; none at its end.
    pub(crate) fn next_part(&self, answer: &mut OpenAnswer) -> Result<Option<Bytes>, CommandError> {
        self.runtime.block_on(async {
            while let Some(frame) = answer.0.frame().await {
                let frame = frame.map_err(|error| self.broken(&error))?;
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(None)
        })
    }

    /// Waits.
    pub(crate) fn rest(&self, length: Length) {
        // The timer must be created inside the runtime.
        self.runtime.block_on(async { tokio::time::sleep(length).await });
    }

    async fn send_async(&self, request: ApiRequest) -> Result<ApiResponse, CommandError> {
        let stream = self.connect().await?;
        let answered = timeout(ANSWER_WITHIN, async {
            let (head, body) = self.begin(stream, request).await?;
            self.collected(head, body).await
        });
        let (status, answer) = answered.await.unwrap_or_else(|_| Err(self.no_answer()))?;
        if status.is_success() { Ok(answer) } else { Err(answer.problem(status)) }
    }

    async fn connect(&self) -> Result<ServerStream, CommandError> {
        let connected = timeout(CONNECT_WITHIN, async {
            Ok::<_, io::Error>(match &self.address {
                ServerAddress::Unix(path) => {
                    ServerStream::Unix(UnixStream::connect(SocketPath::to(path)?.short()).await?)
                }
                ServerAddress::Tcp { host, port, .. } => {
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    ServerStream::Tcp(TcpStream::connect((host, *port)).await?)
                }
            })
        });
        let no_server = |why: String| CommandError::NoServer { address: self.address.clone(), why };
        match connected.await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(CommandError::Closed { address: self.address.clone(), why: error.to_string() })
            }
            Ok(Err(error)) => Err(no_server(error.to_string())),
            Err(_) => Err(no_server(format!("no connection within {} s", CONNECT_WITHIN.as_secs()))),
        }
    }

    /// Sends a request and waits for the head of the answer.
    async fn begin(
        &self,
        stream: ServerStream,
        request: ApiRequest,
    ) -> Result<(response::Parts, Incoming), CommandError> {
        match stream {
            ServerStream::Unix(stream) => self.converse(stream, request).await,
            ServerStream::Tcp(stream) => match &self.address {
                ServerAddress::Tcp { scheme: HttpScheme::Https, host, .. } => {
                    let ca = self.credentials.ca.as_deref();
                    let stream = encrypted(stream, host, ca).await;
                    let stream = stream.map_err(|why| self.not_trusted(why))?;
                    self.converse(stream, request).await
                }
                _ => self.converse(stream, request).await,
            },
        }
    }

    fn not_trusted(&self, why: TlsFailure) -> CommandError {
        match why {
            TlsFailure::Usage(why) => CommandError::Usage(why),
            TlsFailure::Server(why) => CommandError::NotTrusted { address: self.address.clone(), why },
        }
    }

    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        request: ApiRequest,
    ) -> Result<(response::Parts, Incoming), CommandError> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(&error))?;
        // The connection task ends with the request.
        tokio::spawn(connection);
        let request = self.http_request(request).map_err(|error| self.broken(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| self.broken(&error))?;
        Ok(answer.into_parts())
    }

    /// The whole answer.
    async fn collected(
        &self,
        head: response::Parts,
        body: Incoming,
    ) -> Result<(StatusCode, ApiResponse), CommandError> {
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| self.broken(error.as_ref()))?.to_bytes();
        let answer = ApiResponse { headers: head.headers, body, address: self.address.clone() };
        Ok((head.status, answer))
    }

    fn broken(&self, error: &dyn Error) -> CommandError {
        CommandError::NoAnswer { address: self.address.clone(), why: with_causes(error) }
    }

    fn no_answer(&self) -> CommandError {
        let why = format!("no answer within {} s", ANSWER_WITHIN.as_secs());
        CommandError::NoAnswer { address: self.address.clone(), why }
    }

    fn http_request(&self, request: ApiRequest) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut builder =
            Request::builder().method(request.method).uri(request.target).header(HOST, self.address.host());
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if let Some(token) = &self.credentials.token {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
            value.set_sensitive(true);
            builder = builder.header(AUTHORIZATION, value);
        }
        if request.body.is_some() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        builder.body(Full::new(request.body.unwrap_or_default().into()))
    }
}

/// An answer that goes on.
#[derive(Debug)]
pub(crate) struct OpenAnswer(Incoming);

enum ServerStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl ApiResponse {
    /// Parses the body.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, CommandError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| CommandError::NotOurs { address: self.address.clone(), why: error.to_string() })
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|it| it.to_str().ok())
    }

    fn problem(self, status: StatusCode) -> CommandError {
        match serde_json::from_slice::<ProblemBody>(&self.body) {
            Ok(problem) => CommandError::Problem(Box::new(problem)),
            Err(_) => CommandError::NotOurs { address: self.address, why: format!("it answered {status}") },
        }
    }
}

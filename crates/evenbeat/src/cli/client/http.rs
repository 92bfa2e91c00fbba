//! Sends requests over HTTP.

use std::error::Error;
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

use super::{ApiRequest, CommandError, ServerAddress};
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
    runtime: Runtime,
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    address: ServerAddress,
}

impl Client {
    pub(crate) fn new(address: ServerAddress) -> io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Client { address, runtime })
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn send(&self, request: ApiRequest) -> Result<ApiResponse, CommandError> {
        self.runtime.block_on(self.send_async(request))
    }

    /// Waits.
    pub(crate) fn rest(&self, length: Length) {
        // The timer must be created inside the runtime.
        self.runtime.block_on(async { tokio::time::sleep(length).await });
    }

    async fn send_async(&self, request: ApiRequest) -> Result<ApiResponse, CommandError> {
        let connected = timeout(CONNECT_WITHIN, async {
            Ok::<_, io::Error>(match &self.address {
                ServerAddress::Unix(path) => {
                    ServerStream::Unix(UnixStream::connect(SocketPath::to(path)?.short()).await?)
                }
                ServerAddress::Tcp { host, port } => {
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    ServerStream::Tcp(TcpStream::connect((host, *port)).await?)
                }
            })
        });
        let no_server = |why: String| CommandError::NoServer { address: self.address.clone(), why };
        let stream = match connected.await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CommandError::Closed { address: self.address.clone(), why: error.to_string() });
            }
            Ok(Err(error)) => return Err(no_server(error.to_string())),
            Err(_) => return Err(no_server(format!("no connection within {} s", CONNECT_WITHIN.as_secs()))),
        };
        let answered = timeout(ANSWER_WITHIN, async {
            match stream {
                ServerStream::Unix(stream) => self.converse(stream, request).await,
                ServerStream::Tcp(stream) => self.converse(stream, request).await,
            }
        });
        answered.await.unwrap_or_else(|_| {
            let why = format!("no answer within {} s", ANSWER_WITHIN.as_secs());
            Err(CommandError::NoAnswer { address: self.address.clone(), why })
        })
    }

    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        request: ApiRequest,
    ) -> Result<ApiResponse, CommandError> {
        let broken = |error: &dyn Error| CommandError::NoAnswer {
            address: self.address.clone(),
            why: with_causes(error),
        };
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        // The connection task ends with the request.
        tokio::spawn(connection);
        let request = self.http_request(request).map_err(|error| broken(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| broken(error.as_ref()))?.to_bytes();
        let answer = ApiResponse { headers: head.headers, body, address: self.address.clone() };
        if head.status.is_success() { Ok(answer) } else { Err(answer.problem(head.status)) }
    }

    fn http_request(&self, request: ApiRequest) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut builder =
            Request::builder().method(request.method).uri(request.target).header(HOST, self.address.host());
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        if request.body.is_some() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        builder.body(Full::new(request.body.unwrap_or_default().into()))
    }
}

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

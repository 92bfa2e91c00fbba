//! Accepting connections, within limits.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration as Length;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tower::ServiceExt;

use super::caller::Peer;
use super::socket::Socket;
use super::stream::WriteWithin;

/// Largest head of a request we accept.
const HEAD_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 100;

/// How long a stopping server waits for answers in progress.
const GOODBYE: Length = Length::from_secs(5);

/// After an accept that failed (too many files are open, say) there is a moment of rest.
const REST: Length = Length::from_millis(100);

/// How many connections there may be, and how long each may take (S13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections over TCP.
    pub tcp_max: usize,
    /// Connections through the Unix socket, which TCP does not touch.
    pub socket_max: usize,
    /// Connections of a door beyond those. They are answered about health and nothing else, and the oldest is closed
    /// for a new one: asking for health takes a moment, and who stays longer wants something else.
    pub overflow_max: usize,
    /// How long the head of a request may take to come, from the moment the one before was answered.
    pub head_within: Length,
    /// How long an answer may wait for the other side to take a part of it.
    pub write_within: Length,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            tcp_max: 512,
            socket_max: 128,
            overflow_max: 64,
            head_within: Length::from_secs(5),
            write_within: Length::from_secs(10),
        }
    }
}

/// Marks the requests of a connection beyond the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow;

/// Where connections come from.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Over the network.
    pub tcp: Vec<TcpListener>,
    /// Through Unix sockets.
    pub sockets: Vec<Socket>,
}

/// Answers until `shutdown` is done; then takes nothing new, answers what was asked, and removes its sockets.
pub async fn serve(listeners: Listeners, router: Router, shutdown: impl Future<Output = ()>) {
    serve_within(ConnectionLimits::default(), listeners, router, shutdown).await;
}

/// The same with other limits.
pub async fn serve_within(
    limits: ConnectionLimits,
    listeners: Listeners,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopped) = watch::channel(false);
    let tcp = Arc::new(Semaphore::new(limits.tcp_max));
    let sockets = Arc::new(Semaphore::new(limits.socket_max));
    let house = |places: &Arc<Semaphore>| ConnectionRules {
        router: router.clone(),
        limits,
        places: Arc::clone(places),
        stop: stopped.clone(),
    };
    let mut doors = JoinSet::new();
    for listener in listeners.tcp {
        doors.spawn(open(listener, house(&tcp)));
    }
    for socket in listeners.sockets {
        doors.spawn(open(socket, house(&sockets)));
    }
    shutdown.await;
    stop.send_replace(true);
    let _ = timeout(GOODBYE + REST, doors.join_all()).await;
}

/// What all connections of a door share.
#[derive(Clone)]
struct ConnectionRules {
    router: Router,
    limits: ConnectionLimits,
    places: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

/// Something that accepts connections.
trait Acceptor: Send + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Acceptor for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = TcpListener::accept(self).await?;
        // Answers are small, and the client waits for them.
        stream.set_nodelay(true)?;
        Ok((stream, Peer::Tcp(address)))
    }
}

impl Acceptor for Socket {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        let (stream, _) = self.listener.accept().await?;
        let uid = stream.peer_cred()?.uid();
        Ok((stream, Peer::Socket { uid }))
    }
}

async fn open(door: impl Acceptor, house: ConnectionRules) {
    let mut stop = house.stop.clone();
    let mut open = JoinSet::new();
    let mut overflow: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            () = told(&mut stop) => break,
            accepted = door.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let place = Arc::clone(&house.places).try_acquire_owned().ok();
                let is_overflow = place.is_none();
                let connection = open.spawn(converse(stream, peer, house.clone(), place));
                if is_overflow {
                    overflow.retain(|it| !it.is_finished());
                    overflow.push_back(connection);
                    if house.limits.overflow_max < overflow.len()
                        && let Some(oldest) = overflow.pop_front()
                    {
                        oldest.abort();
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(REST).await;
            }
        }
        while open.try_join_next().is_some() {}
    }
    drop(door);
    let _ = timeout(GOODBYE, async { while open.join_next().await.is_some() {} }).await;
}

/// Waits until it is time to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    // A dropped sender means the same.
    let _ = stop.wait_for(|it| *it).await;
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    house: ConnectionRules,
    place: Option<OwnedSemaphorePermit>,
) {
    let ConnectionRules { router, limits, mut stop, .. } = house;
    let is_overflow = place.is_none();
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        if is_overflow {
            request.extensions_mut().insert(Overflow);
        }
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .keep_alive(!is_overflow)
        .max_header_size(HEAD_MAX)
        .max_headers(HEADERS_MAX);
    let stream = WriteWithin::new(stream, limits.write_within);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let done = tokio::select! {
        done = connection.as_mut() => done,
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = done {
        // People close connections as they like.
        tracing::debug!(%error, "connection closed early");
    }
    drop(place);
}

//! Accepting connections, within limits.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration as Length;

use axum::Router;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::Request;
use axum::http::request::Parts;
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
use super::crowd::{AddressPlace, Crowd};
use super::held_body::HeldBody;
use super::idle::{Activity, ReadWithin};
use super::operation::{DescribeInput, Operation};
use super::socket::Socket;
use super::stream::WriteWithin;
use super::tls::ServerTls;
use crate::config::Network;

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
    /// Connections from one address, unless it is a trusted proxy. Those beyond are treated like those beyond the other
    /// limits, except that requests with a token are answered.
    pub per_address_max: usize,
    /// Connections through the Unix socket, which TCP does not touch.
    pub socket_max: usize,
    /// Connections of a door beyond those. They are answered about health and nothing else, and the oldest is closed
    /// for a new one: a health check takes a moment, so a connection that stays longer is something else.
    pub overflow_max: usize,
    /// How long the head of a request may take to come, from its first byte on, or from the beginning of the connection.
    pub head_within: Length,
    /// How long a connection may say nothing after an answer.
    pub idle_within: Length,
    /// How long an answer may wait for the other side to take a part of it.
    pub write_within: Length,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            tcp_max: 512,
            per_address_max: 64,
            socket_max: 128,
            overflow_max: 64,
            head_within: Length::from_secs(5),
            idle_within: Length::from_mins(1),
            write_within: Length::from_secs(10),
        }
    }
}

/// Tells answers that go on when the server stops.
///
/// A request that came from no connection has none: its server never stops.
#[derive(Clone, Debug, Default)]
pub struct ServerStop(Option<watch::Receiver<bool>>);

impl ServerStop {
    /// Waits until the server stops.
    pub async fn stopped(&mut self) {
        match &mut self.0 {
            Some(stop) => told(stop).await,
            None => pending().await,
        }
    }
}

impl DescribeInput for ServerStop {
    fn describe(_operation: &mut Operation) {}
}

impl<S: Sync> FromRequestParts<S> for ServerStop {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<ServerStop, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// Marks the requests of a connection beyond the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow;

/// Marks the requests of a connection beyond the limit of its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowded;

/// Marks the requests of an encrypted connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encrypted;

/// Where connections come from.
#[derive(Debug, Default)]
pub struct Listeners {
    /// Over the network.
    pub tcp: Vec<TcpListener>,
    /// How these are encrypted, if they are.
    pub tls: Option<ServerTls>,
    /// Addresses that may have any number of connections.
    pub trusted_proxies: Vec<Network>,
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
    let crowd = Crowd::new(limits.per_address_max, listeners.trusted_proxies);
    let house = |places: &Arc<Semaphore>, tls: Option<ServerTls>| ConnectionRules {
        router: router.clone(),
        limits,
        places: Arc::clone(places),
        crowd: crowd.clone(),
        tls,
        stop: stopped.clone(),
    };
    let mut doors = JoinSet::new();
    for listener in listeners.tcp {
        doors.spawn(open(listener, house(&tcp, listeners.tls.clone())));
    }
    for socket in listeners.sockets {
        doors.spawn(open(socket, house(&sockets, None)));
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
    crowd: Crowd,
    tls: Option<ServerTls>,
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
                let place = ConnectionPlace::take(&house, peer);
                let is_extra = place.is_overflow || place.is_crowded;
                let connection = open.spawn(admit(stream, peer, house.clone(), place));
                if is_extra {
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

/// What a connection holds while it lasts.
struct ConnectionPlace {
    /// There are too many connections.
    is_overflow: bool,
    /// There are too many from its address.
    is_crowded: bool,
    _place: Option<OwnedSemaphorePermit>,
    _address: Option<AddressPlace>,
}

impl ConnectionPlace {
    fn take(house: &ConnectionRules, peer: Peer) -> ConnectionPlace {
        let address = match peer {
            Peer::Tcp(address) => Some(house.crowd.enter(address.ip())),
            Peer::Socket { .. } => None,
        };
        let is_crowded = address.as_ref().is_some_and(AddressPlace::is_crowded);
        // One address must not take the places of all others.
        let place = if is_crowded { None } else { Arc::clone(&house.places).try_acquire_owned().ok() };
        let is_overflow = !is_crowded && place.is_none();
        ConnectionPlace { is_overflow, is_crowded, _place: place, _address: address }
    }
}

/// Encrypts the connection if need be, and answers.
async fn admit(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    house: ConnectionRules,
    place: ConnectionPlace,
) {
    let Some(tls) = house.tls.as_ref().map(ServerTls::acceptor) else {
        return converse(stream, peer, house, place, Transport::Plain).await;
    };
    match timeout(house.limits.head_within, tls.accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, peer, house, place, Transport::Encrypted).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

/// How a connection travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Plain,
    Encrypted,
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    house: ConnectionRules,
    place: ConnectionPlace,
    transport: Transport,
) {
    let ConnectionRules { router, limits, mut stop, .. } = house;
    let ConnectionPlace { is_overflow, is_crowded, .. } = place;
    let activity = Activity::default();
    let watched = activity.clone();
    let stopping = stop.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        // Held by the answer until it has been sent: a stream that takes hours is not idle.
        let busy = watched.busy();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(ServerStop(Some(stopping.clone())));
        if is_overflow {
            request.extensions_mut().insert(Overflow);
        }
        if is_crowded {
            request.extensions_mut().insert(Crowded);
        }
        if transport == Transport::Encrypted {
            request.extensions_mut().insert(Encrypted);
        }
        let answer = router.clone().oneshot(request);
        async move {
            let answer = answer.await?;
            Ok::<_, Infallible>(answer.map(|body| Body::new(HeldBody::new(body, busy))))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .keep_alive(!is_overflow && !is_crowded)
        .max_header_size(HEAD_MAX)
        .max_headers(HEADERS_MAX);
    let stream = WriteWithin::new(stream, limits.write_within);
    let stream = ReadWithin::new(stream, activity, limits.head_within, limits.idle_within);
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
        // Clients may close connections at any time.
        tracing::debug!(%error, "connection closed early");
    }
    drop(place);
}

//! Accepting connections, within limits.

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
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use super::caller::Peer;
use super::socket::Socket;

/// So many connections are open at once; who comes then waits.
const CONNECTIONS_MAX: usize = 512;

const HEAD_WITHIN: Length = Length::from_secs(5);

/// So large a head may be.
const HEAD_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 100;

/// At the end, so long is waited for answers that are on their way.
const GOODBYE: Length = Length::from_secs(5);

/// After an accept that failed (too many files are open, say) there is a moment of rest.
const REST: Length = Length::from_millis(100);

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
    serve_within(HEAD_WITHIN, listeners, router, shutdown).await;
}

/// The same with another patience: so long the head of a request may take to come, from the moment the one before was
/// answered.
pub async fn serve_within(
    head_within: Length,
    listeners: Listeners,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let (stop, stopped) = watch::channel(false);
    let house =
        House { router, head_within, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)), stop: stopped };
    let mut doors = JoinSet::new();
    for tcp in listeners.tcp {
        doors.spawn(open(tcp, house.clone()));
    }
    for socket in listeners.sockets {
        doors.spawn(open(socket, house.clone()));
    }
    shutdown.await;
    stop.send_replace(true);
    let _ = timeout(GOODBYE + REST, doors.join_all()).await;
}

/// What all connections share.
#[derive(Clone)]
struct House {
    router: Router,
    head_within: Length,
    places: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

/// Something that accepts connections.
trait Door: Send + 'static {
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = TcpListener::accept(self).await?;
        // Answers are small, and whoever asks waits for them.
        stream.set_nodelay(true)?;
        Ok((stream, Peer::Tcp(address)))
    }
}

impl Door for Socket {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        let (stream, _) = self.listener.accept().await?;
        let uid = stream.peer_cred()?.uid();
        Ok((stream, Peer::Socket { uid }))
    }
}

async fn open(door: impl Door, house: House) {
    let mut stop = house.stop.clone();
    let mut open = JoinSet::new();
    loop {
        // A place first: who has none yet waits outside, where the system keeps them.
        let place = tokio::select! {
            () = told(&mut stop) => break,
            place = Arc::clone(&house.places).acquire_owned() => place,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            () = told(&mut stop) => break,
            accepted = door.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                open.spawn(converse(stream, peer, house.clone(), place));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
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
    // Whoever would tell is gone: that is the same.
    let _ = stop.wait_for(|it| *it).await;
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    house: House,
    place: OwnedSemaphorePermit,
) {
    let House { router, head_within, mut stop, .. } = house;
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head_within)
        .max_header_size(HEAD_MAX)
        .max_headers(HEADERS_MAX);
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
        tracing::debug!(%error, "a connection broke");
    }
    drop(place);
}

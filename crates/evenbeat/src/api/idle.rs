//! A connection that is given up when the other side says nothing, or says the head of a request too slowly.
//!
//! The server library has one limit for both. They differ: a browser or a proxy may keep a connection for a minute and then
//! use it again, while a head that trickles is an attack.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration as Length;

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What a connection is doing. Shared by its reads and its answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity(Arc<ActivityState>);

#[derive(Debug, Default)]
struct ActivityState {
    /// Requests that are not fully answered. Their bodies have limits of their own.
    n_busy: AtomicUsize,
    /// Requests so far. Waiting for the second is not waiting for the first.
    n_requests: AtomicUsize,
    /// The connection, which looks again when an answer is done: the server library does not, and the rest begins then.
    connection: AtomicWaker,
}

/// One request, until this is dropped.
#[derive(Debug)]
pub(super) struct BusyRequest(Activity);

impl Activity {
    pub(super) fn busy(&self) -> BusyRequest {
        self.0.n_busy.fetch_add(1, Ordering::AcqRel);
        self.0.n_requests.fetch_add(1, Ordering::AcqRel);
        BusyRequest(self.clone())
    }

    fn n_requests(&self) -> usize {
        self.0.n_requests.load(Ordering::Acquire)
    }

    fn is_busy(&self) -> bool {
        0 < self.0.n_busy.load(Ordering::Acquire)
    }
}

impl Drop for BusyRequest {
    fn drop(&mut self) {
        self.0.0.n_busy.fetch_sub(1, Ordering::AcqRel);
        self.0.0.connection.wake();
    }
}

/// A stream whose reads have limits while no request is being answered.
#[derive(Debug)]
pub(super) struct ReadWithin<S> {
    stream: S,
    activity: Activity,
    head_within: Length,
    idle_within: Length,
    waiting: Option<ReadWait>,
}

/// What is waited for, and until when.
#[derive(Debug)]
struct ReadWait {
    is_idle: bool,
    /// Requests before it. Once there are more, the wait is over.
    n_requests: usize,
    sleep: Pin<Box<Sleep>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ReadWithin<S> {
    pub(super) fn new(
        stream: S,
        activity: Activity,
        head_within: Length,
        idle_within: Length,
    ) -> ReadWithin<S> {
        ReadWithin { stream, activity, head_within, idle_within, waiting: None }
    }

    /// Starts to wait, unless that has been done for the same purpose.
    fn wait(&mut self, is_idle: bool) -> &mut ReadWait {
        let within = if is_idle { self.idle_within } else { self.head_within };
        let n_requests = self.activity.n_requests();
        self.waiting.get_or_insert_with(|| ReadWait { is_idle, n_requests, sleep: Box::pin(sleep(within)) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ReadWithin<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Before the look at what is busy: an answer that is done in between is not missed.
        self.activity.0.connection.register(cx.waker());
        let n_before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let n_requests = self.activity.n_requests();
        if self.activity.is_busy() || self.waiting.as_ref().is_some_and(|it| it.n_requests != n_requests) {
            self.waiting = None;
        }
        if self.activity.is_busy() {
            return read;
        }
        let is_said = read.is_ready() && n_before < buf.filled().len();
        if is_said {
            // The first byte after a pause begins a head. One that goes on keeps the time it has left.
            if self.waiting.as_ref().is_some_and(|it| it.is_idle) {
                self.waiting = None;
            }
            self.wait(false);
        }
        if read.is_ready() {
            return read;
        }
        let is_idle = self.waiting.is_none() && 0 < n_requests;
        ready!(self.wait(is_idle).sleep.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side says nothing")))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ReadWithin<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

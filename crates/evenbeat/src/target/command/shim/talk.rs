//! A shim's side of the conversation: one scheduler at a time, the latest that has connected.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use evenbeat_core::time::BootTime;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use crate::target::command::places::SOCKET;
use crate::target::command::word::{FromShim, Line, Lines, TO_SHIM_MAX};

/// Whoever does not read for so long gets only what must be said.
const UNSENT_MAX: usize = 64 << 10;

/// Whom a shim listens to.
#[derive(Debug)]
pub(super) struct Talk {
    listener: UnixListener,
    peer: Option<Peer>,
    /// Since when nobody is connected.
    alone_since: Option<BootTime>,
}

#[derive(Debug)]
struct Peer {
    stream: UnixStream,
    lines: Lines,
    unsent: Vec<u8>,
}

impl Talk {
    /// Listens in the folder of the run, which is the current one; the scheduler that started the shim is connected.
    pub(super) fn new(first: Option<OwnedFd>, now: BootTime) -> io::Result<Talk> {
        let listener = UnixListener::bind(SOCKET)?;
        listener.set_nonblocking(true)?;
        let mut talk = Talk { listener, peer: None, alone_since: Some(now) };
        if let Some(first) = first {
            talk.connect(UnixStream::from(first))?;
        }
        Ok(talk)
    }

    /// Since when nobody is connected, if so.
    pub(super) fn alone_since(&self) -> Option<BootTime> {
        self.alone_since
    }

    /// Whether all that was said is on its way, or there is nobody to hear it.
    pub(super) fn is_said(&self) -> bool {
        self.peer.as_ref().is_none_or(|peer| peer.unsent.is_empty())
    }

    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The connection, and whether there is something to be sent over it.
    pub(super) fn peer(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.peer.as_ref().map(|peer| (peer.stream.as_fd(), !peer.unsent.is_empty()))
    }

    /// Lets in whoever knocks, if it is this user or root; the one before is let go. Whether somebody came in.
    pub(super) fn accept(&mut self) -> bool {
        let Ok((stream, _)) = self.listener.accept() else { return false };
        let is_ours = socket_peercred(&stream).is_ok_and(|it| it.uid == geteuid() || it.uid.is_root());
        if !is_ours {
            return false;
        }
        self.say(&FromShim::Replaced);
        if let Some(before) = self.peer.take() {
            let _ = before.stream.shutdown(Shutdown::Both);
        }
        self.connect(stream).is_ok()
    }

    fn connect(&mut self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        self.peer = Some(Peer { stream, lines: Lines::new(TO_SHIM_MAX), unsent: Vec::new() });
        self.alone_since = None;
        Ok(())
    }

    /// Says something to whoever is connected.
    pub(super) fn say(&mut self, word: &FromShim) {
        let Some(peer) = &mut self.peer else { return };
        let is_minor = matches!(word, FromShim::Frozen(_) | FromShim::Thawed(_) | FromShim::Pong);
        if is_minor && UNSENT_MAX < peer.unsent.len() {
            return;
        }
        peer.unsent.extend_from_slice(format!("{word}\n").as_bytes());
        self.send();
    }

    /// Sends what can be sent now.
    pub(super) fn send(&mut self) {
        let Some(peer) = &mut self.peer else { return };
        while !peer.unsent.is_empty() {
            match peer.stream.write(&peer.unsent) {
                Ok(n_sent) => drop(peer.unsent.drain(..n_sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It is gone; reading will say so.
                Err(_) => peer.unsent.clear(),
            }
        }
    }

    /// What was said since the last time. Whoever has left is gone after that, and it is not held against anybody.
    pub(super) fn hear(&mut self, now: BootTime) -> Vec<Line> {
        let Some(peer) = &mut self.peer else { return Vec::new() };
        let mut bytes = [0; 4_096];
        let is_there = match peer.stream.read(&mut bytes) {
            Ok(0) => false,
            Ok(n_read) => return peer.lines.push(bytes.get(..n_read).unwrap_or_default()),
            Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
        };
        if !is_there {
            let _ = peer.stream.shutdown(Shutdown::Both);
            self.peer = None;
            self.alone_since = Some(now);
        }
        Vec::new()
    }
}

//! A shim's connection to its scheduler: one at a time, the latest that has connected.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use evenbeat_core::time::BootTime;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, geteuid};

use crate::target::command::places::{Places, SOCKET};
use crate::target::command::proc::{self, ProcessIdentity};
use crate::target::command::protocol::{FromShim, LineReader, ProtocolLine, TO_SHIM_MAX};

/// With more unsent bytes than this, a scheduler gets only the messages that it must not miss.
const UNSENT_MAX: usize = 64 << 10;

/// How often the list of locks is read before a peer counts as one that does not hold the node's lock.
const LOCK_LOOKS: usize = 10;

/// The socket of a shim, and the scheduler that is connected to it.
#[derive(Debug)]
pub(super) struct SchedulerLink {
    listener: UnixListener,
    scheduler: SchedulerIdentity,
    peer: Option<SchedulerStream>,
    /// Since when no scheduler is connected.
    alone_since: Option<BootTime>,
}

#[derive(Debug)]
struct SchedulerStream {
    stream: UnixStream,
    lines: LineReader,
    unsent: Vec<u8>,
}

impl SchedulerLink {
    /// Listens in the current directory, the folder of the run. The scheduler that started the shim is connected.
    pub(super) fn new(first: Option<OwnedFd>, places: &Places, now: BootTime) -> io::Result<SchedulerLink> {
        let listener = UnixListener::bind(SOCKET)?;
        listener.set_nonblocking(true)?;
        let first = first.map(UnixStream::from);
        let scheduler = SchedulerIdentity::new(first.as_ref(), places);
        let mut link = SchedulerLink { listener, scheduler, peer: None, alone_since: Some(now) };
        if let Some(first) = first {
            link.connect(first)?;
        }
        Ok(link)
    }

    /// Since when no scheduler is connected. `None` if one is.
    pub(super) fn alone_since(&self) -> Option<BootTime> {
        self.alone_since
    }

    /// Whether all messages are sent, or no scheduler is connected.
    pub(super) fn is_flushed(&self) -> bool {
        self.peer.as_ref().is_none_or(|peer| peer.unsent.is_empty())
    }

    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// The connection, and whether it has unsent bytes.
    pub(super) fn peer(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.peer.as_ref().map(|peer| (peer.stream.as_fd(), !peer.unsent.is_empty()))
    }

    /// Accepts a connection of the scheduler and closes the one before. Returns whether there is a new one.
    pub(super) fn accept(&mut self) -> bool {
        let Ok((stream, _)) = self.listener.accept() else { return false };
        if !self.scheduler.matches(&stream) {
            return false;
        }
        self.send(&FromShim::Replaced);
        if let Some(before) = self.peer.take() {
            let _ = before.stream.shutdown(Shutdown::Both);
        }
        self.connect(stream).is_ok()
    }

    fn connect(&mut self, stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        self.peer = Some(SchedulerStream { stream, lines: LineReader::new(TO_SHIM_MAX), unsent: Vec::new() });
        self.alone_since = None;
        Ok(())
    }

    /// Sends a message if a scheduler is connected.
    pub(super) fn send(&mut self, message: &FromShim) {
        let Some(peer) = &mut self.peer else { return };
        let is_minor = matches!(message, FromShim::Frozen(_) | FromShim::Thawed(_) | FromShim::Pong);
        if is_minor && UNSENT_MAX < peer.unsent.len() {
            return;
        }
        peer.unsent.extend_from_slice(format!("{message}\n").as_bytes());
        self.flush();
    }

    /// Writes as much as the socket takes now.
    pub(super) fn flush(&mut self) {
        let Some(peer) = &mut self.peer else { return };
        while !peer.unsent.is_empty() {
            match peer.stream.write(&peer.unsent) {
                Ok(n_sent) => drop(peer.unsent.drain(..n_sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It is gone; the next read reports that.
                Err(_) => peer.unsent.clear(),
            }
        }
    }

    /// The lines that have arrived since the last call. Drops the connection at its end.
    pub(super) fn receive(&mut self, now: BootTime) -> Vec<ProtocolLine> {
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

/// Who may connect: the process that started the shim, or the one that holds the node's lock. Not the run itself, which
/// could otherwise extend its own lease, and no other run of the same user.
#[derive(Debug)]
struct SchedulerIdentity {
    started_by: Option<ProcessIdentity>,
    node_lock: PathBuf,
}

impl SchedulerIdentity {
    fn new(first: Option<&UnixStream>, places: &Places) -> SchedulerIdentity {
        let started_by = first.and_then(|it| socket_peercred(it).ok()).and_then(|it| proc::look(raw(it.pid)));
        SchedulerIdentity { started_by: started_by.map(|it| it.identity()), node_lock: places.node_lock() }
    }

    fn matches(&self, stream: &UnixStream) -> bool {
        let Ok(peer) = socket_peercred(stream) else { return false };
        let pid = raw(peer.pid);
        let started_us = self.started_by.is_some_and(|it| it.look().is_some_and(|now| now.pid == pid));
        (peer.uid == geteuid() || peer.uid.is_root()) && (started_us || self.holds_node_lock(pid))
    }

    fn holds_node_lock(&self, pid: i32) -> bool {
        let Ok(inode) = std::fs::metadata(&self.node_lock).map(|it| it.ino()) else { return false };
        // The kernel hands out the list page by page, and a lock can slip from one page to the next meanwhile. So a lock
        // that is not found once may still be there; one that is found is.
        (0..LOCK_LOOKS).any(|_| match std::fs::read_to_string("/proc/locks") {
            Ok(locks) => locks.lines().any(|line| is_lock_of(line, pid, inode)),
            // Without that list, the check of the user must do.
            Err(_) => true,
        })
    }
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

/// Whether this line of `/proc/locks` says that a process holds a file exclusively:
/// `1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF`. The device is not compared: some file systems show another one there.
fn is_lock_of(line: &str, pid: i32, inode: u64) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", by, file, ..] = fields.as_slice() else { return false };
    by.parse() == Ok(pid) && file.rsplit(':').next().is_some_and(|it| it.parse() == Ok(inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_read_from_the_list_of_the_kernel() {
        let line = "12: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF";
        assert!(is_lock_of(line, 4711, 1234));
        assert!(!is_lock_of(line, 4712, 1234));
        assert!(!is_lock_of(line, 4711, 123));
        assert!(
            !is_lock_of("12: -> FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF", 4711, 1234),
            "it only waits"
        );
        assert!(!is_lock_of("12: POSIX  ADVISORY  WRITE 4711 fe:01:1234 0 EOF", 4711, 1234));
        assert!(!is_lock_of("12: FLOCK  ADVISORY  READ 4711 fe:01:1234 0 EOF", 4711, 1234));
        assert!(!is_lock_of("", 4711, 1234));
    }
}

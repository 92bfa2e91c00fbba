//! The scheduler's connection to one shim.

use std::io;

use evenbeat_core::ids::RunId;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::handle::RunHandle;
use crate::socket_path::SocketPath;
use crate::target::command::places::{Places, SOCKET};
use crate::target::command::protocol::{FROM_SHIM_MAX, FromShim, LineReader, ProtocolLine};

/// A connection to a shim.
#[derive(Debug)]
pub(super) struct ShimLink {
    stream: UnixStream,
    lines: LineReader,
    unsent: Vec<u8>,
}

impl ShimLink {
    pub(super) fn new(stream: UnixStream) -> ShimLink {
        ShimLink { stream, lines: LineReader::new(FROM_SHIM_MAX), unsent: Vec::new() }
    }

    /// Connects to the shim of a run. `None` if there is no shim; any other error says nothing about it.
    pub(super) async fn connect(places: &Places, run: RunId) -> io::Result<Option<ShimLink>> {
        match ShimLink::try_to_connect(places, run).await {
            Ok(link) => Ok(Some(link)),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }

    async fn try_to_connect(places: &Places, run: RunId) -> io::Result<ShimLink> {
        let socket = SocketPath::to(&places.run(run).join(SOCKET))?;
        Ok(ShimLink::new(UnixStream::connect(socket.short()).await?))
    }

    /// Sends what is queued and waits for messages. `None` if the shim is gone. Nothing is lost if this is cancelled.
    pub(super) async fn receive(&mut self, handle: &RunHandle) -> Option<Vec<FromShim>> {
        loop {
            for message in handle.take_messages() {
                self.unsent.extend_from_slice(format!("{message}\n").as_bytes());
            }
            if self.send().is_err() {
                // What it sent before it left can still be read.
                self.unsent.clear();
            }
            match self.read() {
                Ok(Some(messages)) if messages.is_empty() => continue,
                Ok(Some(messages)) => return Some(messages),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return None,
            }
            let interest = if self.unsent.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            tokio::select! {
                _ = self.stream.ready(interest) => {}
                () = handle.wait() => {}
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(n_sent) => drop(self.unsent.drain(..n_sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The messages that have arrived. `None` at the end of the stream.
    fn read(&mut self) -> io::Result<Option<Vec<FromShim>>> {
        let mut bytes = [0; 4_096];
        let n_read = self.stream.try_read(&mut bytes)?;
        if n_read == 0 {
            return Ok(None);
        }
        let lines = self.lines.push(bytes.get(..n_read).unwrap_or_default());
        // Messages that only a later version knows are ignored.
        let message = |line| if let ProtocolLine::Text(text) = line { FromShim::read(&text) } else { None };
        Ok(Some(lines.into_iter().filter_map(message).collect()))
    }
}

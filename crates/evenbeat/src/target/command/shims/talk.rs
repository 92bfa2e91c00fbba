//! The scheduler's side of the conversation with one shim, from its connection to its last word.

use std::io;

use evenbeat_core::ids::RunId;
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::held::Held;
use crate::socket_path::SocketPath;
use crate::target::command::places::{Places, SOCKET};
use crate::target::command::word::{FROM_SHIM_MAX, FromShim, Line, Lines};

/// A connection to a shim.
#[derive(Debug)]
pub(super) struct Talk {
    stream: UnixStream,
    lines: Lines,
    unsent: Vec<u8>,
}

/// What a connection brings next.
#[derive(Debug)]
pub(super) enum Heard {
    /// The shim says something.
    Words(Vec<FromShim>),
    /// It is gone.
    Nobody,
}

impl Talk {
    pub(super) fn new(stream: UnixStream) -> Talk {
        Talk { stream, lines: Lines::new(FROM_SHIM_MAX), unsent: Vec::new() }
    }

    /// Connects to the shim of a run; none if there is none. Any other trouble says nothing about the shim.
    pub(super) async fn connect(places: &Places, run: RunId) -> io::Result<Option<Talk>> {
        match Talk::try_to_connect(places, run).await {
            Ok(talk) => Ok(Some(talk)),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }

    async fn try_to_connect(places: &Places, run: RunId) -> io::Result<Talk> {
        let socket = SocketPath::to(&places.run(run).join(SOCKET))?;
        Ok(Talk::new(UnixStream::connect(socket.short()).await?))
    }

    /// Says what there is to say and waits for something to hear. Nothing is lost if it is not waited for to the end.
    pub(super) async fn hear(&mut self, held: &Held) -> Heard {
        loop {
            for word in held.take() {
                self.unsent.extend_from_slice(format!("{word}\n").as_bytes());
            }
            if self.send().is_err() {
                // What it said before it left is still to be heard.
                self.unsent.clear();
            }
            match self.read() {
                Ok(Some(words)) if words.is_empty() => continue,
                Ok(Some(words)) => return Heard::Words(words),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return Heard::Nobody,
            }
            let interest = if self.unsent.is_empty() {
                Interest::READABLE
            } else {
                Interest::READABLE | Interest::WRITABLE
            };
            tokio::select! {
                _ = self.stream.ready(interest) => {}
                () = held.wait() => {}
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

    /// What is there; none if nothing will ever be again.
    fn read(&mut self) -> io::Result<Option<Vec<FromShim>>> {
        let mut bytes = [0; 4_096];
        let n_read = self.stream.try_read(&mut bytes)?;
        if n_read == 0 {
            return Ok(None);
        }
        let lines = self.lines.push(bytes.get(..n_read).unwrap_or_default());
        // A word that a later version may know is none of ours.
        let word = |line| if let Line::Text(text) = line { FromShim::read(&text) } else { None };
        Ok(Some(lines.into_iter().filter_map(word).collect()))
    }
}

//! How a process is asked to stop, or to read its job files again.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// From a service manager.
    Terminate,
    /// From a person at a terminal.
    Interrupt,
}

impl Signal {
    /// As people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Signal::Terminate => "SIGTERM",
            Signal::Interrupt => "SIGINT",
        }
    }
}

/// The signals that ask a process to stop, one after the other.
#[derive(Debug)]
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    /// From now on they do not end the process by themselves. Must be called within the runtime.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
        }
    }
}

/// The signal that asks a process to read its job files again (SIGHUP). Several that arrive before the next wait count as one.
#[derive(Debug)]
pub struct Hangups(unix::Signal);

impl Hangups {
    /// From now on the signal does not end the process. Must be called within the runtime.
    pub fn new() -> io::Result<Hangups> {
        Ok(Hangups(unix::signal(SignalKind::hangup())?))
    }

    /// Waits for the next.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // None will ever come.
            std::future::pending::<()>().await;
        }
    }
}

//! Starting shims, and waiting for them: one thread that does nothing else, and lives as long as the scheduler does.

use std::fs::{DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::oneshot;

#[cfg(debug_assertions)]
use crate::point::STOP_AT;
use crate::point::point;
use crate::target::command::order::Order;

/// The variable that marks everything that belongs to a run.
pub(super) const MARKER: &str = "EVENBEAT_RUN_ID";

/// Starts shims, one after the other.
#[derive(Debug)]
pub(super) struct Launcher {
    asks: Option<mpsc::Sender<Ask>>,
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Ask {
    order: Box<Order>,
    answer: oneshot::Sender<io::Result<UnixStream>>,
}

impl Launcher {
    pub(super) fn new(program: PathBuf) -> io::Result<Launcher> {
        let (asks, asked) = mpsc::channel();
        let bell = Arc::new(Bell::new()?);
        let nursery =
            Nursery { program, asked, bell: Arc::clone(&bell), children: Vec::new(), is_left: false };
        thread::Builder::new().name("shim launcher".to_owned()).spawn(move || nursery.live())?;
        Ok(Launcher { asks: Some(asks), bell })
    }

    /// Starts a shim, and gives the connection to it.
    pub(super) async fn launch(&self, order: Box<Order>) -> io::Result<UnixStream> {
        let gone = || io::Error::other("the thread that starts shims is gone");
        let (answer, answered) = oneshot::channel();
        let asks = self.asks.as_ref().ok_or_else(gone)?;
        asks.send(Ask { order, answer }).map_err(|_| gone())?;
        self.bell.ring();
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.asks = None;
        self.bell.ring();
    }
}

/// The thread's own: it starts shims and waits for those that are over, so that nothing is left of them. It lives until
/// its launcher is gone and the last of them is.
#[derive(Debug)]
struct Nursery {
    program: PathBuf,
    asked: mpsc::Receiver<Ask>,
    bell: Arc<Bell>,
    children: Vec<Watched>,
    is_left: bool,
}

/// A shim that was not waited for yet.
#[derive(Debug)]
struct Watched {
    child: Child,
    /// Readable when it is over; none if there was no file to spare.
    pidfd: Option<OwnedFd>,
}

/// How often those are looked at that cannot be watched.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

impl Nursery {
    fn live(mut self) {
        while !self.is_left || !self.children.is_empty() {
            self.wait();
            self.bell.hush();
            self.children.retain_mut(|it| matches!(it.child.try_wait(), Ok(None)));
            self.answer();
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.bell.0, PollFlags::IN)];
        fds.extend(
            self.children.iter().filter_map(|it| Some(PollFd::new(it.pidfd.as_ref()?, PollFlags::IN))),
        );
        let are_all_watched = fds.len() == self.children.len() + 1;
        let _ = poll(&mut fds, if are_all_watched { None } else { Some(&LOOK_EVERY) });
    }

    fn answer(&mut self) {
        loop {
            match self.asked.try_recv() {
                Ok(Ask { order, answer }) => {
                    let launched = launch(&self.program, &order).map(|(child, stream)| {
                        // While nobody has waited for it, its number is its own.
                        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
                        self.children.push(Watched { child, pidfd });
                        stream
                    });
                    // Whoever asked may be gone: then the connection goes too, and the shim decides by itself.
                    let _ = answer.send(launched);
                }
                Err(mpsc::TryRecvError::Empty) => return,
                Err(mpsc::TryRecvError::Disconnected) => {
                    self.is_left = true;
                    return;
                }
            }
        }
    }
}

/// Wakes the thread up.
#[derive(Debug)]
struct Bell(OwnedFd);

impl Bell {
    fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

fn launch(program: &Path, order: &Order) -> io::Result<(Child, UnixStream)> {
    DirBuilder::new().mode(0o700).create(order.places.run(order.run))?;
    point("launch.folder");
    let launched = spawn(program, order);
    point("launch.spawned");
    if launched.is_err() {
        let _ = std::fs::remove_dir_all(order.places.run(order.run));
    }
    launched
}

fn spawn(program: &Path, order: &Order) -> io::Result<(Child, UnixStream)> {
    let (ours, its) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command
        .arg0("evenbeat")
        .arg("shim")
        .env_clear()
        .env(MARKER, order.run.to_string())
        .stdin(document(&order.to_text())?)
        .stdout(OwnedFd::from(its))
        .stderr(Stdio::null());
    #[cfg(debug_assertions)]
    command.envs(std::env::var_os(STOP_AT).map(|place| (STOP_AT, place)));
    let child = command.spawn()?;
    Ok((child, ours))
}

/// A text that can be read to its end. It is in memory, not in a pipe: a pipe has room for little, and one shim that
/// does not read would hold up all others.
fn document(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("evenbeat-order", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

//! Starts shims and waits for their ends, on one thread that lives as long as the scheduler.

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
    requests: Option<mpsc::Sender<LaunchRequest>>,
    waker: Arc<Waker>,
}

#[derive(Debug)]
struct LaunchRequest {
    order: Box<Order>,
    answer: oneshot::Sender<io::Result<UnixStream>>,
}

impl Launcher {
    pub(super) fn new(program: PathBuf) -> io::Result<Launcher> {
        let (to_thread, requests) = mpsc::channel();
        let waker = Arc::new(Waker::new()?);
        let launch_thread = LaunchThread {
            program,
            requests,
            waker: Arc::clone(&waker),
            children: Vec::new(),
            is_closed: false,
        };
        thread::Builder::new().name("shim launcher".to_owned()).spawn(move || launch_thread.live())?;
        Ok(Launcher { requests: Some(to_thread), waker })
    }

    /// Starts a shim and returns the connection to it.
    pub(super) async fn launch(&self, order: Box<Order>) -> io::Result<UnixStream> {
        let gone = || io::Error::other("the thread that starts shims is gone");
        let (answer, answered) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(LaunchRequest { order, answer }).map_err(|_| gone())?;
        self.waker.wake();
        answered.await.map_err(|_| gone())?
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.requests = None;
        self.waker.wake();
    }
}

/// The state of the thread. It ends when its launcher is gone and its last shim has ended.
#[derive(Debug)]
struct LaunchThread {
    program: PathBuf,
    requests: mpsc::Receiver<LaunchRequest>,
    waker: Arc<Waker>,
    children: Vec<ShimProcess>,
    is_closed: bool,
}

/// A shim that has not been waited for yet.
#[derive(Debug)]
struct ShimProcess {
    child: Child,
    /// Readable when it has ended. `None` if the process had no file descriptor left.
    pidfd: Option<OwnedFd>,
}

/// How often we check shims without a descriptor.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

impl LaunchThread {
    fn live(mut self) {
        while !self.is_closed || !self.children.is_empty() {
            self.wait();
            self.waker.reset();
            self.children.retain_mut(|it| matches!(it.child.try_wait(), Ok(None)));
            self.answer();
        }
    }

    fn wait(&self) {
        let mut fds = vec![PollFd::new(&self.waker.0, PollFlags::IN)];
        fds.extend(
            self.children.iter().filter_map(|it| Some(PollFd::new(it.pidfd.as_ref()?, PollFlags::IN))),
        );
        let are_all_watched = fds.len() == self.children.len() + 1;
        let _ = poll(&mut fds, if are_all_watched { None } else { Some(&LOOK_EVERY) });
    }

    fn answer(&mut self) {
        loop {
            match self.requests.try_recv() {
                Ok(LaunchRequest { order, answer }) => {
                    let launched = launch(&self.program, &order).map(|(child, stream)| {
                        // Its pid is not reused before we have waited for it.
                        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
                        self.children.push(ShimProcess { child, pidfd });
                        stream
                    });
                    // If the caller is gone, the connection closes, and the shim acts on its own.
                    let _ = answer.send(launched);
                }
                Err(mpsc::TryRecvError::Empty) => return,
                Err(mpsc::TryRecvError::Disconnected) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }
}

/// Wakes the thread.
#[derive(Debug)]
struct Waker(OwnedFd);

impl Waker {
    fn new() -> io::Result<Waker> {
        Ok(Waker(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn reset(&self) {
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

/// A file in memory with this text. A pipe holds little, and one shim that does not read would hold up all others.
fn document(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("evenbeat-order", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

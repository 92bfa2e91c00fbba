//! The scheduler's side: it starts shims, talks to them, and takes over those of an earlier scheduler.
//!
//! No call waits for a shim. Requests are queued, and whatever happens is reported as news, in order for each run.

mod handle;
mod launch;
mod link;
mod supervise;
mod sweep;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{BootTime, Duration};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::handle::RunHandle;
use self::launch::Launcher;
use self::link::ShimLink;
use super::order::{Order, read_run};
use super::places::Places;
use super::protocol::ToShim;
use crate::point::point;
use crate::target::{NEWS_MAX, RunNews};

/// How often shims are pinged.
const PING_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// Pause before we try again to remove a folder.
const REMOVE_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Settings of the scheduler's side.
#[derive(Clone, Debug)]
pub struct ShimOptions {
    /// The data directory.
    pub places: Places,
    /// The program that becomes a shim when it is called with `shim`: this one.
    pub program: PathBuf,
    /// The cgroup that holds those of the runs, where that is possible.
    pub cgroup: Option<PathBuf>,
    /// How long a kill may take before it is reported (K).
    pub kill_bound: Duration,
}

impl ShimOptions {
    /// Shims are this very program, even if its file has been replaced since.
    pub fn new(places: Places) -> ShimOptions {
        let kill_bound = super::order::Bounds::default().kill;
        ShimOptions { places, program: PathBuf::from("/proc/self/exe"), cgroup: None, kill_bound }
    }
}

/// A run of an earlier scheduler of this node, to be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    pub run: RunId,
    /// The fence of its lease.
    pub fence: Fence,
    /// Whether it must not execute without a lease.
    pub is_leased: bool,
    /// How long it may take to end after SIGTERM.
    pub grace: Duration,
}

/// All shims of a scheduler. Clones share them.
#[derive(Clone, Debug)]
pub struct Shims {
    inner: Arc<ShimsInner>,
}

#[derive(Debug)]
struct ShimsInner {
    options: ShimOptions,
    /// Runs all tasks, whichever thread asks for them.
    runtime: Handle,
    launcher: Launcher,
    news: mpsc::Sender<RunNews>,
    runs: Mutex<BTreeMap<RunId, Arc<RunHandle>>>,
    tasks: Mutex<JoinSet<()>>,
    is_closing: watch::Sender<bool>,
    /// Number of runs in a row that could not be started.
    n_failed_starts: AtomicU32,
}

impl Shims {
    /// The scheduler's side, and the receiver of its news. Must be called within a `tokio` runtime.
    pub fn new(options: ShimOptions) -> io::Result<(Shims, mpsc::Receiver<RunNews>)> {
        let (to_news, news) = mpsc::channel(NEWS_MAX);
        Ok((Shims::reporting_to(options, to_news)?, news))
    }

    /// The scheduler's side, with news sent to `news`. Must be called within a `tokio` runtime.
    pub fn reporting_to(options: ShimOptions, news: mpsc::Sender<RunNews>) -> io::Result<Shims> {
        let inner = ShimsInner {
            launcher: Launcher::new(options.program.clone())?,
            options,
            runtime: Handle::current(),
            news,
            runs: Mutex::default(),
            tasks: Mutex::default(),
            is_closing: watch::Sender::new(false),
            n_failed_starts: AtomicU32::new(0),
        };
        let inner = Arc::new(inner);
        tokio::spawn(ping(Arc::downgrade(&inner)));
        Ok(Shims { inner })
    }

    /// When the shim of a run last sent a message, on the boot clock. `None` for unknown runs.
    pub fn heard_at(&self, run: RunId) -> Option<BootTime> {
        self.inner.runs().get(&run).and_then(|handle| handle.heard_at())
    }

    /// Starts a run. Never waits and never fails: errors are reported as news.
    pub fn start(&self, order: Order) {
        let handle = Arc::new(RunHandle::new(order.fence, order.lease_until.is_some(), order.grace));
        self.inner.runs().insert(order.run, Arc::clone(&handle));
        point("start.asked");
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move { inner.supervise_new(Box::new(order), handle).await });
    }

    /// Extends the lease of every leased run that is not revoked.
    pub fn extend(&self, until: BootTime) {
        for handle in self.inner.runs().values().filter(|it| it.is_leased) {
            handle.send(ToShim::Extend { until, fence: handle.fence });
        }
    }

    /// Ends a run in good order, with an outcome.
    pub fn stop(&self, run: RunId, outcome: Outcome) {
        self.send(run, |handle| ToShim::Stop { outcome, grace: handle.grace });
    }

    /// Kills a run that this node no longer owns.
    pub fn revoke(&self, run: RunId) {
        self.send(run, |_| ToShim::Revoke);
    }

    /// Takes over these runs of an earlier scheduler of this node, and ends all others that it has left behind.
    ///
    /// When this returns, the shims that are alive are connected and get every later message; what became of the others
    /// is reported as news.
    pub async fn adopt(&self, runs: &[Adoption]) {
        for it in runs {
            let handle = Arc::new(RunHandle::new(it.fence, it.is_leased, it.grace));
            self.inner.runs().insert(it.run, Arc::clone(&handle));
            self.take_over(it.run, handle).await;
        }
        for run in self.left_behind() {
            let handle = Arc::new(RunHandle::left_behind());
            handle.send(ToShim::Revoke);
            self.inner.runs().insert(run, Arc::clone(&handle));
            self.take_over(run, handle).await;
        }
    }

    /// The end of a run is on record: removes its files, except for its log.
    pub fn forget(&self, run: RunId) {
        if let Some(handle) = self.inner.runs().remove(&run) {
            handle.send(ToShim::Noted);
        }
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move { inner.remove(run).await });
    }

    /// Closes all connections; the shims continue without them. Earlier messages are on their way.
    pub async fn shutdown(&self) {
        self.inner.is_closing.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.inner.tasks());
        while tasks.join_next().await.is_some() {}
    }

    fn send(&self, run: RunId, message: impl FnOnce(&RunHandle) -> ToShim) {
        let handle = self.inner.runs().get(&run).cloned();
        match handle {
            Some(handle) => handle.send(message(&handle)),
            // The engine waits for an end, so tell it that there is nothing to end.
            None => {
                let inner = Arc::clone(&self.inner);
                let why = "there is no such run on this node".to_owned();
                self.inner.spawn(async move { inner.report(RunNews::NotStarted { run, why }).await });
            }
        }
    }

    async fn take_over(&self, run: RunId, handle: Arc<RunHandle>) {
        let link = ShimLink::connect(&self.inner.options.places, run).await;
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move { inner.supervise_adopted(run, handle, link).await });
    }

    /// Runs with files on the disk that we do not know.
    fn left_behind(&self) -> Vec<RunId> {
        let entries = std::fs::read_dir(self.inner.options.places.runs()).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| read_run(entry.file_name().to_str()?));
        let runs = self.inner.runs();
        found.filter(|run| !runs.contains_key(run)).collect()
    }
}

/// Pings the shims of runs without a lease (L2). Runs with a lease have the heartbeat of their session.
async fn ping(inner: Weak<ShimsInner>) {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let Some(inner) = inner.upgrade() else { return };
        for handle in inner.runs().values().filter(|it| !it.is_leased) {
            handle.send(ToShim::Ping);
        }
    }
}

/// Removes a folder. Returns whether it is gone.
async fn is_removed(folder: PathBuf) -> bool {
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    match removed {
        Ok(Ok(())) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::NotFound,
        Err(_) => false,
    }
}

impl ShimsInner {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<RunHandle>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task in the background until it is done or the scheduler shuts down.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut is_closing = self.is_closing.subscribe();
        let mut tasks = self.tasks();
        // Drop the tasks that have ended.
        while tasks.try_join_next().is_some() {}
        let until_closing = async move {
            tokio::select! {
                biased;
                () = task => {}
                _ = is_closing.wait_for(|is_closing| *is_closing) => {}
            }
        };
        tasks.spawn_on(until_closing, &self.runtime);
    }

    async fn report(&self, news: RunNews) {
        // The receiver is gone when the node shuts down.
        let _ = self.news.send(news).await;
    }

    /// Removes the files of a run. If that fails now, for example without a free file descriptor, it is tried again in
    /// the background.
    async fn remove(&self, run: RunId) {
        point("remove.asked");
        let folder = self.options.places.run(run);
        if !is_removed(folder.clone()).await {
            self.spawn(async move {
                while !is_removed(folder.clone()).await {
                    tokio::time::sleep(REMOVE_PAUSE).await;
                }
            });
        }
        point("remove.done");
    }
}

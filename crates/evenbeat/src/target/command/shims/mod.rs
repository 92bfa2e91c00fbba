//! The scheduler's side: it starts shims, talks to them, and takes over those of a scheduler before it.
//!
//! Nothing here waits for a shim. Whatever is wanted is noted and said when it can be; whatever happens comes as
//! news, in order for each run.

mod held;
mod keep;
mod launch;
mod sweep;
mod talk;

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

use self::held::Held;
use self::launch::Launcher;
use self::talk::Talk;
use super::order::{Order, read_run};
use super::places::Places;
use super::word::ToShim;
use crate::point::point;
use crate::target::{NEWS_MAX, RunNews};

/// How often shims are asked whether they are there.
const PING_EVERY: std::time::Duration = std::time::Duration::from_secs(5);

/// How long to wait before a folder that could not be removed is removed again.
const REMOVE_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// What the scheduler's side goes by.
#[derive(Clone, Debug)]
pub struct ShimOptions {
    /// Where everything lies.
    pub places: Places,
    /// The program that is a shim when it is called with `shim`: this one.
    pub program: PathBuf,
    /// The cgroup in which runs have theirs, where that is possible.
    pub cgroup: Option<PathBuf>,
    /// How long a kill may take before people are told (K).
    pub kill_bound: Duration,
}

impl ShimOptions {
    /// Shims are this very program, also when another has been put in its place on the disk.
    pub fn new(places: Places) -> ShimOptions {
        let kill_bound = super::order::Bounds::default().kill;
        ShimOptions { places, program: PathBuf::from("/proc/self/exe"), cgroup: None, kill_bound }
    }
}

/// A run that an earlier scheduler of this node has started, and that is now ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// Which.
    pub run: RunId,
    /// Its lease.
    pub fence: Fence,
    /// Whether it must not execute without one.
    pub is_leased: bool,
    /// How long it may take to end after it is asked to.
    pub grace: Duration,
}

/// All shims of a scheduler. A handle: copies are the same.
#[derive(Clone, Debug)]
pub struct Shims {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ShimOptions,
    /// Where everything here happens, from wherever it is wanted.
    runtime: Handle,
    launcher: Launcher,
    news: mpsc::Sender<RunNews>,
    runs: Mutex<BTreeMap<RunId, Arc<Held>>>,
    tasks: Mutex<JoinSet<()>>,
    is_closing: watch::Sender<bool>,
    /// How many runs in a row could not be started.
    n_vain: AtomicU32,
}

impl Shims {
    /// The scheduler's side, and where its news come. To be called inside a `tokio` runtime.
    pub fn new(options: ShimOptions) -> io::Result<(Shims, mpsc::Receiver<RunNews>)> {
        let (news, heard) = mpsc::channel(NEWS_MAX);
        Ok((Shims::telling(options, news)?, heard))
    }

    /// The scheduler's side, with news sent to `news`. To be called inside a `tokio` runtime.
    pub fn telling(options: ShimOptions, news: mpsc::Sender<RunNews>) -> io::Result<Shims> {
        let inner = Inner {
            launcher: Launcher::new(options.program.clone())?,
            options,
            runtime: Handle::current(),
            news,
            runs: Mutex::default(),
            tasks: Mutex::default(),
            is_closing: watch::Sender::new(false),
            n_vain: AtomicU32::new(0),
        };
        let inner = Arc::new(inner);
        tokio::spawn(ping(Arc::downgrade(&inner)));
        Ok(Shims { inner })
    }

    /// When the shim of a run last said anything, on the machine's boot clock; none for runs that are not held.
    pub fn heard_at(&self, run: RunId) -> Option<BootTime> {
        self.inner.runs().get(&run).and_then(|held| held.heard_at())
    }

    /// Starts a run. Never waits and never fails: trouble comes as news.
    pub fn start(&self, order: Order) {
        let held = Arc::new(Held::new(order.fence, order.lease_until.is_some(), order.grace));
        self.inner.runs().insert(order.run, Arc::clone(&held));
        point("start.asked");
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move { inner.keep_new(Box::new(order), held).await });
    }

    /// Lets every leased run that is held and not revoked execute until then.
    pub fn extend(&self, until: BootTime) {
        for held in self.inner.runs().values().filter(|held| held.is_leased) {
            held.say(ToShim::Extend { until, fence: held.fence });
        }
    }

    /// Ends a run in good order, with an outcome.
    pub fn stop(&self, run: RunId, outcome: Outcome) {
        self.say(run, |held| ToShim::Stop { outcome, grace: held.grace });
    }

    /// Kills a run that is not ours any more.
    pub fn revoke(&self, run: RunId) {
        self.say(run, |_| ToShim::Revoke);
    }

    /// Takes over the runs of an earlier scheduler of this node, and makes an end of all others that it has left.
    ///
    /// When this is over, whoever lives of the adopted ones is connected and gets every word that is said from now
    /// on; what became of the others comes as news.
    pub async fn adopt(&self, runs: &[Adopted]) {
        for it in runs {
            let held = Arc::new(Held::new(it.fence, it.is_leased, it.grace));
            self.inner.runs().insert(it.run, Arc::clone(&held));
            self.take_over(it.run, held).await;
        }
        for run in self.left_behind() {
            let held = Arc::new(Held::unwanted());
            held.say(ToShim::Revoke);
            self.inner.runs().insert(run, Arc::clone(&held));
            self.take_over(run, held).await;
        }
    }

    /// The end of a run is on record: whatever lies about of it is removed, but its log.
    pub fn forget(&self, run: RunId) {
        if let Some(held) = self.inner.runs().remove(&run) {
            held.say(ToShim::Noted);
        }
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move { inner.remove(run).await });
    }

    /// Lets go of all connections; shims go on by themselves. What was said before is on its way.
    pub async fn shutdown(&self) {
        self.inner.is_closing.send_replace(true);
        let mut tasks = std::mem::take(&mut *self.inner.tasks());
        while tasks.join_next().await.is_some() {}
    }

    fn say(&self, run: RunId, word: impl FnOnce(&Held) -> ToShim) {
        let held = self.inner.runs().get(&run).cloned();
        match held {
            Some(held) => held.say(word(&held)),
            // Whoever wants an end hears that there is nothing to be ended.
            None => {
                let inner = Arc::clone(&self.inner);
                let why = "there is no such run on this node".to_owned();
                self.inner.spawn(async move { inner.tell(RunNews::NotStarted { run, why }).await });
            }
        }
    }

    async fn take_over(&self, run: RunId, held: Arc<Held>) {
        let talk = Talk::connect(&self.inner.options.places, run).await;
        let inner = Arc::clone(&self.inner);
        self.inner.spawn(async move { inner.keep_old(run, held, talk).await });
    }

    /// Runs of which something lies about, and that nobody holds.
    fn left_behind(&self) -> Vec<RunId> {
        let entries = std::fs::read_dir(self.inner.options.places.runs()).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| read_run(entry.file_name().to_str()?));
        let runs = self.inner.runs();
        found.filter(|run| !runs.contains_key(run)).collect()
    }
}

/// Asks the shims of runs without a lease whether they are there (L2). Those with one have their session's beat.
async fn ping(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let Some(inner) = inner.upgrade() else { return };
        for held in inner.runs().values().filter(|held| !held.is_leased) {
            held.say(ToShim::Ping);
        }
    }
}

/// Removes a folder, and says whether it is gone.
async fn is_removed(folder: PathBuf) -> bool {
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
    match removed {
        Ok(Ok(())) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::NotFound,
        Err(_) => false,
    }
}

impl Inner {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Held>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something beside everything else, until it is done or the scheduler lets go.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut is_closing = self.is_closing.subscribe();
        let mut tasks = self.tasks();
        // Those that are over are forgotten as new ones come.
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

    async fn tell(&self, news: RunNews) {
        // Nobody may want to hear it any more.
        let _ = self.news.send(news).await;
    }

    /// Removes what lies about of a run; if that cannot be now, for want of a file to spare, say, it is tried again
    /// beside everything else.
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

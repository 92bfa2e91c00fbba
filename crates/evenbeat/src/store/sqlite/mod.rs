//! The store of one process: an SQLite file.
//!
//! One thread writes, and answers requests in groups, so that many share one wait for the disk (`writer`). Reads go
//! over connections of their own and never wait behind it. A lock beside the file says that no other process has it
//! (`lock`): that lock is the lease, and nothing else is needed for one.
//!
//! [`SqliteStore`] keeps the contract of [`evenbeat_core::store`] by blocking, for tests and the command line. Whoever
//! must not block says the same to a [`Desk`] or a [`Reader`]:
//!
//! ```no_run
//! # use evenbeat::store::sqlite::SqliteStore;
//! # use evenbeat_core::{ids::SessionId, store::{Beat, Store, StoreDown}};
//! # async fn beat(store: &SqliteStore, me: SessionId) -> Result<Beat, StoreDown> {
//! store.ask(move |desk| desk.beat(me)).await
//! # }
//! ```

mod backup;
mod check;
mod claim;
mod connection;
mod counters;
mod desk;
mod duties;
mod end;
mod feed;
mod file;
mod filesystem;
mod group;
mod housekeeping;
mod jobs;
mod listing;
mod lock;
mod migrate;
mod open;
mod plans;
mod pool;
mod reader;
mod recovery;
mod requests;
mod rows;
mod sessions;
mod shared;
mod sql;
mod trouble;
mod views;
mod wait;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

pub use backup::BackupError;
pub use desk::Desk;
pub use file::StoreFile;
pub use open::OpenError;
pub use reader::Reader;

use crate::store::columns::stored_number;
use lock::Lock;
use pool::Pool;
use shared::Shared;
use wait::block_on;
use writer::{Done, Message, Tally, Writer};

/// Tells what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The machine's clock.
fn system_clock() -> Clock {
    let clock = crate::clock::Clock::system();
    Arc::new(move || clock.now())
}

/// So many requests wait for the writer at most; who comes then waits to be let in.
const WAITING_MAX: usize = 1_024;

/// The data directory that a store belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id.
    pub id: uuid::Uuid,
    /// Where it is, for people.
    pub folder: PathBuf,
}

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The data directory that uses the store. One that belongs to another is refused. Without it, nobody asks.
    pub owner: Option<Owner>,
    /// The store's clock: the node's, unless a test sets it.
    pub clock: Clock,
    /// The file grows to this at most, if anything is said; then it is as if the disk were full.
    pub size_max_bytes: Option<u64>,
    /// The log beside the file is carried over into it when it has grown to this.
    pub log_max_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { owner: None, clock: system_clock(), size_max_bytes: None, log_max_bytes: 32 * 1024 * 1024 }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("owner", &self.owner)
            .field("size_max_bytes", &self.size_max_bytes)
            .field("log_max_bytes", &self.log_max_bytes)
            .finish_non_exhaustive()
    }
}

/// Whether the file takes what is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Ok,
    /// It does not; what is there can be read. It is tried again, and goes on by itself.
    ReadOnly {
        /// When it began.
        since: Timestamp,
        /// What is wrong, and what helps, for people.
        why: String,
    },
}

/// What the writer has done since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterFigures {
    /// Requests that were run.
    pub n_requests: u64,
    /// Commits, each for a group of them.
    pub n_commits: u64,
    /// Requests that wait for the writer now.
    pub n_waiting: u64,
}

/// A store in a file. Copies of the handle share it; the last one to go closes it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    /// Taken when the last handle goes, so that the writer sees the end.
    outbox: Option<mpsc::Sender<Message>>,
    writer: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    pool: Pool,
    health: watch::Receiver<Health>,
    tally: Arc<Tally>,
    lock: Mutex<Option<Lock>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.shared.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, or makes a new one. Nobody else may have it open.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<SqliteStore, OpenError> {
        let Options { owner, clock, size_max_bytes, log_max_bytes } = options;
        let opened = open::open(path.as_ref(), clock(), size_max_bytes, owner.as_ref())?;
        let shared = Arc::new(Shared::new(opened.path.clone(), clock));
        let (outbox, inbox) = mpsc::channel(WAITING_MAX);
        let (health, health_seen) = watch::channel(Health::Ok);
        let tally = Arc::new(Tally::default());
        let writer = Writer {
            conn: opened.conn,
            shared: Arc::clone(&shared),
            inbox,
            health,
            tally: Arc::clone(&tally),
            log_max_pages: stored_number(log_max_bytes / connection::PAGE_BYTES).max(1),
        };
        let writer = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(|| writer.serve());
        let writer = writer.map_err(|source| OpenError::Io { path: opened.path.clone(), source })?;
        let inner = Inner {
            outbox: Some(outbox),
            writer: Some(writer),
            pool: Pool::new(opened.path),
            shared,
            health: health_seen,
            tally,
            lock: Mutex::new(Some(opened.lock)),
        };
        Ok(SqliteStore { inner: Arc::new(inner) })
    }

    /// Asks the writer, and waits without blocking. What is done at the desk is done as a whole or not at all, and is
    /// on the disk when the answer comes.
    pub async fn ask<T, F>(&self, request: F) -> Result<T, StoreDown>
    where
        T: Send + 'static,
        F: FnOnce(&mut Desk<'_>) -> Result<T, StoreDown> + Send + 'static,
    {
        let (tell, hear) = oneshot::channel();
        let request = Box::new(move |desk: Result<&mut Desk<'_>, StoreDown>| {
            let answer = desk.and_then(request);
            let is_good = answer.is_ok();
            let answer = Box::new(move |fault: Option<StoreDown>| {
                // Nobody may be waiting any more, and that changes nothing.
                let _ = tell.send(fault.map_or(answer, Err));
            });
            Done { is_good, answer }
        });
        self.send(Message::Ask(request)).await?;
        hear.await.unwrap_or_else(|_| Err(StoreDown("the request was given up".to_owned())))
    }

    /// The same by blocking.
    pub fn ask_and_wait<T, F>(&self, request: F) -> Result<T, StoreDown>
    where
        T: Send + 'static,
        F: FnOnce(&mut Desk<'_>) -> Result<T, StoreDown> + Send + 'static,
    {
        block_on(self.ask(request))
    }

    /// Reads, all of one moment; never waits for the writer, but blocks for the disk.
    pub fn look<T>(&self, look: impl FnOnce(&Reader<'_>) -> Result<T, StoreDown>) -> Result<T, StoreDown> {
        self.inner.pool.read(&self.inner.shared, look)
    }

    /// The same on a thread of the runtime's for work that blocks.
    pub async fn look_async<T, F>(&self, look: F) -> Result<T, StoreDown>
    where
        T: Send + 'static,
        F: FnOnce(&Reader<'_>) -> Result<T, StoreDown> + Send + 'static,
    {
        let store = self.clone();
        let looked = tokio::task::spawn_blocking(move || store.look(look)).await;
        looked.unwrap_or_else(|_| Err(StoreDown("the look was given up".to_owned())))
    }

    /// Begins a new epoch, closed: for a file that was restored from a backup.
    pub fn new_epoch(&self) -> Result<Epoch, StoreDown> {
        self.ask_and_wait(|desk: &mut Desk<'_>| Desk::new_epoch(desk))
    }

    /// Whether the file takes what is written.
    pub fn health(&self) -> Health {
        self.inner.health.borrow().clone()
    }

    /// What the writer has done.
    pub fn figures(&self) -> WriterFigures {
        let n_waiting = self.inner.outbox.as_ref().map_or(0, |it| it.max_capacity() - it.capacity());
        WriterFigures {
            n_waiting: n_waiting as u64,
            n_requests: self.inner.tally.n_requests.load(Ordering::Relaxed),
            n_commits: self.inner.tally.n_commits.load(Ordering::Relaxed),
        }
    }

    /// Stops cleanly: what was asked before is answered, the log is carried over, the lock goes. All handles are closed
    /// with it.
    pub fn close(&self) -> Result<(), StoreDown> {
        let (tell, hear) = oneshot::channel();
        block_on(self.send(Message::Close(tell)))?;
        self.inner.pool.close();
        let closed = block_on(hear).unwrap_or_else(|_| Err(is_closed()));
        self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        closed
    }

    async fn send(&self, message: Message) -> Result<(), StoreDown> {
        let Some(outbox) = &self.inner.outbox else { return Err(is_closed()) };
        outbox.send(message).await.map_err(|_| is_closed())
    }
}

fn is_closed() -> StoreDown {
    StoreDown("the store is closed".to_owned())
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.outbox = None;
        self.pool.close();
        if let Some(writer) = self.writer.take() {
            // A writer that broke down has told those who asked; the file says that it was not closed.
            let _ = writer.join();
        }
    }
}

//! The store of one process: an SQLite file.
//!
//! One thread writes, and answers requests in groups, so that many share one wait for the disk (`writer`). Reads have
//! connections of their own and never wait for it. A lock next to the file keeps other processes out (`lock`). That
//! lock is the lease; no other one is needed.
//!
//! [`SqliteStore`] implements the contract of [`evenbeat_core::store`] by blocking, for tests and the command line.
//! Callers that must not block use a [`WriteTx`] or a [`ReadTx`]:
//!
//! ```no_run
//! # use evenbeat::testing::store::sqlite::SqliteStore;
//! # use evenbeat_core::{ids::SessionId, store::{Beat, Store, StoreDown}};
//! # async fn beat(store: &SqliteStore, me: SessionId) -> Result<Beat, StoreDown> {
//! store.ask(move |tx| tx.beat(me)).await
//! # }
//! ```

mod access;
mod audit;
mod alerts;
mod backup;
mod check;
mod claim;
mod connection;
mod context;
mod counters;
mod duties;
mod end;
mod ended;
mod errors;
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
mod pause_end;
mod plans;
mod read_connections;
mod read_tx;
mod recovery;
mod requests;
mod rows;
mod run_times;
mod sessions;
mod sharing;
mod spans;
mod sql;
mod views;
mod wait;
mod write_tx;
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
pub use file::StoreFile;
pub use open::OpenError;
pub use read_tx::ReadTx;
pub use write_tx::WriteTx;

use crate::store::columns::stored_number;
use context::StoreContext;
use lock::StoreLock;
use read_connections::ReadConnections;
use wait::block_on;
use writer::{PendingAnswer, Writer, WriterCounts, WriterMessage};

/// A clock.
pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The machine's clock.
fn system_clock() -> NowFn {
    let clock = crate::clock::Clock::system();
    Arc::new(move || clock.now())
}

/// Capacity of the writer's inbox. Senders wait when it is full.
const WAITING_MAX: usize = 1_024;

/// The data directory that a store belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOwner {
    /// Its id.
    pub id: uuid::Uuid,
    /// Its path, for messages.
    pub folder: PathBuf,
}

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The data directory that uses the store. A store of another one is refused. `None` skips the check.
    pub owner: Option<StoreOwner>,
    /// The store's clock. Tests can set another one than the node's.
    pub clock: NowFn,
    /// Largest size of the file. A file that has reached it behaves like a full disk.
    pub size_max_bytes: Option<u64>,
    /// The write-ahead log is checkpointed when it has this size.
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

/// Whether the file can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Ok,
    /// It can only be read. Writing is tried again until it works.
    ReadOnly {
        /// Since when.
        since: Timestamp,
        /// What is wrong, and what to do.
        why: String,
    },
}

/// Counts of the writer since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "they are counts")]
pub struct WriterFigures {
    /// Requests that it ran.
    pub n_requests: u64,
    /// Commits, each for a group of requests.
    pub n_commits: u64,
    /// Requests that are waiting now.
    pub n_waiting: u64,
}

/// A store in a file. Clones of the handle share it, and dropping the last one closes it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<SqliteStoreInner>,
}

struct SqliteStoreInner {
    /// Taken when the last handle is dropped, so that the writer ends.
    outbox: Option<mpsc::Sender<WriterMessage>>,
    writer: Option<JoinHandle<()>>,
    context: Arc<StoreContext>,
    readers: ReadConnections,
    health: watch::Receiver<Health>,
    counts: Arc<WriterCounts>,
    lock: Mutex<Option<StoreLock>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.context.path).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the file, or creates one. Fails if another process has it.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<SqliteStore, OpenError> {
        let Options { owner, clock, size_max_bytes, log_max_bytes } = options;
        let opened = open::open(path.as_ref(), clock(), size_max_bytes, owner.as_ref())?;
        let context = Arc::new(StoreContext::new(opened.path.clone(), clock));
        let (outbox, inbox) = mpsc::channel(WAITING_MAX);
        let (health, health_seen) = watch::channel(Health::Ok);
        let counts = Arc::new(WriterCounts::default());
        let writer = Writer {
            conn: opened.conn,
            context: Arc::clone(&context),
            inbox,
            health,
            counts: Arc::clone(&counts),
            log_max_pages: stored_number(log_max_bytes / connection::PAGE_BYTES).max(1),
        };
        let writer = std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(|| writer.serve());
        let writer = writer.map_err(|source| OpenError::Io { path: opened.path.clone(), source })?;
        let inner = SqliteStoreInner {
            outbox: Some(outbox),
            writer: Some(writer),
            readers: ReadConnections::new(opened.path),
            context,
            health: health_seen,
            counts,
            lock: Mutex::new(Some(opened.lock)),
        };
        Ok(SqliteStore { inner: Arc::new(inner) })
    }

    /// Sends a request to the writer, and waits without blocking. A request is written completely or not at all, and
    /// is on the disk when the answer comes.
    pub async fn ask<T, F>(&self, request: F) -> Result<T, StoreDown>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, StoreDown> + Send + 'static,
    {
        let (tell, hear) = oneshot::channel();
        let request = Box::new(move |tx: Result<&mut WriteTx<'_>, StoreDown>| {
            let answer = tx.and_then(request);
            let is_good = answer.is_ok();
            let answer = Box::new(move |fault: Option<StoreDown>| {
                // The caller may have stopped waiting. That changes nothing.
                let _ = tell.send(fault.map_or(answer, Err));
            });
            PendingAnswer { is_good, answer }
        });
        self.send(WriterMessage::Ask(request)).await?;
        hear.await.unwrap_or_else(|_| Err(StoreDown("the request was given up".to_owned())))
    }

    /// Like [`SqliteStore::ask`], but blocks.
    pub fn ask_and_wait<T, F>(&self, request: F) -> Result<T, StoreDown>
    where
        T: Send + 'static,
        F: FnOnce(&mut WriteTx<'_>) -> Result<T, StoreDown> + Send + 'static,
    {
        block_on(self.ask(request))
    }

    /// Reads one snapshot. Never waits for the writer, but blocks for the disk.
    pub fn look<T>(&self, look: impl FnOnce(&ReadTx<'_>) -> Result<T, StoreDown>) -> Result<T, StoreDown> {
        self.inner.readers.read(&self.inner.context, look)
    }

    /// Like [`SqliteStore::look`], but on a thread of the runtime for blocking work.
    pub async fn look_async<T, F>(&self, look: F) -> Result<T, StoreDown>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTx<'_>) -> Result<T, StoreDown> + Send + 'static,
    {
        let store = self.clone();
        let looked = tokio::task::spawn_blocking(move || store.look(look)).await;
        looked.unwrap_or_else(|_| Err(StoreDown("the look was given up".to_owned())))
    }

    /// Begins a new epoch, closed: for a file that was restored from a backup.
    pub fn new_epoch(&self) -> Result<Epoch, StoreDown> {
        self.ask_and_wait(|tx: &mut WriteTx<'_>| WriteTx::new_epoch(tx))
    }

    /// Whether the file can be written.
    pub fn health(&self) -> Health {
        self.inner.health.borrow().clone()
    }

    /// Counts of the writer.
    pub fn figures(&self) -> WriterFigures {
        let n_waiting = self.inner.outbox.as_ref().map_or(0, |it| it.max_capacity() - it.capacity());
        WriterFigures {
            n_waiting: n_waiting as u64,
            n_requests: self.inner.counts.n_requests.load(Ordering::Relaxed),
            n_commits: self.inner.counts.n_commits.load(Ordering::Relaxed),
        }
    }

    /// Stops cleanly: answers earlier requests, checkpoints the log and releases the lock. This closes all handles.
    pub fn close(&self) -> Result<(), StoreDown> {
        let (tell, hear) = oneshot::channel();
        block_on(self.send(WriterMessage::Close(tell)))?;
        self.inner.readers.close();
        let closed = block_on(hear).unwrap_or_else(|_| Err(is_closed()));
        self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        closed
    }

    async fn send(&self, message: WriterMessage) -> Result<(), StoreDown> {
        let Some(outbox) = &self.inner.outbox else { return Err(is_closed()) };
        outbox.send(message).await.map_err(|_| is_closed())
    }
}

fn is_closed() -> StoreDown {
    StoreDown("the store is closed".to_owned())
}

impl Drop for SqliteStoreInner {
    fn drop(&mut self) {
        self.outbox = None;
        self.readers.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has answered its callers, and the file is marked as not closed.
            let _ = writer.join();
        }
    }
}

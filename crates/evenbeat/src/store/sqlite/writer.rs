//! The writer: a thread that answers requests in groups, with one commit per group.
//!
//! A commit waits for the disk, and the requests that arrive meanwhile form the next group. Each request after the
//! first has a savepoint inside the group's transaction, so that it can be rolled back alone. The first needs none,
//! and a savepoint costs a copy of every changed page. Answers wait for the commit: what was answered is on the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use evenbeat_core::store::StoreDown;
use rusqlite::{Connection, Result};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{oneshot, watch};

use super::Health;
use super::context::StoreContext;
use super::errors;
use super::recovery::log_pages;
use super::wait::{block_on, block_on_until};
use super::write_tx::WriteTx;

/// Most requests of a group.
const GROUP_MAX: usize = 256;

/// How long a group waits until it has as many requests as the previous one.
const LINGER_FOR: Duration = Duration::from_millis(2);

/// A request. It gets the transaction, or the reason why there is none.
pub(super) type Request = Box<dyn FnOnce(Result<&mut WriteTx<'_>, StoreDown>) -> PendingAnswer + Send>;

/// The answer of a request, which waits for the commit.
pub(super) struct PendingAnswer {
    /// Whether the request succeeded, so that its writes are kept.
    pub(super) is_good: bool,
    /// Sends the answer to the caller, or an error instead of it.
    pub(super) answer: Box<dyn FnOnce(Option<StoreDown>) + Send>,
}

/// A message to the writer.
pub(super) enum WriterMessage {
    Ask(Request),
    /// Stops cleanly, and answers with the result.
    Close(oneshot::Sender<Result<(), StoreDown>>),
}

/// Counts of the writer.
#[derive(Debug, Default)]
pub(super) struct WriterCounts {
    pub(super) n_requests: AtomicU64,
    pub(super) n_commits: AtomicU64,
}

pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) context: Arc<StoreContext>,
    pub(super) inbox: Receiver<WriterMessage>,
    pub(super) health: watch::Sender<Health>,
    pub(super) counts: Arc<WriterCounts>,
    /// The log is checkpointed when it has this many pages. A page that changes often is then written to the file
    /// once for many changes.
    pub(super) log_max_pages: i64,
}

impl Writer {
    /// Runs until it is stopped or all handles are dropped.
    pub(super) fn serve(self) {
        let Writer { conn, context, mut inbox, health, counts, log_max_pages } = self;
        let mut closing = None;
        match WriteTx::new(&conn, &context) {
            Ok(tx) => {
                let mut writer = WriterLoop {
                    conn: &conn,
                    context: &context,
                    tx,
                    health,
                    counts,
                    is_marked: false,
                    n_last: 1,
                    probed_at: None,
                    log_max_pages,
                };
                closing = writer.serve(&mut inbox);
            }
            Err(error) => {
                let why = errors::explained(&context.path, &error);
                health.send_replace(Health::ReadOnly { since: context.now(), why });
            }
        }
        // Callers that come later get an error, because the inbox is closed.
        inbox.close();
        let stopped = stop(&conn, &context);
        drop(conn);
        if let Some(closing) = closing {
            // The caller may have stopped waiting. That changes nothing.
            let _ = closing.send(stopped);
        }
    }
}

/// Marks the file as cleanly closed, and checkpoints the log.
fn stop(conn: &Connection, context: &StoreContext) -> Result<(), StoreDown> {
    let marked = conn.execute_batch("UPDATE setting SET value = '1' WHERE name = 'closed_cleanly'");
    // Pages that cannot be written to the file stay in the log, where they are just as safe.
    let _ = log_pages(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
    marked.map_err(|error| errors::store_down(&context.path, &error))
}

/// The running writer.
pub(super) struct WriterLoop<'c> {
    pub(super) conn: &'c Connection,
    pub(super) context: &'c StoreContext,
    pub(super) tx: WriteTx<'c>,
    pub(super) health: watch::Sender<Health>,
    pub(super) counts: Arc<WriterCounts>,
    /// Whether the file is marked as in use, which happens with the first write.
    pub(super) is_marked: bool,
    /// The size of the previous group.
    pub(super) n_last: usize,
    pub(super) probed_at: Option<Instant>,
    pub(super) log_max_pages: i64,
}

impl WriterLoop<'_> {
    fn serve(
        &mut self,
        inbox: &mut Receiver<WriterMessage>,
    ) -> Option<oneshot::Sender<Result<(), StoreDown>>> {
        loop {
            let first = if self.is_degraded() {
                match block_on_until(self.next_probe_at(), inbox.recv()) {
                    Some(message) => message,
                    None => {
                        self.probe();
                        continue;
                    }
                }
            } else {
                block_on(inbox.recv())
            };
            let mut group = Vec::new();
            let mut closing = None;
            let mut is_over = false;
            match first {
                Some(WriterMessage::Ask(request)) => group.push(request),
                Some(WriterMessage::Close(tell)) => closing = Some(tell),
                None => is_over = true,
            }
            if closing.is_none() && !is_over {
                closing = self.gather(inbox, &mut group);
            }
            self.n_last = group.len();
            self.answer(group);
            self.carry_over_log();
            if self.is_degraded() && self.next_probe_at() <= Instant::now() {
                self.probe();
            }
            if closing.is_some() || is_over {
                return closing;
            }
        }
    }

    /// Collects waiting requests. If there is more than one, waits a little, because more are probably on their way.
    fn gather(
        &self,
        inbox: &mut Receiver<WriterMessage>,
        group: &mut Vec<Request>,
    ) -> Option<oneshot::Sender<Result<(), StoreDown>>> {
        while group.len() < GROUP_MAX {
            match inbox.try_recv() {
                Ok(WriterMessage::Ask(request)) => group.push(request),
                Ok(WriterMessage::Close(tell)) => return Some(tell),
                Err(_) => break,
            }
        }
        if group.len() < 2 {
            return None;
        }
        let deadline = Instant::now() + LINGER_FOR;
        while group.len() < GROUP_MAX.min(self.n_last) {
            match block_on_until(deadline, inbox.recv()) {
                Some(Some(WriterMessage::Ask(request))) => group.push(request),
                Some(Some(WriterMessage::Close(tell))) => return Some(tell),
                Some(None) | None => break,
            }
        }
        None
    }
}

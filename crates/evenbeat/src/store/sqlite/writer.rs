//! The one writer: a thread that answers requests in groups, each group one commit.
//!
//! A commit waits for the disk, and the requests that come meanwhile are the next group. Each request after the
//! first has a savepoint of its own inside the group's transaction, so that one that fails is taken back alone; the
//! first has nothing before it that would have to stay, and a savepoint costs a copy of every page that is changed.
//! Nobody is answered before the commit: what was answered is on the disk.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use evenbeat_core::store::StoreDown;
use rusqlite::{Connection, Result};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{oneshot, watch};

use super::Health;
use super::desk::Desk;
use super::recovery::log_pages;
use super::shared::Shared;
use super::trouble;
use super::wait::{block_on, block_on_until};

/// So many requests one group has at most.
const GROUP_MAX: usize = 256;

/// So long a group that has begun to form waits for as many as the last one had.
const LINGER_FOR: Duration = Duration::from_millis(2);

/// A request: given the desk, or the reason why there is none, it becomes what is to be answered.
pub(super) type Request = Box<dyn FnOnce(Result<&mut Desk<'_>, StoreDown>) -> Done + Send>;

/// A request that was run: its answer waits for the commit.
pub(super) struct Done {
    /// Whether what it wrote stays.
    pub(super) is_good: bool,
    /// Tells the asker; a fault takes the place of the answer.
    pub(super) answer: Box<dyn FnOnce(Option<StoreDown>) + Send>,
}

/// What comes to the writer.
pub(super) enum Message {
    Ask(Request),
    /// Stop cleanly, and say whether that went well.
    Close(oneshot::Sender<Result<(), StoreDown>>),
}

/// What the writer has done so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) n_requests: AtomicU64,
    pub(super) n_commits: AtomicU64,
}

pub(super) struct Writer {
    pub(super) conn: Connection,
    pub(super) shared: Arc<Shared>,
    pub(super) inbox: Receiver<Message>,
    pub(super) health: watch::Sender<Health>,
    pub(super) tally: Arc<Tally>,
    /// From so many pages on the log is carried over into the file: a page that changes often is written there
    /// once for many changes.
    pub(super) log_max_pages: i64,
}

impl Writer {
    /// Answers until it is told to stop or nobody is left who could ask.
    pub(super) fn serve(self) {
        let Writer { conn, shared, mut inbox, health, tally, log_max_pages } = self;
        let mut closing = None;
        match Desk::new(&conn, &shared) {
            Ok(desk) => {
                let mut office = Office {
                    conn: &conn,
                    shared: &shared,
                    desk,
                    health,
                    tally,
                    is_marked: false,
                    n_last: 1,
                    probed_at: None,
                    log_max_pages,
                };
                closing = office.serve(&mut inbox);
            }
            Err(error) => {
                let why = trouble::explained(&shared.path, &error);
                health.send_replace(Health::ReadOnly { since: shared.now(), why });
            }
        }
        // Whoever came too late hears that the store is closed when the inbox goes.
        inbox.close();
        let stopped = stop(&conn, &shared);
        drop(conn);
        if let Some(closing) = closing {
            // Nobody may be waiting any more, and that changes nothing.
            let _ = closing.send(stopped);
        }
    }
}

/// A clean stop: says so in the file, and carries the log over.
fn stop(conn: &Connection, shared: &Shared) -> Result<(), StoreDown> {
    let marked = conn.execute_batch("UPDATE setting SET value = '1' WHERE name = 'closed_cleanly'");
    // What does not fit into the file stays in the log, and is as safe there.
    let _ = log_pages(conn, "PRAGMA wal_checkpoint(TRUNCATE)");
    marked.map_err(|error| trouble::store_down(&shared.path, &error))
}

/// The writer at work.
pub(super) struct Office<'c> {
    pub(super) conn: &'c Connection,
    pub(super) shared: &'c Shared,
    pub(super) desk: Desk<'c>,
    pub(super) health: watch::Sender<Health>,
    pub(super) tally: Arc<Tally>,
    /// Whether the file says that it is in use. It does so with the first thing that is written.
    pub(super) is_marked: bool,
    /// How many requests the last group had.
    pub(super) n_last: usize,
    pub(super) probed_at: Option<Instant>,
    pub(super) log_max_pages: i64,
}

impl Office<'_> {
    fn serve(&mut self, inbox: &mut Receiver<Message>) -> Option<oneshot::Sender<Result<(), StoreDown>>> {
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
                Some(Message::Ask(request)) => group.push(request),
                Some(Message::Close(tell)) => closing = Some(tell),
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

    /// Takes what is there, and lingers a little if more than one came at once: then more are on their way.
    fn gather(
        &self,
        inbox: &mut Receiver<Message>,
        group: &mut Vec<Request>,
    ) -> Option<oneshot::Sender<Result<(), StoreDown>>> {
        while group.len() < GROUP_MAX {
            match inbox.try_recv() {
                Ok(Message::Ask(request)) => group.push(request),
                Ok(Message::Close(tell)) => return Some(tell),
                Err(_) => break,
            }
        }
        if group.len() < 2 {
            return None;
        }
        let deadline = Instant::now() + LINGER_FOR;
        while group.len() < GROUP_MAX.min(self.n_last) {
            match block_on_until(deadline, inbox.recv()) {
                Some(Some(Message::Ask(request))) => group.push(request),
                Some(Some(Message::Close(tell))) => return Some(tell),
                Some(None) | None => break,
            }
        }
        None
    }
}

//! Reading the store's change feed: all jobs once, then what changes.

use super::life::Life;
use super::poll::Poll;
use super::{Command, Engine, Now};
use crate::store::{Changes, Cursor, StoreDown};
use crate::time::{BootTime, Duration};

/// How far the change feed has been read.
#[derive(Debug, Default)]
pub(crate) struct ChangeFeed {
    /// Where to read on. None: from the beginning.
    cursor: Option<Cursor>,
    /// Whether all jobs have been read once in this epoch.
    pub(crate) is_loaded: bool,
    pub(super) poll: Poll,
    /// Whether the outstanding answer is to a question from before the last reload.
    is_answer_void: bool,
}

impl Engine {
    /// Forgets all jobs and reads them again.
    pub(super) fn reload(&mut self) {
        self.feed.cursor = None;
        self.feed.is_loaded = false;
        // An answer that is on its way continues from the old cursor.
        self.feed.is_answer_void = self.feed.poll.is_asked();
        self.feed.poll.at_once();
        self.forget_jobs();
    }

    fn may_ask_changes(&self) -> bool {
        matches!(self.life, Life::In(_)) && self.is_store_up
    }

    pub(super) fn ask_changes(&mut self, now: Now, out: &mut Vec<Command>) {
        if self.may_ask_changes() && self.feed.poll.is_due(now.boot) {
            self.feed.poll.asked();
            out.push(Command::Changes(self.feed.cursor));
        }
    }

    pub(super) fn changed(&mut self, now: Now, answer: Result<Changes, StoreDown>) {
        if std::mem::take(&mut self.feed.is_answer_void) {
            return self.feed.poll.answered(now.boot);
        }
        let cap = self.settings.lease.map_or(self.settings.poll_every, |it| it.backoff_cap());
        match answer {
            Err(_) => self.feed.poll.failed(now.boot, cap),
            Ok(Changes::Reset) => {
                self.feed.poll.answered(now.boot);
                self.reload();
            }
            Ok(Changes::Rows { rows, next, is_last }) => {
                let pause = if is_last { self.settings.poll_every } else { Duration::ZERO };
                self.feed.poll.answered(now.boot + pause);
                // The rows are of another epoch: one that is over, or one that no beat has told us of yet.
                if self.life.session().is_some_and(|session| session.epoch() != next.epoch) {
                    return;
                }
                let time = self.time(now);
                for row in &rows {
                    self.take_in(row, time);
                }
                self.feed.cursor = Some(next);
                if is_last && !self.feed.is_loaded {
                    self.feed.is_loaded = true;
                    self.complete_adopted(now);
                }
            }
        }
    }

    pub(super) fn changes_wake_at(&self, now: Now) -> Option<BootTime> {
        self.feed.poll.wakes_at(now.boot).filter(|_| self.may_ask_changes())
    }
}

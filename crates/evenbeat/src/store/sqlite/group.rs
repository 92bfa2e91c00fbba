//! One group of requests in one transaction. A request that fails is rolled back alone, and answers wait for the
//! commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use evenbeat_core::store::StoreDown;
use rusqlite::Result;

use super::writer::{PendingAnswer, Request, WriterLoop};

impl WriterLoop<'_> {
    /// Runs and answers a group.
    pub(super) fn answer(&mut self, group: Vec<Request>) {
        let mut waiting = group.into_iter();
        // Once per transaction: a full disk can roll one back in the middle of a group.
        while waiting.len() != 0 {
            self.tx.begin();
            match self.begin() {
                Ok(()) => self.answer_in_transaction(&mut waiting),
                Err(error) => {
                    let down = self.fault(&error);
                    for request in waiting.by_ref() {
                        (request(Err(down.clone())).answer)(None);
                    }
                }
            }
        }
    }

    fn answer_in_transaction(&mut self, waiting: &mut std::vec::IntoIter<Request>) {
        let mut done = Vec::with_capacity(waiting.len());
        let mut has_written = false;
        for request in waiting.by_ref() {
            let one = if has_written { self.run_beside_others(request) } else { self.run_first(request) };
            has_written |= one.as_ref().is_some_and(|it| it.is_good);
            done.extend(one);
            if self.conn.is_autocommit() {
                // SQLite has rolled back the whole transaction, not only this request.
                let why = self.tx.take_file_error().unwrap_or_else(|| "its transaction was lost".to_owned());
                self.degrade(why.clone());
                let failed = StoreDown(why);
                for it in done {
                    (it.answer)(Some(failed.clone()));
                }
                return;
            }
        }
        let fault = self.commit().err();
        let fault = fault.map(|error| self.fault(&error));
        if fault.is_some() && !self.conn.is_autocommit() {
            // The commit has failed, and that error is reported.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        if let Some(why) = self.tx.take_file_error() {
            self.degrade(why);
        }
        self.counts.n_requests.fetch_add(done.len() as u64, Ordering::Relaxed);
        for it in done {
            (it.answer)(fault.clone());
        }
    }

    /// Runs a request in a savepoint. `None` if it panicked: then its caller gets an error.
    fn run_beside_others(&mut self, request: Request) -> Option<PendingAnswer> {
        if let Err(error) = self.statement("SAVEPOINT request") {
            let down = self.fault(&error);
            return Some(request(Err(down)));
        }
        let done = self.run(request);
        let is_good = done.as_ref().is_some_and(|it| it.is_good);
        if !self.conn.is_autocommit() {
            let undone = if is_good { Ok(()) } else { self.statement("ROLLBACK TO request") };
            self.or_give_up(undone.and_then(|()| self.statement("RELEASE request")));
        }
        done
    }

    /// Runs a request that follows no successful one: the transaction itself is its savepoint.
    fn run_first(&mut self, request: Request) -> Option<PendingAnswer> {
        let done = self.run(request);
        let is_good = done.as_ref().is_some_and(|it| it.is_good);
        if !is_good {
            let undone = if self.conn.is_autocommit() { Ok(()) } else { self.statement("ROLLBACK") };
            self.or_give_up(undone.and_then(|()| self.begin()));
        }
        done
    }

    fn run(&mut self, request: Request) -> Option<PendingAnswer> {
        self.tx.begin();
        let done = catch_unwind(AssertUnwindSafe(|| request(Ok(&mut self.tx)))).ok();
        match (done, self.tx.take_failure()) {
            // The request ignored the error, but half a duty must never be committed.
            (Some(PendingAnswer { is_good: true, answer }), Some(failure)) => Some(PendingAnswer {
                is_good: false,
                answer: Box::new(|fault| answer(fault.or(Some(failure)))),
            }),
            (done, _) => done,
        }
    }

    /// If a request could not be rolled back alone, rolls back everything.
    fn or_give_up(&mut self, undone: Result<()>) {
        if let Err(error) = undone {
            self.fault(&error);
            if !self.conn.is_autocommit() {
                // If this fails too, the next transaction rolls back first.
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        }
    }

    fn begin(&self) -> Result<()> {
        if !self.conn.is_autocommit() {
            // A transaction that could not be rolled back before.
            self.statement("ROLLBACK")?;
        }
        self.statement("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<()> {
        let n_changes = self.tx.take_n_changes();
        if 0 < n_changes {
            self.tx.forget_changes(2 * n_changes + 64)?;
        }
        if !self.is_marked {
            self.statement(
                "INSERT INTO setting (name, value) VALUES ('closed_cleanly', '0')
                 ON CONFLICT (name) DO UPDATE SET value = '0'",
            )?;
        }
        self.statement("COMMIT")?;
        self.is_marked = true;
        self.counts.n_commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn statement(&self, sql: &str) -> Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(|_| ())
    }
}

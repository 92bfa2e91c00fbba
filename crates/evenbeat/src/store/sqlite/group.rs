//! One group of requests in one transaction: what fails is taken back alone, and nobody is answered before the commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use evenbeat_core::store::StoreDown;
use rusqlite::Result;

use super::writer::{Done, Office, Request};

impl Office<'_> {
    /// Runs a group and answers all of it.
    pub(super) fn answer(&mut self, group: Vec<Request>) {
        let mut waiting = group.into_iter();
        // Once for each transaction: a full disk may take one away in the middle of a group.
        while waiting.len() != 0 {
            self.desk.begin();
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
                // The database has taken the whole transaction back, not only this request.
                let why = self.desk.take_trouble().unwrap_or_else(|| "its transaction was lost".to_owned());
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
            // It has failed already: what else can be said about it was said.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        if let Some(why) = self.desk.take_trouble() {
            self.degrade(why);
        }
        self.tally.n_requests.fetch_add(done.len() as u64, Ordering::Relaxed);
        for it in done {
            (it.answer)(fault.clone());
        }
    }

    /// Runs a request in a savepoint of its own. None if it broke down: its asker hears that nobody answers.
    fn run_beside_others(&mut self, request: Request) -> Option<Done> {
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

    /// Runs a request before which nothing was written that must stay: the transaction itself is its savepoint.
    fn run_first(&mut self, request: Request) -> Option<Done> {
        let done = self.run(request);
        let is_good = done.as_ref().is_some_and(|it| it.is_good);
        if !is_good {
            let undone = if self.conn.is_autocommit() { Ok(()) } else { self.statement("ROLLBACK") };
            self.or_give_up(undone.and_then(|()| self.begin()));
        }
        done
    }

    fn run(&mut self, request: Request) -> Option<Done> {
        self.desk.begin();
        let done = catch_unwind(AssertUnwindSafe(|| request(Ok(&mut self.desk)))).ok();
        match (done, self.desk.take_failure()) {
            // Whoever asked may have thought nothing of it, but half a duty must never be committed.
            (Some(Done { is_good: true, answer }), Some(failure)) => {
                Some(Done { is_good: false, answer: Box::new(|fault| answer(fault.or(Some(failure)))) })
            }
            (done, _) => done,
        }
    }

    /// What could not be taken back alone is taken back with all the rest.
    fn or_give_up(&mut self, undone: Result<()>) {
        if let Err(error) = undone {
            self.fault(&error);
            if !self.conn.is_autocommit() {
                // A transaction that cannot even be taken back is not committed either, and begins anew.
                let _ = self.conn.execute_batch("ROLLBACK");
            }
        }
    }

    fn begin(&self) -> Result<()> {
        if !self.conn.is_autocommit() {
            // A transaction that could not be taken back before.
            self.statement("ROLLBACK")?;
        }
        self.statement("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<()> {
        let n_changes = self.desk.take_n_changes();
        if 0 < n_changes {
            self.desk.forget_changes(2 * n_changes + 64)?;
        }
        if !self.is_marked {
            self.statement(
                "INSERT INTO setting (name, value) VALUES ('closed_cleanly', '0')
                 ON CONFLICT (name) DO UPDATE SET value = '0'",
            )?;
        }
        self.statement("COMMIT")?;
        self.is_marked = true;
        self.tally.n_commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn statement(&self, sql: &str) -> Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(|_| ())
    }
}

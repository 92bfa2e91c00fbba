//! Connections for reading, kept for the next who reads.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use evenbeat_core::store::StoreDown;
use rusqlite::Connection;

use super::connection;
use super::reader::Reader;
use super::shared::Shared;
use super::trouble;

/// So many are kept; more are opened while more read at once.
const KEPT_MAX: usize = 4;

pub(super) struct Pool {
    path: PathBuf,
    /// None once the store is closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Pool {
    pub(super) fn new(path: PathBuf) -> Pool {
        Pool { path, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Reads inside of one transaction: all of one moment.
    pub(super) fn read<T>(
        &self,
        shared: &Shared,
        look: impl FnOnce(&Reader<'_>) -> Result<T, StoreDown>,
    ) -> Result<T, StoreDown> {
        let down = |error: rusqlite::Error| trouble::store_down(&self.path, &error);
        let conn = match self.take()? {
            Some(conn) => conn,
            None => connection::reading(&self.path).map_err(down)?,
        };
        let run = |sql: &str| conn.prepare_cached(sql).and_then(|mut it| it.execute([])).map_err(down);
        run("BEGIN")?;
        let answer = look(&Reader { conn: &conn, shared });
        run("COMMIT")?;
        self.give_back(conn);
        answer
    }

    pub(super) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn take(&self) -> Result<Option<Connection>, StoreDown> {
        match &mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(idle) => Ok(idle.pop()),
            None => Err(super::is_closed()),
        }
    }

    fn give_back(&self, conn: Connection) {
        if let Some(idle) = &mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner)
            && idle.len() < KEPT_MAX
        {
            idle.push(conn);
        }
    }
}

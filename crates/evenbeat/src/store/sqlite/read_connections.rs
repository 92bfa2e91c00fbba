//! Connections for reading, which are kept and reused.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use evenbeat_core::store::StoreDown;
use rusqlite::Connection;

use super::connection;
use super::context::StoreContext;
use super::errors;
use super::read_tx::ReadTx;

/// Most idle connections that are kept. More are opened if more callers read at once.
const KEPT_MAX: usize = 4;

pub(super) struct ReadConnections {
    path: PathBuf,
    /// `None` once the store is closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl ReadConnections {
    pub(super) fn new(path: PathBuf) -> ReadConnections {
        ReadConnections { path, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Reads inside one transaction, which sees one snapshot.
    pub(super) fn read<T>(
        &self,
        context: &StoreContext,
        look: impl FnOnce(&ReadTx<'_>) -> Result<T, StoreDown>,
    ) -> Result<T, StoreDown> {
        let down = |error: rusqlite::Error| errors::store_down(&self.path, &error);
        let conn = match self.take()? {
            Some(conn) => conn,
            None => connection::reading(&self.path).map_err(down)?,
        };
        let run = |sql: &str| conn.prepare_cached(sql).and_then(|mut it| it.execute([])).map_err(down);
        run("BEGIN")?;
        let answer = look(&ReadTx { conn: &conn, context });
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

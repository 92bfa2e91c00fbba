//! Why a transaction failed, and whether it is retried.

use std::error::Error as _;
use std::fmt;

use deadpool_postgres::{HookError, PoolError};
use evenbeat_core::store::StoreDown;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why a transaction failed.
#[derive(Debug)]
pub(super) enum PgError {
    /// An error of the server or the connection.
    Server(Error),
    /// The server's timeline has no epoch yet. One must be created.
    NoEpoch,
    /// Another transaction was faster. Retry with fresh data.
    Retry,
    /// A message for people.
    Text(String),
}

impl From<Error> for PgError {
    fn from(error: Error) -> PgError {
        match error.code() {
            // Only our own guards divide. They fail if a locked row has changed.
            Some(code) if *code == SqlState::DIVISION_BY_ZERO => PgError::Retry,
            _ => PgError::Server(error),
        }
    }
}

/// A part of a call has failed.
impl From<StoreDown> for PgError {
    fn from(StoreDown(text): StoreDown) -> PgError {
        PgError::Text(text)
    }
}

impl From<PoolError> for PgError {
    fn from(error: PoolError) -> PgError {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                PgError::Server(error)
            }
            PoolError::PostCreateHook(HookError::Message(text)) => PgError::Text(text.into_owned()),
            other => PgError::Text(other.to_string()),
        }
    }
}

impl PgError {
    /// Whether nothing can have been written, so that the transaction may be retried.
    pub(super) fn is_undone(&self, was_committing: bool) -> bool {
        match self {
            PgError::NoEpoch | PgError::Retry => true,
            PgError::Text(_) => false,
            PgError::Server(error) => match error.code() {
                Some(code) if *code == SqlState::T_R_DEADLOCK_DETECTED => true,
                Some(code) if *code == SqlState::T_R_SERIALIZATION_FAILURE => true,
                Some(code) => is_gone(code) && !was_committing,
                None => {
                    (error.is_closed()
                        || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>))
                        && !was_committing
                }
            },
        }
    }

    /// Whether a row to be inserted already exists.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, PgError::Server(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Whether a lock was not available.
    pub(super) fn is_lock_refused(&self) -> bool {
        matches!(self, PgError::Server(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }

    pub(super) fn down(&self) -> StoreDown {
        StoreDown(self.to_string())
    }
}

impl fmt::Display for PgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PgError::Server(error) => f.write_str(&text(error)),
            PgError::NoEpoch => f.write_str("its epoch could not be made"),
            PgError::Retry => f.write_str("others were quicker every time"),
            PgError::Text(text) => f.write_str(text),
        }
    }
}

/// Whether the server has closed the connection.
fn is_gone(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT]
        .contains(code)
}

pub(super) const READ_ONLY: &str = "the PostgreSQL server only lets us read: it is a standby, or \
     `default_transaction_read_only` is on (point the address at the primary)";

fn text(error: &Error) -> String {
    let Some(db) = error.as_db_error() else {
        return match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
    };
    let code = db.code();
    if *code == SqlState::READ_ONLY_SQL_TRANSACTION || db.message().contains("recovery is in progress") {
        return READ_ONLY.to_owned();
    }
    if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_FUNCTION {
        return format!("{} (was the database migrated?)", db.message());
    }
    format!("{} ({})", db.message(), code.code())
}

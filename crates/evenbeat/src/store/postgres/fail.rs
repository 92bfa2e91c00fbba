//! Why a transaction did not come to its end, and whether it is tried again.

use std::error::Error as _;
use std::fmt;

use deadpool_postgres::{HookError, PoolError};
use evenbeat_core::store::StoreDown;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why a transaction did not come to its end.
#[derive(Debug)]
pub(super) enum Fail {
    /// The server or the way to it.
    Server(Error),
    /// The server's timeline has no epoch yet: somebody must make one.
    NoEpoch,
    /// Another was quicker in a way that only a new look shows.
    Again,
    /// Something that is told as it is.
    Told(String),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Fail {
        match error.code() {
            // Only our own guards divide, and only by whether all is as it was when the rows were locked.
            Some(code) if *code == SqlState::DIVISION_BY_ZERO => Fail::Again,
            _ => Fail::Server(error),
        }
    }
}

/// A part of a call that was given up for good.
impl From<StoreDown> for Fail {
    fn from(StoreDown(text): StoreDown) -> Fail {
        Fail::Told(text)
    }
}

impl From<PoolError> for Fail {
    fn from(error: PoolError) -> Fail {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                Fail::Server(error)
            }
            PoolError::PostCreateHook(HookError::Message(text)) => Fail::Told(text.into_owned()),
            other => Fail::Told(other.to_string()),
        }
    }
}

impl Fail {
    /// Whether nothing can have been written, so that the whole transaction may be asked again.
    pub(super) fn is_undone(&self, was_committing: bool) -> bool {
        match self {
            Fail::NoEpoch | Fail::Again => true,
            Fail::Told(_) => false,
            Fail::Server(error) => match error.code() {
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

    /// Whether something was to be written that is there already.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Fail::Server(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Whether somebody else was in the way.
    pub(super) fn is_lock_refused(&self) -> bool {
        matches!(self, Fail::Server(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }

    pub(super) fn down(&self) -> StoreDown {
        StoreDown(self.to_string())
    }
}

/// For people.
impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fail::Server(error) => f.write_str(&text(error)),
            Fail::NoEpoch => f.write_str("its epoch could not be made"),
            Fail::Again => f.write_str("others were quicker every time"),
            Fail::Told(text) => f.write_str(text),
        }
    }
}

/// The server ends the connection, and says so.
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

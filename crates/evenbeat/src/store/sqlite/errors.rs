//! Errors of SQLite: a message for people, and whether the file can still be written.

use std::path::Path;

use evenbeat_core::store::StoreDown;
use rusqlite::{Error, ErrorCode};

/// What an error affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorScope {
    /// Only the request.
    Request,
    /// The file: nothing can be written for now.
    File,
}

pub(super) fn scope(error: &Error) -> ErrorScope {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase,
        ) => ErrorScope::File,
        _ => ErrorScope::Request,
    }
}

pub(super) fn explained(path: &Path, error: &Error) -> String {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            format!("the disk has no room for `{path}`; the store continues when there is room again")
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!("`{path}` cannot be read or written ({error}); look after its disk, it is tried again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
            format!("`{path}` cannot be written ({error}); give write permission back, it is tried again")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            format!("`{path}` is damaged ({error}); stop, and restore a backup")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("another program holds `{path}`; close it")
        }
        _ => format!("`{path}` did not take the request ({error})"),
    }
}

pub(super) fn store_down(path: &Path, error: &Error) -> StoreDown {
    StoreDown(explained(path, error))
}

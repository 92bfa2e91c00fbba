//! Copies a snapshot of the file while the store is in use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{SqliteStore, connection};

/// Pages copied at a time, so that others can use the disk in between.
const STEP_PAGES: i32 = 256;

/// Why a backup failed. Nothing was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file already exists.
    #[error("`{}` already exists, and a backup never overwrites; choose another name", to.display())]
    Exists {
        /// The path of the copy.
        to: PathBuf,
    },
    /// The operating system reported an error.
    #[error("`{}` cannot be written; check its directory and the disk", to.display())]
    Io {
        /// The copy.
        to: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// SQLite reported an error.
    #[error("`{}` cannot be made ({source})", to.display())]
    Database {
        /// The copy.
        to: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
}

impl SqliteStore {
    /// Copies the store into a new file, which is never incomplete. A copy needs a [new epoch](SqliteStore::new_epoch)
    /// before it replaces the original.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<(), BackupError> {
        copy_to(&self.inner.context.path, to.as_ref())
    }
}

/// Copies a store's file, in use or not.
pub(super) fn copy_to(from: &Path, to: &Path) -> Result<(), BackupError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(BackupError::Exists { to: to.to_owned() });
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let made = reserve(&part)
        .map_err(|source| BackupError::Io { to: to.to_owned(), source })
        .and_then(|()| {
            copy(from, &part).map_err(|source| BackupError::Database { to: to.to_owned(), source })
        })
        .and_then(|()| publish(&part, to));
    // After a success this is a second name of the copy; after a failure it is useless.
    let _ = fs::remove_file(&part);
    made
}

/// Creates an empty file that only its owner can read.
fn reserve(part: &Path) -> io::Result<()> {
    // Removes what an interrupted backup left. If that fails, so does the next line.
    let _ = fs::remove_file(part);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(part).map(|_| ())
}

fn copy(from: &Path, part: &Path) -> rusqlite::Result<()> {
    let from = connection::reading(from)?;
    let mut to = Connection::open(part)?;
    // Without this every write would restart the copy, and under load it would never finish.
    from.execute_batch("BEGIN; SELECT count(*) FROM setting")?;
    let backup = Backup::new(&from, &mut to)?;
    while backup.step(STEP_PAGES)? != StepResult::Done {
        std::thread::yield_now();
    }
    drop(backup);
    from.execute_batch("COMMIT")?;
    to.close().map_err(|(_, error)| error)
}

/// Gives the copy its name, unless a file of that name has appeared.
fn publish(part: &Path, to: &Path) -> Result<(), BackupError> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists { to: to.to_owned() },
        _ => BackupError::Io { to: to.to_owned(), source },
    };
    File::open(part).and_then(|file| file.sync_all()).map_err(io)?;
    fs::hard_link(part, to).map_err(io)?;
    let folder = to.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)
}

//! A copy of the file as it was at one moment, made while the store is in use.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{SqliteStore, connection};

/// So many pages at a time: others get at the disk in between.
const STEP_PAGES: i32 = 256;

/// Why there is no copy. Nothing was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file of that name is there.
    #[error("`{}` already exists, and a backup never overwrites; choose another name", to.display())]
    Exists {
        /// The name.
        to: PathBuf,
    },
    /// Something of the operating system's.
    #[error("`{}` cannot be written; check its directory and the disk", to.display())]
    Io {
        /// The copy.
        to: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// The database did not do it.
    #[error("`{}` cannot be made ({source})", to.display())]
    Database {
        /// The copy.
        to: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

impl SqliteStore {
    /// Copies the store, as it is now, into a new file. Under its name there is never half a copy. Before a copy is
    /// used in the place of the original it needs a [new epoch](SqliteStore::new_epoch).
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<(), BackupError> {
        copy_to(&self.inner.shared.path, to.as_ref())
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
    // After a success it is the second name of the copy; after a failure it is of no use.
    let _ = fs::remove_file(&part);
    made
}

/// Makes room for the copy, for its owner alone.
fn reserve(part: &Path) -> io::Result<()> {
    // What an interrupted backup left behind; if it cannot go, the next line says so.
    let _ = fs::remove_file(part);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(part).map(|_| ())
}

fn copy(from: &Path, part: &Path) -> rusqlite::Result<()> {
    let from = connection::reading(from)?;
    let mut to = Connection::open(part)?;
    // Without this every write in between would begin the copy anew, and under load it would never end.
    from.execute_batch("BEGIN; SELECT count(*) FROM setting")?;
    let backup = Backup::new(&from, &mut to)?;
    while backup.step(STEP_PAGES)? != StepResult::Done {
        std::thread::yield_now();
    }
    drop(backup);
    from.execute_batch("COMMIT")?;
    to.close().map_err(|(_, error)| error)
}

/// Gives the copy its name, unless another has taken it meanwhile.
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

//! Opens or creates the file of a store. An existing file is examined before anything in it changes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use evenbeat_core::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::StoreOwner;
use super::connection;
use super::filesystem::shared_file_system;
use super::lock::{LockError, StoreLock};
use super::migrate::{self, MigrateError};
use crate::store::migrations::MigrationFault;

/// Marks a file as Evenbeat's: the letters `EvBt`.
pub(super) const APPLICATION_ID: i32 = 0x4576_4274;

/// The setting with the data directory that owns the file: its id and path.
pub(super) const OWNER_SETTING: &str = "owner";

/// Files up to this size are checked at every start, because that takes only a moment.
const SMALL_BYTES: u64 = 64 * 1024 * 1024;

/// Why a store was not opened. The file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its directory cannot be used.
    #[error("the directory of `{}` cannot be used; create it, or choose another path", path.display())]
    NoFolder {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// The file does not exist.
    #[error("`{}` does not exist; check the path, or start a server to create it", path.display())]
    NotThere {
        /// The file.
        path: PathBuf,
    },
    /// The file is on a network file system.
    #[error(
        "`{}` lies on {file_system}, a file system that other machines share, where an SQLite file gets damaged; use a \
         disk of this machine, or PostgreSQL",
        path.display()
    )]
    SharedFileSystem {
        /// The file.
        path: PathBuf,
        /// The kind of file system.
        file_system: String,
    },
    /// Another process has opened it.
    #[error(
        "`{}` is in use by {by} (lock `{}`); stop that process, or give this one a file of its own",
        path.display(),
        lock.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The process, as it describes itself.
        by: String,
        /// The lock file.
        lock: PathBuf,
    },
    /// It belongs to another data directory.
    #[error(
        "`{}` belongs to the data directory `{folder}`; serve it from there, or, if that directory is gone or the file was \
         copied, run `evenbeat db new-epoch --store sqlite:{}` while no server runs, and start again",
        path.display(),
        path.display()
    )]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// The path of that directory when it first used the file.
        folder: String,
    },
    /// The operating system reported an error.
    #[error("`{}` cannot be used; check its permissions and the disk", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// The file was not created by this program.
    #[error("`{}` is not an Evenbeat store ({what}); it was left unchanged; choose another path", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// The file is damaged.
    #[error("`{}` is damaged ({what}); it was left unchanged; restore a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// Its tables cannot be migrated.
    #[error("`{}`: {fault}", path.display())]
    Migration {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: MigrationFault,
    },
    /// The disk is full.
    #[error("the disk has no room for `{}`; free some space and start again", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// SQLite reported an error.
    #[error("`{}` cannot be opened ({source})", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The error.
        source: rusqlite::Error,
    },
}

/// A file that is locked and migrated.
pub(super) struct OpenedFile {
    pub(super) path: PathBuf,
    pub(super) lock: StoreLock,
    pub(super) conn: Connection,
}

pub(super) fn open(
    path: &Path,
    now: Timestamp,
    size_max_bytes: Option<u64>,
    owner: Option<&StoreOwner>,
) -> Result<OpenedFile, OpenError> {
    let path = real_path(path)?;
    if let Some(file_system) = path.parent().and_then(shared_file_system) {
        return Err(OpenError::SharedFileSystem { path, file_system });
    }
    let not_locked = |not| match not {
        LockError::InUse { by, lock } => OpenError::InUse { path: path.clone(), by, lock },
        LockError::Failed { source, lock } => OpenError::Io { path: lock, source },
    };
    let mut lock = StoreLock::take(&path, now).map_err(not_locked)?;
    match fs::metadata(&path) {
        Ok(found) => {
            lock.take_database(&path).map_err(not_locked)?;
            examine(&path, found.len(), Thoroughness::Pages)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(&path, now)?;
            lock.take_database(&path).map_err(not_locked)?;
        }
        Err(source) => return Err(OpenError::Io { path, source }),
    }
    let database = |source| of_database(&path, source);
    let mut conn = connection::writing(&path, size_max_bytes).map_err(database)?;
    migrate::migrate(&mut conn, now).map_err(|not| of_migration(&path, not))?;
    if let Some(owner) = owner {
        own(&path, &conn, owner)?;
    }
    Ok(OpenedFile { path, lock, conn })
}

/// Makes sure that no other data directory owns the file, and sets this one as its owner.
fn own(path: &Path, conn: &Connection, owner: &StoreOwner) -> Result<(), OpenError> {
    let database = |source| of_database(path, source);
    let found = "SELECT value FROM setting WHERE name = ?1";
    let found: Option<String> =
        conn.query_row(found, [OWNER_SETTING], |row| row.get(0)).optional().map_err(database)?;
    let id = owner.id.to_string();
    match found.as_deref().map(|it| it.split_once(' ').unwrap_or((it, ""))) {
        Some((theirs, _)) if theirs == id => Ok(()),
        Some((_, folder)) => Err(OpenError::OtherOwner { path: path.to_owned(), folder: folder.to_owned() }),
        None => {
            let value = format!("{id} {}", owner.folder.display());
            let insert = "INSERT INTO setting (name, value) VALUES (?1, ?2)";
            conn.execute(insert, [OWNER_SETTING, &value]).map(|_| ()).map_err(database)
        }
    }
}

/// The path of an existing store. The file is examined but not locked.
pub(super) fn existing(path: &Path) -> Result<PathBuf, OpenError> {
    let path = real_path(path)?;
    let found = fs::metadata(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::NotThere { path: path.clone() },
        _ => OpenError::Io { path: path.clone(), source },
    })?;
    examine(&path, found.len(), Thoroughness::Identity)?;
    Ok(path)
}

/// How closely a file is examined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thoroughness {
    /// Its header and its migrations.
    Identity,
    /// Also all of its pages, if it is small or was not closed cleanly.
    Pages,
}

/// The canonical path, so that two names of one file use the same lock.
fn real_path(path: &Path) -> Result<PathBuf, OpenError> {
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(real);
    }
    let no_folder = |source| OpenError::NoFolder { path: path.to_owned(), source };
    let name = path.file_name().ok_or_else(|| no_folder(io::ErrorKind::InvalidInput.into()))?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(folder).map_err(no_folder)?.join(name))
}

/// Creates a new file under a temporary name and renames it, so that there is never an incomplete file.
fn create(path: &Path, now: Timestamp) -> Result<(), OpenError> {
    let with = |ending: &str| {
        let mut name: OsString = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    if fs::metadata(with("-wal")).is_ok_and(|log| 0 < log.len()) {
        let what = "its log is there, but the file itself is missing".to_owned();
        return Err(OpenError::Damaged { path: path.to_owned(), what });
    }
    let new = with(".new");
    let made = make(&new, now).and_then(|()| {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        File::open(&new).and_then(|file| file.sync_all()).map_err(io)?;
        fs::rename(&new, path).map_err(io)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()).map_err(io)
    });
    made.map_err(|error| {
        clear(&new);
        match error {
            // The message names the file that was to be created.
            OpenError::Full { .. } => OpenError::Full { path: path.to_owned() },
            other => other,
        }
    })
}

fn make(new: &Path, now: Timestamp) -> Result<(), OpenError> {
    clear(new);
    let io = |source| OpenError::Io { path: new.to_owned(), source };
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(new).map_err(io)?;
    let database = |source| of_database(new, source);
    let mut conn = connection::writing(new, None).map_err(database)?;
    conn.pragma_update(None, "application_id", APPLICATION_ID).map_err(database)?;
    migrate::migrate(&mut conn, now).map_err(|not| of_migration(new, not))?;
    conn.close().map_err(|(_, source)| database(source))
}

/// Removes what an interrupted start left behind.
fn clear(new: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = new.as_os_str().to_owned();
        name.push(ending);
        // Usually there is nothing to remove. If removing fails, so does creating the file.
        let _ = fs::remove_file(name);
    }
}

/// Examines a file without changing it.
fn examine(path: &Path, n_bytes: u64, how: Thoroughness) -> Result<(), OpenError> {
    let damaged = |what: String| OpenError::Damaged { path: path.to_owned(), what };
    let not_ours = |what: &str| OpenError::NotOurs { path: path.to_owned(), what: what.to_owned() };
    if n_bytes == 0 {
        return Err(damaged("it is empty".to_owned()));
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut head));
    read.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
    if head != *b"SQLite format 3\0" {
        return Err(not_ours("it is not an SQLite database"));
    }
    let database = |source| of_database(path, source);
    let conn = connection::reading(path).map_err(database)?;
    let id: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(database)?;
    if id != APPLICATION_ID {
        return Err(not_ours("it is another program's SQLite database"));
    }
    migrate::needed(&conn).map_err(|not| of_migration(path, not))?;
    let marker = "SELECT value = '1' FROM setting WHERE name = 'closed_cleanly'";
    let was_closed: Option<bool> =
        conn.query_row(marker, [], |row| row.get(0)).optional().map_err(database)?;
    let is_doubtful = was_closed != Some(true) || n_bytes <= SMALL_BYTES;
    if how == Thoroughness::Pages && is_doubtful {
        let found: String =
            conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(database)?;
        if found != "ok" {
            return Err(damaged(found));
        }
    }
    Ok(())
}

fn of_database(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            OpenError::Damaged { path, what: source.to_string() }
        }
        Some(ErrorCode::DiskFull) => OpenError::Full { path },
        _ => OpenError::Database { path, source },
    }
}

fn of_migration(path: &Path, not: MigrateError) -> OpenError {
    match not {
        MigrateError::Fault(fault) => OpenError::Migration { path: path.to_owned(), fault },
        MigrateError::Failed(source) => of_database(path, source),
    }
}

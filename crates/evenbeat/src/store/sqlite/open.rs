//! From a path to a file that may be used: made anew whole, or looked at before anything is changed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use evenbeat_core::time::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension};

use super::Owner;
use super::connection;
use super::filesystem::shared_file_system;
use super::lock::{Lock, NotLocked};
use super::migrate::{self, NotMigrated};
use crate::store::migrations::MigrationFault;

/// How a file says that it is Evenbeat's: the letters `EvBt`.
pub(super) const APPLICATION_ID: i32 = 0x4576_4274;

/// The setting that says which data directory the file belongs to: its id, and where it was.
pub(super) const OWNER_SETTING: &str = "owner";

/// A file of this size is looked through at every start, since that takes but a moment.
const SMALL_BYTES: u64 = 64 * 1024 * 1024;

/// Why a store was not opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no folder to put it in.
    #[error("the directory of `{}` cannot be used; create it, or choose another path", path.display())]
    NoFolder {
        /// The path that was given.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// There is no such file.
    #[error("`{}` does not exist; check the path, or start a server to create it", path.display())]
    NotThere {
        /// The file.
        path: PathBuf,
    },
    /// The file system is one that other machines share.
    #[error(
        "`{}` lies on {file_system}, a file system that other machines share, where an SQLite file gets damaged; use a \
         disk of this machine, or PostgreSQL",
        path.display()
    )]
    SharedFileSystem {
        /// The file.
        path: PathBuf,
        /// Which.
        file_system: String,
    },
    /// Another process has it.
    #[error(
        "`{}` is in use by {by} (lock `{}`); stop that process, or give this one a file of its own",
        path.display(),
        lock.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// Who says so.
        by: String,
        /// The lock.
        lock: PathBuf,
    },
    /// Another data directory has used it.
    #[error(
        "`{}` belongs to the data directory `{folder}`; serve it from there, or, if that directory is gone or the file was \
         copied, run `evenbeat db new-epoch --store sqlite:{}` while no server runs, and start again",
        path.display(),
        path.display()
    )]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// The data directory, as it was when it first used the file.
        folder: String,
    },
    /// Something of the operating system's.
    #[error("`{}` cannot be used; check its permissions and the disk", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// It is a file, but not of this program.
    #[error("`{}` is not an Evenbeat store ({what}); it was left unchanged; choose another path", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// It was one once.
    #[error("`{}` is damaged ({what}); it was left unchanged; restore a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// Its tables are not ours to change.
    #[error("`{}`: {fault}", path.display())]
    Migration {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: MigrationFault,
    },
    /// There is no room for it.
    #[error("the disk has no room for `{}`; free some space and start again", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The database did not do it.
    #[error("`{}` cannot be opened ({source})", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
}

/// A file that is ours, locked and up to date.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) lock: Lock,
    pub(super) conn: Connection,
}

pub(super) fn open(
    path: &Path,
    now: Timestamp,
    size_max_bytes: Option<u64>,
    owner: Option<&Owner>,
) -> Result<Opened, OpenError> {
    let path = real_path(path)?;
    if let Some(file_system) = path.parent().and_then(shared_file_system) {
        return Err(OpenError::SharedFileSystem { path, file_system });
    }
    let not_locked = |not| match not {
        NotLocked::Held { by, lock } => OpenError::InUse { path: path.clone(), by, lock },
        NotLocked::Failed { source, lock } => OpenError::Io { path: lock, source },
    };
    let mut lock = Lock::take(&path, now).map_err(not_locked)?;
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
    Ok(Opened { path, lock, conn })
}

/// Makes sure that the file belongs to this data directory, or to nobody yet.
fn own(path: &Path, conn: &Connection, owner: &Owner) -> Result<(), OpenError> {
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

/// A file that is there and is ours, looked at and not locked.
pub(super) fn existing(path: &Path) -> Result<PathBuf, OpenError> {
    let path = real_path(path)?;
    let found = fs::metadata(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::NotThere { path: path.clone() },
        _ => OpenError::Io { path: path.clone(), source },
    })?;
    examine(&path, found.len(), Thoroughness::Identity)?;
    Ok(path)
}

/// How closely a file is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thoroughness {
    /// Whether it is a store of ours, by its head and its steps.
    Identity,
    /// All of its pages too, if it is small or was not closed cleanly.
    Pages,
}

/// The path without detours: two names of one file have one lock.
fn real_path(path: &Path) -> Result<PathBuf, OpenError> {
    if let Ok(real) = fs::canonicalize(path) {
        return Ok(real);
    }
    let no_folder = |source| OpenError::NoFolder { path: path.to_owned(), source };
    let name = path.file_name().ok_or_else(|| no_folder(io::ErrorKind::InvalidInput.into()))?;
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::canonicalize(folder).map_err(no_folder)?.join(name))
}

/// A new file comes into being whole: under its name there is never one that is only half there.
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
            // People know it by the name that it was to have.
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

/// What an interrupted start left behind.
fn clear(new: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut name = new.as_os_str().to_owned();
        name.push(ending);
        // What is not there need not go; what cannot go shows when the file is made.
        let _ = fs::remove_file(name);
    }
}

/// Looks at a file, and changes nothing.
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

fn of_migration(path: &Path, not: NotMigrated) -> OpenError {
    match not {
        NotMigrated::Fault(fault) => OpenError::Migration { path: path.to_owned(), fault },
        NotMigrated::Failed(source) => of_database(path, source),
    }
}

//! The locks that keep a second process away from the file, for as long as the process lives.
//!
//! One lock is on a file next to the database, which names the process that has it. The other is on the database
//! itself, because one file can have several names: a hard link, a bind mount. It is an `flock`, which does not
//! conflict with SQLite's own locks. The kernel releases both when the process ends, however it ends. The file next
//! to the database stays.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use evenbeat_core::time::Timestamp;
use rustix::fs::{FlockOperation, flock};

/// The locks on a store.
#[derive(Debug)]
pub(super) struct StoreLock {
    /// The lock file next to the database.
    file: File,
    /// The database itself. It must be closed after all connections: closing any descriptor of a file drops all locks
    /// that this process has on it, including those of SQLite.
    database: Option<File>,
}

/// Why the locks were not taken.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it, and described itself like this.
    InUse {
        by: String,
        lock: PathBuf,
    },
    Failed {
        source: io::Error,
        lock: PathBuf,
    },
}

impl StoreLock {
    pub(super) fn take(database: &Path, now: Timestamp) -> Result<StoreLock, LockError> {
        let mut lock = database.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let failed = |source: io::Error| LockError::Failed { source, lock: lock.clone() };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(LockError::InUse { by: told_by(&mut file), lock });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // The text is only for the error messages of other processes, so a full disk does not matter.
        let _ = tell(&mut file, now);
        Ok(StoreLock { file, database: None })
    }

    /// Locks the database itself, which may have other names.
    pub(super) fn take_database(&mut self, database: &Path) -> Result<(), LockError> {
        let failed = |source: io::Error| LockError::Failed { source, lock: database.to_owned() };
        let file = OpenOptions::new().read(true).write(true).open(database).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.database = Some(file);
                Ok(())
            }
            Err(errno) => {
                let by = holder(&file);
                // Must not be closed: if this process has the database, that would drop SQLite's locks.
                std::mem::forget(file);
                match errno {
                    rustix::io::Errno::WOULDBLOCK => Err(LockError::InUse { by, lock: database.to_owned() }),
                    errno => Err(failed(errno.into())),
                }
            }
        }
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that another thread is forking shares the lock until it calls exec,
        // and a process that opened the store right then would find it in use.
        for file in [Some(&self.file), self.database.as_ref()].into_iter().flatten() {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

fn tell(file: &mut File, now: Timestamp) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "process {} since {now}", std::process::id())
}

fn told_by(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(200).read_to_string(&mut text);
    match (read, text.trim()) {
        (Ok(_), text) if !text.is_empty() => text.to_owned(),
        _ => "a process that has not said its name".to_owned(),
    }
}

/// The process that has locked this file under another name, if the kernel shows it.
fn holder(file: &File) -> String {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = file.metadata().map_or(0, |it| it.ino()).to_string();
    // A line is like `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234567 0 EOF`.
    let pid = locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let is_flock = words.next() == Some("FLOCK");
        let pid = words.nth(2)?;
        let is_file = words.next()?.rsplit(':').next() == Some(inode.as_str());
        (is_flock && is_file).then(|| pid.to_owned())
    });
    match pid {
        Some(pid) if pid != "0" && !pid.starts_with('-') => {
            format!("process {pid}, which opened it under another name")
        }
        _ => "another process, which opened it under another name".to_owned(),
    }
}

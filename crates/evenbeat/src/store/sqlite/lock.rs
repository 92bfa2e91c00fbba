//! One process for one file: the locks that say so, held for life.
//!
//! One lock is on a file beside the database, whose text says who has it. The other is on the database itself, because
//! one file can have several names: a hard link, a bind mount. It is an `flock`, which SQLite's own locks do not meet.
//! The kernel gives both back when the process ends, however it ends; the file beside the database stays, and says
//! nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use evenbeat_core::time::Timestamp;
use rustix::fs::{FlockOperation, flock};

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Lock {
    /// Beside the database.
    file: File,
    /// The database itself. To be closed after all of SQLite's own: closing any descriptor of a file drops the locks that
    /// this process has on it, SQLite's too.
    database: Option<File>,
}

/// Why it is not.
#[derive(Debug)]
pub(super) enum NotLocked {
    /// Another has it, who wrote this.
    Held {
        by: String,
        lock: PathBuf,
    },
    Failed {
        source: io::Error,
        lock: PathBuf,
    },
}

impl Lock {
    pub(super) fn take(database: &Path, now: Timestamp) -> Result<Lock, NotLocked> {
        let mut lock = database.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let failed = |source: io::Error| NotLocked::Failed { source, lock: lock.clone() };
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
                return Err(NotLocked::Held { by: told_by(&mut file), lock });
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // Only for the error text of others: a full disk is no reason not to start.
        let _ = tell(&mut file, now);
        Ok(Lock { file, database: None })
    }

    /// Locks the database itself, whatever else it may be called.
    pub(super) fn take_database(&mut self, database: &Path) -> Result<(), NotLocked> {
        let failed = |source: io::Error| NotLocked::Failed { source, lock: database.to_owned() };
        let file = OpenOptions::new().read(true).write(true).open(database).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                self.database = Some(file);
                Ok(())
            }
            Err(errno) => {
                let by = holder(&file);
                // Not closed: if it is this very process that has the database, SQLite's locks would go with it.
                std::mem::forget(file);
                match errno {
                    rustix::io::Errno::WOULDBLOCK => Err(NotLocked::Held { by, lock: database.to_owned() }),
                    errno => Err(failed(errno.into())),
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // To close it is not enough: a process that is being started by another thread shares the lock until it has
        // become its own program, and whoever opened the store right then would be told that it is in use.
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

/// Which process has locked this file under another name, as far as the kernel tells.
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

//! One process for one file: the lock that says so, held for life.
//!
//! The kernel gives the lock back when the process ends, however it ends; the file itself stays, and says nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use evenbeat_core::time::Timestamp;
use rustix::fs::{FlockOperation, flock};

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
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
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // To close it is not enough: a process that is being started by another thread shares the lock until it has
        // become its own program, and whoever opened the store right then would be told that it is in use.
        let _ = flock(&self.file, FlockOperation::Unlock);
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

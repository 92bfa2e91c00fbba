//! The locks of a job: a run holds one from before its first instruction until its last process is gone.
//!
//! The kernel keeps a lock for as long as any process has it open, and the run inherits it. So it tells without a
//! clock whether something of an earlier life still executes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use evenbeat_core::ids::JobKey;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::target::command::places::Places;

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    pub(super) name: String,
}

impl Lock {
    /// The first of a job's locks that is free; none if all are held.
    pub(super) fn take(places: &Places, key: &JobKey, n_lanes: u32) -> io::Result<Option<Lock>> {
        for lane in 0..n_lanes {
            let name = Places::lock_name(key, lane);
            let Some(path) = places.lock(&name) else { continue };
            if let Some(file) = try_lock(&path)? {
                return Ok(Some(Lock { file, name }));
            }
        }
        Ok(None)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Whether nobody holds a lock.
pub(in crate::target::command) fn is_free(path: &Path) -> bool {
    // The lock goes with the file, at the end of this line.
    !matches!(try_lock(path), Ok(None))
}

fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

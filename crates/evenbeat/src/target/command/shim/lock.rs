//! The locks of a job: a run holds one from before its first instruction until its last process is gone.
//!
//! The kernel keeps a lock for as long as any process has it open, and the run inherits it. So it tells without a clock
//! whether something of an earlier run still executes. A run could also release the lock that it inherits, so the shim
//! holds a second one, which the run never sees. The job is free when both are.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use evenbeat_core::ids::JobKey;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::target::command::places::{Places, open_own_file};

/// One of the locks of a job, held by us.
#[derive(Debug)]
pub(super) struct JobLock {
    /// The run inherits this one.
    file: File,
    /// The shim's own, closed when the run becomes its program.
    _guard: File,
    pub(super) name: String,
}

impl JobLock {
    /// Takes the first free lock of a job. `None` if all are held.
    pub(super) fn take(places: &Places, key: &JobKey, n_lanes: u32) -> io::Result<Option<JobLock>> {
        for lane in 0..n_lanes {
            let name = Places::lock_name(key, lane);
            let Some(path) = places.lock(&name) else { continue };
            // The guard first: only its holder may try the other.
            let Some(guard) = try_lock(&guard_of(&path))? else { continue };
            if let Some(file) = try_lock(&path)? {
                return Ok(Some(JobLock { file, _guard: guard, name }));
            }
        }
        Ok(None)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Whether no process holds a lock.
pub(in crate::target::command) fn is_free(path: &Path) -> bool {
    // Both locks are released at the end of this line, with their files.
    !matches!(try_lock(&guard_of(path)), Ok(None)) && !matches!(try_lock(path), Ok(None))
}

fn guard_of(path: &Path) -> PathBuf {
    path.with_extension("guard")
}

fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open_own_file(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

//! A store's file as it lies there, in use by a server or not: it is only read.

use std::path::{Path, PathBuf};

use evenbeat_core::store::StoreDown;

use super::backup::{self, BackupError};
use super::check;
use super::open::{self, OpenError};
use super::pool::Pool;
use super::shared::Shared;
use crate::store::check::CheckReport;

/// A file that can be looked through and copied while another process has it.
pub struct StoreFile {
    path: PathBuf,
    pool: Pool,
    shared: Shared,
}

impl std::fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StoreFile {
    /// Finds the file. One that is not there is not made.
    pub fn find(path: impl AsRef<Path>) -> Result<StoreFile, OpenError> {
        let path = open::existing(path.as_ref())?;
        let shared = Shared::new(path.clone(), super::system_clock());
        Ok(StoreFile { pool: Pool::new(path.clone()), path, shared })
    }

    /// Looks through all of it, as it is at one moment.
    pub fn check(&self) -> Result<CheckReport, StoreDown> {
        self.pool.read(&self.shared, check::whole)
    }

    /// Copies it, as it is now, into a new file.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<(), BackupError> {
        backup::copy_to(&self.path, to.as_ref())
    }
}

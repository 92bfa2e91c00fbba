//! Reads the file of a store, which a server may be using.

use std::path::{Path, PathBuf};

use evenbeat_core::store::StoreDown;

use super::backup::{self, BackupError};
use super::check;
use super::context::StoreContext;
use super::open::{self, OpenError};
use super::read_connections::ReadConnections;
use crate::store::check::CheckReport;

/// A file that can be checked and copied while another process has it open.
pub struct StoreFile {
    path: PathBuf,
    readers: ReadConnections,
    context: StoreContext,
}

impl std::fmt::Debug for StoreFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StoreFile {
    /// Finds the file. Does not create one.
    pub fn find(path: impl AsRef<Path>) -> Result<StoreFile, OpenError> {
        let path = open::existing(path.as_ref())?;
        let context = StoreContext::new(path.clone(), super::system_clock());
        Ok(StoreFile { readers: ReadConnections::new(path.clone()), path, context })
    }

    /// Checks all of one snapshot.
    pub fn check(&self) -> Result<CheckReport, StoreDown> {
        self.readers.read(&self.context, check::whole)
    }

    /// Copies a snapshot into a new file.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<(), BackupError> {
        backup::copy_to(&self.path, to.as_ref())
    }
}

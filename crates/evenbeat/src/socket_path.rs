//! The way to a Unix socket, however deep its folder lies.
//!
//! The address of a socket has room for 107 bytes, and a folder for data or temporary files may well be longer. So the
//! folder is held open and named by its descriptor, which is short.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// A short way to a socket; good as long as it lives.
#[derive(Debug)]
pub struct SocketPath {
    short: PathBuf,
    /// What the short way goes through.
    _folder: OwnedFd,
}

impl SocketPath {
    /// To this file, which need not be there; its folder must.
    pub fn to(file: &Path) -> io::Result<SocketPath> {
        let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it names no file");
        let name = file.file_name().ok_or_else(no_file)?;
        let folder = match file.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let flags = (OFlags::PATH | OFlags::DIRECTORY).bits().cast_signed();
        let folder = OwnedFd::from(File::options().read(true).custom_flags(flags).open(folder)?);
        let short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(SocketPath { short, _folder: folder })
    }

    /// The short way. Not as `AsRef`: who takes that by value lets go of the folder before the way is gone.
    pub fn short(&self) -> &Path {
        &self.short
    }
}

//! Short paths to Unix sockets in directories of any depth.
//!
//! A socket address has room for 107 bytes, but the path of a data or temporary directory may be longer. So we keep the
//! directory open and refer to it by its file descriptor, which is short.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// A short path to a socket. Valid as long as this value lives.
#[derive(Debug)]
pub struct SocketPath {
    short: PathBuf,
    /// The open directory that the short path goes through.
    _folder: OwnedFd,
}

impl SocketPath {
    /// The path to this file. The file does not have to exist, but its directory must.
    pub fn to(file: &Path) -> io::Result<SocketPath> {
        let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name");
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

    /// The short path. This is not an `AsRef`, because a caller could then drop the directory while the path is in use.
    pub fn short(&self) -> &Path {
        &self.short
    }
}

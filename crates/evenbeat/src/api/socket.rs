//! The Unix socket: only its owner may open it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use crate::socket_path::SocketPath;

/// A socket that is listened on. Its file goes with it.
#[derive(Debug)]
pub struct Socket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    /// Which file it is: by the time it goes, there may be another of the name.
    inode: u64,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Someone listens there.
    #[error("`{}` is in use: another server listens there; stop it, or choose another socket", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is something else of that name.
    #[error("`{}` exists and is not a socket; remove it, or choose another name", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The system says no.
    #[error("cannot listen on the socket `{}`; its directory must exist and be writable", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Socket {
    /// Listens there. What a process that died has left behind is replaced. Must be called within the runtime.
    pub fn bind(path: &Path) -> Result<Socket, SocketError> {
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        clear(path)?;
        // Under another name until only the owner can open it: a file is made with the rights that the process has.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fresh = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let listener =
            SocketPath::to(&fresh).and_then(|way| UnixListener::bind(way.short())).map_err(failed)?;
        let ready = fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))
            .and_then(|()| fs::rename(&fresh, path))
            .and_then(|()| inode_of(path));
        match ready {
            Ok(inode) => Ok(Socket { listener, path: path.to_owned(), inode }),
            Err(error) => {
                // It is of no use to anybody.
                let _ = fs::remove_file(&fresh);
                Err(failed(error))
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if inode_of(&self.path).is_ok_and(|it| it == self.inode) {
            // If it cannot be removed, the next process finds that no one answers.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode_of(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).map(|it| it.ino())
}

/// Removes what a dead process has left.
fn clear(path: &Path) -> Result<(), SocketError> {
    let (owned, failed) = (|| path.to_owned(), |source| SocketError::Io { path: path.to_owned(), source });
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(it) if !it.file_type().is_socket() => return Err(SocketError::NotASocket { path: owned() }),
        Ok(_) => {}
    }
    match SocketPath::to(path).and_then(|way| StdStream::connect(way.short())) {
        Ok(_) => Err(SocketError::InUse { path: owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

//! The identity of a data directory: a file that says which one it is.
//!
//! A node in another data directory is another node, whatever it is called, and a store in a file belongs to the data
//! directory that it was first used from.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use uuid::Uuid;

use super::ServeError;
use crate::target::command::Places;

/// The name of the file.
const FILE: &str = "node.id";

/// A data directory whose lock this process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// The id that stands in its file. A copy of the directory has the same one.
    pub(super) id: Uuid,
    /// The directory.
    pub(super) folder: PathBuf,
    /// Where the kernel finds its lock: not even a copy has the same place.
    lock: (u64, u64),
}

impl Home {
    /// Reads the id of a data directory, or gives it one. The caller holds the directory's lock, `lock`.
    pub(super) fn open(places: &Places, lock: &Path) -> Result<Home, ServeError> {
        let folder = places.root().to_owned();
        let path = folder.join(FILE);
        let failed = |path: &Path, source| ServeError::File { path: path.to_owned(), source };
        let text = read_or_make(&path).map_err(|source| failed(&path, source))?;
        let id = Uuid::try_parse(text.trim()).map_err(|_| ServeError::BadId { path })?;
        let held = fs::metadata(lock).map_err(|source| failed(lock, source))?;
        Ok(Home { id, folder, lock: (held.dev(), held.ino()) })
    }

    /// Tells sessions of this directory from those of any other on the same machine: no two processes can hold one lock.
    pub(super) fn key(&self) -> u128 {
        let (device, inode) = self.lock;
        let mut hash = blake3::Hasher::new();
        hash.update(self.id.as_bytes()).update(&device.to_le_bytes()).update(&inode.to_le_bytes());
        let mut bytes = [0; 16];
        hash.finalize_xof().fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }

    /// A few letters that tell two directories apart.
    pub(super) fn short(&self) -> String {
        format!("{:032x}", self.key()).chars().take(6).collect()
    }
}

fn read_or_make(path: &Path) -> io::Result<String> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let mut file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => options.create_new(true).open(path)?,
        opened => opened?,
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // A process that was interrupted before it was written starts over.
    if text.is_empty() {
        text = format!("{}\n", Uuid::new_v4());
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_id_and_a_copy_is_told_apart() {
        let root = std::env::temp_dir().join(format!("evenbeat-home-{}", std::process::id()));
        let open = |name: &str| {
            let places = Places::open(&root.join(name)).unwrap();
            fs::write(places.root().join("node.lock"), "").unwrap();
            Home::open(&places, &places.root().join("node.lock"))
        };
        let one = open("one").unwrap();
        assert_eq!(open("one").unwrap(), one);
        let other = open("other").unwrap();
        assert_ne!((one.id, one.key()), (other.id, other.key()));
        fs::copy(root.join("one/node.id"), root.join("other/node.id")).unwrap();
        let copy = open("other").unwrap();
        assert_eq!(copy.id, one.id);
        assert_ne!((copy.key(), copy.short()), (one.key(), one.short()));
        fs::write(root.join("one/node.id"), "mine").unwrap();
        let error = open("one").unwrap_err().to_string();
        assert!(error.contains("node.id") && error.contains("a new one created"), "{error}");
        fs::remove_dir_all(&root).unwrap();
    }
}

//! Paths in the data directory of a node. One type makes them all, from ids and numbers only: no text that a user wrote
//! becomes part of a path.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::time::Timestamp;
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, fchmod, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// The name of a shim's socket in the folder of its run. A shim binds it from inside that folder, because the address of
/// a socket has room for 108 bytes only.
pub(super) const SOCKET: &str = "sock";

/// The data directory of a node, and the paths in it.
///
/// A shim gets the path in its order. [`Places::open`] has checked it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Places {
    root: PathBuf,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    /// A folder cannot be created, entered or written to.
    #[error(
        "data directory `{}` cannot be used (it must belong to the user that runs evenbeat, and be writable)",
        path.display()
    )]
    Unusable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It belongs to another user, who could put anything there.
    #[error(
        "`{}` belongs to user {owner}, and Evenbeat runs as user {us}; run it as user {owner}, or hand the directory over \
         with `chown -R {us} {}`",
        path.display(),
        path.display()
    )]
    NotOurs { path: PathBuf, owner: u32, us: u32 },
    /// There is a link instead of a folder.
    #[error(
        "`{}` is a symbolic link; Evenbeat follows none inside its data directory, and none of another user to it: remove \
         the link",
        path.display()
    )]
    Link { path: PathBuf },
    /// Its name cannot be passed to shims and runs.
    #[error("data directory `{}` has a name that is not valid UTF-8; choose another", path.display())]
    BadName { path: PathBuf },
}

impl Places {
    /// Opens a data directory, or creates it. Closes it to other users.
    pub fn open(root: &Path) -> Result<Places, PlacesError> {
        let unusable = |path: &Path, source| PlacesError::Unusable { path: path.to_owned(), source };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(|source| unusable(root, source))?;
        // The directory may be a link of ours, but not one of another user.
        let link = fs::symlink_metadata(root).map_err(|source| unusable(root, source))?;
        if link.is_symlink() && ![0, geteuid().as_raw()].contains(&link.uid()) {
            return Err(PlacesError::Link { path: root.to_owned() });
        }
        let root = fs::canonicalize(root).map_err(|source| unusable(root, source))?;
        if root.to_str().is_none() {
            return Err(PlacesError::BadName { path: root });
        }
        own_folder(&root)?;
        for name in ["runs", "logs", "locks"] {
            inner_folder(&root.join(name))?;
        }
        Ok(Places { root })
    }

    /// The lock that says which process is the scheduler of this directory.
    pub fn node_lock(&self) -> PathBuf {
        self.root.join("node.lock")
    }

    /// Creates the folder of a run's log unless it exists.
    pub(super) fn make_log_folder(&self, run: RunId) -> io::Result<()> {
        inner_folder(&self.log_folder(run)).map_err(io::Error::other)
    }

    /// The places below a directory that need not exist.
    #[cfg(test)]
    pub(super) fn known(root: PathBuf) -> Places {
        Places { root }
    }

    /// The data directory itself, as an absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder with a folder for each run whose end is not on record yet.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// The folder of a run, until its end is on record.
    pub fn run(&self, run: RunId) -> PathBuf {
        self.runs().join(run.to_string())
    }

    /// The file that marks the start of a run. The process that creates it decides whether the run begins.
    pub fn start_marker(&self, run: RunId) -> PathBuf {
        self.run(run).join("began")
    }

    /// Where a shim writes the result of its run.
    pub fn end(&self, run: RunId) -> PathBuf {
        self.run(run).join("end")
    }

    /// Where a run may write its own result.
    pub fn result(&self, run: RunId) -> PathBuf {
        self.run(run).join("result.json")
    }

    /// The beginning of a run's output.
    pub fn log(&self, run: RunId) -> PathBuf {
        self.log_folder(run).join(format!("{run}.log"))
    }

    /// One of the latest two segments of a run's output.
    pub fn log_tail(&self, run: RunId, no: u64) -> PathBuf {
        self.log_folder(run).join(format!("{run}.tail.{no}"))
    }

    /// The folder of all logs of the UTC day on which the run's id was minted.
    pub fn log_folder(&self, run: RunId) -> PathBuf {
        self.root.join("logs").join(day(run))
    }

    /// The name of a lock of a job. A job has one for each run that may execute at once.
    pub(super) fn lock_name(key: &JobKey, lane: u32) -> String {
        format!("{:016x}.{lane}.lock", key.stable_hash())
    }

    /// A lock by its name. `None` if that is not the name of a lock.
    pub(super) fn lock(&self, name: &str) -> Option<PathBuf> {
        let (hash, rest) = name.split_once('.')?;
        let lane = rest.strip_suffix(".lock")?;
        let is_hash = hash.len() == 16 && hash.bytes().all(|it| it.is_ascii_hexdigit());
        let is_lane = !lane.is_empty() && lane.bytes().all(|it| it.is_ascii_digit());
        (is_hash && is_lane).then(|| self.root.join("locks").join(name))
    }
}

/// The UTC day of a run's id, as `2026-02-04`.
fn day(run: RunId) -> String {
    let millis = i64::try_from(run.0 >> 80).unwrap_or(0);
    let text = Timestamp::from_millis(millis).to_string();
    text.split('T').next().unwrap_or_default().to_owned()
}

/// Creates a folder inside one that is ours.
fn inner_folder(path: &Path) -> Result<(), PlacesError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(PlacesError::Unusable { path: path.to_owned(), source }),
    }
    own_folder(path)
}

/// Closes a folder to other users. It must be a folder, not a link, belong to us and be writable.
fn own_folder(path: &Path) -> Result<(), PlacesError> {
    let unusable = |errno: Errno| PlacesError::Unusable { path: path.to_owned(), source: errno.into() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Check and change what was opened: the path may point to something else by then.
    let folder = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(_) if path.is_symlink() => return Err(PlacesError::Link { path: path.to_owned() }),
        Err(errno) => return Err(unusable(errno)),
    };
    let stat = fstat(&folder).map_err(unusable)?;
    let us = geteuid().as_raw();
    if stat.st_uid != us {
        return Err(PlacesError::NotOurs { path: path.to_owned(), owner: stat.st_uid, us });
    }
    if stat.st_mode & 0o077 != 0 {
        fchmod(&folder, Mode::RWXU).map_err(unusable)?;
    }
    accessat(&folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty()).map_err(unusable)
}

/// Opens a file of ours for writing, or creates it. Never follows a link.
pub fn open_own_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn places() -> Places {
        Places::known(PathBuf::from("/data"))
    }

    #[test]
    fn a_log_lies_with_those_of_its_day() {
        let run = RunId(0x019c_2740_0000_7000_8000_0000_0000_002a);
        assert_eq!(
            places().log(run).to_str(),
            Some("/data/logs/2026-02-04/019c2740-0000-7000-8000-00000000002a.log")
        );
        assert_eq!(
            places().log_tail(run, 7).to_str(),
            Some("/data/logs/2026-02-04/019c2740-0000-7000-8000-00000000002a.tail.7")
        );
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named() {
        let file = std::env::temp_dir().join(format!("evenbeat-places-{}", std::process::id()));
        fs::write(&file, "in the way").unwrap();
        let error = Places::open(&file.join("data")).unwrap_err();
        fs::remove_file(&file).unwrap();
        let text = format!("data directory `{}/data` cannot be used", file.display());
        assert!(error.to_string().starts_with(&text), "{error}");
    }

    #[test]
    fn a_directory_is_closed_to_others() {
        let root = std::env::temp_dir().join(format!("evenbeat-places-own-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        let places = Places::open(&root).unwrap();
        let modes = [places.root().to_owned(), places.runs(), places.root().join("locks")]
            .map(|it| fs::metadata(it).unwrap().permissions().mode() & 0o777);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(modes, [0o700; 3]);
    }

    #[test]
    fn no_link_is_followed_inside_the_directory() {
        let base = std::env::temp_dir().join(format!("evenbeat-places-link-{}", std::process::id()));
        let (root, victim) = (base.join("data"), base.join("victim"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir(&victim).unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&victim, root.join("logs")).unwrap();
        let error = Places::open(&root).unwrap_err();
        let mode = fs::metadata(&victim).unwrap().permissions().mode() & 0o777;
        fs::remove_file(root.join("logs")).unwrap();
        let places = Places::open(&root).unwrap();
        let run = RunId(0x019c_2740_0000_7000_8000_0000_0000_002a);
        std::os::unix::fs::symlink(&victim, places.log_folder(run)).unwrap();
        let log = places.make_log_folder(run);
        fs::remove_dir_all(&base).unwrap();
        assert!(matches!(&error, PlacesError::Link { path } if path.ends_with("data/logs")), "{error}");
        assert_eq!(mode, 0o755, "the other directory was left alone");
        assert!(log.is_err());
    }

    #[test]
    fn a_directory_of_another_user_is_refused_with_the_way_out() {
        // Only root can give a directory away.
        if !geteuid().is_root() {
            return;
        }
        let root = std::env::temp_dir().join(format!("evenbeat-places-other-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        std::os::unix::fs::chown(&root, Some(65_534), None).unwrap();
        let error = Places::open(&root).unwrap_err();
        let mode = fs::metadata(&root).unwrap().permissions().mode() & 0o777;
        fs::remove_dir_all(&root).unwrap();
        let path = root.display();
        assert_eq!(
            error.to_string(),
            format!(
                "`{path}` belongs to user 65534, and Evenbeat runs as user 0; run it as user 65534, or hand the directory \
                 over with `chown -R 0 {path}`"
            )
        );
        assert_ne!(mode, 0o700, "it was not touched");
    }

    #[test]
    fn any_number_has_a_day() {
        assert!(places().log(RunId(0)).starts_with("/data/logs/1970-01-01"));
        assert!(places().log(RunId(u128::MAX)).starts_with("/data/logs"));
    }

    #[track_caller]
    fn check(name: &str, is_lock: bool) {
        assert_eq!(places().lock(name).is_some(), is_lock, "{name}");
    }

    #[test]
    fn only_the_name_of_a_lock_leads_to_one() {
        let key: JobKey = "shop@test".parse().unwrap();
        check(&Places::lock_name(&key, 3), true);
        check("0123456789abcdef.0.lock", true);
        check("0123456789abcdef..lock", false);
        check("0123456789abcde/.0.lock", false);
        check("0123456789abcdef.../../x.lock", false);
        check("../../../etc/passwd", false);
        check("", false);
    }
}

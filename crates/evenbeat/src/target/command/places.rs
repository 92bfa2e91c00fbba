//! Where everything about runs lies on a node's disk. One type makes every path, out of ids and numbers alone:
//! no text that a person wrote becomes part of one.

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

/// The name of a shim's socket inside the folder of its run. Bound and connected to from inside that folder: the
/// address of a socket has room for 108 bytes only.
pub(super) const SOCKET: &str = "sock";

/// The data directory of a node, and what lies where in it.
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
    /// A folder cannot be made, entered or written to.
    #[error(
        "data directory `{}` cannot be used (it must belong to the user that runs evenbeat, and be writable)",
        path.display()
    )]
    Unusable {
        /// Which folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It belongs to somebody else, who could put anything there.
    #[error(
        "`{}` belongs to user {owner}, and Evenbeat runs as user {us}; run it as user {owner}, or hand the directory over \
         with `chown -R {us} {}`",
        path.display(),
        path.display()
    )]
    NotOurs {
        /// Which folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        us: u32,
    },
    /// A link stands where a folder should be.
    #[error(
        "`{}` is a symbolic link; Evenbeat follows none inside its data directory, and none of another user to it: remove \
         the link",
        path.display()
    )]
    Link {
        /// Which.
        path: PathBuf,
    },
    /// Its name cannot be handed on.
    #[error("data directory `{}` has a name that is not valid UTF-8; choose another", path.display())]
    BadName {
        /// Which folder.
        path: PathBuf,
    },
}

impl Places {
    /// The places below a directory, which is made if it is not there; nobody else may look into it.
    pub fn open(root: &Path) -> Result<Places, PlacesError> {
        let unusable = |path: &Path, source| PlacesError::Unusable { path: path.to_owned(), source };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(|source| unusable(root, source))?;
        // Whoever configured the directory may have made a link of it; somebody else may not.
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

    /// The folder of a run's log, made if it is not there.
    pub(super) fn make_log_folder(&self, run: RunId) -> io::Result<()> {
        inner_folder(&self.log_folder(run)).map_err(io::Error::other)
    }

    /// The places below a directory that need not exist.
    #[cfg(test)]
    pub(super) fn known(root: PathBuf) -> Places {
        Places { root }
    }

    /// The data directory itself, from the root of the file system on.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that has a folder for each run which is not on record yet.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// The folder of a run, until its end is on record.
    pub fn run(&self, run: RunId) -> PathBuf {
        self.runs().join(run.to_string())
    }

    /// Where a shim says when its run began; whoever makes this file first decides whether it does.
    pub fn began(&self, run: RunId) -> PathBuf {
        self.run(run).join("began")
    }

    /// Where a shim says how its run ended.
    pub fn end(&self, run: RunId) -> PathBuf {
        self.run(run).join("end")
    }

    /// Where a run may say what it has done.
    pub fn result(&self, run: RunId) -> PathBuf {
        self.run(run).join("result.json")
    }

    /// The beginning of a run's output.
    pub fn log(&self, run: RunId) -> PathBuf {
        self.log_folder(run).join(format!("{run}.log"))
    }

    /// One of the latest two stretches of a run's output after its beginning.
    pub fn log_tail(&self, run: RunId, slot: u64) -> PathBuf {
        self.log_folder(run).join(format!("{run}.tail.{slot}"))
    }

    /// The folder of all logs of a day, in UTC: that on which the run's id was minted.
    pub fn log_folder(&self, run: RunId) -> PathBuf {
        self.root.join("logs").join(day(run))
    }

    /// The name of a lock of a job: one for each of its runs that may go on at once.
    pub(super) fn lock_name(key: &JobKey, lane: u32) -> String {
        format!("{:016x}.{lane}.lock", key.stable_hash())
    }

    /// A lock by its name; none if that is no name of a lock.
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

/// Makes a folder inside one that is ours.
fn inner_folder(path: &Path) -> Result<(), PlacesError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(PlacesError::Unusable { path: path.to_owned(), source }),
    }
    own_folder(path)
}

/// Closes a folder to others. It must be a folder, ours, and one that can be written to; a link leads nowhere.
fn own_folder(path: &Path) -> Result<(), PlacesError> {
    let unusable = |errno: Errno| PlacesError::Unusable { path: path.to_owned(), source: errno.into() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // What was opened is what is looked at and changed, whatever its name leads to by then.
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

/// Opens a file of ours that may be written to, and makes it if it is not there; never one that a link leads to.
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

//! Where everything about runs lies on a node's disk. One type makes every path, out of ids and numbers alone:
//! no text that a person wrote becomes part of one.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::time::Timestamp;
use rustix::fs::Access;

/// The name of a shim's socket inside the folder of its run. Bound and connected to from inside that folder: the
/// address of a socket has room for 108 bytes only.
pub(super) const SOCKET: &str = "sock";

/// The data directory of a node, and what lies where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Its name cannot be handed on.
    #[error("data directory `{}` has a name that is no UTF-8 text; choose another", path.display())]
    BadName {
        /// Which folder.
        path: PathBuf,
    },
}

impl Places {
    /// The places below a directory, which is made if it is not there; nobody else may look into it.
    pub fn open(root: &Path) -> Result<Places, PlacesError> {
        let unusable = |path: &Path, source| PlacesError::Unusable { path: path.to_owned(), source };
        own_folder(root).map_err(|source| unusable(root, source))?;
        let root = fs::canonicalize(root).map_err(|source| unusable(root, source))?;
        if root.to_str().is_none() {
            return Err(PlacesError::BadName { path: root });
        }
        for name in ["runs", "logs", "locks"] {
            let path = root.join(name);
            own_folder(&path).map_err(|source| unusable(&path, source))?;
        }
        Ok(Places { root })
    }

    /// The places below a directory that was opened before, by whoever tells of it.
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

/// Makes a folder that nobody else can look into, or closes it to others; it must be one that can be written to.
fn own_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
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

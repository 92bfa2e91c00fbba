//! The cgroup of a run: the kernel freezes and kills everything in it at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use evenbeat_core::ids::RunId;

/// The cgroup of a run.
#[derive(Debug)]
pub(in crate::target::command) struct Cgroup {
    path: PathBuf,
    events: File,
}

/// The cgroup of this process, if cgroups for runs can be created in it.
///
/// Freezing and killing need no controller, so any cgroup of version 2 will do.
pub fn find_cgroup() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let parent = own_path(&mounts, &own)?;
    let probe = parent.join(format!("evenbeat-probe-{}", std::process::id()));
    fs::create_dir(&probe).ok()?;
    let is_good =
        ["cgroup.freeze", "cgroup.kill", "cgroup.procs"].iter().all(|file| probe.join(file).exists());
    let is_writable = OpenOptions::new().write(true).open(parent.join("cgroup.procs")).is_ok();
    fs::remove_dir(&probe).ok()?;
    (is_good && is_writable).then_some(parent)
}

fn own_path(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(place)
    })?;
    let inside = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(inside))
}

/// The path of the cgroup of a run.
pub(in crate::target::command) fn path_of(parent: &Path, run: RunId) -> PathBuf {
    parent.join(format!("evenbeat-{run}"))
}

impl Cgroup {
    pub(super) fn make(parent: &Path, run: RunId) -> io::Result<Cgroup> {
        let path = path_of(parent, run);
        fs::create_dir(&path)?;
        let events = File::open(path.join("cgroup.events"))?;
        Ok(Cgroup { path, events })
    }

    /// The file that a process writes to in order to enter.
    pub(super) fn procs(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))
    }

    pub(super) fn freeze(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.freeze"), "1")
    }

    pub(super) fn thaw(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.freeze"), "0")
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// The processes in it and in those below it, which freeze together.
    pub(super) fn members(&self) -> Vec<i32> {
        let mut members = Vec::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            // A threaded cgroup does not list its processes; they are stopped one by one.
            let procs = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            members.extend(procs.lines().filter_map(|it| it.parse::<i32>().ok()));
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            folders
                .extend(entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())).map(|it| it.path()));
        }
        members
    }

    pub(super) fn is_frozen(&mut self) -> bool {
        let mut text = String::new();
        let read = self.events.seek(SeekFrom::Start(0)).and_then(|_| self.events.read_to_string(&mut text));
        read.is_ok() && text.lines().any(|line| line == "frozen 1")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // One that is not empty cannot be removed.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Kills everything in the cgroup of a run whose shim is gone, and removes it. Returns whether it is gone: a cgroup with
/// a live process cannot be removed.
pub(in crate::target::command) fn clear(parent: &Path, run: RunId) -> bool {
    let path = path_of(parent, run);
    let _ = fs::write(path.join("cgroup.kill"), "1");
    match fs::remove_dir(&path) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mounts: &str, own: &str, expected: Option<&str>) {
        assert_eq!(own_path(mounts, own), expected.map(PathBuf::from));
    }

    #[test]
    fn the_cgroup_of_a_process_is_found_where_it_is_mounted() {
        let hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        check(hybrid, "4:memory:/x\n0::/\n", Some("/sys/fs/cgroup/unified"));
        let unified = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        check(
            unified,
            "0::/system.slice/evenbeat.service\n",
            Some("/sys/fs/cgroup/system.slice/evenbeat.service"),
        );
        check("proc /proc proc rw 0 0\n", "0::/\n", None);
        check(unified, "4:memory:/x\n", None);
        check("", "", None);
    }
}

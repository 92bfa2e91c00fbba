//! Processes as the kernel shows them: who belongs to a test, who stands still, and how signals reach them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal; to nobody, if it is gone.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// A process that works for a node in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) pid: u32,
    pub(crate) is_shim: bool,
}

/// All shims and runs of a node in this folder: shims stand in it, runs have it in their environment.
pub(crate) fn of_runs(folder: &Path) -> Vec<Found> {
    let mark = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stands_in = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_marked = contains(&environ, format!("EVENBEAT_RESULT_FILE={mark}/").as_bytes());
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_shim = stands_in && command == b"evenbeat\0shim\0";
        if (is_shim || is_marked) && state(pid).is_some_and(|state| state != 'Z') {
            found.push(Found { pid, is_shim });
        }
    }
    found
}

/// What a process does: `R`, `S`, `T` for one that was stopped, `Z` for one that nobody has waited for.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether nothing of a process executes: it was stopped, or is frozen with its cgroup, or is over.
pub(crate) fn stands_still(pid: u32) -> bool {
    let is_frozen = || {
        let events = fs::read_to_string(cgroup(&pid.to_string())?.join("cgroup.events")).ok()?;
        Some(events.lines().any(|line| line == "frozen 1"))
    };
    matches!(state(pid), None | Some('T' | 'Z' | 'X')) || is_frozen().unwrap_or(false)
}

/// Where the cgroup of a process is, which may be `self`; none if there is no such hierarchy.
pub(crate) fn cgroup(pid: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let place = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?;
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    Some(Path::new(place).join(own.lines().find_map(|line| line.strip_prefix("0::/"))?))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

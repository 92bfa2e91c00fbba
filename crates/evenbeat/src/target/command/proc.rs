//! Reads `/proc`, and sends signals that never reach the wrong process.
//!
//! The pid of a process is reused once it has ended and was waited for. So we first open a descriptor, which stands for
//! one process for ever, and then read `/proc` again; only if that shows the same process is the signal sent, through the
//! descriptor.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What `/proc` says about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessInfo {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// The state of its first thread, as a letter.
    state: u8,
    n_threads: u64,
    /// When it was started, in ticks since the boot.
    started: u64,
}

/// Identifies a process, even if its pid is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessIdentity {
    pid: i32,
    started: u64,
}

/// All processes below another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Walk {
    /// Without the process itself, ordered by pid.
    pub(super) members: Vec<ProcessInfo>,
    /// The parent of some process was gone before it was read, so there may be more.
    pub(super) is_torn: bool,
}

/// Reads a process that executes, or has ended and was not waited for.
pub(super) fn look(pid: i32) -> Option<ProcessInfo> {
    read_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Everything below a process: its children, their children, and so on.
pub(super) fn below(root: i32) -> Walk {
    walk(all().collect(), root)
}

fn walk(mut all: Vec<ProcessInfo>, root: i32) -> Walk {
    all.sort_unstable_by_key(|it| it.pid);
    let is_there = |pid: i32| all.binary_search_by_key(&pid, |it| it.pid).is_ok();
    let is_torn = all.iter().any(|it| it.parent != 0 && !is_there(it.parent));
    let mut found = vec![root];
    let mut members: Vec<ProcessInfo> = Vec::new();
    while let Some(parent) = found.pop() {
        let children = all.iter().filter(|it| it.parent == parent && it.pid != parent);
        for child in children {
            found.push(child.pid);
            members.push(*child);
        }
    }
    members.sort_unstable_by_key(|it| it.pid);
    Walk { members, is_torn }
}

/// All processes with this `NAME=value` in their environment.
pub(super) fn marked(marker: &str) -> Vec<ProcessInfo> {
    pids().filter(|pid| is_marked(*pid, marker)).filter_map(look).collect()
}

fn is_marked(pid: i32, marker: &str) -> bool {
    let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environ.split(|it| *it == 0).any(|entry| entry == marker.as_bytes())
}

fn all() -> impl Iterator<Item = ProcessInfo> {
    pids().filter_map(look)
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

impl ProcessIdentity {
    /// Reads the process again. `None` if it is gone.
    pub(super) fn look(self) -> Option<ProcessInfo> {
        look(self.pid).filter(|now| now.identity() == self)
    }
}

impl ProcessInfo {
    pub(super) fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, started: self.started }
    }

    /// Whether it has ended and was not waited for.
    pub(super) fn is_over(&self) -> bool {
        is_dead(self.state) && self.n_threads <= 1
    }

    /// Whether no thread of it can execute before it gets another signal.
    ///
    /// A thread in uninterruptible sleep is halted too if its process got SIGSTOP: it stops before it leaves the kernel.
    /// Otherwise a process that waits for a child which is stopped between `vfork` and `exec` would never count as halted.
    pub(super) fn is_halted(&self, got_stop: bool) -> bool {
        let is_halted = |state: u8| is_dead(state) || is_stopped(state) || got_stop && state == b'D';
        if self.n_threads <= 1 {
            return is_halted(self.state);
        }
        // The first thread may have stopped, or even ended, before the others.
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return false };
        let mut states = tasks.flatten().map(|task| {
            let stat = fs::read(task.path().join("stat")).ok()?;
            read_stat(&stat).map(|it| it.state)
        });
        states.all(|state| state.is_some_and(is_halted))
    }

    /// Sends a signal if it is still the same process and `is_ours` holds. Returns whether it was sent.
    pub(super) fn signal(&self, signal: Signal, is_ours: impl Fn(&ProcessInfo) -> bool) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return false };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        let is_same = |now: &ProcessInfo| now.identity() == self.identity() && is_ours(now);
        look(self.pid).is_some_and(|now| is_same(&now)) && pidfd_send_signal(&pidfd, signal).is_ok()
    }

    /// Sends a signal if it is still the same process and still carries the marker.
    pub(super) fn signal_if_marked(&self, signal: Signal, marker: &str) -> bool {
        self.signal(signal, |now| is_marked(now.pid, marker))
    }
}

fn is_stopped(state: u8) -> bool {
    matches!(state, b'T' | b't')
}

fn is_dead(state: u8) -> bool {
    matches!(state, b'Z' | b'X' | b'x')
}

/// Parses `/proc/<pid>/stat`. The name in it may contain anything, including brackets and line breaks.
fn read_stat(stat: &[u8]) -> Option<ProcessInfo> {
    let open = stat.iter().position(|it| *it == b'(')?;
    let close = stat.iter().rposition(|it| *it == b')')?;
    let pid = std::str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(ProcessInfo {
        pid,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        n_threads: fields.get(17)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Processor time of all children that this process has waited for, in hundredths of a second.
pub(super) fn waited_for_ticks() -> u64 {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return 0 };
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest.split_ascii_whitespace().skip(13).take(2);
    ticks.filter_map(|it| it.parse::<u64>().ok()).sum()
}

/// The name of a process.
pub(super) fn name(pid: i32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The largest memory use of a process so far.
pub(super) fn max_rss_kib(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stat: &str, expected: Option<(i32, u8, i32, u64, u64)>) {
        let seen = read_stat(stat.as_bytes());
        assert_eq!(seen.map(|it| (it.pid, it.state, it.parent, it.n_threads, it.started)), expected);
    }

    #[test]
    fn a_process_is_read_whatever_it_calls_itself() {
        let rest = "T 7 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 98765 1 2";
        check(&format!("12 (sh) {rest}"), Some((12, b'T', 7, 3, 98765)));
        check(&format!("12 (a) R 1 (b)) {rest}"), Some((12, b'T', 7, 3, 98765)));
        check(&format!("12 (a\n b) {rest}"), Some((12, b'T', 7, 3, 98765)));
        check("12 (sh) T 7", None);
        check("", None);
    }

    #[test]
    fn a_process_that_waits_in_the_kernel_is_halted_once_it_got_a_stop() {
        let in_state = |state: u8| ProcessInfo { state, ..seen(1, 0) };
        for (state, got_stop, is_halted) in [
            (b'T', false, true),
            (b't', false, true),
            (b'Z', false, true),
            (b'D', false, false),
            (b'D', true, true),
            (b'R', true, false),
            (b'S', true, false),
        ] {
            assert_eq!(in_state(state).is_halted(got_stop), is_halted, "{}", char::from(state));
        }
    }

    fn seen(pid: i32, parent: i32) -> ProcessInfo {
        ProcessInfo { pid, parent, group: pid, state: b'R', n_threads: 1, started: 1 }
    }

    #[test]
    fn below_a_process_are_its_children_and_theirs() {
        let all = vec![seen(1, 0), seen(9, 5), seen(5, 1), seen(6, 1), seen(7, 9), seen(2, 9)];
        let walk = walk(all, 5);
        assert_eq!(walk.members.iter().map(|it| it.pid).collect::<Vec<_>>(), [2, 7, 9]);
        assert!(!walk.is_torn);
    }

    #[test]
    fn a_walk_that_missed_a_parent_is_torn() {
        assert!(walk(vec![seen(1, 0), seen(5, 1), seen(3, 4)], 5).is_torn);
    }

    #[test]
    fn this_process_is_found_and_is_not_halted() {
        let me = i32::try_from(std::process::id()).unwrap();
        let seen = look(me).unwrap();
        assert!(!seen.is_halted(true));
        assert!(!seen.is_over());
        assert!(below(seen.parent).members.iter().any(|it| it.pid == me));
        assert!(0 < max_rss_kib(me).unwrap());
        assert!(!name(me).unwrap().is_empty());
    }

    #[test]
    fn a_process_that_only_has_the_same_number_gets_no_signal() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let seen = look(i32::try_from(child.id()).unwrap()).unwrap();
        let stranger = ProcessInfo { started: seen.started + 1, ..seen };
        assert!(!stranger.signal(Signal::KILL, |_| true));
        assert!(!seen.signal(Signal::KILL, |_| false));
        assert!(!seen.signal_if_marked(Signal::KILL, "EVENBEAT_RUN_ID=nobody"));
        assert!(seen.signal(Signal::KILL, |_| true));
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}

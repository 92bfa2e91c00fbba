//! Starts a run: takes its lock, writes its start marker, checks its lease, starts its program.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::process::{Command, Stdio};

use evenbeat_core::time::BootTime;
use rustix::fs::{Access, Mode, access};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::cgroup::Cgroup;
use super::child::{self, Preparation};
use super::lock::JobLock;
use super::output::{OutputPipes, StdinPipe};
use super::run::LiveRun;
use super::tree::ProcessTree;
use crate::point::point;
use crate::target::command::boot;
use crate::target::command::order::Order;
use crate::target::command::start_marker::StartMarker;

/// What a shim inherits from its parent and passes on.
#[derive(Clone, Debug)]
pub(super) struct Inheritance {
    pub(super) umask: Mode,
    /// Descriptors that the parent left open by accident.
    pub(super) strays: Vec<RawFd>,
}

/// The result of an attempt to start a run.
#[derive(Debug)]
pub(super) enum StartAttempt {
    /// The run executes.
    Running(Box<LiveRun>, OutputPipes, Option<StdinPipe>),
    /// All locks of the job are held: something of it still executes.
    Locked,
    /// It never will, for this reason.
    Never(String),
    /// Its program cannot be started: the run has failed, with the exit code that a shell would give.
    Failed { at: BootTime, error: String, exit_code: Option<i32> },
}

/// Starts a run if it may start now.
pub(super) fn begin(
    order: &mut Order,
    lease_until: Option<BootTime>,
    boot_id: &str,
    inherited: &Inheritance,
) -> StartAttempt {
    let lock = match JobLock::take(&order.places, &order.key, order.n_lanes) {
        Ok(Some(lock)) => lock,
        Ok(None) => return StartAttempt::Locked,
        Err(error) => return StartAttempt::Never(format!("the lock of the job cannot be taken: {error}")),
    };
    point("shim.locked");
    let now = boot::now();
    let marker = StartMarker { boot_id: boot_id.to_owned(), at: now, lock: lock.name.clone() };
    match marker.write(&order.places, order.run) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return StartAttempt::Never("it was given up before it began".to_owned());
        }
        Err(error) => return StartAttempt::Never(format!("its beginning cannot be noted: {error}")),
    }
    point("shim.noted");
    if let Some(refused) = order.refused.take() {
        return StartAttempt::Failed { at: now, error: refused, exit_code: None };
    }
    match start(order, lease_until, lock, inherited) {
        Ok(attempt) => attempt,
        Err(error) if child::was_lease_over(&error) => StartAttempt::Never(LEASE_WAS_OVER.to_owned()),
        Err(error) => {
            let (error, exit_code) = explained(order, &error);
            StartAttempt::Failed { at: now, error, exit_code: Some(exit_code) }
        }
    }
}

/// Why a run whose lease has ended does not begin.
pub(super) const LEASE_WAS_OVER: &str = "its lease was over before it could begin";

fn start(
    order: &mut Order,
    lease_until: Option<BootTime>,
    lock: JobLock,
    inherited: &Inheritance,
) -> io::Result<StartAttempt> {
    let Some((program, args)) = order.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let (output, writes_to) = OutputPipes::new()?;
    let (input, reads_from) = match order.stdin.take() {
        Some(text) => {
            let (input, reads_from) = StdinPipe::new(text)?;
            (Some(input), Stdio::from(reads_from))
        }
        None => (None, Stdio::null()),
    };
    // Without a cgroup of its own, the processes of the run are walked; that is as safe, but slower.
    let cgroup = order.cgroup.as_ref().and_then(|parent| Cgroup::make(parent, order.run).ok());
    let procs: Option<File> = cgroup.as_ref().map(Cgroup::procs).transpose()?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&order.env).current_dir(&order.cwd);
    command.stdin(reads_from).stdout(writes_to.out).stderr(writes_to.err);
    child::prepare(
        &mut command,
        Preparation {
            shim: getpid(),
            lock: lock.fd(),
            cgroup_procs: procs.as_ref().map(AsRawFd::as_raw_fd),
            strays: inherited.strays.clone(),
            limits: order.limits,
            umask: inherited.umask,
            lease_until,
        },
    );
    let mut process = command.spawn()?;
    let now = boot::now();
    point("shim.spawned");
    // It is our child and has not been waited for, so its pid is not reused.
    let pid = Pid::from_child(&process);
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            // Without the descriptor we would not notice its end.
            process.kill()?;
            process.wait()?;
            return Err(errno.into());
        }
    };
    let tree = ProcessTree::new(getpid(), cgroup);
    Ok(StartAttempt::Running(
        Box::new(LiveRun::new(pid, pidfd, tree, lock, order.bounds, now)),
        output,
        input,
    ))
}

/// Why a program was not started, and the exit code that a shell would give.
fn explained(order: &Order, error: &io::Error) -> (String, i32) {
    let message = system_message(error);
    if let Err(error) = check_directory(Path::new(&order.cwd)) {
        return (format!("cannot start in `{}`: {}", order.cwd, system_message(&error)), 126);
    }
    let program = order.argv.first().map_or("", String::as_str);
    let exit_code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot start `{program}`: {message}"), exit_code)
}

/// Checks that a program can start in a directory. The error of `exec` does not say which path is missing.
fn check_directory(path: &Path) -> io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(access(path, Access::EXEC_OK)?)
}

/// The message of a system error without its number.
fn system_message(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;
    use rustix::event::{PollFd, PollFlags};

    use super::*;
    use crate::target::command::order::tests::sample;
    use crate::target::command::places::Places;

    /// Starts a run that creates a file, under a lease that ends in this many milliseconds.
    #[track_caller]
    fn check(name: &str, millis: i64, begins: bool) {
        let root = std::env::temp_dir().join(format!("evenbeat-begin-{name}-{}", std::process::id()));
        let places = Places::open(&root).unwrap();
        let left = root.join("left");
        let mut order = Order {
            argv: vec!["/bin/touch".to_owned(), left.to_str().unwrap().to_owned()],
            places: places.clone(),
            cgroup: None,
            stdin: None,
            ..sample()
        };
        std::fs::create_dir(places.run(order.run)).unwrap();
        let lease_until = Some(boot::now() + Duration::from_millis(millis));
        let inherited = Inheritance { umask: Mode::empty(), strays: Vec::new() };
        match begin(&mut order, lease_until, "boot", &inherited) {
            StartAttempt::Running(run, ..) => {
                assert!(begins);
                let child = run.first().expect("the child has a descriptor");
                rustix::event::poll(&mut [PollFd::new(&child, PollFlags::IN)], None).unwrap();
            }
            StartAttempt::Never(why) => assert_eq!((why.as_str(), begins), (LEASE_WAS_OVER, false)),
            other => panic!("{other:?}"),
        }
        assert_eq!(left.exists(), begins);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_last_look_at_the_lease_is_in_the_child() {
        check("over", 0, false);
        check("good", 600_000, true);
    }
}

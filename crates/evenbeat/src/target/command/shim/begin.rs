//! The last moments before a run begins: the lock, the note, the look at the lease, the program.

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
use super::lock::Lock;
use super::output::{Input, Output};
use super::run::Run;
use super::tree::Tree;
use crate::point::point;
use crate::target::command::began::Began;
use crate::target::command::boot;
use crate::target::command::order::Order;

/// What a shim was given by its parent, and hands on.
#[derive(Clone, Debug)]
pub(super) struct Inherited {
    pub(super) umask: Mode,
    /// What was open that nobody has asked for.
    pub(super) strays: Vec<RawFd>,
}

/// What came of the attempt to begin.
#[derive(Debug)]
pub(super) enum Begun {
    /// The run executes.
    Yes(Box<Run>, Output, Option<Input>),
    /// All locks of the job are held: something of it still executes.
    NotYet,
    /// It never will, for this reason.
    Never(String),
    /// Its program cannot be started, for this reason: it has failed, with the exit code that a shell would give.
    Failed { at: BootTime, error: String, exit_code: Option<i32> },
}

/// Begins a run, if it may begin now.
pub(super) fn begin(
    order: &mut Order,
    lease_until: Option<BootTime>,
    boot_id: &str,
    inherited: &Inherited,
) -> Begun {
    let lock = match Lock::take(&order.places, &order.key, order.n_lanes) {
        Ok(Some(lock)) => lock,
        Ok(None) => return Begun::NotYet,
        Err(error) => return Begun::Never(format!("the lock of the job cannot be taken: {error}")),
    };
    point("shim.locked");
    let now = boot::now();
    let began = Began { boot_id: boot_id.to_owned(), at: now, lock: lock.name.clone() };
    match began.write(&order.places, order.run) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Begun::Never("it was given up before it began".to_owned());
        }
        Err(error) => return Begun::Never(format!("its beginning cannot be noted: {error}")),
    }
    point("shim.noted");
    if let Some(refused) = order.refused.take() {
        return Begun::Failed { at: now, error: refused, exit_code: None };
    }
    match start(order, lease_until, lock, inherited) {
        Ok(begun) => begun,
        Err(error) if child::was_lease_over(&error) => Begun::Never(LEASE_WAS_OVER.to_owned()),
        Err(error) => {
            let (error, exit_code) = explained(order, &error);
            Begun::Failed { at: now, error, exit_code: Some(exit_code) }
        }
    }
}

/// Why a run whose lease has ended does not begin.
pub(super) const LEASE_WAS_OVER: &str = "its lease was over before it could begin";

fn start(
    order: &mut Order,
    lease_until: Option<BootTime>,
    lock: Lock,
    inherited: &Inherited,
) -> io::Result<Begun> {
    let Some((program, args)) = order.argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let (output, writes_to) = Output::new()?;
    let (input, reads_from) = match order.stdin.take() {
        Some(text) => {
            let (input, reads_from) = Input::new(text)?;
            (Some(input), Stdio::from(reads_from))
        }
        None => (None, Stdio::null()),
    };
    // Without a cgroup of its own a run is walked; that is as good, if slower.
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
    // It is our child, and nobody else waits for it: the number is its own.
    let pid = Pid::from_child(&process);
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            // Nobody would notice its end.
            process.kill()?;
            process.wait()?;
            return Err(errno.into());
        }
    };
    let tree = Tree::new(getpid(), cgroup);
    Ok(Begun::Yes(Box::new(Run::new(pid, pidfd, tree, lock, order.bounds, now)), output, input))
}

/// What to tell people of a program that was not started, and the exit code that a shell would give.
fn explained(order: &Order, error: &io::Error) -> (String, i32) {
    let said = system_words(error);
    if let Err(error) = look_at_directory(Path::new(&order.cwd)) {
        return (format!("cannot start in `{}`: {}", order.cwd, system_words(&error)), 126);
    }
    let program = order.argv.first().map_or("", String::as_str);
    let exit_code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    (format!("cannot start `{program}`: {said}"), exit_code)
}

/// Whether one can start in a directory. The error of a start does not say what was not there.
fn look_at_directory(path: &Path) -> io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(access(path, Access::EXEC_OK)?)
}

/// What the system says, without its number.
fn system_words(error: &io::Error) -> String {
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

    /// Begins a run that leaves a file, under a lease that ends so many milliseconds from now.
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
        let inherited = Inherited { umask: Mode::empty(), strays: Vec::new() };
        match begin(&mut order, lease_until, "boot", &inherited) {
            Begun::Yes(run, ..) => {
                assert!(begins);
                let child = run.first().expect("the child has a descriptor");
                rustix::event::poll(&mut [PollFd::new(&child, PollFlags::IN)], None).unwrap();
            }
            Begun::Never(why) => assert_eq!((why.as_str(), begins), (LEASE_WAS_OVER, false)),
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

//! `evenbeat shim`: a process of its own next to each run. It starts the run, holds its lease, reads its output and ends
//! it, with or without a scheduler. The simulator tests the same rules on its own model of a shim.
//!
//! It is small on purpose: one thread, one loop around `poll`, one timer on the clock that leases use. The death of the
//! scheduler changes nothing. Only the lease does: when it is over everything is frozen, when it is extended everything
//! continues, and when it is revoked everything is killed.

mod begin;
mod cgroup;
mod child;
mod finish;
mod link;
mod lock;
mod output;
mod run;
mod timer;
mod tree;

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::process::ExitCode;

use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::process::{chdir, getpid, set_child_subreaper, setsid, umask};

use self::begin::{Inheritance, LEASE_WAS_OVER, StartAttempt, begin};
use self::link::SchedulerLink;
use self::output::{OutputPipes, StdinPipe};
use self::run::{ForcedEnd, LiveRun};
use self::timer::TimerFd;
use super::boot;
use super::log::{LogWriter, OutputStream};
use super::order::{ORDER_BYTES_MAX, Order};
use super::places::SOCKET;
use super::protocol::{FromShim, ProtocolLine, ToShim};
use super::run_result::RunResult;
use crate::point::point;

pub(super) use cgroup::clear as clear_cgroup;
pub use cgroup::find_cgroup;
pub(super) use lock::is_free as is_lock_free;

/// First and longest pause before a lock is tried again.
const LOCK_PAUSE_MIN: Duration = Duration::from_millis(2);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(200);

/// Pause before we try again to write the result.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// Largest number of unknown messages that are noted in the log.
const N_UNKNOWN_MAX: u32 = 100;

/// Runs the shim of one run. Its order comes on standard input; standard output is the first connection.
pub fn main() -> ExitCode {
    match Shim::set_up() {
        Ok(mut shim) => match shim.live() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                shim.log.note(&format!("the shim of this run gives up: {error}"));
                ExitCode::FAILURE
            }
        },
        Err(why) => {
            eprintln!("evenbeat: a shim is started by a scheduler, not by hand: {why}");
            ExitCode::from(2)
        }
    }
}

#[derive(Debug)]
struct Shim {
    order: Order,
    boot_id: String,
    inherited: Inheritance,
    link: SchedulerLink,
    timer: TimerFd,
    log: LogWriter,
    lease_until: Option<BootTime>,
    is_revoked: bool,
    n_unknown: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// All locks of its job are held; they are tried again then.
    Waiting {
        again_at: BootTime,
        pause: Duration,
    },
    Running {
        run: Box<LiveRun>,
        output: OutputPipes,
        input: Option<StdinPipe>,
    },
    NeverBegan {
        why: String,
    },
    Over {
        result: Box<RunResult>,
        is_written: bool,
        is_noted: bool,
        again_at: BootTime,
    },
}

/// What `poll` reported.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each stands for one descriptor")]
struct PollEvents {
    timer: bool,
    listener: bool,
    peer: bool,
    /// By stream.
    output: [bool; 2],
    input: bool,
}

impl Shim {
    fn set_up() -> Result<Shim, String> {
        // Listed first: any other descriptor that is open by now was left open by our parent.
        let strays = open_files();
        let mut text = Vec::new();
        io::stdin()
            .take(ORDER_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|it| format!("no order came: {it}"))?;
        let order = Order::from_text(&text).map_err(|it| format!("its order cannot be read: {it}"))?;
        point("shim.ordered");
        child::ignore_signals();
        // The scheduler may belong to a terminal, whose signals must not reach a run.
        let _ = setsid();
        let inherited = Inheritance { umask: umask(Mode::RWXG | Mode::RWXO), strays };
        let first = io::stdout().as_fd().try_clone_to_owned().ok();
        let now = boot::now();
        match Shim::ready(order, inherited, first, now) {
            Ok(shim) => Ok(shim),
            Err(error) => {
                let why = format!("the folder of the run cannot be used: {error}");
                let message = format!("{}\n", FromShim::NotStarted(why.clone()));
                let _ = io::Write::write_all(&mut io::stdout(), message.as_bytes());
                Err(why)
            }
        }
    }

    fn ready(
        order: Order,
        inherited: Inheritance,
        first: Option<OwnedFd>,
        now: BootTime,
    ) -> io::Result<Shim> {
        set_child_subreaper(Some(getpid()))?;
        // The scheduler has made this folder. If it is gone, the run was given up.
        chdir(order.places.run(order.run))?;
        Ok(Shim {
            link: SchedulerLink::new(first, &order.places, now)?,
            timer: TimerFd::new()?,
            log: LogWriter::new(order.places.clone(), order.run, order.output_max),
            lease_until: order.lease_until,
            is_revoked: false,
            n_unknown: 0,
            stage: Stage::Waiting { again_at: now, pause: LOCK_PAUSE_MIN },
            boot_id: boot::id(),
            inherited,
            order,
        })
    }

    fn live(&mut self) -> io::Result<()> {
        point("shim.ready");
        // Messages that came while we started count before we look at the lease for the first time.
        self.attend(PollEvents { peer: true, ..PollEvents::default() });
        loop {
            let now = boot::now();
            self.step(now);
            if self.is_done() {
                // A socket without a listener does no harm, but costs the next scheduler an attempt to connect.
                let _ = std::fs::remove_file(SOCKET);
                point("shim.done");
                return Ok(());
            }
            self.timer.set(self.next_at())?;
            let ready = self.wait()?;
            self.attend(ready);
        }
    }

    /// Does what is due by now.
    fn step(&mut self, now: BootTime) {
        self.check_bounds(now);
        match &mut self.stage {
            Stage::Waiting { again_at, .. } if *again_at <= now => self.try_to_begin(now),
            Stage::Running { run, .. } => {
                for message in run.step(now, self.lease_until) {
                    self.link.send(&message);
                }
                if run.is_empty() {
                    self.finish();
                }
            }
            Stage::Over { is_written: false, again_at, .. } if *again_at <= now => self.write_end(now),
            Stage::Waiting { .. } | Stage::NeverBegan { .. } | Stage::Over { .. } => {}
        }
    }

    /// Ends a run that has exceeded one of its bounds.
    fn check_bounds(&mut self, now: BootTime) {
        let bounds = self.order.bounds;
        let is_orphan = self.link.alone_since().is_some_and(|since| since + bounds.max_orphan <= now);
        let lease_until = self.lease_until;
        match &mut self.stage {
            Stage::Waiting { .. } if is_orphan => {
                self.never_begins(format!("no scheduler was connected for {}", bounds.max_orphan));
            }
            Stage::Waiting { .. } if lease_until.is_some_and(|until| until <= now) => {
                self.never_begins(LEASE_WAS_OVER.to_owned());
            }
            Stage::Running { run, .. } if is_orphan && !run.is_being_killed() => {
                let limit = Some(format!("commands.max_orphan {}", bounds.max_orphan));
                run.kill(now, ForcedEnd { outcome: Outcome::Failed, reason: EndReason::Orphaned, limit });
            }
            Stage::Running { run, .. }
                if !run.is_being_killed()
                    && run.frozen_since().is_some_and(|since| since + bounds.max_frozen <= now) =>
            {
                let limit = Some(format!("commands.max_frozen {}", bounds.max_frozen));
                run.kill(
                    now,
                    ForcedEnd { outcome: Outcome::Failed, reason: EndReason::FrozenTooLong, limit },
                );
            }
            _ => {}
        }
    }

    /// When the next step is due if nothing happens before.
    fn next_at(&self) -> Option<BootTime> {
        let bounds = self.order.bounds;
        let of_orphan = self.link.alone_since().map(|since| since + bounds.max_orphan);
        match &self.stage {
            Stage::Waiting { again_at, .. } => {
                [Some(*again_at), self.lease_until, of_orphan].into_iter().flatten().min()
            }
            Stage::Running { run, .. } => {
                let of_bounds = [of_orphan, run.frozen_since().map(|since| since + bounds.max_frozen)];
                let of_bounds = of_bounds.into_iter().flatten().filter(|_| !run.is_being_killed());
                of_bounds.chain([run.next_at(self.lease_until)]).min()
            }
            Stage::Over { is_written: false, again_at, .. } => Some(*again_at),
            Stage::NeverBegan { .. } | Stage::Over { .. } => None,
        }
    }

    fn is_done(&self) -> bool {
        match &self.stage {
            Stage::Waiting { .. } | Stage::Running { .. } => false,
            Stage::NeverBegan { .. } => self.link.is_flushed(),
            // A result on the disk can be found there. Otherwise we stay until it is on record.
            Stage::Over { is_written, is_noted, .. } => *is_noted || *is_written && self.link.is_flushed(),
        }
    }

    /// Waits until a descriptor is ready.
    fn wait(&self) -> io::Result<PollEvents> {
        let mut fds = Vec::with_capacity(6);
        fds.push(PollFd::new(&self.timer, PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(self.link.listener(), PollFlags::IN));
        let (mut peer_idx, mut output_idx, mut input_idx) = (None, [None; 2], None);
        if let Some((peer, has_unsent)) = self.link.peer() {
            peer_idx = Some(fds.len());
            let flags = if has_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(peer, flags));
        }
        if let Stage::Running { run, output, input } = &self.stage {
            if let Some(first) = run.first() {
                fds.push(PollFd::from_borrowed_fd(first, PollFlags::IN));
            }
            for (stream, idx) in OutputStream::BOTH.into_iter().zip(&mut output_idx) {
                if let Some(pipe) = output.pipe(stream) {
                    *idx = Some(fds.len());
                    fds.push(PollFd::from_borrowed_fd(pipe, PollFlags::IN));
                }
            }
            if let Some(input) = input {
                input_idx = Some(fds.len());
                fds.push(PollFd::from_borrowed_fd(input.pipe(), PollFlags::OUT));
            }
        }
        loop {
            match poll(&mut fds, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let has =
            |idx: Option<usize>| idx.and_then(|idx| fds.get(idx)).is_some_and(|it| !it.revents().is_empty());
        Ok(PollEvents {
            timer: has(Some(0)),
            listener: has(Some(1)),
            peer: has(peer_idx),
            output: output_idx.map(has),
            input: has(input_idx),
        })
    }

    fn attend(&mut self, ready: PollEvents) {
        if ready.timer {
            self.timer.acknowledge();
        }
        if ready.peer {
            self.link.flush();
            let now = boot::now();
            for line in self.link.receive(now) {
                self.handle(now, &line);
            }
        }
        if ready.listener && self.link.accept() {
            self.report();
        }
        if let Stage::Running { output, input, .. } = &mut self.stage {
            for (stream, is_ready) in OutputStream::BOTH.into_iter().zip(ready.output) {
                if is_ready {
                    output.read(stream, &mut self.log);
                }
            }
            if ready.input && input.as_mut().is_some_and(StdinPipe::write) {
                *input = None;
            }
        }
    }

    /// Reports the state of the run to a scheduler that has just connected.
    fn report(&mut self) {
        let messages = match &self.stage {
            Stage::Waiting { .. } => Vec::new(),
            Stage::Running { run, .. } => run.report(),
            Stage::NeverBegan { why } => vec![FromShim::NotStarted(why.clone())],
            Stage::Over { result, .. } => {
                vec![FromShim::Started(result.started_at), FromShim::Ended(result.clone())]
            }
        };
        for message in messages {
            self.link.send(&message);
        }
    }

    fn handle(&mut self, now: BootTime, line: &ProtocolLine) {
        let message = if let ProtocolLine::Text(text) = line { ToShim::read(text) } else { None };
        match message {
            Some(ToShim::Extend { until, fence }) if fence == self.order.fence => self.extended(now, until),
            // It is for another lease of this run or of another one.
            Some(ToShim::Extend { .. }) => {}
            Some(ToShim::Stop { outcome, grace }) => match &mut self.stage {
                Stage::Waiting { .. } => self.never_begins("it was stopped before it began".to_owned()),
                Stage::Running { run, .. } => run.stop(now, outcome, grace),
                Stage::NeverBegan { .. } | Stage::Over { .. } => {}
            },
            Some(ToShim::Revoke) => self.revoked(now),
            Some(ToShim::Noted) => {
                if let Stage::Over { is_noted, .. } = &mut self.stage {
                    *is_noted = true;
                }
            }
            Some(ToShim::Ping) => self.link.send(&FromShim::Pong),
            None => self.log_unknown(line),
        }
    }

    fn extended(&mut self, now: BootTime, until: BootTime) {
        let Some(lease_until) = &mut self.lease_until else { return };
        if self.is_revoked {
            return;
        }
        *lease_until = until.max(*lease_until);
        if let Stage::Running { run, .. } = &mut self.stage
            && now < until
            && let Some(message) = run.extended(now)
        {
            self.link.send(&message);
        }
    }

    fn revoked(&mut self, now: BootTime) {
        self.is_revoked = true;
        match &mut self.stage {
            Stage::Waiting { .. } => self.never_begins("it was revoked before it began".to_owned()),
            Stage::Running { run, .. } => {
                let (outcome, reason) = (Outcome::Lost, EndReason::Revoked);
                run.kill(now, ForcedEnd { outcome, reason, limit: None });
            }
            Stage::NeverBegan { .. } | Stage::Over { .. } => {}
        }
    }

    fn log_unknown(&mut self, line: &ProtocolLine) {
        self.n_unknown += 1;
        if N_UNKNOWN_MAX < self.n_unknown {
            return;
        }
        match line {
            ProtocolLine::Text(text) => {
                let shown: String = text.chars().take(80).collect();
                self.log.note(&format!("unknown message to the shim: `{shown}`"));
            }
            ProtocolLine::TooLong => self.log.note("a message to the shim was too long"),
        }
    }

    fn try_to_begin(&mut self, now: BootTime) {
        match begin(&mut self.order, self.lease_until, &self.boot_id, &self.inherited) {
            StartAttempt::Running(run, output, input) => {
                self.link.send(&FromShim::Started(run.began_at));
                point("shim.told");
                self.stage = Stage::Running { run, output, input };
            }
            StartAttempt::Locked => {
                if let Stage::Waiting { again_at, pause } = &mut self.stage {
                    *again_at = now + *pause;
                    *pause = (*pause * 2).min(LOCK_PAUSE_MAX);
                }
            }
            StartAttempt::Never(why) => self.never_begins(why),
            StartAttempt::Failed { at, error, exit_code } => {
                self.log.note(&error);
                self.link.send(&FromShim::Started(at));
                self.over(finish::not_begun(&self.log, &self.boot_id, at, error, exit_code));
            }
        }
    }

    fn never_begins(&mut self, why: String) {
        self.link.send(&FromShim::NotStarted(why.clone()));
        self.stage = Stage::NeverBegan { why };
    }

    /// Nothing of the run is left.
    fn finish(&mut self) {
        let now = boot::now();
        let stage = std::mem::replace(&mut self.stage, Stage::NeverBegan { why: String::new() });
        if let Stage::Running { run, mut output, .. } = stage {
            point("shim.gone");
            output.drain(&mut self.log);
            let began_at = run.began_at;
            let summary = run.summary(now);
            let mut result =
                finish::run_result(&self.order, &self.log, &self.boot_id, began_at, now, summary);
            result.details.last_error_line = output.last_error_line();
            self.over(result);
        }
    }

    fn over(&mut self, result: RunResult) {
        let now = boot::now();
        self.stage =
            Stage::Over { result: Box::new(result), is_written: false, is_noted: false, again_at: now };
        self.write_end(now);
        point("shim.written");
        if let Stage::Over { result, .. } = &self.stage {
            self.link.send(&FromShim::Ended(result.clone()));
        }
        point("shim.said");
    }

    fn write_end(&mut self, now: BootTime) {
        if let Stage::Over { result, is_written, again_at, .. } = &mut self.stage {
            *is_written = finish::write(&self.order, result).is_ok();
            *again_at = now + WRITE_PAUSE;
        }
    }
}

/// All open descriptors except standard input, output and error.
fn open_files() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    numbers.filter(|it| 2 < *it).collect()
}

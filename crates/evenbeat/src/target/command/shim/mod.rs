//! `evenbeat shim`: a process of its own beside each run. It begins the run, holds its lease, drains its output and
//! ends it, with or without a scheduler; what the simulator's shim was proved to do, this one does for real.
//!
//! It is small on purpose: one thread, one loop around `poll`, one timer on the clock that leases go by. The
//! scheduler's death changes nothing by itself. What decides is the lease: when it is over everything is frozen, when
//! it is extended everything goes on, and when it is revoked everything is killed.

mod begin;
mod cgroup;
mod child;
mod finish;
mod lock;
mod output;
mod run;
mod talk;
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

use self::begin::{Begun, Inherited, LEASE_WAS_OVER, begin};
use self::output::{Input, Output};
use self::run::{Run, Verdict};
use self::talk::Talk;
use self::timer::Timer;
use super::boot;
use super::last_word::LastWord;
use super::log::{LogWriter, Stream};
use super::order::{ORDER_BYTES_MAX, Order};
use super::places::SOCKET;
use super::word::{FromShim, Line, ToShim};
use crate::point::point;

pub(super) use cgroup::clear as clear_cgroup;
pub use cgroup::find_cgroup;
pub(super) use lock::is_free as is_lock_free;

/// The first and the longest pause before a lock is tried again.
const LOCK_PAUSE_MIN: Duration = Duration::from_millis(2);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(200);

/// How long to wait before an end that could not be written is written again.
const WRITE_PAUSE: Duration = Duration::from_secs(1);

/// How many words that nobody understands are noted in the log.
const N_STRANGE_MAX: u32 = 100;

/// Lives through one run, whose order comes over standard input; standard output is the first connection.
pub fn main() -> ExitCode {
    match Shim::set_up() {
        Ok(mut shim) => match shim.live() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                shim.log.say(&format!("the shim of this run gives up: {error}"));
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
    inherited: Inherited,
    talk: Talk,
    timer: Timer,
    log: LogWriter,
    lease_until: Option<BootTime>,
    is_revoked: bool,
    n_strange: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It has not begun; its lock is tried again then.
    Waiting {
        again_at: BootTime,
        pause: Duration,
    },
    Running {
        run: Box<Run>,
        output: Output,
        input: Option<Input>,
    },
    NeverBegan {
        why: String,
    },
    Over {
        word: Box<LastWord>,
        is_written: bool,
        is_noted: bool,
        again_at: BootTime,
    },
}

/// What there is to be done, as far as the kernel says so.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one source has something to say")]
struct Ready {
    timer: bool,
    knock: bool,
    peer: bool,
    /// By stream.
    output: [bool; 2],
    input: bool,
}

impl Shim {
    fn set_up() -> Result<Shim, String> {
        // Listed first: whatever is open by now beside the three was left open by somebody else.
        let strays = open_files();
        let mut text = Vec::new();
        io::stdin()
            .take(ORDER_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|it| format!("no order came: {it}"))?;
        let order = Order::from_text(&text).map_err(|it| format!("its order cannot be read: {it}"))?;
        point("shim.ordered");
        child::ignore_signals();
        // Whoever started it may be a terminal's child: what happens there is nothing to a run.
        let _ = setsid();
        let inherited = Inherited { umask: umask(Mode::RWXG | Mode::RWXO), strays };
        let first = io::stdout().as_fd().try_clone_to_owned().ok();
        let now = boot::now();
        match Shim::ready(order, inherited, first, now) {
            Ok(shim) => Ok(shim),
            Err(error) => {
                let why = format!("the folder of the run cannot be used: {error}");
                let word = format!("{}\n", FromShim::NotStarted(why.clone()));
                let _ = io::Write::write_all(&mut io::stdout(), word.as_bytes());
                Err(why)
            }
        }
    }

    fn ready(order: Order, inherited: Inherited, first: Option<OwnedFd>, now: BootTime) -> io::Result<Shim> {
        set_child_subreaper(Some(getpid()))?;
        // Made by the scheduler: if it is gone, so is the wish that this run begins.
        chdir(order.places.run(order.run))?;
        Ok(Shim {
            talk: Talk::new(first, &order.places, now)?,
            timer: Timer::new()?,
            log: LogWriter::new(order.places.clone(), order.run, order.output_max),
            lease_until: order.lease_until,
            is_revoked: false,
            n_strange: 0,
            stage: Stage::Waiting { again_at: now, pause: LOCK_PAUSE_MIN },
            boot_id: boot::id(),
            inherited,
            order,
        })
    }

    fn live(&mut self) -> io::Result<()> {
        point("shim.ready");
        // What was said while it was being started counts before it looks at its lease for the first time.
        self.attend(Ready { peer: true, ..Ready::default() });
        loop {
            let now = boot::now();
            self.step(now);
            if self.is_done() {
                // A socket that leads nowhere is no harm, but one look less for whoever comes next.
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
        self.look_at_bounds(now);
        match &mut self.stage {
            Stage::Waiting { again_at, .. } if *again_at <= now => self.try_to_begin(now),
            Stage::Running { run, .. } => {
                for word in run.step(now, self.lease_until) {
                    self.talk.say(&word);
                }
                if run.is_empty() {
                    self.finish();
                }
            }
            Stage::Over { is_written: false, again_at, .. } if *again_at <= now => self.write_end(now),
            Stage::Waiting { .. } | Stage::NeverBegan { .. } | Stage::Over { .. } => {}
        }
    }

    /// What may not last longer ends.
    fn look_at_bounds(&mut self, now: BootTime) {
        let bounds = self.order.bounds;
        let is_orphan = self.talk.alone_since().is_some_and(|since| since + bounds.max_orphan <= now);
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
                run.kill(now, Verdict { outcome: Outcome::Failed, reason: EndReason::Orphaned, limit });
            }
            Stage::Running { run, .. }
                if !run.is_being_killed()
                    && run.frozen_since().is_some_and(|since| since + bounds.max_frozen <= now) =>
            {
                let limit = Some(format!("commands.max_frozen {}", bounds.max_frozen));
                run.kill(now, Verdict { outcome: Outcome::Failed, reason: EndReason::FrozenTooLong, limit });
            }
            _ => {}
        }
    }

    /// When something is due again, if nothing happens before.
    fn next_at(&self) -> Option<BootTime> {
        let bounds = self.order.bounds;
        let of_orphan = self.talk.alone_since().map(|since| since + bounds.max_orphan);
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
            Stage::NeverBegan { .. } => self.talk.is_said(),
            // What is on the disk can be found there; what is not stays here until somebody has it on record.
            Stage::Over { is_written, is_noted, .. } => *is_noted || *is_written && self.talk.is_said(),
        }
    }

    /// Waits until the kernel has something to say.
    fn wait(&self) -> io::Result<Ready> {
        let mut fds = Vec::with_capacity(6);
        fds.push(PollFd::new(&self.timer, PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(self.talk.listener(), PollFlags::IN));
        let (mut peer_idx, mut output_idx, mut input_idx) = (None, [None; 2], None);
        if let Some((peer, has_unsent)) = self.talk.peer() {
            peer_idx = Some(fds.len());
            let flags = if has_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::from_borrowed_fd(peer, flags));
        }
        if let Stage::Running { run, output, input } = &self.stage {
            if let Some(first) = run.first() {
                fds.push(PollFd::from_borrowed_fd(first, PollFlags::IN));
            }
            for (stream, idx) in Stream::BOTH.into_iter().zip(&mut output_idx) {
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
        Ok(Ready {
            timer: has(Some(0)),
            knock: has(Some(1)),
            peer: has(peer_idx),
            output: output_idx.map(has),
            input: has(input_idx),
        })
    }

    fn attend(&mut self, ready: Ready) {
        if ready.timer {
            self.timer.has_gone_off();
        }
        if ready.peer {
            self.talk.send();
            let now = boot::now();
            for line in self.talk.hear(now) {
                self.hear(now, &line);
            }
        }
        if ready.knock && self.talk.accept() {
            self.report();
        }
        if let Stage::Running { output, input, .. } = &mut self.stage {
            for (stream, is_ready) in Stream::BOTH.into_iter().zip(ready.output) {
                if is_ready {
                    output.take(stream, &mut self.log);
                }
            }
            if ready.input && input.as_mut().is_some_and(Input::give) {
                *input = None;
            }
        }
    }

    /// Says how things are to a scheduler that has just connected.
    fn report(&mut self) {
        let words = match &self.stage {
            Stage::Waiting { .. } => Vec::new(),
            Stage::Running { run, .. } => run.report(),
            Stage::NeverBegan { why } => vec![FromShim::NotStarted(why.clone())],
            Stage::Over { word, .. } => {
                vec![FromShim::Started(word.started_at), FromShim::Ended(word.clone())]
            }
        };
        for word in words {
            self.talk.say(&word);
        }
    }

    fn hear(&mut self, now: BootTime, line: &Line) {
        let word = if let Line::Text(text) = line { ToShim::read(text) } else { None };
        match word {
            Some(ToShim::Extend { until, fence }) if fence == self.order.fence => self.extended(now, until),
            // One that is not ours, or of another life of ours, extends nothing.
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
            Some(ToShim::Ping) => self.talk.say(&FromShim::Pong),
            None => self.heard_something_strange(line),
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
            && let Some(word) = run.extended(now)
        {
            self.talk.say(&word);
        }
    }

    fn revoked(&mut self, now: BootTime) {
        self.is_revoked = true;
        match &mut self.stage {
            Stage::Waiting { .. } => self.never_begins("it was revoked before it began".to_owned()),
            Stage::Running { run, .. } => {
                let (outcome, reason) = (Outcome::Lost, EndReason::Revoked);
                run.kill(now, Verdict { outcome, reason, limit: None });
            }
            Stage::NeverBegan { .. } | Stage::Over { .. } => {}
        }
    }

    fn heard_something_strange(&mut self, line: &Line) {
        self.n_strange += 1;
        if N_STRANGE_MAX < self.n_strange {
            return;
        }
        match line {
            Line::Text(text) => {
                let shown: String = text.chars().take(80).collect();
                self.log.say(&format!("a word to the shim was not understood: `{shown}`"));
            }
            Line::TooLong => self.log.say("a word to the shim was too long"),
        }
    }

    fn try_to_begin(&mut self, now: BootTime) {
        match begin(&mut self.order, self.lease_until, &self.boot_id, &self.inherited) {
            Begun::Yes(run, output, input) => {
                self.talk.say(&FromShim::Started(run.began_at));
                point("shim.told");
                self.stage = Stage::Running { run, output, input };
            }
            Begun::NotYet => {
                if let Stage::Waiting { again_at, pause } = &mut self.stage {
                    *again_at = now + *pause;
                    *pause = (*pause * 2).min(LOCK_PAUSE_MAX);
                }
            }
            Begun::Never(why) => self.never_begins(why),
            Begun::Failed { at, error, exit_code } => {
                self.log.say(&error);
                self.talk.say(&FromShim::Started(at));
                self.over(finish::not_begun(&self.log, &self.boot_id, at, error, exit_code));
            }
        }
    }

    fn never_begins(&mut self, why: String) {
        self.talk.say(&FromShim::NotStarted(why.clone()));
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
            let gone = run.gone(now);
            let mut word = finish::last_word(&self.order, &self.log, &self.boot_id, began_at, now, gone);
            word.told.last_error_line = output.last_error_line();
            self.over(word);
        }
    }

    fn over(&mut self, word: LastWord) {
        let now = boot::now();
        self.stage = Stage::Over { word: Box::new(word), is_written: false, is_noted: false, again_at: now };
        self.write_end(now);
        point("shim.written");
        if let Stage::Over { word, .. } = &self.stage {
            self.talk.say(&FromShim::Ended(word.clone()));
        }
        point("shim.said");
    }

    fn write_end(&mut self, now: BootTime) {
        if let Stage::Over { word, is_written, again_at, .. } = &mut self.stage {
            *is_written = finish::write(&self.order, word).is_ok();
            *again_at = now + WRITE_PAUSE;
        }
    }
}

/// What is open beside standard input, output and error.
fn open_files() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    numbers.filter(|it| 2 < *it).collect()
}

//! `evenbeat status --watch`: the same view again and again, in place on a terminal, one below the other elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration as Length;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use super::Exit;
use super::client::CommandError;
use super::format::NOTICE;
use super::remote::{CommandResult, RemoteContext};

/// Moves to the first cell of the screen, and removes everything from there on.
const CLEAR: &str = "\u{1b}[H\u{1b}[J";

/// How often, and how many times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchOptions {
    pub(crate) every: Length,
    /// Without end if none.
    pub(crate) n_updates: Option<u32>,
}

/// Shows something again and again, until `q` or Ctrl-C. A server that is away for a while does not end it.
pub(crate) fn watch(
    options: WatchOptions,
    remote: &mut RemoteContext<'_>,
    show: impl Fn(&mut RemoteContext<'_>) -> CommandResult,
) -> CommandResult {
    let is_screen = io::stdout().is_terminal() && !remote.json;
    let keys = Keyboard::open();
    let mut n_updates = 0;
    loop {
        let mut frame: Vec<u8> = Vec::new();
        let shown = remote.show_in(&mut frame, &show);
        let exit = match shown {
            Ok(exit) => exit,
            Err(error @ (CommandError::NoServer { .. } | CommandError::NoAnswer { .. })) => {
                let exit = error.exit();
                frame = format!("{NOTICE}{error}; trying again{NOTICE:#}\n").into_bytes();
                exit
            }
            Err(error) => return Err(error),
        };
        if is_screen {
            write!(remote.out, "{CLEAR}")?;
        } else if 0 < n_updates && !remote.json {
            writeln!(remote.out)?;
        }
        remote.out.write_all(&frame)?;
        remote.out.flush()?;
        n_updates += 1;
        if options.n_updates.is_some_and(|most| most <= n_updates) {
            return Ok(exit);
        }
        if keys.wait(options.every, remote)? {
            return Ok(Exit::Ok);
        }
    }
}

/// The keyboard, one key at a time. It is put back as it was at the end.
struct Keyboard {
    before: Option<Termios>,
}

impl Keyboard {
    fn open() -> Keyboard {
        let stdin = io::stdin();
        if !stdin.is_terminal() || !io::stdout().is_terminal() {
            return Keyboard { before: None };
        }
        let before = tcgetattr(&stdin).ok();
        if let Some(before) = &before {
            let mut modes = before.clone();
            // Ctrl-C comes as a key too, so that the terminal is always put back.
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            modes.special_codes[SpecialCodeIndex::VMIN] = 0;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            let _ = tcsetattr(&stdin, OptionalActions::Now, &modes);
        }
        Keyboard { before }
    }

    /// Waits. Returns whether it is to end.
    fn wait(&self, length: Length, remote: &RemoteContext<'_>) -> Result<bool, CommandError> {
        if self.before.is_none() {
            remote.rest(length);
            return Ok(false);
        }
        let stdin = io::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        let limit = Timespec::try_from(length).ok();
        match poll(&mut ready, limit.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
            Ok(_) => {
                const END: [u8; 4] = [b'q', b'Q', 3, 4];
                let mut typed = [0; 64];
                let n = rustix::io::read(&stdin, &mut typed).map_err(io::Error::from)?;
                Ok(n == 0 || typed.iter().take(n).any(|it| END.contains(it)))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

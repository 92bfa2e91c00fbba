//! `evenbeat demo`: a made-up fleet, live on the terminal.

mod screen;

use std::io::{self, IsTerminal, Write};
use std::time::Duration as Length;

use clap::Args;
use evenbeat_core::condition::Condition;
use evenbeat_core::zone::Zone;

use self::screen::{DemoAddresses, ScreenSize, frame};
use super::Exit;
use super::chart::{counted, to_u64};
use super::serve::write_error;
use crate::app::StopResult;
use crate::cli::terminal;
use crate::clock::Clock;
use crate::config::machine;
use crate::demo::{self, DemoFrame, StopSignals, TempFolder, View};
use crate::serve::{ServeError, Server};

/// Arguments of `evenbeat demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Address and port of the API [default: 127.0.0.1:8060, or any free port].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Print the fleet's job file and exit.
    #[arg(long)]
    print_jobs: bool,
}

/// Runs the demo.
pub(super) fn run(
    args: &DemoArgs,
    clock: &Clock,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    if args.print_jobs {
        write!(out, "{}", demo::job_file(clock.now()))?;
        return Ok(Exit::Ok);
    }
    let folder = TempFolder::new(clock)?;
    let listen = args.listen.clone().unwrap_or_else(free_address);
    let config = match demo::config(folder.path(), &listen, machine()) {
        Ok(config) => config,
        Err(faults) => {
            write!(err, "{faults}")?;
            return Ok(Exit::Usage);
        }
    };
    let is_live = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
    let addresses = DemoAddresses::default();
    let zone = terminal::local_zone();
    let mut screen = Screen { is_live, is_open: false, n_frames: 0, addresses, zone, out };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let shown = runtime.block_on(async {
        let ends = StopSignals::new().map_err(ServeError::Launcher)?;
        let server = Server::start(&config, clock).await?;
        screen.addresses.socket = format!("unix:{}", server.doors.socket.display());
        let seconds = args.seconds.map(Length::from_secs);
        demo::run(server, ends, seconds, |picture| screen.draw(picture)).await
    });
    drop(runtime);
    // What follows must stay readable, so it goes to the main screen.
    let _ = screen.close();
    match shown {
        Ok(StopResult::Clean) => {
            let path = folder.path().display().to_string();
            if let Err(error) = folder.remove() {
                writeln!(
                    err,
                    "error: the demo has ended, but its directory {path} cannot be removed: {error}"
                )?;
                return Ok(Exit::Failed);
            }
            writeln!(screen.out, "The demo has ended and left nothing behind.")?;
            Ok(Exit::Ok)
        }
        Ok(StopResult::LetGo) => {
            let path = folder.keep().display().to_string();
            writeln!(
                err,
                "error: some runs of the demo could not be stopped and are still running; their files are in {path}"
            )?;
            Ok(Exit::Failed)
        }
        Err(error) => {
            write_error(err, &error)?;
            Ok(Exit::Failed)
        }
    }
}

/// The default address, or any free port if it is taken.
fn free_address() -> String {
    const USUAL: &str = "127.0.0.1:8060";
    match std::net::TcpListener::bind(USUAL) {
        Ok(_) => USUAL.to_owned(),
        Err(_) => "127.0.0.1:0".to_owned(),
    }
}

/// Draws the frames: in place on a terminal, elsewhere as a line now and then.
struct Screen<'a> {
    is_live: bool,
    /// Whether the terminal shows its alternate screen, which leaves no trace in the scrollback.
    is_open: bool,
    n_frames: u32,
    addresses: DemoAddresses,
    zone: Zone,
    out: &'a mut dyn Write,
}

/// Without a terminal, one frame in this many becomes a line.
const LINE_EVERY: u32 = 10;

/// Escape sequences that enter the alternate screen and hide the cursor, and undo both.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";

impl Screen<'_> {
    fn draw(&mut self, picture: DemoFrame<'_>) -> io::Result<()> {
        match picture {
            DemoFrame::Fleet(view) if self.is_live => self.draw_over(view)?,
            DemoFrame::Fleet(view) => self.draw_line(view)?,
            DemoFrame::Link(link) => self.addresses.link = Some(link.to_owned()),
            DemoFrame::Ending if self.is_live => {
                self.close()?;
                writeln!(self.out, "Stopping the demo and its runs.")?;
            }
            DemoFrame::Ending => {}
        }
        self.out.flush()
    }

    fn draw_over(&mut self, view: &View) -> io::Result<()> {
        if !self.is_open {
            self.is_open = true;
            control(OPEN)?;
        }
        let (columns, rows) = terminal::size();
        let size = ScreenSize { columns: columns.into(), rows: rows.into() };
        let lines = frame(view, &self.addresses, &self.zone, size);
        // A line break after the last row would scroll the screen.
        for (idx, line) in lines.iter().enumerate() {
            control(if idx == 0 { "\x1b[H" } else { "\n" })?;
            self.out.write_all(line.as_bytes())?;
            control("\x1b[K")?;
        }
        control("\x1b[J")
    }

    fn draw_line(&mut self, view: &View) -> io::Result<()> {
        self.n_frames += 1;
        if self.n_frames == 1 {
            writeln!(self.out, "export EVENBEAT_SERVER={}", self.addresses.socket)?;
            if let Some(link) = &self.addresses.link {
                writeln!(self.out, "open {link} within a minute, or run `evenbeat login`")?;
            }
        }
        if self.n_frames % LINE_EVERY == 1 {
            writeln!(self.out, "{}", line(view))?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        if !self.is_open {
            return Ok(());
        }
        self.is_open = false;
        control(CLOSE)
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // Restore the terminal even when a demo fails.
        let _ = self.close().and_then(|()| io::stdout().flush());
    }
}

/// Writes cursor movements directly: they are needed even where colours are stripped.
fn control(sequence: &str) -> io::Result<()> {
    io::stdout().write_all(sequence.as_bytes())
}

/// The whole fleet in one line.
fn line(view: &View) -> String {
    let n = |condition| view.conditions.get(&condition).copied().unwrap_or(0);
    format!(
        "{}: {} ok, {} warning, {} error; {} running; evenness {:.2}",
        counted(to_u64(view.n_jobs), "job"),
        n(Condition::Ok),
        n(Condition::Warning),
        n(Condition::Error),
        view.open.len(),
        view.score
    )
}

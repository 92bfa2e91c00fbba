//! `evenbeat demo`: a made-up fleet, live on the terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration as Length;

use clap::Args;
use evenbeat_core::condition::Condition;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{Duration, Timestamp};

use super::Exit;
use super::chart::{column, cut};
use super::serve::write_error;
use super::sheet::Sheet;
use super::show::{self, BOLD, DIM};
use crate::config::machine;
use crate::demo::{self, TempFolder, View};
use crate::runtime::app::Stopped;
use crate::runtime::terminal;
use crate::serve::{ServeError, Server, Signals};

/// What it is asked with.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Where the API is served; 127.0.0.1:8060, or a port that is free, if nothing is said.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// End by itself after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Only print the job file of the fleet.
    #[arg(long)]
    print_jobs: bool,
}

/// Shows it.
pub(super) fn run(args: &DemoArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    if args.print_jobs {
        write!(out, "{}", demo::job_file(crate::runtime::clock::now()))?;
        return Ok(Exit::Ok);
    }
    let folder = TempFolder::new()?;
    let listen = args.listen.clone().unwrap_or_else(free_address);
    let config = match demo::config(folder.path(), &listen, machine()) {
        Ok(config) => config,
        Err(faults) => {
            write!(err, "{faults}")?;
            return Ok(Exit::Usage);
        }
    };
    let is_live = io::stdout().is_terminal();
    let mut screen = Screen { is_live, n_frames: 0, door: String::new(), out };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let shown = runtime.block_on(async {
        let signals = Signals::new().map_err(ServeError::Launcher)?;
        let server = Server::start(&config).await?;
        screen.door = format!("unix:{}", server.doors.socket.display());
        let seconds = args.seconds.map(Length::from_secs);
        demo::run(server, signals, seconds, |view| screen.draw(view)).await
    });
    drop(runtime);
    match shown {
        Ok(Stopped::Clean) => {
            let path = folder.path().display().to_string();
            if let Err(error) = folder.remove() {
                writeln!(err, "error: the demo is over, but its folder {path} cannot be removed: {error}")?;
                return Ok(Exit::Failed);
            }
            writeln!(screen.out, "The demo is over; nothing of it is left.")?;
            Ok(Exit::Ok)
        }
        Ok(Stopped::LetGo) => {
            let path = folder.keep().display().to_string();
            writeln!(
                err,
                "error: some runs of the demo could not be ended, and go on; their files are in {path}"
            )?;
            Ok(Exit::Failed)
        }
        Err(error) => {
            write_error(err, &error)?;
            Ok(Exit::Failed)
        }
    }
}

/// The usual one, unless another server has it.
fn free_address() -> String {
    const USUAL: &str = "127.0.0.1:8060";
    match std::net::TcpListener::bind(USUAL) {
        Ok(_) => USUAL.to_owned(),
        Err(_) => "127.0.0.1:0".to_owned(),
    }
}

/// Where pictures go: over each other on a terminal, as a line now and then elsewhere.
struct Screen<'a> {
    is_live: bool,
    n_frames: u32,
    /// How other commands reach the demo.
    door: String,
    out: &'a mut dyn Write,
}

/// Without a terminal, one of so many pictures becomes a line.
const LINE_EVERY: u32 = 10;

impl Screen<'_> {
    fn draw(&mut self, view: &View) -> io::Result<()> {
        self.n_frames += 1;
        if self.is_live {
            // Home, and each line clears what was there before it.
            let text = frame(view, &self.door, terminal::width().into()).replace('\n', "\x1b[K\n");
            write!(self.out, "\x1b[H{text}\x1b[J")?;
        } else {
            if self.n_frames == 1 {
                writeln!(self.out, "export EVENBEAT_SERVER={}", self.door)?;
            }
            if self.n_frames % LINE_EVERY == 1 {
                writeln!(self.out, "{}", line(view))?;
            }
        }
        self.out.flush()
    }
}

/// All in one line.
fn line(view: &View) -> String {
    let n = |condition| view.conditions.get(&condition).copied().unwrap_or(0);
    format!(
        "{} jobs: {} ok, {} warning, {} error; {} running; evenness {:.2}",
        view.conditions.values().sum::<usize>(),
        n(Condition::Ok),
        n(Condition::Warning),
        n(Condition::Error),
        view.open.len(),
        view.score
    )
}

/// So many lines each list has.
const LIST_MAX: usize = 8;

fn frame(view: &View, door: &str, width: usize) -> String {
    let mut sheet = Sheet::new(width);
    let n_jobs: usize = view.conditions.values().sum();
    let up = show::relative(view.since, view.at);
    sheet.heading("Evenbeat", &format!("a made-up fleet of {n_jobs} jobs, begun {up}"));
    sheet.line(&format!("  {BOLD}condition{BOLD:#}  {}", conditions(view)));
    let most = view.hours.iter().copied().max().unwrap_or(0);
    let hours: String = view.hours.iter().map(|n| column(*n, most)).collect();
    sheet.line(&format!(
        "  {BOLD}evenness{BOLD:#}   {:.2}  {hours}  {DIM}starts, hour by hour from now{DIM:#}",
        view.score
    ));
    sheet.title("Running", &format!("{} runs", view.open.len()));
    for (key, length) in view.open.iter().take(LIST_MAX) {
        sheet.line(&format!("  {:<24} {DIM}for {}{DIM:#}", cut(key, 24), tenths(*length)));
    }
    sheet.title("Ended", "");
    for (key, outcome, length, at) in view.ended.iter().take(LIST_MAX) {
        let style = outcome_style(*outcome);
        let took = length.map(tenths).unwrap_or_default();
        let ago = show::relative(*at, view.at);
        sheet.line(&format!(
            "  {:<24} {style}{:<10}{style:#} {took:>7}  {DIM}{ago}{DIM:#}",
            cut(key, 24),
            outcome.as_str()
        ));
    }
    sheet.title("Needs a look", &format!("{} jobs", view.worst.len()));
    for (key, condition, why) in view.worst.iter().take(LIST_MAX) {
        let style = show::style_of(*condition);
        let room = width.saturating_sub(38).max(10);
        let why = cut(why, room);
        sheet.line(&format!("  {:<24} {style}{:<8}{style:#} {why}", cut(key, 24), condition.as_str()));
    }
    sheet.title("Next", "");
    for (at, key) in &view.next {
        sheet.line(&format!("  {}  {}", of_day(*at), cut(key, width.saturating_sub(14).max(10))));
    }
    sheet.line("");
    sheet.line(&format!("{DIM}export EVENBEAT_SERVER={door}{DIM:#}"));
    let hint = "In another terminal, after that line: evenbeat status, evenbeat job list, evenbeat explain \
                hanging-export, evenbeat rebalance --preview. Ctrl-C ends the demo and removes everything.";
    sheet.wrapped(hint, DIM);
    sheet.text
}

fn conditions(view: &View) -> String {
    let one = |(condition, n): (&Condition, &usize)| {
        let style = show::style_of(*condition);
        format!("{style}{n} {}{style:#}", condition.as_str())
    };
    view.conditions.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn outcome_style(outcome: Outcome) -> anstyle::Style {
    let condition = match outcome {
        Outcome::Succeeded => Condition::Ok,
        Outcome::Cancelled | Outcome::Superseded => Condition::Warning,
        _ => Condition::Error,
    };
    show::style_of(condition)
}

/// `1.4s`, or longer as usual.
fn tenths(length: Duration) -> String {
    let tenths = length.as_millis().max(0) / 100;
    if tenths < 600 { format!("{}.{}s", tenths / 10, tenths % 10) } else { length.to_string() }
}

fn of_day(at: Timestamp) -> String {
    let second = at.as_millis().div_euclid(1_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

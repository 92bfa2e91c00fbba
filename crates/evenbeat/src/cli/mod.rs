//! The command line: what people type, and the table of commands.
//!
//! A command takes its inputs, the time and two streams, and returns an [`Exit`]; it reads no
//! clock and no environment of its own.

pub mod analyze;
mod apply;
mod balance;
mod chart;
pub mod check;
mod client;
mod comes;
mod condition;
pub mod config;
pub mod db;
mod demo;
mod exit;
mod explain;
mod input;
mod job;
mod live;
mod log_lines;
mod manual;
mod next;
mod node;
mod progress;
mod reasons;
mod run;
mod run_id;
mod serve;
mod served;
mod sheet;
mod show;
pub mod simulate;
mod source;
mod status;
mod table;
mod terminal;
mod upcoming;
mod when;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use evenbeat_core::distribution::WINDOW_HOURS_MAX;
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zone;

pub use exit::{Exit, Probe, exit_codes};
pub use reasons::reasons;

use crate::clock::Clock as SystemClock;

/// The scheduler for fleets of recurring jobs: fresh, evenly spread, never doubled.
#[derive(Debug, Parser)]
#[command(name = "evenbeat", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = exit::summary())]
struct Cli {
    /// When to use colour. `NO_COLOR` is respected.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Validate job files; every fault of every file is shown in its place.
    Check {
        /// Job files; `-` is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Show when the jobs of a file are due next, with what daylight saving and blackouts do.
    Next {
        /// A job file; `-` is standard input.
        file: PathBuf,
        /// Only this job.
        #[arg(long, value_name = "KEY")]
        job: Option<JobKey>,
        /// How many occurrences of each job.
        #[arg(short, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        n: u16,
        /// Begin at this instant (RFC 3339). Default: now.
        #[arg(long, value_name = "INSTANT")]
        from: Option<Timestamp>,
        /// Show local times of this zone instead of each job's own.
        #[arg(long, value_name = "ZONE")]
        tz: Option<String>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Show what runs between two instants, in order: on a server, or by a job file that is not applied yet.
    Upcoming {
        /// A job file; `-` is standard input. A server is asked if there is none.
        file: Option<PathBuf>,
        /// Begin at this time: `tomorrow`, `2026-11-17`, `6h` (from now), or an instant. Default: now.
        #[arg(long, value_name = "WHEN")]
        from: Option<when::When>,
        /// End before this time, at most 31 days after the beginning. Default: one hour after it.
        #[arg(long, value_name = "WHEN")]
        to: Option<when::When>,
        /// Only this job.
        #[arg(long, value_name = "KEY")]
        job: Option<JobKey>,
        /// Show at most this many.
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: usize,
        #[command(flatten)]
        server: live::ServerArgs,
    },
    /// Judge the jobs of a file against a remembered state: when each may and must start, how it
    /// stands, and why. Ends with 1 if any is in error.
    Condition {
        /// A job file; `-` is standard input.
        file: PathBuf,
        /// What is remembered of the jobs: a JSON object by job key. Without it, none has ever run.
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
        /// Judge as of this instant (RFC 3339). Default: now.
        #[arg(long, value_name = "INSTANT")]
        at: Option<Timestamp>,
        /// Only this job.
        #[arg(long, value_name = "KEY")]
        job: Option<JobKey>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Show how even a schedule is now, and what Evenbeat would make of it: a crontab or a job file,
    /// before anything is installed or changed.
    Analyze {
        /// A crontab or a job file; `-` is standard input.
        file: PathBuf,
        /// It is a crontab, whatever it looks like.
        #[arg(long, conflicts_with = "jobs")]
        crontab: bool,
        /// It is a crontab with a user before each command, such as `/etc/crontab`.
        #[arg(long, conflicts_with = "jobs")]
        system: bool,
        /// It is a job file, whatever it looks like.
        #[arg(long)]
        jobs: bool,
        /// Begin with the hour of this instant (RFC 3339). Default: now.
        #[arg(long, value_name = "INSTANT")]
        at: Option<Timestamp>,
        /// How many hours to look at.
        #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_HOURS_MAX)))]
        hours: u32,
        /// List every change, not only the first ten.
        #[arg(long)]
        plan: bool,
        /// How wide the text may be. Default: the width of the terminal, or 80.
        #[arg(long, value_name = "COLS", value_parser = clap::value_parser!(u16).range(i64::from(analyze::WIDTH_MIN)..=i64::from(analyze::WIDTH_MAX)))]
        width: Option<u16>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Print the configuration in effect, and where each value comes from: file, environment, flags.
    Config(config::ConfigCommand),
    /// Watch a made-up fleet live: nothing to set up, nothing left behind. Ctrl-C ends it.
    Demo(demo::DemoArgs),
    /// Run a node: keep the store's jobs fresh until it is asked to stop.
    Serve(Box<serve::ServeArgs>),
    /// Check, copy or upgrade a store.
    Db(db::DbArgs),
    /// Live through days of a fleet in seconds: is it fresh, what waits, how much capacity does it
    /// need, what breaks if it grows? The real engine on virtual time; nothing is run.
    Simulate(Box<simulate::SimulateArgs>),
    #[command(flatten)]
    Served(served::Served),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print a manual page: `evenbeat man job list | man -l -`.
    Man {
        /// The command, such as `job list`. Default: the whole program.
        command: Vec<String>,
    },
}

/// Runs the command that was typed.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and go to standard output.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            return if error.print().is_err() { Exit::Ok } else { exit };
        }
    };
    let (mut out, mut err) = (stream(io::stdout(), cli.color), stream(io::stderr(), cli.color));
    let done = carry_out(cli.command, &mut out, &mut err).and_then(|exit| out.flush().map(|()| exit));
    match done {
        Ok(exit) => exit,
        // Whoever read us has seen enough: `evenbeat next … | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Ok,
        Err(error) => {
            let _ = writeln!(err, "error: cannot write the output: {error}");
            Exit::Usage
        }
    }
}

fn carry_out(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let clock = SystemClock::system();
    let now = clock.now();
    match command {
        Command::Check { files, json } => check::run(&files, json, true, now, out, err),
        Command::Next { file, job, n, from, tz, json } => {
            let wanted = next::Wanted { job, n: n.into(), from: from.unwrap_or(now), tz, json };
            next::run(&file, &wanted, now, out, err)
        }
        Command::Upcoming { file, from, to, job, limit, server } => {
            // A zone that does not exist is refused by the command itself.
            let zone = server.times.zone().unwrap_or_else(|_| Zone::utc());
            let clock = show::Clock { zone, now };
            let (from, to) = (from.map_or(now, |it| it.ahead(&clock)), to.map(|it| it.ahead(&clock)));
            let json = server.json;
            let wanted = upcoming::Wanted { job, from, to, limit, json };
            match file {
                Some(file) => upcoming::run(&file, &wanted, &server.times, now, out, err),
                None => live::at_desk(&server, now, out, err, |desk| comes::run(&wanted, desk)),
            }
        }
        Command::Condition { file, state, at, job, json } => {
            let wanted = condition::Wanted { state, at: at.unwrap_or(now), job, json };
            condition::run(&file, &wanted, now, out, err)
        }
        Command::Analyze { file, crontab, system, jobs, at, hours, plan, width, json } => {
            let kind = analyze::InputKind::said(crontab, system, jobs);
            let width = width.unwrap_or_else(terminal::width);
            let wanted = analyze::Wanted { kind, at: at.unwrap_or(now), hours, json, plan, width };
            analyze::run(&file, &wanted, out, err)
        }
        Command::Config(args) => config::run(&args, out, err),
        Command::Demo(args) => demo::run(&args, &clock, out, err),
        Command::Serve(args) => serve::run(&args, &clock, err),
        Command::Db(args) => db::run(&args, out, err),
        Command::Simulate(args) => {
            let width = args.width.unwrap_or_else(terminal::width);
            simulate::run(&args, width, now, out, err)
        }
        Command::Served(command) => served::run(command, now, out, err),
        Command::Completions { shell } => manual::completions(shell, Cli::command(), out),
        Command::Man { command } => manual::man(&command, Cli::command(), out, err),
    }
}

/// A stream that shows colour where it should and strips it where not.
fn stream<S: anstream::stream::RawStream>(raw: S, color: Color) -> anstream::AutoStream<S> {
    let choice = match color {
        Color::Auto => anstream::AutoStream::choice(&raw),
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    anstream::AutoStream::new(raw, choice)
}

//! The command line: its commands and their arguments.
//!
//! A command takes its inputs, the time and two streams, and returns an [`Exit`]. It does not read the clock or the
//! environment itself.

mod alert;
pub mod analyze;
mod apply;
mod audit;
mod attainment;
mod balance;
mod chart;
pub mod check;
mod client;
mod condition;
pub mod config;
mod confirm;
mod contexts;
pub mod db;
mod demo;
mod events;
mod exit;
mod explain;
mod fleet_file;
mod format;
mod job;
mod job_file;
mod layout;
mod log_lines;
mod login;
mod manual;
mod monitoring;
mod next;
mod node;
mod period;
mod progress;
mod reasons;
mod remote;
mod run;
mod run_id;
mod serve;
mod sharing;
pub mod simulate;
mod status;
mod table;
mod terminal;
mod token;
mod upcoming;
mod watch;
mod when;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use evenbeat_core::distribution::WINDOW_HOURS_MAX;
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zone;

pub use exit::{Exit, exit_codes};
pub use reasons::reasons;

use crate::clock::Clock as SystemClock;
use crate::{api, jobfile};

/// The scheduler for fleets of recurring jobs: fresh, evenly spread, never doubled.
#[derive(Debug, Parser)]
#[command(name = "evenbeat", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = exit::summary())]
struct Cli {
    /// When to use colour; `NO_COLOR` is respected.
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
    /// Validate job files and show every error in place.
    Check {
        /// Job files to validate (`-` for standard input).
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Also check who is alerted about each job, by this configuration file of a node.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Show when the jobs of a file are due next, including the effects of daylight saving and blackouts.
    Next {
        /// Job file (`-` for standard input).
        file: PathBuf,
        /// Show only this job.
        #[arg(long, value_name = "KEY")]
        job: Option<JobKey>,
        /// Number of occurrences to show for each job.
        #[arg(short, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
        n: u16,
        /// Start at this instant (RFC 3339) [default: now].
        #[arg(long, value_name = "INSTANT")]
        from: Option<Timestamp>,
        /// Show local times in this zone instead of each job's own.
        #[arg(long, value_name = "ZONE")]
        tz: Option<String>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// List upcoming runs in order: of a server, or of a job file before it is applied.
    Upcoming {
        /// Job file (`-` for standard input) [default: ask the server].
        file: Option<PathBuf>,
        /// Start of the window: `tomorrow`, `2026-11-17`, `6h` (from now), or an instant [default: now].
        #[arg(long, value_name = "WHEN")]
        from: Option<when::When>,
        /// End of the window (exclusive), at most 31 days after its start [default: one hour after `--from`].
        #[arg(long, value_name = "WHEN")]
        to: Option<when::When>,
        /// Show only this job.
        #[arg(long, value_name = "KEY")]
        job: Option<JobKey>,
        /// Show at most this many runs.
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: usize,
        #[command(flatten)]
        server: remote::ServerArgs,
    },
    /// Evaluate the jobs of a file against a saved state: earliest and latest start, condition and reason. Exits with 1 if
    /// any job is in error.
    Condition {
        /// Job file (`-` for standard input).
        file: PathBuf,
        /// State of the jobs: a JSON file with an object per job key [default: no job has ever run].
        #[arg(long, value_name = "FILE")]
        state: Option<PathBuf>,
        /// Evaluate as of this instant (RFC 3339) [default: now].
        #[arg(long, value_name = "INSTANT")]
        at: Option<Timestamp>,
        /// Show only this job.
        #[arg(long, value_name = "KEY")]
        job: Option<JobKey>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Show how evenly a crontab or job file spreads its starts, and what Evenbeat would change. Nothing is modified.
    Analyze {
        /// Crontab or job file (`-` for standard input).
        file: PathBuf,
        /// Treat the file as a crontab [default: detect the format].
        #[arg(long, conflicts_with = "jobs")]
        crontab: bool,
        /// Treat the file as a system crontab, with a user before each command (`/etc/crontab`).
        #[arg(long, conflicts_with = "jobs")]
        system: bool,
        /// Treat the file as a job file.
        #[arg(long)]
        jobs: bool,
        /// Start with the hour of this instant (RFC 3339) [default: now].
        #[arg(long, value_name = "INSTANT")]
        at: Option<Timestamp>,
        /// Number of hours to analyze.
        #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_HOURS_MAX)))]
        hours: u32,
        /// List every change, not just the first ten.
        #[arg(long)]
        plan: bool,
        /// Maximum width of the output [default: width of the terminal, or 80].
        #[arg(long, value_name = "COLS", value_parser = clap::value_parser!(u16).range(i64::from(analyze::WIDTH_MIN)..=i64::from(analyze::WIDTH_MAX)))]
        width: Option<u16>,
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Print the effective configuration and where each value comes from.
    Config(config::ConfigCommand),
    /// Watch a made-up fleet live. Needs no setup and leaves nothing behind; stop it with Ctrl-C.
    Demo(demo::DemoArgs),
    /// Run a node that schedules and runs jobs until it is stopped.
    Serve(Box<serve::ServeArgs>),
    /// Check, copy or upgrade a store.
    Db(db::DbArgs),
    /// Simulate days of a fleet in seconds: freshness, waiting times, the capacity it needs, and what breaks as it grows.
    /// Runs the real engine on virtual time; no job is executed.
    Simulate(Box<simulate::SimulateArgs>),
    /// Print files for Prometheus and Grafana: a dashboard, alert rules, a scrape configuration.
    Monitoring(monitoring::MonitoringArgs),
    #[command(flatten)]
    Remote(remote::RemoteCommand),
    /// Name servers, and choose which one commands talk to.
    Context(contexts::ContextArgs),
    /// Print the JSON Schema of job files, so that editors can complete and check them.
    Schema {
        /// Print the API document (OpenAPI 3.1) instead.
        #[arg(long)]
        openapi: bool,
    },
    /// Print shell completions.
    Completions {
        /// Shell to generate completions for.
        shell: clap_complete::Shell,
    },
    /// Print a manual page, as in `evenbeat man job list | man -l -`.
    Man {
        /// Command to document, such as `job list` [default: evenbeat itself].
        command: Vec<String>,
    },
}

/// Parses the arguments and runs the command.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors; they go to standard output.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            return if error.print().is_err() { Exit::Ok } else { exit };
        }
    };
    let (mut out, mut err) = (stream(io::stdout(), cli.color), stream(io::stderr(), cli.color));
    let done = carry_out(cli.command, &mut out, &mut err).and_then(|exit| out.flush().map(|()| exit));
    match done {
        Ok(exit) => exit,
        // The reader closed the pipe, as in `evenbeat next … | head`.
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
        Command::Check { files, config: None, json } => check::run(&files, json, true, now, out, err),
        Command::Check { files, config: Some(config), json } => {
            check::run_with_config(&files, json, config, now, out, err)
        }
        Command::Next { file, job, n, from, tz, json } => {
            let options = next::NextOptions { job, n: n.into(), from: from.unwrap_or(now), tz, json };
            next::run(&file, &options, now, out, err)
        }
        Command::Upcoming { file, from, to, job, limit, server } => {
            // The command itself reports a zone that does not exist.
            let zone = server.times.zone().unwrap_or_else(|_| Zone::utc());
            let clock = format::LocalClock { zone, now };
            let (from, to) = (from.map_or(now, |it| it.ahead(&clock)), to.map(|it| it.ahead(&clock)));
            let json = server.json;
            let options = upcoming::UpcomingOptions { job, from, to, limit, json };
            match file {
                Some(file) => upcoming::file::run(&file, &options, &server.times, now, out, err),
                None => remote::with_server(&server, now, out, err, |remote| {
                    upcoming::server::run(&options, remote)
                }),
            }
        }
        Command::Condition { file, state, at, job, json } => {
            let options = condition::ConditionOptions { state, at: at.unwrap_or(now), job, json };
            condition::run(&file, &options, now, out, err)
        }
        Command::Analyze { file, crontab, system, jobs, at, hours, plan, width, json } => {
            let kind = analyze::FleetFileKind::from_flags(crontab, system, jobs);
            let width = width.unwrap_or_else(terminal::width);
            let options = analyze::AnalyzeOptions { kind, at: at.unwrap_or(now), hours, json, plan, width };
            analyze::run(&file, &options, out, err)
        }
        Command::Config(args) => config::run(&args, out, err),
        Command::Demo(args) => demo::run(&args, &clock, out, err),
        Command::Serve(args) => serve::run(&args, &clock, err),
        Command::Db(args) => db::run(&args, out, err),
        Command::Simulate(args) => {
            let width = args.width.unwrap_or_else(terminal::width);
            simulate::run(&args, width, now, out, err)
        }
        Command::Monitoring(args) => monitoring::run(&args, out),
        Command::Remote(command) => remote::run(command, now, out, err),
        Command::Context(args) => contexts::run(args, |name| std::env::var_os(name), out, err),
        Command::Schema { openapi } => {
            let text = if openapi { api::openapi() } else { jobfile::file_schema() };
            writeln!(out, "{text}").map(|()| Exit::Ok)
        }
        Command::Completions { shell } => manual::completions(shell, Cli::command(), out),
        Command::Man { command } => manual::man(&command, Cli::command(), out, err),
    }
}

/// Wraps a stream so that it keeps or strips colours as requested.
fn stream<S: anstream::stream::RawStream>(raw: S, color: Color) -> anstream::AutoStream<S> {
    let choice = match color {
        Color::Auto => anstream::AutoStream::choice(&raw),
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    };
    anstream::AutoStream::new(raw, choice)
}

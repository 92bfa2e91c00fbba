//! The commands that talk to a server.

mod context;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use evenbeat_core::distribution::WINDOW_HOURS_MAX;
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::{Duration, Timestamp};

pub(crate) use context::{CommandResult, RemoteContext, ServerArgs, TimeArgs, with_server};

use super::apply::Purpose;
use super::balance::Detail;
use super::confirm::Consent;
use super::watch::{self, WatchOptions};
use super::when::When;
use super::{
    Exit, alert, apply, attainment, audit, balance, events, explain, job, login, node, run as runs, sharing,
    status, token,
};

#[derive(Debug, Subcommand)]
pub(crate) enum RemoteCommand {
    /// Show the state of the fleet. Exits with 1 if any job is in error.
    Status {
        /// Show it again and again, until `q` or Ctrl-C.
        #[arg(short, long)]
        watch: bool,
        /// How often, such as `10s`.
        #[arg(long, value_name = "LENGTH", default_value = "2s", requires = "watch")]
        every: Duration,
        /// Stop after this many times.
        #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u32).range(1..))]
        updates: Option<u32>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Report the state of the fleet to a monitoring system, in one line. Exits with 0 (ok), 1 (warning), 2 (critical) or
    /// 3 (unknown).
    Probe {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Apply job files to a server's fleet.
    Apply {
        /// Job files to apply (`-` for standard input).
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Remove jobs that are not in the files.
        #[arg(long)]
        prune: bool,
        /// Show what would change without applying it.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show how a server's fleet differs from job files. Exits with 1 if it does.
    Diff {
        /// Job files to compare (`-` for standard input).
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Show jobs that are not in the files as removed.
        #[arg(long)]
        prune: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Print a server's fleet as a job file.
    Export {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List, show, add, change, pause, resume, trigger, backfill or delete jobs.
    Job(WithServer<job::JobArgs>),
    /// List, show or cancel runs, and read their output.
    Run(WithServer<runs::RunArgs>),
    /// Explain why a job is or is not running.
    Explain {
        /// Job key.
        job: JobKey,
        /// Explain as of this later time, assuming that nothing else changes until then: `2h` (from now), `tomorrow`,
        /// `2026-11-17`, or an instant [default: now].
        #[arg(long, value_name = "WHEN")]
        at: Option<When>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show how evenly starts are spread over the next hours.
    Distribution {
        /// Number of hours to look at.
        #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_HOURS_MAX)))]
        hours: u32,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show how much of the time jobs were fresh: not in condition `error`.
    Attainment {
        #[command(flatten)]
        args: attainment::AttainmentArgs,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Rebalance the fleet: show a plan, ask for confirmation, and apply exactly that plan.
    Rebalance {
        /// Show the plan without applying it.
        #[arg(long, conflicts_with = "yes")]
        preview: bool,
        /// Apply the plan without asking for confirmation.
        #[arg(long)]
        yes: bool,
        /// Show every move, and every job that cannot move with its reason.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Follow what happens: jobs, runs, conditions, nodes, the score. Stop it with Ctrl-C.
    Events {
        /// Show only events of this kind; may be given several times.
        #[arg(long = "kind", value_name = "KIND", value_parser = ["job", "run", "condition", "node", "score", "rebalance"])]
        kinds: Vec<String>,
        /// Show only events of this job; may be given several times.
        #[arg(long = "job", value_name = "KEY")]
        jobs: Vec<JobKey>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List or show nodes, or drain one.
    Node(WithServer<node::NodeArgs>),
    /// List incidents and sent alerts, test a channel, or mute jobs for a while.
    Alert(WithServer<alert::AlertArgs>),
    /// List or show sites: the limits that jobs share, and how much of them is used.
    Site(WithServer<sharing::SiteArgs>),
    /// List or show tenants: their plans and limits, and how much of them is used.
    Tenant(WithServer<sharing::TenantArgs>),
    /// List pools: their capacity, and what waits for it.
    Pool(WithServer<sharing::PoolArgs>),
    /// Show who changed what, or check that the record of it is whole.
    Audit(WithServer<audit::AuditArgs>),
    /// Create, list or revoke tokens, through the socket of your own server.
    Token(WithServer<token::TokenArgs>),
    /// Open the pages of your own server in a browser, through its socket.
    Login(WithServer<login::LoginArgs>),
}

/// A group of subcommands, with the options for the server.
#[derive(Debug, Args)]
pub(crate) struct WithServer<T: Args> {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    args: T,
}

pub(crate) fn run(
    command: RemoteCommand,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    match command {
        RemoteCommand::Status { watch, every, updates, server } => {
            let every = std::time::Duration::from_millis(every.as_millis().unsigned_abs());
            let options = WatchOptions { every, n_updates: updates };
            with_server(&server, now, out, err, |remote| {
                if watch { watch::watch(options, remote, status::status) } else { status::status(remote) }
            })
        }
        RemoteCommand::Probe { server } => status::probe(&server, now, out, err),
        RemoteCommand::Apply { files, prune, dry_run, server } => {
            let purpose = if dry_run { Purpose::DryRun } else { Purpose::Apply };
            with_server(&server, now, out, err, |remote| apply::run(&files, prune, purpose, remote))
        }
        RemoteCommand::Diff { files, prune, server } => {
            with_server(&server, now, out, err, |remote| apply::run(&files, prune, Purpose::Diff, remote))
        }
        RemoteCommand::Export { server } => with_server(&server, now, out, err, apply::export),
        RemoteCommand::Job(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| job::run(args, remote))
        }
        RemoteCommand::Run(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| runs::run(&args, remote))
        }
        RemoteCommand::Explain { job, at, server } => with_server(&server, now, out, err, |remote| {
            let at = at.map(|it| it.ahead(&remote.clock));
            explain::run(&job, at, remote)
        }),
        RemoteCommand::Distribution { hours, server } => {
            with_server(&server, now, out, err, |remote| balance::distribution(hours, remote))
        }
        RemoteCommand::Attainment { args, server } => {
            with_server(&server, now, out, err, |remote| attainment::run(&args, remote))
        }
        RemoteCommand::Rebalance { preview, yes, all, server } => {
            let detail = if all { Detail::All } else { Detail::Summary };
            let consent = match (preview, yes) {
                (true, _) => Consent::Preview,
                (_, true) => Consent::Given,
                _ => Consent::Ask,
            };
            // Asking needs a terminal on which the question shows and an answer can be typed.
            let mut stdin = io::stdin().lock();
            let can_ask = stdin.is_terminal() && io::stderr().is_terminal();
            let answer: Option<&mut dyn BufRead> = if can_ask { Some(&mut stdin) } else { None };
            with_server(&server, now, out, err, |remote| balance::rebalance(consent, detail, answer, remote))
        }
        RemoteCommand::Events { kinds, jobs, server } => {
            with_server(&server, now, out, err, |remote| events::run(&kinds, &jobs, remote))
        }
        RemoteCommand::Node(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| node::run(&args, remote))
        }
        RemoteCommand::Alert(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| alert::run(&args, remote))
        }
        RemoteCommand::Site(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| sharing::sites(&args, remote))
        }
        RemoteCommand::Tenant(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| sharing::tenants(&args, remote))
        }
        RemoteCommand::Pool(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| sharing::pools(&args, remote))
        }
        RemoteCommand::Audit(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| audit::run(&args, remote))
        }
        RemoteCommand::Token(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| token::run(args, remote))
        }
        RemoteCommand::Login(WithServer { server, args }) => {
            with_server(&server, now, out, err, |remote| login::run(&args, remote))
        }
    }
}

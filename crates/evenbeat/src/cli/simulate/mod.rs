//! `evenbeat simulate`: the real engine on virtual time, as a tool for people (W1).
//!
//! Takes a job file, a crontab or the fleet of a server and simulates days of it in one or several setups. The results are
//! computed as one value (`figures`) and printed as text or JSON. No job is executed, and nothing is modified.

mod args;
mod figures;
mod json;
mod scenarios;
mod sentences;
mod server;
mod text;
mod timeline;

use std::io::{self, Write};
use std::path::Path;

use evenbeat_core::time::Timestamp;
use evenbeat_whatif::Setup;

pub use args::SimulateArgs;

use super::analyze::{FleetFileKind, WIDTH_MAX, WIDTH_MIN};
use super::remote::{ServerArgs, with_server};
use super::{Exit, fleet_file};
use crate::cli::progress::Progress;
use crate::jobfile::Diagnostics;
use crate::views::whatif::LiveFleet;
use figures::FleetOrigin;
use scenarios::Subject;

pub(crate) fn run(
    args: &SimulateArgs,
    width: u16,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let subject = match &args.file {
        Some(file) => of_file(file, args, now, err)?,
        None => of_server(args, now, out, err)?,
    };
    let subject = match subject {
        Ok(subject) => subject,
        Err(exit) => return Ok(exit),
    };
    let figures = {
        // Clear the progress line before anything else is written.
        let progress = Progress::new(!args.quiet);
        scenarios::simulate(args, subject, now, &progress)
    };
    let figures = match figures {
        Ok(figures) => figures,
        Err(message) => {
            writeln!(err, "error: {message}")?;
            return Ok(Exit::Usage);
        }
    };
    for warning in &figures.warnings {
        writeln!(err, "warning: {warning}")?;
    }
    if args.json {
        super::format::json(out, &json::document(&figures))?;
    } else {
        write!(out, "{}", text::render(&figures, width.clamp(WIDTH_MIN, WIDTH_MAX).into()))?;
    }
    Ok(if figures.is_reached() { Exit::Ok } else { Exit::Failed })
}

/// The jobs of a file, with the capacity they need.
fn of_file(
    file: &Path,
    args: &SimulateArgs,
    now: Timestamp,
    err: &mut dyn Write,
) -> io::Result<Result<Subject, Exit>> {
    let kind = FleetFileKind::from_flags(args.crontab, args.system, args.jobs);
    let Some(source) = fleet_file::read_or_report(file, kind, err)? else { return Ok(Err(Exit::Usage)) };
    let input = match fleet_file::load(&source, kind, args.from.unwrap_or(now)) {
        Ok(input) => input,
        Err(diagnostics) => {
            write!(err, "{}", diagnostics.render(true))?;
            return Ok(Err(Exit::Failed));
        }
    };
    if let Some(bad_lines) = &input.bad_lines {
        write!(err, "{}", bad_lines.render(true))?;
    }
    Ok(Ok(Subject {
        zone: input.zone(),
        name: input.name,
        origin: FleetOrigin::File(input.kind),
        jobs: input.jobs.into_iter().map(|it| it.job).collect(),
        base: Setup::new(),
        n_left_out: input.left_out.len() + input.bad_lines.as_ref().map_or(0, Diagnostics::n_lines),
        warnings: Vec::new(),
        assumes_utc: input.assumes_utc,
    }))
}

/// The jobs of a server, with its nodes.
fn of_server(
    args: &SimulateArgs,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Result<Subject, Exit>> {
    let server = ServerArgs { server: args.server.clone(), json: args.json, ..ServerArgs::default() };
    let mut found = None;
    let ended = with_server(&server, now, out, err, |remote| {
        found = Some((remote.address().to_string(), server::load(remote)?));
        Ok(Exit::Ok)
    })?;
    let Some((name, (fleet, warnings))) = found else { return Ok(Err(ended)) };
    let LiveFleet { facts, jobs, setup: base, nodes: _ } = fleet;
    let (zone, origin) = (fleet_file::shared_zone(&jobs), FleetOrigin::Server(facts));
    Ok(Ok(Subject { name, origin, jobs, base, zone, n_left_out: 0, warnings, assumes_utc: false }))
}

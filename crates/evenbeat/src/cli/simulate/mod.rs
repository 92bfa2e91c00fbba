//! `evenbeat simulate`: the real engine on virtual time, as a tool for people (W1).
//!
//! Reads a job file or a crontab, lives through days of it in one or several set-ups, and shows what
//! came of it: computed as one value (`figures`), shown as text or JSON. Nothing is run, nothing is
//! written.

mod args;
mod ask;
mod figures;
mod json;
mod sentences;
mod text;
mod timeline;

use std::io::{self, Write};

use evenbeat_core::time::Timestamp;

pub use args::{
    BalanceArg, CapacityArg, DAYS_MAX, NodesArg, OrderArg, OutageArg, SetupArgs, SimulateArgs, SiteArg,
};

use super::analyze::{InputKind, WIDTH_MAX, WIDTH_MIN};
use super::{Exit, input, source};
use crate::runtime::progress::Progress;

pub(crate) fn run(
    args: &SimulateArgs,
    width: u16,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let Some(source) = source::read_or_say(&args.file, err)? else { return Ok(Exit::Usage) };
    let kind = InputKind::said(args.crontab, args.system, args.jobs);
    let input = match input::load(&source, kind, args.from.unwrap_or(now)) {
        Ok(input) => input,
        Err(diagnostics) => {
            write!(err, "{}", diagnostics.render(true))?;
            return Ok(Exit::Failed);
        }
    };
    let figures = {
        // Gone from the terminal before anything is written to it.
        let progress = Progress::new(!args.quiet);
        ask::answer(args, &input, now, &progress)
    };
    let figures = match figures {
        Ok(figures) => figures,
        Err(message) => {
            writeln!(err, "error: {message}")?;
            return Ok(Exit::Usage);
        }
    };
    if args.json {
        super::show::json(out, &json::document(&figures))?;
    } else {
        write!(out, "{}", text::render(&figures, width.clamp(WIDTH_MIN, WIDTH_MAX).into()))?;
    }
    Ok(if figures.is_reached() { Exit::Ok } else { Exit::Failed })
}

//! `evenbeat analyze`: how even is a schedule now, and what would Evenbeat make of it?
//!
//! Reads a job file or a crontab, computes everything as one value (`figures`) and shows it as text
//! or JSON. Nothing is written, nothing is adopted.

mod figures;
mod habit;
mod json;
mod placed;
mod sentences;
mod settle;
mod text;

use std::io::{self, Write};
use std::path::Path;

use evenbeat_core::time::Timestamp;

pub(super) use figures::ScoreWord;

pub use super::input::InputKind;

use super::{Exit, input};
use crate::jobfile::SourceText;

/// The narrowest output.
pub const WIDTH_MIN: u16 = 40;

/// The widest output.
pub const WIDTH_MAX: u16 = 200;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What the file is; by its name and content if nothing is said.
    pub kind: Option<InputKind>,
    /// From the hour that this lies in.
    pub at: Timestamp,
    /// So many hours.
    pub hours: u32,
    /// One JSON document instead of text.
    pub json: bool,
    /// Every change, not only the first.
    pub plan: bool,
    /// How wide text may be.
    pub width: u16,
}

pub(crate) fn run(
    file: &Path,
    wanted: &Wanted,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    match input::read_or_say(file, wanted.kind, err)? {
        Some(source) => analyze(&source, wanted, out, err),
        None => Ok(Exit::Usage),
    }
}

/// Analyses a file that was read.
pub fn analyze(
    source: &SourceText,
    wanted: &Wanted,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let input = match input::load(source, wanted.kind, wanted.at) {
        Ok(input) => input,
        Err(diagnostics) => {
            write!(err, "{}", diagnostics.render(true))?;
            return Ok(Exit::Failed);
        }
    };
    if let Some(bad_lines) = &input.bad_lines {
        write!(err, "{}", bad_lines.render(true))?;
    }
    let figures = match figures::Figures::of(&input, wanted.at, wanted.hours) {
        Ok(figures) => figures,
        Err(error) => {
            writeln!(err, "error: --hours: {error}")?;
            return Ok(Exit::Usage);
        }
    };
    if wanted.json {
        writeln!(out, "{:#}", json::document(&input, &figures))?;
    } else {
        let width = wanted.width.clamp(WIDTH_MIN, WIDTH_MAX);
        write!(out, "{}", text::render(&input, &figures, width.into(), wanted.plan))?;
    }
    // What could be read is analysed; that some of it could not is an answer of its own.
    Ok(if input.bad_lines.is_none() { Exit::Ok } else { Exit::Failed })
}

//! `evenbeat analyze`: how evenly a schedule is spread, and what Evenbeat would change.
//!
//! Reads a job file or a crontab, computes the results as one value (`views/analysis`) and prints it as text or JSON. Nothing is
//! modified.

mod json;
mod sentences;
mod text;

use std::io::{self, Write};
use std::path::Path;

use evenbeat_core::time::Timestamp;

pub(super) use crate::views::analysis::ScoreWord;

pub use super::fleet_file::FleetFileKind;

use super::{Exit, fleet_file};
use crate::jobfile::SourceText;
use crate::views::analysis::AnalysisFigures;

/// Minimum output width.
pub const WIDTH_MIN: u16 = 40;

/// Maximum output width.
pub const WIDTH_MAX: u16 = 200;

/// The options of the command.
#[derive(Clone, Debug)]
pub struct AnalyzeOptions {
    /// The format of the file. Detected from its name and content if `None`.
    pub kind: Option<FleetFileKind>,
    /// The analysis starts with the hour of this instant.
    pub at: Timestamp,
    /// Number of hours.
    pub hours: u32,
    /// Whether to print JSON instead of text.
    pub json: bool,
    /// Whether to list every change, not just the first ones.
    pub plan: bool,
    /// Maximum width of the text.
    pub width: u16,
}

pub(crate) fn run(
    file: &Path,
    options: &AnalyzeOptions,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    match fleet_file::read_or_report(file, options.kind, err)? {
        Some(source) => analyze(&source, options, out, err),
        None => Ok(Exit::Usage),
    }
}

/// Analyzes the content of a file.
pub fn analyze(
    source: &SourceText,
    options: &AnalyzeOptions,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let input = match fleet_file::load(source, options.kind, options.at) {
        Ok(input) => input,
        Err(diagnostics) => {
            write!(err, "{}", diagnostics.render(true))?;
            return Ok(Exit::Failed);
        }
    };
    if let Some(bad_lines) = &input.bad_lines {
        write!(err, "{}", bad_lines.render(true))?;
    }
    let figures = match AnalysisFigures::of(&input, options.at, options.hours) {
        Ok(figures) => figures,
        Err(error) => {
            writeln!(err, "error: --hours: {error}")?;
            return Ok(Exit::Usage);
        }
    };
    if options.json {
        writeln!(out, "{:#}", json::document(&input, &figures))?;
    } else {
        let width = options.width.clamp(WIDTH_MIN, WIDTH_MAX);
        write!(out, "{}", text::render(&input, &figures, width.into(), options.plan))?;
    }
    // Analyze what could be read, and use the exit code to report that some lines could not.
    Ok(if input.bad_lines.is_none() { Exit::Ok } else { Exit::Failed })
}

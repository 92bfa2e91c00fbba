//! Errors and warnings about job files, each with its place.

use std::ops::Range;

use super::source::{LineIndex, Position, SourceText};

/// The severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The files cannot be used.
    Error,
    /// The files can be used, but their owner should know.
    Warning,
}

impl Severity {
    /// The word in front of a message and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// An error or a warning about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// Index of the file, from 0.
    pub file_idx: usize,
    /// The bytes in the file; `None` for the file as a whole.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// A few words to show below the place.
    pub label: Option<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The field in the file: `job[3].cron`, `defaults.tz`.
    pub field: Option<String>,
    /// Another place that is involved.
    pub note: Option<Note>,
}

/// Another place that is involved in a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Index of the file.
    pub file_idx: usize,
    /// The bytes in the file.
    pub span: Range<usize>,
    /// A few words about this place.
    pub label: String,
}

/// All diagnostics about some files, in order of place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    sources: Vec<(SourceText, LineIndex)>,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Sorts the diagnostics and removes duplicates.
    pub(crate) fn new(sources: &[SourceText], mut list: Vec<Diagnostic>) -> Diagnostics {
        let place = |it: &Diagnostic| {
            let span = it.span.clone().unwrap_or(0..0);
            (it.file_idx, span.start, span.end, it.severity)
        };
        list.sort_by(|one, other| (place(one), &one.message).cmp(&(place(other), &other.message)));
        // A bad default is reported once, however many jobs inherit it.
        list.dedup_by(|one, other| place(one) == place(other) && one.message == other.message);
        let sources = sources.iter().map(|it| (it.clone(), LineIndex::of(&it.text))).collect();
        Diagnostics { sources, list }
    }

    /// The number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All diagnostics, in order of place.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The number of lines with a diagnostic.
    pub fn n_lines(&self) -> usize {
        let mut lines: Vec<_> =
            self.iter().map(|it| (it.file_idx, self.positions_of(it).map(|(start, _)| start.line))).collect();
        lines.dedup();
        lines.len()
    }

    /// The file of a diagnostic.
    pub fn source_of(&self, diagnostic: &Diagnostic) -> Option<&SourceText> {
        self.sources.get(diagnostic.file_idx).map(|(source, _)| source)
    }

    /// The start and end of a diagnostic, as line and column.
    pub fn positions_of(&self, diagnostic: &Diagnostic) -> Option<(Position, Position)> {
        let (source, lines) = self.sources.get(diagnostic.file_idx)?;
        let span = diagnostic.span.clone()?;
        let position = |byte| lines.position(&source.text, byte);
        Some((position(span.start), position(span.end)))
    }

    /// Renders all diagnostics as text: the place, the line, a mark below the bytes, and the help.
    pub fn render(&self, color: bool) -> String {
        super::render::render(&self.sources, &self.list, color)
    }
}

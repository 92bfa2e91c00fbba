//! What is to be said about job files, each with its place.

use std::ops::Range;

use super::source::{Lines, Position, SourceText};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The files cannot be used.
    Error,
    /// They can, and their owner should know.
    Warning,
}

impl Severity {
    /// The word in front of a message and in machine-readable output.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One thing to be said about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Which of the files, the first being 0.
    pub file_idx: usize,
    /// Which bytes of it; none if it is about the file as a whole.
    pub span: Option<Range<usize>>,
    /// What it is.
    pub message: String,
    /// A few words for under the place.
    pub label: Option<String>,
    /// The way out.
    pub help: Option<String>,
    /// The field in the file: `job[3].cron`, `defaults.tz`.
    pub field: Option<String>,
    /// Another place that has to do with it.
    pub note: Option<Note>,
}

/// Another place that has to do with a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which of the files.
    pub file_idx: usize,
    /// Which bytes of it.
    pub span: Range<usize>,
    /// What is there.
    pub label: String,
}

/// All that is to be said about some files, in order of place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    sources: Vec<(SourceText, Lines)>,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// These, put in order; what is said twice about the same place is said once.
    pub(crate) fn new(sources: &[SourceText], mut list: Vec<Diagnostic>) -> Diagnostics {
        let place = |it: &Diagnostic| {
            let span = it.span.clone().unwrap_or(0..0);
            (it.file_idx, span.start, span.end, it.severity)
        };
        list.sort_by(|one, other| (place(one), &one.message).cmp(&(place(other), &other.message)));
        // One bad default is one fault, however many jobs have it.
        list.dedup_by(|one, other| place(one) == place(other) && one.message == other.message);
        let sources = sources.iter().map(|it| (it.clone(), Lines::of(&it.text))).collect();
        Diagnostics { sources, list }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Each of them, in order of place.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// How many lines they are about.
    pub fn n_lines(&self) -> usize {
        let mut lines: Vec<_> =
            self.iter().map(|it| (it.file_idx, self.positions_of(it).map(|(start, _)| start.line))).collect();
        lines.dedup();
        lines.len()
    }

    /// The file that one of them is about.
    pub fn source_of(&self, diagnostic: &Diagnostic) -> Option<&SourceText> {
        self.sources.get(diagnostic.file_idx).map(|(source, _)| source)
    }

    /// Where one of them begins and ends, as people count.
    pub fn positions_of(&self, diagnostic: &Diagnostic) -> Option<(Position, Position)> {
        let (source, lines) = self.sources.get(diagnostic.file_idx)?;
        let span = diagnostic.span.clone()?;
        let position = |byte| lines.position(&source.text, byte);
        Some((position(span.start), position(span.end)))
    }

    /// All of them as text: the place, the line, a mark under the very bytes, and the way out.
    pub fn render(&self, color: bool) -> String {
        super::render::render(&self.sources, &self.list, color)
    }
}

//! Renders diagnostics in the style of a compiler.

use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::diagnostic::{Diagnostic, Severity};
use super::source::{LineIndex, SourceText};

/// Line width for rendering. Wide enough for any message and for a long command.
const WIDTH: usize = 140;

/// Largest number of diagnostics shown. Beyond that, most have a common cause.
const SHOWN_MAX: usize = 1_000;

/// One place in one file, with its text.
struct Mark<'a> {
    file_idx: usize,
    span: Range<usize>,
    kind: AnnotationKind,
    label: Option<&'a str>,
}

pub(super) fn render(sources: &[(SourceText, LineIndex)], diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(WIDTH);
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(SHOWN_MAX) {
        text.push_str(&renderer.render(&[group(sources, diagnostic)]));
        text.push_str("\n\n");
    }
    if SHOWN_MAX < diagnostics.len() {
        text.extend(["… and ", &(diagnostics.len() - SHOWN_MAX).to_string(), " more\n\n"]);
    }
    text
}

fn group<'a>(sources: &'a [(SourceText, LineIndex)], diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(&diagnostic.message));
    let marks = marks(diagnostic);
    match (marks.as_slice(), sources.get(diagnostic.file_idx)) {
        ([], Some((source, _))) => group = group.element(Origin::path(&source.name)),
        ([one, other], _) if one.file_idx == other.file_idx => {
            group = group.elements(snippet(sources, &[one, other]));
        }
        (marks, _) => {
            for mark in marks {
                group = group.elements(snippet(sources, &[mark]));
            }
        }
    }
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help)),
        None => group,
    }
}

fn marks(diagnostic: &Diagnostic) -> Vec<Mark<'_>> {
    let primary = diagnostic.span.clone().map(|span| Mark {
        file_idx: diagnostic.file_idx,
        span,
        kind: AnnotationKind::Primary,
        label: diagnostic.label.as_deref(),
    });
    let note = diagnostic.note.as_ref().map(|note| Mark {
        file_idx: note.file_idx,
        span: note.span.clone(),
        kind: AnnotationKind::Context,
        label: Some(note.label.as_str()),
    });
    primary.into_iter().chain(note).collect()
}

/// The lines of a file around some places.
///
/// The renderer scans all lines it is given, which would be slow for many errors in a long file.
fn snippet<'a>(
    sources: &'a [(SourceText, LineIndex)],
    marks: &[&Mark<'a>],
) -> Option<Snippet<'a, Annotation<'a>>> {
    let (source, lines) = sources.get(marks.first()?.file_idx)?;
    let first_byte = marks.iter().map(|mark| mark.span.start).min()?;
    let last_byte = marks.iter().map(|mark| mark.span.end).max()?;
    let first_line = lines.line_idx(first_byte);
    let start = lines.start(first_line, &source.text);
    let end = lines.start(lines.line_idx(last_byte) + 1, &source.text);
    let shown = source.text.get(start..end)?;
    let annotation =
        |mark: &&Mark<'a>| mark.kind.span(mark.span.start - start..mark.span.end - start).label(mark.label);
    let snippet = Snippet::source(shown).path(&source.name).line_start(first_line + 1);
    Some(snippet.annotations(marks.iter().map(annotation)))
}

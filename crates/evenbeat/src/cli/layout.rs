//! A page of text: lines of limited width, with titles.

use anstyle::Style;

use super::chart::{cut, trimmed, wrapped};
use super::format::{BOLD, DIM};

/// The text so far.
#[derive(Debug)]
pub(super) struct TextLayout {
    pub(super) width: usize,
    pub(super) text: String,
}

impl TextLayout {
    pub(super) fn new(width: usize) -> TextLayout {
        TextLayout { width, text: String::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(&trimmed(line));
        self.text.push('\n');
    }

    /// Adds text, wrapped to the width.
    pub(super) fn wrapped(&mut self, text: &str, style: Style) {
        for line in wrapped(text, self.width) {
            self.line(&format!("{style}{line}{style:#}"));
        }
    }

    /// Adds the heading, with its description beside it or below.
    pub(super) fn heading(&mut self, name: &str, about: &str) {
        let room = self.width.saturating_sub(about.chars().count() + 2);
        if name.chars().count() <= room {
            self.line(&format!("{BOLD}{name}{BOLD:#}  {DIM}{about}{DIM:#}"));
        } else {
            self.line(&format!("{BOLD}{}{BOLD:#}", cut(name, self.width)));
            self.wrapped(about, DIM);
        }
        self.line("");
    }

    /// Adds a section title, with a note beside it if there is room.
    pub(super) fn title(&mut self, title: &str, note: &str) {
        let room = self.width.saturating_sub(title.chars().count() + 2);
        let note = if note.chars().count() <= room { note } else { "" };
        self.line("");
        let note = if note.is_empty() { String::new() } else { format!("  {DIM}{note}{DIM:#}") };
        self.line(&format!("{BOLD}{title}{BOLD:#}{note}"));
    }
}

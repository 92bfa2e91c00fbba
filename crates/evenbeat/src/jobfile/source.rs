//! The text of a file, and places in it as line and column.

/// Largest job file, enough for about ten thousand jobs.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// A file or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The name to show.
    pub name: String,
    /// The content.
    pub text: String,
}

/// A place in a text. Lines and columns count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// The byte offsets of all lines, for fast lookups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineIndex(Vec<usize>);

impl LineIndex {
    pub(crate) fn of(text: &str) -> LineIndex {
        LineIndex([0].into_iter().chain(text.match_indices('\n').map(|(idx, _)| idx + 1)).collect())
    }

    /// The line of a byte, from 0.
    pub(crate) fn line_idx(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte).saturating_sub(1)
    }

    /// The byte offset of a line, or the end of the text if there is no such line.
    pub(super) fn start(&self, line_idx: usize, text: &str) -> usize {
        self.0.get(line_idx).copied().unwrap_or(text.len())
    }

    /// The place of a byte, or the end of the text if it is out of range.
    pub(super) fn position(&self, text: &str, byte: usize) -> Position {
        let byte = byte.min(text.len());
        let line_idx = self.line_idx(byte);
        let before = text.get(self.start(line_idx, text)..byte).unwrap_or_default();
        Position { line: line_idx + 1, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_begin_at_one_and_count_characters() {
        let text = "a\näb\n";
        let lines = LineIndex::of(text);
        let at = |byte| {
            let Position { line, column } = lines.position(text, byte);
            (line, column)
        };
        assert_eq!((at(0), at(1), at(2), at(4), at(5)), ((1, 1), (1, 2), (2, 1), (2, 2), (2, 3)));
        assert_eq!((at(6), at(99)), ((3, 1), (3, 1)));
        assert_eq!((lines.start(1, text), lines.start(9, text)), (2, 6));
        assert_eq!(LineIndex::of("").position("", 0), Position { line: 1, column: 1 });
    }
}

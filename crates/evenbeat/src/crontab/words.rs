//! Parts of a line that remember their position in the file.

use std::ops::Range;

/// Part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    /// Byte offset in the file.
    pub(super) start: usize,
}

impl<'a> Piece<'a> {
    /// The byte range in the file.
    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// Splits at a byte offset. An offset inside a character splits nothing off.
    pub(super) fn split_at(&self, at: usize) -> (Piece<'a>, Piece<'a>) {
        let (head, tail) = self.text.split_at_checked(at).unwrap_or((self.text, ""));
        (Piece { text: head, start: self.start }, Piece { text: tail, start: self.start + head.len() })
    }

    pub(super) fn trimmed(&self) -> Piece<'a> {
        let n_leading = self.text.len() - self.text.trim_ascii_start().len();
        let tail = self.split_at(n_leading).1;
        tail.split_at(tail.text.trim_ascii_end().len()).0
    }

    /// The first word and the rest.
    pub(super) fn first_word(&self) -> (Piece<'a>, Piece<'a>) {
        let text = self.trimmed();
        let end = text.text.find(|it: char| it.is_ascii_whitespace()).unwrap_or(text.text.len());
        let (word, rest) = text.split_at(end);
        (word, rest.trimmed())
    }

    /// Up to this many words and the rest.
    pub(super) fn words(&self, n_max: usize) -> (Vec<Piece<'a>>, Piece<'a>) {
        let mut words = Vec::new();
        let mut rest = self.trimmed();
        while !rest.text.is_empty() && words.len() < n_max {
            let (word, after) = rest.first_word();
            words.push(word);
            rest = after;
        }
        (words, rest)
    }
}

/// The lines of a text, without line breaks.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Piece<'_>> {
    // A byte order mark is not part of the first line.
    let n_mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut start = n_mark;
    text.get(n_mark..).unwrap_or_default().split('\n').map(move |line| {
        let piece = Piece { text: line.strip_suffix('\r').unwrap_or(line), start };
        start += line.len() + 1;
        piece
    })
}

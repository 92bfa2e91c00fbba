//! A piece of a text that remembers where it was cut out, so that an error can point at it.

use std::ops::Range;

/// Part of the text that was given, with its byte offset there.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextSpan<'a> {
    pub(super) text: &'a str,
    start: usize,
}

impl<'a> TextSpan<'a> {
    pub(super) fn whole(text: &'a str) -> TextSpan<'a> {
        TextSpan { text, start: 0 }
    }

    /// Where it lies in the text that was given.
    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Cuts at a byte offset; one inside a letter cuts off nothing.
    pub(super) fn split_at(&self, at: usize) -> (TextSpan<'a>, TextSpan<'a>) {
        let (head, tail) = self.text.split_at_checked(at).unwrap_or((self.text, ""));
        (TextSpan { text: head, start: self.start }, TextSpan { text: tail, start: self.start + head.len() })
    }

    /// What lies before and after the first such letter.
    pub(super) fn split_once(&self, separator: char) -> Option<(TextSpan<'a>, TextSpan<'a>)> {
        let (head, tail) = self.split_at(self.text.find(separator)?);
        Some((head, tail.split_at(separator.len_utf8()).1))
    }

    /// The rest after this beginning, in any case.
    pub(super) fn after(&self, beginning: &str) -> Option<TextSpan<'a>> {
        let (head, tail) = self.split_at(beginning.len());
        head.text.eq_ignore_ascii_case(beginning).then_some(tail)
    }

    /// The rest before this ending, in any case.
    pub(super) fn before(&self, ending: &str) -> Option<TextSpan<'a>> {
        let (head, tail) = self.split_at(self.text.len().checked_sub(ending.len())?);
        tail.text.eq_ignore_ascii_case(ending).then_some(head)
    }

    pub(super) fn trimmed(&self) -> TextSpan<'a> {
        let n_leading = self.text.len() - self.text.trim_ascii_start().len();
        let tail = self.split_at(n_leading).1;
        tail.split_at(tail.text.trim_ascii_end().len()).0
    }

    /// The first word, and what follows it.
    pub(super) fn first_word(&self) -> (TextSpan<'a>, TextSpan<'a>) {
        let text = self.trimmed();
        let end = text.text.find(|it: char| it.is_ascii_whitespace()).unwrap_or(text.text.len());
        let (word, rest) = text.split_at(end);
        (word, rest.trimmed())
    }

    pub(super) fn words(&self) -> Vec<TextSpan<'a>> {
        let mut words = Vec::new();
        let mut rest = self.trimmed();
        while !rest.is_empty() {
            let (word, after) = rest.first_word();
            words.push(word);
            rest = after;
        }
        words
    }
}

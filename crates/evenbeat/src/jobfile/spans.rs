//! The positions of all keys and values in a text.

use std::collections::BTreeMap;
use std::ops::Range;

use evenbeat_core::spec::Place;
use evenbeat_core::value::{Path, Step};

/// The positions of a value and of everything inside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    /// The position of its name, if it has one.
    pub(crate) key: Option<Range<usize>>,
    /// The position of the value; for a table with a header, the header.
    pub(crate) value: Range<usize>,
    pub(crate) below: BTreeMap<Step, Spans>,
}

impl Spans {
    /// The bytes of a place. `of_name` selects the name instead of the value.
    pub(super) fn span_of(&self, text: &str, place: &Place, of_name: bool) -> Range<usize> {
        let found = self.nearest(&place.path);
        if let Some(key) = found.key.clone().filter(|_| of_name) {
            return key;
        }
        let part = place.part.clone().and_then(|part| part_of_string(text, found.value.clone(), &part));
        part.unwrap_or_else(|| found.on_one_line(text))
    }

    /// The position of a path, or of its nearest existing parent.
    fn nearest(&self, path: &Path) -> &Spans {
        let mut found = self;
        for step in path.steps() {
            match found.below.get(step) {
                Some(below) => found = below,
                None => break,
            }
        }
        found
    }

    /// The value. For a value on several lines, its name or its first line.
    fn on_one_line(&self, text: &str) -> Range<usize> {
        let shown = text.get(self.value.clone()).unwrap_or_default();
        match (shown.find('\n'), &self.key) {
            (None, _) => self.value.clone(),
            (Some(_), Some(key)) => key.clone(),
            (Some(line_end), None) => self.value.start..self.value.start + line_end,
        }
    }
}

/// Converts bytes of a string's value to bytes of the file.
///
/// `None` if the string contains escapes, because then the offsets differ.
fn part_of_string(text: &str, string: Range<usize>, part: &Range<usize>) -> Option<Range<usize>> {
    let raw = text.get(string.clone())?;
    let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quotes| raw.starts_with(quotes))?;
    let mut inner = raw.strip_prefix(quotes)?.strip_suffix(quotes)?;
    if inner.contains(['\\', '\r']) {
        return None;
    }
    let mut start = string.start + quotes.len();
    if quotes.len() == 3
        && let Some(after) = inner.strip_prefix('\n')
    {
        // A line break after opening quotes is not part of the string.
        inner = after;
        start += 1;
    }
    // Something missing at the very end is marked one past the last byte.
    inner.get(part.clone()).map(|_| start + part.start..start + part.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(string: &str, part: Range<usize>, expected: Option<&str>) {
        let text = format!("x = {string} # end");
        let found = part_of_string(&text, 4..4 + string.len(), &part);
        assert_eq!(found.map(|span| &text[span]), expected, "{string}");
    }

    #[test]
    fn a_part_of_a_string_is_found_if_it_is_written_as_it_reads() {
        check("\"0 25 * * *\"", 2..4, Some("25"));
        check("'0 25 * * *'", 2..4, Some("25"));
        check("'0 25'", 4..4, Some(""));
        check("'''0 25'''", 2..4, Some("25"));
        check("'''\n0 25'''", 2..4, Some("25"));
        check("\"\"\"\n0 25\"\"\"", 2..4, Some("25"));
        check("\"\\u0030 25\"", 2..4, None);
        check("'0 25'", 3..9, None);
        check("15", 0..1, None);
        check("'ä 25'", 1..2, None);
    }
}

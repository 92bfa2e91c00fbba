//! Makes text from jobs and runs safe for a terminal or a web page.
//!
//! A run can print anything, and a label can contain anything. Control characters move the cursor, change the terminal's
//! title or hide text, and bidirectional overrides reorder it. All such text goes through here before it is shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes control characters, including line breaks, and bidirectional overrides, as in `\n`, `\x1b` and `\u{202e}`.
pub fn line(text: &str) -> Cow<'_, str> {
    if text.contains(is_unsafe) { Cow::Owned(escaped(text, |_| false)) } else { Cow::Borrowed(text) }
}

/// Escapes like [`line()`], but keeps line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    let must_go = |it: char| is_unsafe(it) && !is_layout(it);
    if text.contains(must_go) { Cow::Owned(escaped(text, is_layout)) } else { Cow::Borrowed(text) }
}

/// Converts the output of a run to safe text. Bytes that are not UTF-8 are escaped, as in `\xff`.
///
/// Unless `is_all`, more bytes may follow, and an incomplete character at the end is left for the next call. Returns the
/// text and the number of bytes it covers.
pub fn output(bytes: &[u8], is_all: bool) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut n_used = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(&lines(chunk.valid()));
        n_used += chunk.valid().len();
        let is_at_end = n_used + chunk.invalid().len() == bytes.len();
        if !is_all && is_at_end && is_incomplete(chunk.invalid()) {
            break;
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
        n_used += chunk.invalid().len();
    }
    (text, n_used)
}

/// Whether these bytes can be the start of a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for it in text.chars() {
        let _ = match it {
            it if is_kept(it) || !is_unsafe(it) => write!(safe, "{it}"),
            '\n' => write!(safe, "\\n"),
            '\r' => write!(safe, "\\r"),
            '\t' => write!(safe, "\\t"),
            it if it.is_ascii() => write!(safe, "\\x{:02x}", u32::from(it)),
            it => write!(safe, "\\u{{{:x}}}", u32::from(it)),
        };
    }
    safe
}

fn is_layout(it: char) -> bool {
    matches!(it, '\n' | '\t')
}

fn is_unsafe(it: char) -> bool {
    it.is_control() || is_bidi_control(it) || matches!(it, '\u{2028}' | '\u{2029}')
}

fn is_bidi_control(it: char) -> bool {
    matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_holds_no_control_character() {
        assert_eq!(line("shop, größer 👍"), "shop, größer 👍");
        assert_eq!(line("a\nb\tc\rd"), "a\\nb\\tc\\rd");
        assert_eq!(line("\u{1b}[31mred\u{1b}]0;title\u{7}"), "\\x1b[31mred\\x1b]0;title\\x07");
        assert_eq!(line("\u{9b}2J"), "\\u{9b}2J");
        assert_eq!(line("user\u{202e}txt.exe\u{2066}"), "user\\u{202e}txt.exe\\u{2066}");
    }

    #[test]
    fn lines_keep_their_breaks_and_tabs() {
        assert_eq!(lines("a\tb\nc\r\n"), "a\tb\nc\\r\n");
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_bytes() {
        assert_eq!(output(b"ok \xff\xfe\n", true), ("ok \\xff\\xfe\n".to_owned(), 6));
        // A C1 control as a bare byte, as old terminals understand it.
        assert_eq!(output(b"\x9b31m", true), ("\\x9b31m".to_owned(), 4));
    }

    #[test]
    fn a_character_in_two_parts_waits_for_its_second() {
        let euro = "€".as_bytes();
        assert_eq!(output(b"1 \xe2\x82", false), ("1 ".to_owned(), 2));
        assert_eq!(output(euro, false), ("€".to_owned(), 3));
        assert_eq!(output(b"1 \xe2\x82", true), ("1 \\xe2\\x82".to_owned(), 4));
        // No character starts with this byte, so there is nothing to wait for.
        assert_eq!(output(b"\xff", false), ("\\xff".to_owned(), 1));
    }

    proptest! {
        #[test]
        fn output_is_safe_and_complete_however_it_is_cut(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cut in any::<prop::sample::Index>(),
        ) {
            let (whole, n_used) = output(&bytes, true);
            prop_assert_eq!(n_used, bytes.len());
            prop_assert!(!whole.contains(|it: char| is_unsafe(it) && !is_layout(it)));
            let (first, n_first) = output(&bytes[..cut.index(bytes.len() + 1)], false);
            let (rest, _) = output(&bytes[n_first..], true);
            prop_assert_eq!(first + &rest, whole);
        }
    }
}

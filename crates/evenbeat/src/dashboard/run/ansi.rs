//! Escape sequences in the output of runs: colours, bold and dim become styles, everything else is dropped.
//!
//! A run can write anything. What it writes is shown as text: no sequence moves, hides or replaces text of another line,
//! and a sequence without an end hides nothing.

use std::fmt::Write as _;

use crate::printable;

/// The colours that logs have. Black and bright black are grey; white is the colour of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsiColour {
    Grey,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// How text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnsiStyle {
    pub(super) colour: Option<AnsiColour>,
    pub(super) is_bold: bool,
    pub(super) is_dim: bool,
}

/// A piece of a line in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AnsiSpan {
    pub(super) style: AnsiStyle,
    pub(super) text: String,
}

/// What goes on from one line to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsiState {
    pub(super) style: AnsiStyle,
    /// After this many pieces, styles no longer change: a log that changes its colour with each letter must not become a page
    /// of megabytes.
    pub(super) n_spans_left: usize,
}

impl AnsiStyle {
    /// The classes of text in this style.
    pub(super) fn classes(self) -> String {
        let colour = self.colour.map(|it| match it {
            AnsiColour::Grey => "a-d",
            AnsiColour::Red => "a-r",
            AnsiColour::Green => "a-g",
            AnsiColour::Yellow => "a-y",
            AnsiColour::Blue => "a-bl",
            AnsiColour::Magenta => "a-m",
            AnsiColour::Cyan => "a-c",
        });
        let dim = (self.is_dim && colour != Some("a-d")).then_some("a-d");
        let bold = self.is_bold.then_some("a-b");
        [colour, dim, bold].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The pieces of a line, which is given without its end. Bytes that are not text, and control characters outside of
/// sequences, are escaped.
pub(super) fn spans(line: &[u8], state: &mut AnsiState) -> Vec<AnsiSpan> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut spans = AnsiSpans { spans: Vec::new(), text: String::new(), state };
    for chunk in line.utf8_chunks() {
        spans.take(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(spans.text, "\\x{byte:02x}");
        }
    }
    spans.end();
    spans.spans
}

struct AnsiSpans<'a> {
    spans: Vec<AnsiSpan>,
    /// Text that is not in a span yet.
    text: String,
    state: &'a mut AnsiState,
}

impl AnsiSpans<'_> {
    fn take(&mut self, text: &str) {
        let (mut rest, mut ends) = (text, StringEnds::new(text));
        while let Some(at) = rest.find(is_introducer) {
            let (before, sequence) = rest.split_at(at);
            self.text.push_str(&printable::lines(before));
            let from = text.len() - sequence.len();
            rest = match sequence_at(sequence, &mut || ends.after(from)) {
                Sequence::Style(params, length) => {
                    self.style(params);
                    sequence.get(length..).unwrap_or_default()
                }
                Sequence::Other(length) => sequence.get(length..).unwrap_or_default(),
            };
        }
        self.text.push_str(&printable::lines(rest));
    }

    fn style(&mut self, params: &str) {
        let style = styled(self.state.style, params);
        if style == self.state.style || self.state.n_spans_left == 0 {
            return;
        }
        self.end();
        self.state.style = style;
    }

    fn end(&mut self) {
        if !self.text.is_empty() {
            self.state.n_spans_left = self.state.n_spans_left.saturating_sub(1);
            self.spans.push(AnsiSpan { style: self.state.style, text: std::mem::take(&mut self.text) });
        }
    }
}

/// Where strings inside sequences end, found in one pass over the line however many of them begin.
struct StringEnds<'a> {
    text: &'a str,
    /// The end that was found last: where it begins, and how long it is.
    found: Option<(usize, usize)>,
    /// There is none from here on.
    none_from: usize,
}

impl StringEnds<'_> {
    fn new(text: &str) -> StringEnds<'_> {
        StringEnds { text, found: None, none_from: text.len() }
    }

    /// How many bytes there are from `from` up to and including the next end.
    fn after(&mut self, from: usize) -> Option<usize> {
        if self.none_from <= from {
            return None;
        }
        if self.found.is_none_or(|(at, _)| at <= from) {
            let bytes = self.text.as_bytes();
            let end_at = |at: usize| match (bytes.get(at)?, bytes.get(at + 1)) {
                (0x07, _) => Some((at, 1)),
                (0x1b, Some(b'\\')) | (0xc2, Some(0x9c)) => Some((at, 2)),
                _ => None,
            };
            self.found = (from + 1..bytes.len()).find_map(end_at);
            if self.found.is_none() {
                self.none_from = from;
            }
        }
        self.found.map(|(at, length)| at + length - from)
    }
}

/// A sequence at the beginning of a text, and how many bytes of it belong to it.
enum Sequence<'a> {
    /// It sets the style: its parameters.
    Style(&'a str, usize),
    Other(usize),
}

/// The longest parameters of a sequence. Anything longer is not a sequence.
const PARAMS_MAX: usize = 64;

fn is_introducer(it: char) -> bool {
    it == '\u{1b}' || ('\u{80}'..='\u{9f}').contains(&it)
}

fn sequence_at<'a>(text: &'a str, string_end: &mut dyn FnMut() -> Option<usize>) -> Sequence<'a> {
    let mut letters = text.chars();
    let first = letters.next().unwrap_or_default();
    // In seven bits an introducer is an escape and a letter, in eight bits one character.
    let (kind, n_intro) = match (first, letters.next()) {
        ('\u{1b}', Some(kind)) if kind.is_ascii() && !kind.is_ascii_control() => (kind, 2),
        ('\u{1b}', _) => return Sequence::Other(1),
        (c1, _) => (char::from_u32(u32::from(c1) - 0x40).unwrap_or_default(), c1.len_utf8()),
    };
    let rest = text.get(n_intro..).unwrap_or_default();
    match kind {
        '[' => control_sequence(rest, n_intro),
        // Titles, links, images and the like. Without an end, only the introducer is dropped.
        ']' | 'P' | 'X' | '^' | '_' => Sequence::Other(string_end().unwrap_or(n_intro)),
        // Character sets: intermediate characters, then a final one.
        ' '..='/' if first == '\u{1b}' => {
            let n_more = rest.bytes().take(PARAMS_MAX).take_while(|it| matches!(it, b' '..=b'/')).count();
            let has_final = rest.as_bytes().get(n_more).is_some_and(|it| matches!(it, b'0'..=b'~'));
            Sequence::Other(n_intro + if has_final { n_more + 1 } else { 0 })
        }
        _ => Sequence::Other(n_intro),
    }
}

/// Parameters, intermediate characters and a final one. Anything else loses only its introducer.
fn control_sequence(rest: &str, n_intro: usize) -> Sequence<'_> {
    let bytes = rest.as_bytes();
    let count = |from: usize, is: fn(u8) -> bool| {
        bytes.iter().skip(from).take(PARAMS_MAX).take_while(|it| is(**it)).count()
    };
    let n_params = count(0, |it| matches!(it, b'0'..=b'?'));
    let n_inner = count(n_params, |it| matches!(it, b' '..=b'/'));
    match bytes.get(n_params + n_inner) {
        Some(b'm') if n_inner == 0 => {
            Sequence::Style(rest.get(..n_params).unwrap_or_default(), n_intro + n_params + 1)
        }
        Some(b'@'..=b'~') => Sequence::Other(n_intro + n_params + n_inner + 1),
        // Cut off at the end of the line.
        None => Sequence::Other(n_intro + n_params + n_inner),
        Some(_) => Sequence::Other(n_intro),
    }
}

/// The style after a sequence with these parameters.
fn styled(mut style: AnsiStyle, params: &str) -> AnsiStyle {
    let mut codes = params.split(';');
    while let Some(code) = codes.next() {
        let mut parts = code.split(':');
        let number = parts.next().unwrap_or_default();
        let number: u16 = if number.is_empty() { 0 } else { number.parse().unwrap_or(u16::MAX) };
        match number {
            0 => style = AnsiStyle::default(),
            1 => style.is_bold = true,
            2 => style.is_dim = true,
            22 => (style.is_bold, style.is_dim) = (false, false),
            30..=37 => style.colour = colour(number - 30),
            90..=97 => style.colour = colour(number - 90),
            39 => style.colour = None,
            38 | 48 => {
                // A colour by number has one more parameter, one by its parts three; with colons they are part of this one.
                let is_inside = code.contains(':');
                let mut next = || if is_inside { parts.next() } else { codes.next() };
                match next() {
                    Some("5") => {
                        let chosen = next().and_then(|it| it.parse::<u16>().ok());
                        if let Some(chosen) = chosen.filter(|it| *it < 16 && number == 38) {
                            style.colour = colour(chosen % 8);
                        }
                    }
                    Some("2") => {
                        let _ = (next(), next(), next());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    style
}

fn colour(number: u16) -> Option<AnsiColour> {
    Some(match number {
        0 => AnsiColour::Grey,
        1 => AnsiColour::Red,
        2 => AnsiColour::Green,
        3 => AnsiColour::Yellow,
        4 => AnsiColour::Blue,
        5 => AnsiColour::Magenta,
        6 => AnsiColour::Cyan,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fresh() -> AnsiState {
        AnsiState { style: AnsiStyle::default(), n_spans_left: 1_000 }
    }

    /// Pieces as `class(text)`.
    fn shown(line: &[u8]) -> String {
        let spans = spans(line, &mut fresh());
        spans.iter().map(|it| format!("{}({})", it.style.classes(), it.text)).collect()
    }

    #[track_caller]
    fn check(line: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(shown(line.as_ref()), expected);
    }

    #[test]
    fn colours_bold_and_dim_become_classes() {
        check("plain", "(plain)");
        check("", "");
        check("\u{1b}[31mred\u{1b}[0m plain", "a-r(red)( plain)");
        check("\u{1b}[1;32mbold green\u{1b}[m.", "a-g a-b(bold green)(.)");
        check("\u{1b}[2mdim\u{1b}[22m not", "a-d(dim)( not)");
        check("\u{1b}[90mgrey\u{1b}[39mtext", "a-d(grey)(text)");
        check("\u{1b}[38;5;4mblue\u{1b}[38;5;200mstill", "a-bl(bluestill)");
        check("\u{1b}[38:5:5mmagenta", "a-m(magenta)");
        // Other colours and backgrounds are not shown, and their numbers are not taken for styles.
        check("\u{1b}[38;2;1;2;3mtrue\u{1b}[48;5;1mback\u{1b}[38:2::1:2:3mcolon", "(truebackcolon)");
        check("\u{1b}[4;7;99999999999mline", "(line)");
        check("\u{1b}[31m\u{1b}[31m\u{1b}[0m\u{1b}[31ma\u{1b}[31mb", "a-r(ab)");
    }

    #[test]
    fn everything_else_is_dropped() {
        check("a\u{1b}[2Jb\u{1b}[10;20Hc\u{1b}[Kd\u{1b}[?25le", "(abcde)");
        check("\u{1b}]0;title\u{7}after", "(after)");
        check("\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\ after", "(link after)");
        check("\u{1b}(Bset\u{1b}7\u{1b}8\u{1b}c.", "(set.)");
        check("\u{1b}Pq#0;2;0\u{1b}\\sixel\u{1b}_app\u{9c}.", "(sixel.)");
        // In eight bits.
        check("\u{9b}31mred\u{9b}0m\u{85}next", "a-r(red)(next)");
        check("\u{9d}0;title\u{9c}after", "(after)");
    }

    #[test]
    fn a_sequence_without_an_end_hides_nothing() {
        check("a\u{1b}", "(a)");
        check("a\u{1b}[", "(a)");
        check("a\u{1b}[31", "(a)");
        check("a\u{1b}]0;all of the rest", "(a0;all of the rest)");
        check("a\u{1b}P all of the rest", "(a all of the rest)");
        check("a\u{1b}[31\u{e9}b", "(a31\u{e9}b)");
        check("a\u{1b}\u{e9}b", "(a\u{e9}b)");
        check("a\u{1b}\u{1b}[31mb", "(a)a-r(b)");
        check("\u{1b}]0;one\u{1b}]0;two\u{7}three", "(three)");
        check(format!("\u{1b}[{}m.", "1;".repeat(100)), &format!("({}m.)", "1;".repeat(100)));
    }

    #[test]
    fn what_is_not_text_is_escaped() {
        check(b"a\x9b31mb\xff", "(a\\x9b31mb\\xff)");
        check(
            "bell\u{7} back\u{8} \u{202e}reversed\u{2066}",
            "(bell\\x07 back\\x08 \\u{202e}reversed\\u{2066})",
        );
        check("tab\tstays\r", "(tab\tstays)");
        check("10%\r20%", "(10%\\r20%)");
        check("<script>alert(1)</script>", "(<script>alert(1)</script>)");
    }

    #[test]
    fn a_style_goes_on_in_the_next_line() {
        let mut state = fresh();
        spans(b"\x1b[31mfirst", &mut state);
        assert_eq!(spans(b"second", &mut state)[0].style.classes(), "a-r");
    }

    #[test]
    fn a_line_of_a_megabyte_is_read_in_one_pass_and_into_few_pieces() {
        let began = std::time::Instant::now();
        for piece in ["\u{1b}]", "\u{1b}[31m.\u{1b}[0m.", "\u{1b}[", "\u{9d}x", "\u{1b}]\u{7}", "a"] {
            let line = piece.repeat((1 << 20) / piece.len());
            assert!(spans(line.as_bytes(), &mut fresh()).len() <= 1_001);
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn no_line_holds_a_control_character(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("\u{1b}".to_owned()), Just("[".to_owned()), Just("]8;;".to_owned()), Just("31m".to_owned()),
                    Just("\u{7}".to_owned()), Just("\\".to_owned()), Just("\u{9b}".to_owned()), Just("\u{9c}".to_owned()),
                    Just("é".to_owned()), "[a-z0-9;:?]{0,6}",
                ],
                0..40,
            )
        ) {
            for span in spans(parts.concat().as_bytes(), &mut fresh()) {
                prop_assert!(!span.text.is_empty());
                prop_assert!(!span.text.contains(|it: char| it.is_control()), "{:?}", span.text);
            }
        }
    }
}

//! Parts of a log as lines: the end first, older parts and new ones by their bytes.
//!
//! A part begins with a line and ends with one, so parts can be joined. While a run writes, its last line may be open: it is
//! shown, and read again with what follows.

use std::io;

use evenbeat_core::ids::RunId;

use super::ansi::{AnsiColour, AnsiSpan, AnsiState, AnsiStyle, spans};
use crate::api::LogBook;
use crate::target::command::{ERROR_LINE, KeptBytes, OWN_LINE};

/// The bytes of a part.
pub(super) const PART_BYTES: u64 = 64_000;

/// What the lines that come with the page may take up there, with their markup. Many short lines are more markup than text.
const PAGE_BYTES: usize = 76_000;

/// The markup of a line, and of a piece of other style.
const LINE_MARKUP: usize = 42;
const STYLE_MARKUP: usize = 20;

/// A reader that is further behind than this goes on with the end of the log.
const BEHIND_MAX: u64 = 256 << 10;

/// In logs with more bytes, lines are not counted.
const COUNTED_MAX: u64 = 16 << 20;

/// Pieces of different style in one part.
const SPANS_MAX: usize = 4_000;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogLine {
    /// Whether it was written to standard error.
    pub(super) is_error: bool,
    /// Whether more may be added to it.
    pub(super) is_open: bool,
    pub(super) spans: Vec<AnsiSpan>,
}

/// Some lines of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogSlice {
    pub(super) kept: KeptBytes,
    /// The byte that the first line begins with.
    pub(super) first: u64,
    /// The number of the first line in the log as it is kept; none if that is not known.
    pub(super) first_no: Option<u64>,
    /// From which byte to go on.
    pub(super) next: u64,
    pub(super) lines: Vec<LogLine>,
}

impl LogSlice {
    /// How many bytes of what is kept these lines are, if they are its last ones.
    pub(super) fn n_bytes(&self) -> u64 {
        let KeptBytes { head_end, tail_start, end, .. } = self.kept;
        let cut = if self.first <= head_end { tail_start.saturating_sub(head_end) } else { 0 };
        end.saturating_sub(self.first).saturating_sub(cut)
    }

    /// The number of the line to go on with.
    pub(super) fn next_no(&self) -> Option<u64> {
        let n_whole = self.lines.iter().filter(|line| !line.is_open).count();
        self.first_no.map(|no| no + n_whole as u64)
    }
}

/// The end of a log. None if there is no log of the run here.
pub(super) fn tail(logs: &dyn LogBook, run: RunId) -> io::Result<Option<LogSlice>> {
    let Some(kept) = logs.kept(run) else { return Ok(None) };
    let mut lines = part(logs, run, kept, kept.end, PAGE_BYTES)?;
    if kept.head_end + kept.end.saturating_sub(kept.tail_start) <= COUNTED_MAX {
        lines.first_no = Some(1 + n_lines_before(logs, run, kept, lines.first)?);
    }
    Ok(Some(lines))
}

/// The part before a byte, whose line has this number. None if there is no log of the run here.
pub(super) fn before(
    logs: &dyn LogBook,
    run: RunId,
    byte: u64,
    no: Option<u64>,
) -> io::Result<Option<LogSlice>> {
    let Some(kept) = logs.kept(run) else { return Ok(None) };
    let mut lines = part(logs, run, kept, byte.min(kept.end), usize::MAX)?;
    // What ends here has been read to its end, also where a line was too long for one part.
    for line in &mut lines.lines {
        line.is_open = false;
    }
    lines.first_no = no.and_then(|no| no.checked_sub(lines.lines.len() as u64)).filter(|no| 0 < *no);
    Ok(Some(lines))
}

/// What came after a byte, whose line has this number; and whether that goes on from there, or is the end of a log that has
/// grown by too much since. None if there is no log of the run here.
pub(super) fn after(
    logs: &dyn LogBook,
    run: RunId,
    byte: u64,
    no: Option<u64>,
) -> io::Result<Option<(LogSlice, bool)>> {
    let Some(kept) = logs.kept(run) else { return Ok(None) };
    if BEHIND_MAX < kept.end.saturating_sub(byte) {
        return Ok(tail(logs, run)?.map(|lines| (lines, false)));
    }
    let from = byte.min(kept.end);
    let bytes = LogBytes::read(logs, run, from, kept.end)?;
    let lines = lines_of(&bytes, 0, kept);
    Ok(Some((LogSlice { first_no: no, ..lines }, true)))
}

/// The lines that end before a byte, as many as a part and the page have room for.
fn part(logs: &dyn LogBook, run: RunId, kept: KeptBytes, to: u64, page_bytes: usize) -> io::Result<LogSlice> {
    let mut from = to.saturating_sub(PART_BYTES);
    if kept.head_end <= from && from <= kept.tail_start && kept.head_end < kept.tail_start {
        // The part reaches over what was left out, with a line that says so.
        from = kept.head_end.saturating_sub(PART_BYTES.saturating_sub(to.saturating_sub(kept.tail_start)));
    }
    if from == 0 {
        let bytes = LogBytes::read(logs, run, 0, to)?;
        return Ok(lines_of(&bytes, fitted(&bytes.bytes, 0, page_bytes), kept));
    }
    // The byte before tells whether a line begins here.
    let bytes = LogBytes::read(logs, run, from - 1, to)?;
    let begin = match bytes.bytes.iter().position(|it| *it == b'\n') {
        Some(at) if at + 1 < bytes.bytes.len() => at + 1,
        // One line is longer than the part: it is shown from a character on.
        _ => 1 + bytes.bytes.iter().skip(1).take_while(|it| (**it & 0xc0) == 0x80).count(),
    };
    Ok(lines_of(&bytes, fitted(&bytes.bytes, begin, page_bytes), kept))
}

/// Where the last lines begin that the page has room for: one at least.
fn fitted(bytes: &[u8], begin: usize, page_bytes: usize) -> usize {
    let (mut at, mut n_bytes) = (bytes.len(), 0);
    for line in bytes.get(begin..).unwrap_or_default().split_inclusive(|it| *it == b'\n').rev() {
        let markup = line.iter().map(|it| match it {
            0x1b => STYLE_MARKUP,
            b'<' | b'>' | b'&' | b'"' => 5,
            _ => 1,
        });
        n_bytes += LINE_MARKUP + markup.sum::<usize>();
        if page_bytes < n_bytes && at < bytes.len() {
            break;
        }
        at -= line.len();
    }
    at
}

/// How many lines there are before a byte.
fn n_lines_before(logs: &dyn LogBook, run: RunId, kept: KeptBytes, byte: u64) -> io::Result<u64> {
    let (mut at, mut n_lines) = (0, 0);
    while at < byte {
        let most = usize::try_from(byte - at).unwrap_or(READ_BYTES).min(READ_BYTES);
        let Some(read) = logs.read(run, at, most)? else { break };
        if read.next <= at {
            break;
        }
        n_lines += read.bytes.iter().map(|it| u64::from(*it == b'\n')).sum::<u64>();
        at = read.next;
    }
    // A part that begins with the line about what was left out: that line ends the one before.
    let is_at_cut = byte == kept.head_end && kept.head_end < kept.tail_start;
    Ok(n_lines + u64::from(is_at_cut))
}

/// Bytes of a log with their places in the whole output.
#[derive(Debug)]
struct LogBytes {
    bytes: Vec<u8>,
    /// Where pieces begin: in the bytes, and in the output. All but the line about what was left out are as long as what
    /// they stand for.
    pieces: Vec<(usize, u64)>,
    next: u64,
}

impl LogBytes {
    fn read(logs: &dyn LogBook, run: RunId, from: u64, to: u64) -> io::Result<LogBytes> {
        let (mut bytes, mut pieces, mut at) = (Vec::new(), Vec::new(), from);
        while at < to {
            let most = usize::try_from(to - at).unwrap_or(READ_BYTES).min(READ_BYTES);
            let Some(read) = logs.read(run, at, most)? else { break };
            if read.bytes.is_empty() {
                break;
            }
            pieces.push((bytes.len(), at));
            bytes.extend_from_slice(&read.bytes);
            at = read.next;
        }
        Ok(LogBytes { bytes, pieces, next: at })
    }

    /// Which byte of the output stands here.
    fn place(&self, at: usize) -> u64 {
        let idx = self.pieces.partition_point(|(begin, _)| *begin <= at);
        let Some((begin, place)) = idx.checked_sub(1).and_then(|idx| self.pieces.get(idx)) else {
            return self.next;
        };
        let next = self.pieces.get(idx).map_or(self.next, |(_, place)| *place);
        let end = self.pieces.get(idx).map_or(self.bytes.len(), |(begin, _)| *begin);
        let is_copy = next - place == (end - begin) as u64;
        if at == self.bytes.len() {
            self.next
        } else if is_copy {
            place + (at - begin) as u64
        } else {
            *place
        }
    }
}

fn lines_of(bytes: &LogBytes, begin: usize, kept: KeptBytes) -> LogSlice {
    let own = bytes.bytes.get(begin..).unwrap_or_default();
    let is_whole = own.last().is_none_or(|it| *it == b'\n') || (kept.is_over && kept.end <= bytes.next);
    let plain = AnsiState { style: AnsiStyle::default(), n_spans_left: SPANS_MAX };
    let (mut out, mut err) = (plain, plain);
    let mut lines: Vec<LogLine> = Vec::new();
    let mut open_at = begin;
    for text in own.split_inclusive(|it| *it == b'\n') {
        if text.last() == Some(&b'\n') || is_whole {
            open_at += text.len();
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let marked = text.strip_prefix(ERROR_LINE.as_bytes());
        let state = if marked.is_some() { &mut err } else { &mut out };
        let spans = match text.strip_prefix(OWN_LINE.as_bytes()) {
            // Ours, or the run pretends to be us; it may not choose the colour.
            Some(rest) => own_line(rest),
            None => spans(marked.unwrap_or(text), state),
        };
        // Both streams share what a part may have.
        let n_left = out.n_spans_left.min(err.n_spans_left);
        (out.n_spans_left, err.n_spans_left) = (n_left, n_left);
        lines.push(LogLine { is_error: marked.is_some(), is_open: false, spans });
    }
    if !is_whole && let Some(last) = lines.last_mut() {
        last.is_open = true;
    }
    // A line that no part has room for is not waited for.
    let is_too_long = PART_BYTES < (bytes.bytes.len() - open_at) as u64;
    if is_too_long && let Some(last) = lines.last_mut() {
        last.is_open = false;
        open_at = bytes.bytes.len();
    }
    LogSlice { kept, first: bytes.place(begin), first_no: None, next: bytes.place(open_at), lines }
}

fn own_line(rest: &[u8]) -> Vec<AnsiSpan> {
    let magenta = AnsiStyle { colour: Some(AnsiColour::Magenta), ..AnsiStyle::default() };
    let mut plain = AnsiState { style: AnsiStyle::default(), n_spans_left: 0 };
    let mut shown = vec![AnsiSpan { style: magenta, text: OWN_LINE.to_owned() }];
    shown.extend(spans(rest, &mut plain));
    shown
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use evenbeat_core::time::Duration;

    use super::*;
    use crate::api::LogPart;

    const RUN: RunId = RunId(1);

    /// A log whose middle may be left out.
    #[derive(Debug, Default)]
    struct OneLog(Mutex<(Vec<u8>, KeptBytes)>);

    impl OneLog {
        fn new(text: &str) -> OneLog {
            let end = text.len() as u64;
            OneLog(Mutex::new((
                text.into(),
                KeptBytes { head_end: end, tail_start: end, end, is_over: true },
            )))
        }

        fn without(text: &str, head_end: u64, tail_start: u64) -> OneLog {
            let log = OneLog::new(text);
            let end = text.len() as u64;
            log.0.lock().unwrap().1 = KeptBytes { head_end, tail_start, end, is_over: true };
            log
        }

        fn open(text: &str) -> OneLog {
            let log = OneLog::new(text);
            log.0.lock().unwrap().1.is_over = false;
            log
        }
    }

    impl LogBook for OneLog {
        fn read(&self, _run: RunId, from: u64, most: usize) -> io::Result<Option<LogPart>> {
            let (text, kept) = &*self.0.lock().unwrap();
            if kept.head_end <= from && from < kept.tail_start {
                let note = format!("\n[evenbeat] {} bytes left out\n", kept.tail_start - from);
                return Ok(Some(LogPart { bytes: note.into(), next: kept.tail_start, is_over: false }));
            }
            let end = if from < kept.head_end { kept.head_end } else { kept.end };
            let rest = &text[usize::try_from(from).unwrap()..usize::try_from(end).unwrap()];
            let bytes = rest[..rest.len().min(most)].to_vec();
            Ok(Some(LogPart { next: from + bytes.len() as u64, bytes, is_over: false }))
        }

        fn kept(&self, _run: RunId) -> Option<KeptBytes> {
            Some(self.0.lock().unwrap().1)
        }

        fn kept_for(&self) -> Option<Duration> {
            None
        }
    }

    fn text(lines: &LogSlice) -> Vec<String> {
        let line = |line: &LogLine| {
            let text: String = line.spans.iter().map(|it| it.text.as_str()).collect();
            format!("{}{text}{}", if line.is_error { "E " } else { "" }, if line.is_open { "…" } else { "" })
        };
        lines.lines.iter().map(line).collect()
    }

    #[test]
    fn a_short_log_is_shown_whole() {
        let lines = tail(&OneLog::new("one\n[stderr] two\n[evenbeat] three\nfour"), RUN).unwrap().unwrap();
        assert_eq!(text(&lines), ["one", "E two", "[evenbeat] three", "four"]);
        assert_eq!((lines.first, lines.first_no, lines.next, lines.next_no()), (0, Some(1), 38, Some(5)));
        assert_eq!(text(&tail(&OneLog::new(""), RUN).unwrap().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn the_last_line_stays_open_while_the_run_writes() {
        let log = OneLog::open("one\n[stderr] two");
        let lines = tail(&log, RUN).unwrap().unwrap();
        assert_eq!(text(&lines), ["one", "E two…"]);
        assert_eq!((lines.next, lines.next_no()), (4, Some(2)));
        let more = OneLog::open("one\n[stderr] two and more\nthree\n");
        let (lines, goes_on) = after(&more, RUN, lines.next, Some(2)).unwrap().unwrap();
        assert_eq!((text(&lines), goes_on), (vec!["E two and more".to_owned(), "three".to_owned()], true));
        assert_eq!((lines.next, lines.next_no()), (32, Some(4)));
        let (lines, _) = after(&more, RUN, 32, Some(4)).unwrap().unwrap();
        assert_eq!((text(&lines).len(), lines.next), (0, 32));
    }

    #[test]
    fn parts_of_a_long_log_join_without_a_gap() {
        let whole: String = (1..=40_000).map(|no| format!("line {no}\n")).collect();
        let log = OneLog::new(&whole);
        let mut lines = tail(&log, RUN).unwrap().unwrap();
        let mut all = text(&lines);
        while 0 < lines.first {
            assert!(lines.kept.end - lines.first <= (all.len() as u64) * 12);
            assert_eq!(all[0], format!("line {}", lines.first_no.unwrap()));
            lines = before(&log, RUN, lines.first, lines.first_no).unwrap().unwrap();
            all = [text(&lines), all].concat();
        }
        assert_eq!((all.len(), all[0].as_str(), lines.first_no), (40_000, "line 1", Some(1)));
        assert!(all.iter().enumerate().all(|(idx, line)| *line == format!("line {}", idx + 1)));
    }

    #[test]
    fn what_was_left_out_is_said_where_it_was() {
        let whole: String = (1..=100_000).map(|no| format!("line {no:>6}\n")).collect();
        let log = OneLog::without(&whole, 1_000, whole.len() as u64 - 10_000);
        let mut lines = tail(&log, RUN).unwrap().unwrap();
        let all = text(&lines);
        let note = format!("[evenbeat] {} bytes left out", whole.len() - 11_000);
        assert_eq!(all.iter().filter(|line| **line == note).count(), 1, "{:?}", &all[..3]);
        assert_eq!(all.last().unwrap(), "line 100000");
        // Another whose end alone fills a part.
        let log = OneLog::without(&whole, 1_000, whole.len() as u64 - 100_000);
        lines = tail(&log, RUN).unwrap().unwrap();
        let mut all = text(&lines);
        while 0 < lines.first {
            lines = before(&log, RUN, lines.first, lines.first_no).unwrap().unwrap();
            all = [text(&lines), all].concat();
        }
        assert_eq!(all.iter().filter(|line| line.contains("left out")).count(), 1);
        assert_eq!((all[0].as_str(), lines.first_no), ("line      1", Some(1)));
    }

    #[test]
    fn a_line_longer_than_a_part_is_shown_in_parts() {
        let log = OneLog::new(&"é".repeat(100_000));
        let lines = tail(&log, RUN).unwrap().unwrap();
        assert_eq!(lines.lines.len(), 1);
        let shown = text(&lines).concat();
        assert!(shown.chars().all(|it| it == 'é') && shown.len() as u64 <= PART_BYTES, "{}", shown.len());
        let (rest, goes_on) = after(&OneLog::open(&"x".repeat(200_000)), RUN, 0, Some(1)).unwrap().unwrap();
        assert_eq!((rest.next, rest.lines[0].is_open, goes_on), (200_000, false, true));
    }

    #[test]
    fn many_short_lines_do_not_swell_the_page() {
        let lines = tail(&OneLog::new(&"x\n".repeat(60_000)), RUN).unwrap().unwrap();
        assert_eq!((lines.lines.len(), lines.next_no()), (PAGE_BYTES / (LINE_MARKUP + 2), Some(60_001)));
        assert_eq!(lines.n_bytes(), lines.lines.len() as u64 * 2);
    }

    #[test]
    fn a_reader_who_is_far_behind_goes_on_with_the_end() {
        let whole: String = (1..=100_000).map(|no| format!("line {no}\n")).collect();
        let (lines, goes_on) = after(&OneLog::open(&whole), RUN, 10, Some(2)).unwrap().unwrap();
        assert!(!goes_on);
        assert_eq!(text(&lines).last().unwrap(), "line 100000");
        assert_eq!(lines.next_no(), Some(100_001));
    }
}

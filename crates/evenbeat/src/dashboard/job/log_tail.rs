//! The last lines of a log, however long it is.

use std::io;

use evenbeat_core::ids::RunId;

use crate::api::LogBook;
use crate::printable;

/// Most bytes of a log that are shown.
const TAIL_BYTES: u64 = 3_000;

/// Most lines of a log that are shown.
const TAIL_LINES: usize = 12;

/// The last lines of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogTail {
    pub(super) lines: Vec<String>,
    /// Whether the log begins with these lines.
    pub(super) is_all: bool,
}

/// The last lines of the log of a run; none if it is not here or empty.
pub(super) fn log_tail(logs: &dyn LogBook, run: RunId) -> io::Result<Option<LogTail>> {
    let Some(beyond) = logs.kept(run).map(|kept| kept.end).filter(|end| 0 < *end) else { return Ok(None) };
    let from = beyond.saturating_sub(TAIL_BYTES);
    let (mut bytes, mut at) = (Vec::new(), from);
    // A log in several parts is read part by part.
    while at < beyond && (bytes.len() as u64) < 2 * TAIL_BYTES {
        let most = usize::try_from(beyond - at).unwrap_or(usize::MAX);
        let Some(part) = logs.read(run, at, most)?.filter(|part| !part.bytes.is_empty()) else { break };
        bytes.extend_from_slice(&part.bytes);
        at = part.next;
    }
    let (text, _) = printable::output(&bytes, true);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if 0 < from && 1 < lines.len() {
        // The first of them is the end of a line.
        lines.remove(0);
    }
    let n_left_out = lines.len().saturating_sub(TAIL_LINES);
    lines.drain(..n_left_out);
    Ok(Some(LogTail { lines, is_all: from == 0 && n_left_out == 0 }))
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;

    use super::*;
    use crate::api::LogPart;
    use crate::target::command::KeptBytes;

    #[derive(Debug)]
    struct WholeLog(Vec<u8>);

    impl LogBook for WholeLog {
        fn read(&self, _: RunId, from: u64, most: usize) -> io::Result<Option<LogPart>> {
            let from = usize::try_from(from).unwrap().min(self.0.len());
            let bytes: Vec<u8> = self.0[from..].iter().take(most).copied().collect();
            let next = (from + bytes.len()) as u64;
            Ok(Some(LogPart { bytes, next, is_over: true }))
        }

        fn kept(&self, _: RunId) -> Option<KeptBytes> {
            Some(KeptBytes { end: self.0.len() as u64, ..KeptBytes::default() })
        }

        fn kept_for(&self) -> Option<Duration> {
            None
        }
    }

    fn tail(text: impl AsRef<[u8]>) -> Option<LogTail> {
        log_tail(&WholeLog(text.as_ref().to_vec()), RunId(1)).unwrap()
    }

    #[test]
    fn a_short_log_is_shown_whole() {
        assert_eq!(tail(""), None);
        assert_eq!(tail("one\n"), Some(LogTail { lines: vec!["one".to_owned()], is_all: true }));
        assert_eq!(tail("one\ntwo").unwrap().lines, ["one", "two"]);
    }

    #[test]
    fn of_a_long_log_the_last_lines_are_shown() {
        let text: String = (0..100_000).map(|no| format!("line {no}\n")).collect();
        let tail = tail(text).unwrap();
        assert_eq!((tail.lines.len(), tail.is_all), (TAIL_LINES, false));
        assert_eq!(tail.lines.last().map(String::as_str), Some("line 99999"));
        assert_eq!(tail.lines.first().map(String::as_str), Some("line 99988"));
    }

    #[test]
    fn what_a_run_wrote_cannot_move_a_cursor_or_fill_a_page() {
        let shown = tail(b"\x1b[2Jred\xff\n").unwrap().lines;
        assert_eq!(shown, ["\\x1b[2Jred\\xff"]);
        let long = tail("x".repeat(1_000_000)).unwrap();
        assert!(long.lines.iter().map(String::len).sum::<usize>() <= 3_000);
    }
}

//! The protocol between a scheduler and a shim: one message per line, with a limit on its length. Unknown messages are
//! ignored.

use std::fmt;

use evenbeat_core::ids::Fence;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{BootTime, Duration};

use super::run_result::RunResult;

/// Longest line to a shim, in bytes.
pub const TO_SHIM_MAX: usize = 4 << 10;

/// Longest line from a shim, in bytes. The last one carries the result of the run.
pub const FROM_SHIM_MAX: usize = 1 << 20;

/// A message to a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToShim {
    /// Extends the lease of the run with this fence.
    Extend {
        /// On the machine's boot clock.
        until: BootTime,
        fence: Fence,
    },
    /// Ends the run in good order.
    Stop {
        /// The outcome that the run will have.
        outcome: Outcome,
        /// How long it may take before it is killed.
        grace: Duration,
    },
    /// The run no longer belongs to this node: kill it at once.
    Revoke,
    /// The end of the run is on record.
    Noted,
    /// Asks for a sign of life.
    Ping,
}

/// A message from a shim.
#[derive(Clone, Debug, PartialEq)]
pub enum FromShim {
    /// The run has executed since then.
    Started(BootTime),
    /// The run will never execute, for this reason.
    NotStarted(String),
    /// Nothing of it has executed since then.
    Frozen(BootTime),
    /// It has continued since then.
    Thawed(BootTime),
    /// It was killed, but some process of it is still alive.
    Unkillable,
    /// Another scheduler has connected, so this connection will not be read again.
    Replaced,
    /// It is over.
    Ended(Box<RunResult>),
    /// The answer to a ping.
    Pong,
}

impl ToShim {
    /// Parses one line. `None` if it is not a known message.
    pub fn read(line: &str) -> Option<ToShim> {
        let mut parts = line.split(' ');
        let message = match (parts.next()?, parts.next(), parts.next()) {
            ("extend", Some(until), Some(fence)) => {
                ToShim::Extend { until: read_instant(until)?, fence: Fence(fence.parse().ok()?) }
            }
            ("stop", Some(outcome), Some(grace)) => ToShim::Stop {
                outcome: Outcome::named(outcome)?,
                grace: Duration::from_millis(i64::from(grace.parse::<u32>().ok()?)),
            },
            ("revoke", None, None) => ToShim::Revoke,
            ("noted", None, None) => ToShim::Noted,
            ("ping", None, None) => ToShim::Ping,
            _ => return None,
        };
        parts.next().is_none().then_some(message)
    }
}

impl FromShim {
    /// Parses one line. `None` if it is not a known message.
    pub fn read(line: &str) -> Option<FromShim> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "started" => read_instant(rest).map(FromShim::Started),
            "not_started" => Some(FromShim::NotStarted(rest.to_owned())),
            "frozen" => read_instant(rest).map(FromShim::Frozen),
            "thawed" => read_instant(rest).map(FromShim::Thawed),
            "unkillable" if rest.is_empty() => Some(FromShim::Unkillable),
            "replaced" if rest.is_empty() => Some(FromShim::Replaced),
            "pong" if rest.is_empty() => Some(FromShim::Pong),
            "ended" => RunResult::from_text(rest.as_bytes()).ok().map(|it| FromShim::Ended(Box::new(it))),
            _ => None,
        }
    }
}

fn read_instant(text: &str) -> Option<BootTime> {
    text.parse().ok().map(BootTime::from_millis)
}

impl fmt::Display for ToShim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToShim::Extend { until, fence } => write!(f, "extend {} {}", until.as_millis(), fence.0),
            ToShim::Stop { outcome, grace } => {
                let grace = u32::try_from(grace.as_millis().max(0)).unwrap_or(u32::MAX);
                write!(f, "stop {outcome} {grace}")
            }
            ToShim::Revoke => f.write_str("revoke"),
            ToShim::Noted => f.write_str("noted"),
            ToShim::Ping => f.write_str("ping"),
        }
    }
}

impl fmt::Display for FromShim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FromShim::Started(at) => write!(f, "started {}", at.as_millis()),
            // A reason may quote an error of the system, but must stay one line.
            FromShim::NotStarted(why) => write!(f, "not_started {}", why.replace(['\n', '\r'], " ")),
            FromShim::Frozen(at) => write!(f, "frozen {}", at.as_millis()),
            FromShim::Thawed(at) => write!(f, "thawed {}", at.as_millis()),
            FromShim::Unkillable => f.write_str("unkillable"),
            FromShim::Replaced => f.write_str("replaced"),
            FromShim::Ended(result) => write!(f, "ended {}", result.to_text()),
            FromShim::Pong => f.write_str("pong"),
        }
    }
}

/// Splits incoming bytes into lines, with a limit on their length.
#[derive(Debug)]
pub struct LineReader {
    bytes_max: usize,
    partial: Vec<u8>,
    /// The current line is too long already, so its bytes are dropped.
    is_skipping: bool,
}

/// A complete line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolLine {
    /// Its text without the line break. Bytes that are not UTF-8 are replaced.
    Text(String),
    /// It was longer than the limit and was dropped.
    TooLong,
}

impl LineReader {
    /// A reader of lines with at most this many bytes.
    pub fn new(bytes_max: usize) -> LineReader {
        LineReader { bytes_max, partial: Vec::new(), is_skipping: false }
    }

    /// Takes more bytes and returns the lines that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<ProtocolLine> {
        let mut complete = Vec::new();
        let mut parts = bytes.split(|it| *it == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.is_skipping || self.bytes_max < self.partial.len() + part.len() {
                self.is_skipping = true;
                self.partial.clear();
            } else {
                self.partial.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.partial);
                let is_too_long = std::mem::take(&mut self.is_skipping);
                complete.push(if is_too_long {
                    ProtocolLine::TooLong
                } else {
                    ProtocolLine::Text(String::from_utf8_lossy(&line).into_owned())
                });
            }
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::target::command::run_result::tests::sample;

    fn outcomes() -> impl Strategy<Value = Outcome> {
        prop::sample::select(Outcome::ALL.to_vec())
    }

    fn to_shim() -> impl Strategy<Value = ToShim> {
        prop_oneof![
            (any::<i64>(), any::<u64>()).prop_map(|(until, fence)| ToShim::Extend {
                until: BootTime::from_millis(until),
                fence: Fence(fence)
            }),
            (outcomes(), any::<u32>()).prop_map(|(outcome, grace)| ToShim::Stop {
                outcome,
                grace: Duration::from_millis(i64::from(grace))
            }),
            Just(ToShim::Revoke),
            Just(ToShim::Noted),
            Just(ToShim::Ping),
        ]
    }

    fn from_shim() -> impl Strategy<Value = FromShim> {
        let at = any::<i64>().prop_map(BootTime::from_millis);
        prop_oneof![
            at.clone().prop_map(FromShim::Started),
            "[^\r\n]{0,40}".prop_map(FromShim::NotStarted),
            at.clone().prop_map(FromShim::Frozen),
            at.prop_map(FromShim::Thawed),
            Just(FromShim::Unkillable),
            Just(FromShim::Replaced),
            Just(FromShim::Pong),
            Just(FromShim::Ended(Box::new(sample()))),
        ]
    }

    proptest! {
        #[test]
        fn a_word_is_heard_as_it_was_said(to in to_shim(), from in from_shim()) {
            prop_assert_eq!(ToShim::read(&to.to_string()), Some(to));
            prop_assert_eq!(FromShim::read(&from.to_string()), Some(from));
        }

        #[test]
        fn no_line_is_too_strange(line in ".{0,200}") {
            if let Some(word) = ToShim::read(&line) {
                prop_assert_eq!(ToShim::read(&word.to_string()), Some(word));
            }
            if let Some(word) = FromShim::read(&line) {
                prop_assert_eq!(FromShim::read(&word.to_string()), Some(word));
            }
        }

        #[test]
        fn half_a_word_is_none_or_another(to in to_shim(), cut in any::<prop::sample::Index>(), mess in ".{0,9}") {
            let text = to.to_string();
            let text = format!("{}{mess}", &text[..cut.index(text.len() + 1)]);
            if let Some(message) = ToShim::read(&text) {
                prop_assert_eq!(ToShim::read(&message.to_string()), Some(message));
            }
        }

        #[test]
        fn lines_are_the_same_however_their_bytes_come(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300),
            cuts in prop::collection::vec(0_usize..300, 0..8),
        ) {
            let whole = LineReader::new(16).push(&bytes);
            let mut lines = LineReader::new(16);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().map(|it| it.min(bytes.len())).chain([bytes.len()]) {
                pieces.extend(lines.push(&bytes[from..cut]));
                from = cut;
            }
            prop_assert_eq!(pieces, whole);
            prop_assert!(lines.partial.len() <= 16);
        }
    }

    #[track_caller]
    fn check(line: &str, expected: Option<ToShim>) {
        assert_eq!(ToShim::read(line), expected, "{line}");
    }

    #[test]
    fn messages_have_one_spelling() {
        check("revoke", Some(ToShim::Revoke));
        check("revoke ", None);
        check(" revoke", None);
        check("Revoke", None);
        check("extend 5 7", Some(ToShim::Extend { until: BootTime::from_millis(5), fence: Fence(7) }));
        check("extend 5", None);
        check("extend 5 7 9", None);
        check("extend 5 -7", None);
        check("extend 99999999999999999999 7", None);
        check("stop nonsense 5", None);
        check("stop failed -5", None);
        check("", None);
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_other_with_it() {
        let mut lines = LineReader::new(4);
        assert_eq!(
            lines.push(b"abcd\nabcde\nab\n"),
            [
                ProtocolLine::Text("abcd".to_owned()),
                ProtocolLine::TooLong,
                ProtocolLine::Text("ab".to_owned())
            ]
        );
        assert_eq!(lines.push(b"\xff\n"), [ProtocolLine::Text("\u{fffd}".to_owned())]);
    }
}

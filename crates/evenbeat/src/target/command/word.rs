//! What a scheduler and a shim say to each other: lines of text, bounded. What is none of these words is ignored.

use std::fmt;

use evenbeat_core::ids::Fence;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{BootTime, Duration};

use super::last_word::LastWord;

/// The longest line to a shim, in bytes.
pub const TO_SHIM_MAX: usize = 4 << 10;

/// The longest line from a shim, in bytes: its last word carries a result.
pub const FROM_SHIM_MAX: usize = 1 << 20;

/// What a scheduler says to a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToShim {
    /// Execute until then, if you are the run with that fence.
    Extend {
        /// On the machine's boot clock.
        until: BootTime,
        /// The lease.
        fence: Fence,
    },
    /// End in good order.
    Stop {
        /// The outcome that the run will have.
        outcome: Outcome,
        /// How long it may take before it is killed.
        grace: Duration,
    },
    /// The run is not ours any more: kill it at once.
    Revoke,
    /// Your end is on record.
    Noted,
    /// Say that you are there.
    Ping,
}

/// What a shim says to its scheduler.
#[derive(Clone, Debug, PartialEq)]
pub enum FromShim {
    /// The run executes since then.
    Started(BootTime),
    /// It never will, for this reason.
    NotStarted(String),
    /// Nothing of it executes since then.
    Frozen(BootTime),
    /// It goes on since then.
    Thawed(BootTime),
    /// It was killed, and is still there.
    Unkillable,
    /// Another scheduler has connected, and you are not listened to any more.
    Replaced,
    /// It is over.
    Ended(Box<LastWord>),
    /// The answer to a ping.
    Pong,
}

impl ToShim {
    /// The word that a line says; none if it is none.
    pub fn read(line: &str) -> Option<ToShim> {
        let mut parts = line.split(' ');
        let word = match (parts.next()?, parts.next(), parts.next()) {
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
        parts.next().is_none().then_some(word)
    }
}

impl FromShim {
    /// The word that a line says; none if it is none.
    pub fn read(line: &str) -> Option<FromShim> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "started" => read_instant(rest).map(FromShim::Started),
            "not_started" => Some(FromShim::NotStarted(rest.to_owned())),
            "frozen" => read_instant(rest).map(FromShim::Frozen),
            "thawed" => read_instant(rest).map(FromShim::Thawed),
            "unkillable" if rest.is_empty() => Some(FromShim::Unkillable),
            "replaced" if rest.is_empty() => Some(FromShim::Replaced),
            "pong" if rest.is_empty() => Some(FromShim::Pong),
            "ended" => LastWord::from_text(rest.as_bytes()).ok().map(|it| FromShim::Ended(Box::new(it))),
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
            // A reason may tell what the system said; a line it is all the same.
            FromShim::NotStarted(why) => write!(f, "not_started {}", why.replace(['\n', '\r'], " ")),
            FromShim::Frozen(at) => write!(f, "frozen {}", at.as_millis()),
            FromShim::Thawed(at) => write!(f, "thawed {}", at.as_millis()),
            FromShim::Unkillable => f.write_str("unkillable"),
            FromShim::Replaced => f.write_str("replaced"),
            FromShim::Ended(word) => write!(f, "ended {}", word.to_text()),
            FromShim::Pong => f.write_str("pong"),
        }
    }
}

/// Bytes as they come, cut into lines that are not longer than a bound.
#[derive(Debug)]
pub struct Lines {
    bytes_max: usize,
    held: Vec<u8>,
    /// The line that is coming is too long already, and its bytes are dropped.
    is_skipping: bool,
}

/// A line that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Its text, without its end. Bytes that are no text are shown as such.
    Text(String),
    /// It was longer than the bound, and is gone.
    TooLong,
}

impl Lines {
    /// Lines of so many bytes at most.
    pub fn new(bytes_max: usize) -> Lines {
        Lines { bytes_max, held: Vec::new(), is_skipping: false }
    }

    /// Takes more bytes, and gives the lines that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut complete = Vec::new();
        let mut parts = bytes.split(|it| *it == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.is_skipping || self.bytes_max < self.held.len() + part.len() {
                self.is_skipping = true;
                self.held.clear();
            } else {
                self.held.extend_from_slice(part);
            }
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.held);
                let is_too_long = std::mem::take(&mut self.is_skipping);
                complete.push(if is_too_long {
                    Line::TooLong
                } else {
                    Line::Text(String::from_utf8_lossy(&line).into_owned())
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
    use crate::target::command::last_word::tests::sample;

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
            if let Some(word) = ToShim::read(&text) {
                prop_assert_eq!(ToShim::read(&word.to_string()), Some(word));
            }
        }

        #[test]
        fn lines_are_the_same_however_their_bytes_come(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300),
            cuts in prop::collection::vec(0_usize..300, 0..8),
        ) {
            let whole = Lines::new(16).push(&bytes);
            let mut lines = Lines::new(16);
            let mut cuts = cuts;
            cuts.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().map(|it| it.min(bytes.len())).chain([bytes.len()]) {
                pieces.extend(lines.push(&bytes[from..cut]));
                from = cut;
            }
            prop_assert_eq!(pieces, whole);
            prop_assert!(lines.held.len() <= 16);
        }
    }

    #[track_caller]
    fn check(line: &str, expected: Option<ToShim>) {
        assert_eq!(ToShim::read(line), expected, "{line}");
    }

    #[test]
    fn words_have_one_spelling() {
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
        let mut lines = Lines::new(4);
        assert_eq!(
            lines.push(b"abcd\nabcde\nab\n"),
            [Line::Text("abcd".to_owned()), Line::TooLong, Line::Text("ab".to_owned())]
        );
        assert_eq!(lines.push(b"\xff\n"), [Line::Text("\u{fffd}".to_owned())]);
    }
}

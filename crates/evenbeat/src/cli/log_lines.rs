//! The output of a run as JSON: one document per line.

use std::io::{self, Write};

use serde_json::json;

/// Splits output that arrives in parts into lines.
#[derive(Debug, Default)]
pub(super) struct LogLines {
    n_lines: u64,
    /// The start of a line whose end has not arrived yet.
    rest: Vec<u8>,
}

impl LogLines {
    /// Writes the lines that these bytes complete.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
        for part in bytes.split_inclusive(|it| *it == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.write(out)?;
            }
        }
        Ok(())
    }

    /// Writes a last line without a line break.
    pub(super) fn finish(mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.rest.is_empty() { Ok(()) } else { self.write(out) }
    }

    fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.n_lines += 1;
        let line = std::mem::take(&mut self.rest);
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line));
        writeln!(out, "{}", json!({ "line": self.n_lines, "text": text }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: &[&[u8]], expected: &str) {
        let (mut lines, mut out) = (LogLines::default(), Vec::new());
        for part in parts {
            lines.push(part, &mut out).unwrap();
        }
        lines.finish(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_line_is_one_document_however_the_output_comes() {
        let two = "{\"line\":1,\"text\":\"one €\"}\n{\"line\":2,\"text\":\"two\"}\n";
        check(&["one €\ntwo\n".as_bytes()], two);
        check(&["one €\ntwo".as_bytes()], two);
        // Split in the middle of a character.
        check(&[b"one \xe2", b"\x82\xac\n", b"t", b"wo"], two);
        check(&[], "");
        check(&[b"\n"], "{\"line\":1,\"text\":\"\"}\n");
        check(&[b"\x1b[0m \xff\n"], "{\"line\":1,\"text\":\"\\u001b[0m \u{fffd}\"}\n");
    }
}

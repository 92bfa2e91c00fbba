//! The output of a run on the disk: its beginning and its end, each up to half of the limit.
//!
//! The beginning is one file. What follows goes to segments of equal size, numbered from 0, of which the latest two are
//! kept; the first line of each has its number. So sizes and numbers say how much was left out in between.

mod read;
mod write;

pub use read::{KeptBytes, read_log};
pub(super) use write::{LogWriter, OutputStream};

/// The prefix of our own lines.
pub const OWN_LINE: &str = "[evenbeat] ";

/// The prefix of lines that a run wrote to standard error.
pub const ERROR_LINE: &str = "[stderr] ";

/// Length of the first line of a segment.
const HEADING_BYTES: u64 = 34;

/// The first line of a segment.
fn heading(no: u64) -> String {
    format!("{OWN_LINE}part {no:>17}\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use evenbeat_core::ids::RunId;
    use proptest::prelude::*;

    use super::read::Chunk;
    use super::*;
    use crate::target::command::places::Places;

    const RUN: RunId = RunId(0x019c_2740_0000_7000_8000_0000_0000_002a);

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            static NO: AtomicU32 = AtomicU32::new(0);
            let no = NO.fetch_add(1, Ordering::Relaxed);
            Folder(std::env::temp_dir().join(format!("evenbeat-log-{}-{no}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn all_of(places: &Places, from: u64) -> String {
        let mut reader = read_log(places, RUN, from);
        let mut text = Vec::new();
        loop {
            let chunk = reader.next(7);
            text.extend_from_slice(&chunk.bytes);
            if chunk.bytes.is_empty() {
                return String::from_utf8_lossy(&text).into_owned();
            }
        }
    }

    #[track_caller]
    fn check(written: &[&str], bytes_max: u64, expected: &str) {
        let folder = Folder::new();
        let places = Places::open(&folder.0).unwrap();
        let mut log = LogWriter::new(places.clone(), RUN, bytes_max);
        for part in written {
            log.write(OutputStream::Out, part.as_bytes());
        }
        assert_eq!(all_of(&places, 0), expected);
    }

    #[test]
    fn every_heading_is_as_long() {
        assert_eq!(heading(0).len() as u64, HEADING_BYTES);
        assert_eq!(heading(u64::MAX >> 16).len() as u64, HEADING_BYTES);
    }

    #[test]
    fn what_fits_is_kept_whole() {
        check(&[], 16, "");
        check(&["one\n", "two\n"], 16, "one\ntwo\n");
        check(&["0123456789abcdef"], 16, "0123456789abcdef");
    }

    #[test]
    fn of_what_does_not_fit_the_beginning_and_the_latest_are_kept() {
        check(
            &["01234567", "89ab", "cdef", "ghij", "kl"],
            16,
            "01234567\n[evenbeat] 8 bytes left out\nghijkl",
        );
        check(&["0123456789abcdefghijkl"], 16, "01234567\n[evenbeat] 8 bytes left out\nghijkl");
    }

    #[test]
    fn whoever_reads_on_gets_the_rest() {
        let folder = Folder::new();
        let places = Places::open(&folder.0).unwrap();
        std::fs::create_dir(places.run(RUN)).unwrap();
        let mut log = LogWriter::new(places.clone(), RUN, 16);
        let mut reader = read_log(&places, RUN, 0);
        assert_eq!(reader.next(100), Chunk { bytes: vec![], is_over: false });
        log.write(OutputStream::Out, b"012");
        assert_eq!(reader.next(100), Chunk { bytes: b"012".to_vec(), is_over: false });
        log.write(OutputStream::Out, b"34567xyz");
        let resumed = all_of(&places, reader.at());
        assert_eq!(resumed, "34567xyz");
        std::fs::write(places.end(RUN), "{}").unwrap();
        assert_eq!(reader.next(100), Chunk { bytes: b"34567".to_vec(), is_over: false });
        assert_eq!(reader.next(100), Chunk { bytes: b"xyz".to_vec(), is_over: true });
        assert_eq!(reader.next(100), Chunk { bytes: vec![], is_over: true });
    }

    #[track_caller]
    fn check_kept(written: &str, head_end: u64, tail_start: u64) {
        let folder = Folder::new();
        let places = Places::open(&folder.0).unwrap();
        std::fs::create_dir(places.run(RUN)).unwrap();
        LogWriter::new(places.clone(), RUN, 16).write(OutputStream::Out, written.as_bytes());
        let end = written.len() as u64;
        let kept = KeptBytes { head_end, tail_start, end, is_over: false };
        assert_eq!(read_log(&places, RUN, 0).kept(), kept, "{written}");
        std::fs::write(places.end(RUN), "{}").unwrap();
        assert_eq!(read_log(&places, RUN, 0).kept(), KeptBytes { is_over: true, ..kept });
    }

    #[test]
    fn it_is_known_what_is_kept() {
        check_kept("", 0, 0);
        check_kept("0123", 4, 4);
        check_kept("0123456789ab", 8, 8);
        check_kept("0123456789abcdefghijkl", 8, 16);
    }

    #[test]
    fn lines_of_ours_are_lines() {
        let folder = Folder::new();
        let places = Places::open(&folder.0).unwrap();
        let mut log = LogWriter::new(places.clone(), RUN, 1_000);
        log.note("it begins");
        log.write(OutputStream::Out, b"half a line");
        log.note("odd \u{7} word");
        assert_eq!(all_of(&places, 0), "[evenbeat] it begins\nhalf a line\n[evenbeat] odd \\x07 word\n");
    }

    #[test]
    fn lines_of_standard_error_are_marked() {
        let folder = Folder::new();
        let places = Places::open(&folder.0).unwrap();
        let mut log = LogWriter::new(places.clone(), RUN, 1_000);
        log.write(OutputStream::Out, b"one\n");
        log.write(OutputStream::Err, b"bad\n\nwor");
        log.write(OutputStream::Err, b"se\n");
        log.write(OutputStream::Out, b"10% ");
        log.write(OutputStream::Err, b"oops");
        log.write(OutputStream::Out, b"20%\n");
        assert_eq!(
            all_of(&places, 0),
            "one\n[stderr] bad\n[stderr] \n[stderr] worse\n10% \n[stderr] oops\n20%\n"
        );
        assert_eq!(log.output_bytes(), 4 + 8 + 3 + 4 + 4 + 4);
    }

    #[test]
    fn a_disk_that_takes_nothing_stops_the_log_and_nobody_else() {
        let folder = Folder::new();
        let places = Places::open(&folder.0).unwrap();
        std::fs::remove_dir(places.root().join("logs")).unwrap();
        std::fs::write(places.root().join("logs"), "not a folder").unwrap();
        let mut log = LogWriter::new(places, RUN, 16);
        log.write(OutputStream::Out, b"0123");
        log.write(OutputStream::Err, b"4567");
        assert_eq!(log.output_bytes(), 8);
        assert!(8 <= log.left_out_bytes());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn nothing_is_counted_wrongly(parts in prop::collection::vec(0_usize..30, 0..12), bytes_max in 8_u64..64) {
            let folder = Folder::new();
            let places = Places::open(&folder.0).unwrap();
            let mut log = LogWriter::new(places.clone(), RUN, bytes_max);
            let whole: String = ('a'..='z').cycle().take(parts.iter().sum()).collect();
            let mut from = 0;
            for part in &parts {
                log.write(OutputStream::Out, &whole.as_bytes()[from..from + part]);
                from += part;
            }
            let left_out = usize::try_from(log.left_out_bytes()).unwrap();
            let read = all_of(&places, 0);
            if left_out == 0 {
                prop_assert_eq!(read, whole);
            } else {
                let (head, tail) = read.split_once(&format!("\n[evenbeat] {left_out} bytes left out\n")).unwrap();
                prop_assert_eq!(head, &whole[..head.len()]);
                prop_assert_eq!(tail, &whole[head.len() + left_out..]);
                prop_assert!(read.len() as u64 <= bytes_max + 40);
            }
        }
    }
}

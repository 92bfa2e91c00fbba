//! The oracle as a process, and the lines it prints.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use evenbeat_core::time::Timestamp;

/// One line of the oracle, apart from its last.
pub(crate) enum Line<'a> {
    Version(&'a str),
    Zone { name: &'a str, n_changes: usize },
    Case(Case<'a>),
}

/// One expression over one window, in zones whose clocks agree there.
pub(crate) struct Case<'a> {
    pub(crate) class: &'a str,
    pub(crate) expression: &'a str,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    /// The change of the clocks in the middle of the window.
    pub(crate) change: Timestamp,
    pub(crate) zones: Vec<&'a str>,
    pub(crate) expected: Vec<Timestamp>,
}

/// Runs the oracle to its end and hands over each line. Panics if it fails or breaks off.
pub(crate) fn read(mut take: impl FnMut(Line<'_>)) {
    let script = repository().join("scripts/dst-oracle.py");
    let python = python();
    let mut child = Command::new(&python)
        .arg(&script)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("the oracle's python `{python}` does not start: {error}"));
    let stdout = child.stdout.take().expect("stdout is piped");
    let mut ended = false;
    for line in BufReader::new(stdout).lines() {
        let line = line.unwrap_or_else(|error| panic!("the oracle breaks off: {error}"));
        assert!(!ended, "the oracle goes on after its end with `{line}`");
        ended = line.starts_with("end\t");
        if !ended {
            take(parse(&line).unwrap_or_else(|| panic!("the oracle printed `{line}`")));
        }
    }
    let status = child.wait().expect("the oracle can be waited for");
    assert!(status.success(), "the oracle failed with {status}; what it said stands above");
    assert!(ended, "the oracle stopped before its end");
}

fn parse(line: &str) -> Option<Line<'_>> {
    let fields: Vec<&str> = line.split('\t').collect();
    match fields[..] {
        ["version", version] => Some(Line::Version(version)),
        ["zone", name, n_changes] => Some(Line::Zone { name, n_changes: n_changes.parse().ok()? }),
        ["case", class, expression, start, end, change, zones, expected] => {
            let start_s: i64 = start.parse().ok()?;
            let since_start = |text: &str| Some(Timestamp::from_second(start_s + text.parse::<i64>().ok()?));
            Some(Line::Case(Case {
                class,
                expression,
                start: Timestamp::from_second(start_s),
                end: Timestamp::from_second(end.parse().ok()?),
                change: Timestamp::from_second(change.parse().ok()?),
                zones: zones.split(',').collect(),
                expected: expected
                    .split(',')
                    .filter(|text| !text.is_empty())
                    .map(since_start)
                    .collect::<Option<_>>()?,
            }))
        }
        _ => None,
    }
}

/// The python to run the oracle with, prepared if none was named.
fn python() -> String {
    if let Ok(python) = std::env::var("EVENBEAT_ORACLE_PYTHON") {
        return python;
    }
    let script = repository().join("scripts/dst-oracle-env");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("`{}` does not start: {error}", script.display()));
    assert!(
        output.status.success(),
        "scripts/dst-oracle-env could not prepare a python (its reason stands above); \
         name one that has the `tzdata` package in EVENBEAT_ORACLE_PYTHON"
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

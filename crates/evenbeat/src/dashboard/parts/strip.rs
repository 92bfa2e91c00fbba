//! The last runs of a job as a strip: good ones stand on the line, as high as they took long; bad ones hang below.

use std::fmt::Write as _;

use evenbeat_core::time::Duration;
use maud::{Markup, html};

/// A run on a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StripRun {
    pub(crate) is_good: bool,
    pub(crate) took: Duration,
}

/// A strip for a table row, the oldest run first.
pub(crate) fn run_strip(runs: &[StripRun]) -> Markup {
    let longest = runs.iter().map(|run| run.took.as_millis_f64()).fold(1.0, f64::max);
    let (mut good, mut bad) = (String::new(), String::new());
    for (place, run) in runs.iter().enumerate() {
        let x = place * 5 + 1;
        // Writing to a string cannot fail.
        if run.is_good {
            let height = (run.took.as_millis_f64() / longest * 10.0).max(1.5);
            let _ = write!(good, "M{x}.5 11V{:.1}", 11.0 - height);
        } else {
            let _ = write!(bad, "M{x}.5 12V16");
        }
    }
    let n_bad = runs.iter().filter(|run| !run.is_good).count();
    let label = match (runs.len(), n_bad) {
        (0, _) => "No runs yet".to_owned(),
        (1, 0) => "The last run was good".to_owned(),
        (n, 0) => format!("The last {n} runs were good"),
        (n, bad) => format!("Last {n} runs, {bad} failed"),
    };
    html! {
        svg.hmini role="img" aria-label=(label) {
            @if !good.is_empty() { path.g1 d=(good) {} }
            @if !bad.is_empty() { path.f1 d=(bad) {} }
        }
    }
}

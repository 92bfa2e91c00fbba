//! What the parts of the module mean together.

mod edges;
mod fleet;
mod limits;
mod peer;
mod properties;

use super::table::Seconds;
use super::{Agenda, Occurrence, Source};
use crate::ids::JobKey;
use crate::time::{TimeWindow, Timestamp};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A time of 2026-02-04, `10:00:00.250`.
fn on_the_day(time: &str) -> Timestamp {
    at(&format!("2026-02-04T{time}Z"))
}

fn window(start: &str, end: &str) -> TimeWindow {
    TimeWindow::new(on_the_day(start), on_the_day(end))
}

fn key(text: &str) -> JobKey {
    text.parse().unwrap()
}

fn build(sources: &[Source], window: TimeWindow) -> Agenda {
    Agenda::build(sources, window).unwrap_or_else(|error| panic!("{error}"))
}

fn is_dense(agenda: &Agenda) -> bool {
    matches!(agenda.table.seconds, Seconds::Dense { .. })
}

/// `10:00:00.250 a`, with a `~` before what is an estimate.
fn shown(occurrence: Occurrence) -> String {
    let text = occurrence.at.to_string();
    let time = text.trim_start_matches("2026-02-04T").trim_end_matches('Z');
    format!("{time} {}{}", if occurrence.is_estimate { "~" } else { "" }, occurrence.job)
}

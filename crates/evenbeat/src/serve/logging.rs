//! Where log lines go: standard error, for people or for machines.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{self as lines};

use crate::clock::Clock;
use crate::config::{LogFormat, LogLevel, LogSettings};

/// The same clock and the same writing as everywhere else.
#[derive(Clone, Debug)]
struct WallTime(Clock);

impl FormatTime for WallTime {
    fn format_time(&self, w: &mut lines::format::Writer<'_>) -> std::fmt::Result {
        // As wide in every line: what is written drops zeros at the end.
        let at = self.0.now().to_string();
        let (seconds, millis) =
            at.trim_end_matches('Z').split_once('.').unwrap_or((at.trim_end_matches('Z'), ""));
        write!(w, "{seconds}.{millis:0<3}Z")
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Begins to log. Asked twice, the first time counts.
pub fn start_logging(settings: LogSettings, clock: &Clock) {
    let is_terminal = io::stderr().is_terminal();
    let is_json = match settings.format {
        LogFormat::Json => true,
        LogFormat::Human => false,
        LogFormat::Auto => !is_terminal,
    };
    let is_coloured = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let lines = lines::fmt()
        .with_writer(io::stderr)
        .with_max_level(filter(settings.level))
        .with_timer(WallTime(clock.clone()))
        .with_target(false);
    // A closed standard error, or another who logs already, is no reason not to work.
    let _ = if is_json {
        lines.with_target(true).json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(is_coloured).try_init()
    };
}

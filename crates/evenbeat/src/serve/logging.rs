//! Where log lines go: standard error, for people or for machines.

use std::fmt;
use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{self as lines};

use crate::clock::Clock;
use crate::config::{LogFormat, LogLevel, LogSettings};

/// The same clock and the same writing as everywhere else.
#[derive(Clone, Debug)]
struct WallTime(Clock);

impl FormatTime for WallTime {
    fn format_time(&self, w: &mut lines::format::Writer<'_>) -> fmt::Result {
        // As wide in every line: what is written drops zeros at the end.
        let at = self.0.now().to_string();
        let (seconds, millis) =
            at.trim_end_matches('Z').split_once('.').unwrap_or((at.trim_end_matches('Z'), ""));
        write!(w, "{seconds}.{millis:0<3}Z")
    }
}

fn filter(level: LogLevel) -> EnvFilter {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    EnvFilter::default().add_directive(level.into())
}

/// Changes the level of a process that logs.
pub struct LogControl(Box<dyn Fn(LogLevel) + Send + Sync>);

impl LogControl {
    pub(super) fn set_level(&self, level: LogLevel) {
        (self.0)(level);
    }
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogControl").finish_non_exhaustive()
    }
}

/// Begins to log. Asked twice, the first time counts.
pub fn start_logging(settings: LogSettings, clock: &Clock) -> LogControl {
    let is_terminal = io::stderr().is_terminal();
    let is_json = match settings.format {
        LogFormat::Json => true,
        LogFormat::Human => false,
        LogFormat::Auto => !is_terminal,
    };
    let is_coloured = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    let lines = lines::fmt().with_writer(io::stderr).with_timer(WallTime(clock.clone())).with_target(false);
    // A closed standard error, or another who logs already, is no reason not to work.
    if is_json {
        let lines = lines.with_target(true).json().flatten_event(true);
        let lines = lines.with_env_filter(filter(settings.level)).with_filter_reloading();
        let handle = lines.reload_handle();
        let _ = lines.try_init();
        // Only a logger that is gone cannot be changed.
        LogControl(Box::new(move |level| drop(handle.reload(filter(level)))))
    } else {
        let lines =
            lines.with_ansi(is_coloured).with_env_filter(filter(settings.level)).with_filter_reloading();
        let handle = lines.reload_handle();
        let _ = lines.try_init();
        LogControl(Box::new(move |level| drop(handle.reload(filter(level)))))
    }
}

//! The result of a run: puts it together and writes it to the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::time::{BootTime, Duration};
use rustix::fs::OFlags;
use serde_json::{Map, Value as Json};

use super::run::RunSummary;
use crate::target::EndDetails;
use crate::target::command::log::LogWriter;
use crate::target::command::order::Order;
use crate::target::command::proc;
use crate::target::command::run_result::RunResult;

/// The result of a run whose processes have all ended.
pub(super) fn run_result(
    order: &Order,
    log: &LogWriter,
    boot_id: &str,
    began_at: BootTime,
    now: BootTime,
    summary: RunSummary,
) -> RunResult {
    let by_code = match summary.exit {
        Some(exit) if exit.code == 0 => Outcome::Succeeded,
        _ => Outcome::Failed,
    };
    let outcome = summary.forced.as_ref().map_or(by_code, |it| it.outcome);
    let is_forced = summary.forced.is_some();
    let signal = summary.exit.and_then(|it| it.signal);
    let (reason, limit) = match summary.forced {
        Some(forced) => (Some(forced.reason), forced.limit),
        None if outcome == Outcome::Succeeded => (None, None),
        None => (Some(if signal.is_some() { EndReason::Signal } else { EndReason::ExitCode }), None),
    };
    let (result, result_error) = match read_result(&order.places.result(order.run), order.result_max) {
        Ok(result) => (result, None),
        Err(error) => (None, Some(error)),
    };
    let reported = result.as_ref().and_then(reported_error);
    let details = EndDetails {
        exit_code: summary.exit.map(|it| it.code),
        signal,
        reason,
        limit,
        ignored_term: summary.ignored_term,
        left_behind: summary.left_behind,
        error: both(reported, result_error),
        result,
        max_rss_kib: summary.max_rss_kib,
        cpu: Duration::from_millis(i64::try_from(proc::waited_for_ticks()).unwrap_or(0).saturating_mul(10)),
        ..output_of(log)
    };
    RunResult {
        boot_id: boot_id.to_owned(),
        started_at: began_at,
        ended_at: now,
        outcome,
        is_forced,
        frozen_for: summary.frozen_for,
        details,
    }
}

/// The result of a run whose program could not be started.
pub(super) fn not_begun(
    log: &LogWriter,
    boot_id: &str,
    at: BootTime,
    error: String,
    exit_code: Option<i32>,
) -> RunResult {
    RunResult {
        boot_id: boot_id.to_owned(),
        started_at: at,
        ended_at: at,
        outcome: Outcome::Failed,
        is_forced: false,
        frozen_for: Duration::ZERO,
        details: EndDetails {
            exit_code,
            reason: Some(EndReason::NotStarted),
            error: Some(error),
            ..output_of(log)
        },
    }
}

fn output_of(log: &LogWriter) -> EndDetails {
    EndDetails {
        output_bytes: log.output_bytes(),
        left_out_bytes: log.left_out_bytes(),
        ..EndDetails::default()
    }
}

/// The text under `error` in the result is the run's own error message.
fn reported_error(result: &Map<String, Json>) -> Option<String> {
    result.get("error")?.as_str().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}

fn both(one: Option<String>, other: Option<String>) -> Option<String> {
    match (one, other) {
        (Some(one), Some(other)) => Some(format!("{one}; {other}")),
        (one, other) => one.or(other),
    }
}

/// Reads the result file of a run. Fails with a message if it is not usable.
fn read_result(path: &Path, bytes_max: u64) -> Result<Option<Map<String, Json>>, String> {
    // A run can put anything there, so never follow a link and never wait for a pipe.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file: File = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the result file cannot be read: {error}")),
    };
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err("the result file is not a regular file".to_owned());
    }
    let mut text = Vec::new();
    if let Err(error) = file.take(bytes_max + 1).read_to_end(&mut text) {
        return Err(format!("the result file cannot be read: {error}"));
    }
    if bytes_max < text.len() as u64 {
        return Err(format!("the result file is longer than {bytes_max} bytes"));
    }
    match serde_json::from_slice(&text) {
        Ok(Json::Object(result)) => Ok(Some(result)),
        _ => Err("the result file is not a JSON object".to_owned()),
    }
}

/// Writes a result to the disk, whole or not at all.
pub(super) fn write(order: &Order, result: &RunResult) -> io::Result<()> {
    let path = order.places.end(order.run);
    let part = path.with_extension("part");
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(result.to_text().as_bytes())?;
        fs::rename(&part, &path)
    })();
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

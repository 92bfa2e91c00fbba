//! An analysis as one JSON document.

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;
use serde_json::{Value as Json, json};

use crate::cli::fleet_file::FleetFile;
use crate::jobfile::Diagnostics;
use crate::views::analysis::{AnalysisFigures, ChangeKind, Peak, ScheduleChange, Side};

pub(super) fn document(input: &FleetFile, figures: &AnalysisFigures) -> Json {
    let left_out = input
        .left_out
        .iter()
        .map(|it| json!({"line": it.line, "command": it.command, "reason": it.why.code()}));
    let left_out: Vec<Json> = left_out.collect();
    json!({
        "file": input.name,
        "kind": input.kind.code(),
        "tz": figures.zone.name(),
        "start": instant(figures.window.start()),
        "end": instant(figures.window.end()),
        "window_hours": figures.hours,
        "slot_minutes": figures.as_is.distribution.width.as_mins(),
        "jobs": figures.n_jobs,
        "jobs_idle": figures.n_idle,
        "as_is": side(&figures.as_is),
        "proposed": side(&figures.proposed),
        "changes": figures.changes.iter().map(change).collect::<Vec<_>>(),
        "left_out": left_out,
        "bad_lines": input.bad_lines.as_ref().map(bad_lines).unwrap_or_default(),
        "with_h": figures.with_h.as_ref().map(|it| json!({"jobs": it.n_jobs, "side": side(&it.side)})),
    })
}

fn bad_lines(lines: &Diagnostics) -> Vec<Json> {
    let line_of = |it| lines.positions_of(it).map(|(start, _)| start.line);
    lines.iter().map(|it| json!({"line": line_of(it), "message": it.message})).collect()
}

fn side(side: &Side) -> Json {
    let it = &side.distribution;
    let peak = |peak: Peak| json!({"starts": peak.n_starts, "at": instant(peak.at)});
    let collisions = side.collisions.iter().map(|it| {
        let jobs: Vec<&str> = it.jobs.iter().map(JobKey::as_str).collect();
        json!({"at": instant(it.at), "starts": it.n_starts, "jobs": jobs})
    });
    json!({
        "score": (side.score * 10_000.0).round() / 10_000.0,
        "word": side.word().as_str(),
        "jobs": it.n_jobs,
        "starts": it.n_runs,
        "overdue": it.n_overdue,
        "beyond": it.n_beyond,
        "peak_minute": peak(side.peak_minute),
        "peak_slot": peak(side.peak_slot),
        "peak_hour": peak(side.peak_hour),
        "hours": it.hours,
        "slots": it.slots,
        "minutes_of_hour": side.by_minute,
        "collisions": collisions.collect::<Vec<_>>(),
    })
}

fn change(change: &ScheduleChange) -> Json {
    let mut document = json!({"job": change.job.as_str(), "line": change.line});
    let details = match &change.what {
        ChangeKind::Expression { old, new } => json!({"cron": {"old": old, "new": new}}),
        ChangeKind::Phase { interval, old, new } => json!({
            "every": interval.to_string(),
            "first": {"old": instant(*old), "new": instant(*new)},
        }),
    };
    if let (Json::Object(document), Json::Object(details)) = (&mut document, details) {
        document.extend(details);
    }
    document
}

fn instant(at: Timestamp) -> String {
    at.to_string()
}

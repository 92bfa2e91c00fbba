//! Traces as OTLP in JSON: ids as hexadecimal digits, instants as texts of nanoseconds.

use evenbeat_core::ids::RunId;
use evenbeat_core::job::RunEnd;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::Timestamp;
use serde_json::{Value as Json, json};

use super::RunTrace;
use crate::trace_context::{SpanPart, span_id, trace_id};

/// A span inside the process, as opposed to a call between two.
const KIND_INTERNAL: u8 = 1;

const STATUS_OK: u8 = 1;
const STATUS_ERROR: u8 = 2;

/// One request to a collector.
pub(super) fn request(node: &str, traces: &[RunTrace]) -> Json {
    let spans: Vec<Json> = traces.iter().flat_map(spans).collect();
    let resource = attributes(&[("service.name", "evenbeat".into()), ("service.instance.id", node.into())]);
    let scope = json!({ "name": "evenbeat", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
}

/// The run, and below it what it consisted of.
fn spans(trace: &RunTrace) -> [Json; 4] {
    let RunTrace { due_at, ordered_at, end, .. } = trace;
    let RunEnd { run, started_at, ended_at, outcome, exit_code, .. } = *end;
    // Clocks may have been set between two of these.
    let due_at = (*due_at).min(started_at);
    let ordered_at = (*ordered_at).clamp(due_at, started_at);
    let ended_at = ended_at.max(started_at);
    let mut about = vec![
        ("evenbeat.job", trace.key.to_string().into()),
        ("evenbeat.run_id", run.to_string().into()),
        ("evenbeat.pool", trace.pool.to_string().into()),
        ("evenbeat.trigger", trace.trigger.as_str().into()),
        ("evenbeat.outcome", outcome.as_str().into()),
    ];
    about.extend(exit_code.map(|code| ("process.exit.code", code.into())));
    let is_good = outcome == Outcome::Succeeded;
    let status = if is_good {
        json!({ "code": STATUS_OK })
    } else {
        json!({ "code": STATUS_ERROR, "message": outcome.as_str() })
    };
    let mut whole = span(run, SpanPart::Run, due_at, ended_at);
    whole["name"] = format!("run {}", trace.key).into();
    whole["attributes"] = attributes(&about);
    whole["status"] = status;
    [
        whole,
        span(run, SpanPart::Waiting, due_at, ordered_at),
        span(run, SpanPart::Starting, ordered_at, started_at),
        span(run, SpanPart::Running, started_at, ended_at),
    ]
}

fn span(run: RunId, part: SpanPart, from: Timestamp, to: Timestamp) -> Json {
    let mut span = json!({
        "traceId": trace_id(run),
        "spanId": span_id(run, part),
        "name": part.as_str(),
        "kind": KIND_INTERNAL,
        "startTimeUnixNano": nanos(from),
        "endTimeUnixNano": nanos(to),
    });
    if part != SpanPart::Run {
        span["parentSpanId"] = span_id(run, SpanPart::Run).into();
    }
    span
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_millis()) * 1_000_000).to_string()
}

fn attributes(all: &[(&str, Json)]) -> Json {
    let all = all.iter().map(|(key, value)| match value {
        // Whole numbers are texts here, too.
        Json::Number(number) => json!({ "key": key, "value": { "intValue": number.to_string() } }),
        text => json!({ "key": key, "value": { "stringValue": text } }),
    });
    all.collect()
}

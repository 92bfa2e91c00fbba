//! Limits and policies of a job, each with its default.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::fields::{BLACKOUT_NAMES, RETRY_NAMES, kind_in_retry};
use super::job::Completeness;
use super::node::Node;
use super::reader::{LIST_MAX, Reader};
use super::table::{LABELS_MAX, RETRY_DELAYS_MAX, WORDS_BYTES_MAX};
use super::{SpecError, scalar};
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::ids::{NodeName, Pool};
use crate::job::{Exclusive, Overlap, Pause, PausedBy, Where};
use crate::missed::{MissedPolicy, MissedRuns};
use crate::retry::RetryPolicy;
use crate::run::RunLimits;
use crate::time::Duration;
use crate::value::{Path, Value};

/// How many runs of one job go on at once if it allows that and names no number: enough for a slow
/// run to be overtaken, too few to flood anything.
pub(super) const MAX_PARALLEL_DEFAULT: u32 = 2;

pub(super) fn pause(reader: &mut Reader<'_>) -> Option<Pause> {
    let words = [
        ("operator", PausedBy::Operator),
        // Other tools do not tell which of the system's own reasons it was; a quota has the widest way
        // out: a person, or a raised limit.
        ("system", PausedBy::Quota),
        ("quota", PausedBy::Quota),
        ("failures", PausedBy::Failures),
        ("invalid", PausedBy::Invalid),
    ];
    let by = reader.word("paused_by", &words);
    let reason = reader.field("pause_reason", scalar::text).map(str::to_owned);
    // Naming who paused it, or why, means that it is paused.
    let paused = reader.truth("paused").unwrap_or(by.is_some() || reason.is_some());
    paused.then(|| Pause { by: by.unwrap_or(PausedBy::Operator), reason })
}

pub(super) fn blackouts(reader: &mut Reader<'_>) -> Blackouts {
    let Some(node) = reader.get("blackout_periods") else { return Blackouts::default() };
    let nodes = reader.list(&node, "a list of tables", LIST_MAX);
    let periods: Vec<BlackoutPeriod> = nodes.iter().filter_map(|node| blackout(reader, node)).collect();
    Blackouts::new(periods).unwrap_or_else(|error| {
        reader.fault(&node.path(), error.into());
        Blackouts::default()
    })
}

fn blackout(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<BlackoutPeriod> {
    let Value::Table(table) = node.value else {
        let error = scalar::wrong_kind(&reader.shown(&node.path()), "a table", node.value);
        reader.fault(&node.path(), error);
        return None;
    };
    reader.known_only(node, table, "blackout_periods", &BLACKOUT_NAMES);
    let way_out = "write a time of day, such as `\"22:00\"`";
    let start = reader.required(node, "start", way_out);
    let end = reader.required(node, "end", way_out);
    let start = start.and_then(|it| reader.read(&it, scalar::parsed));
    let end = end.and_then(|it| reader.read(&it, scalar::parsed));
    let days = match node.get("days") {
        Some(it) => weekdays(reader, &it),
        None => Some(Weekdays::ALL),
    };
    match BlackoutPeriod::new(start?, end?, days?) {
        Ok(period) => Some(period),
        Err(error) => {
            reader.fault(&node.path(), error.into());
            None
        }
    }
}

fn weekdays(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Weekdays> {
    let n_faults = reader.faults.len();
    let nodes = reader.list(node, "a list of strings", LIST_MAX);
    let names: Vec<Option<&str>> = nodes.iter().map(|it| reader.read(it, scalar::text)).collect();
    let names: Vec<&str> = names.into_iter().collect::<Option<_>>()?;
    if reader.faults.len() != n_faults {
        return None;
    }
    match Weekdays::from_names(&names) {
        Ok(days) => Some(days),
        Err((idx, error)) => {
            let path = nodes.get(idx).unwrap_or(node).path();
            reader.fault(&path, error.into());
            None
        }
    }
}

pub(super) fn limits(reader: &mut Reader<'_>) -> RunLimits {
    let max_expected = reader.duration("max_expected_duration");
    let max_allowed = reader.duration("max_allowed_duration");
    if let (Some(expected), Some(allowed)) = (max_expected, max_allowed)
        && allowed < expected
    {
        let (path, other) =
            (Path::root().key("max_allowed_duration"), Path::root().key("max_expected_duration"));
        reader.fault_between(&path, &other, SpecError::AllowedBeforeExpected { allowed, expected });
    }
    RunLimits { max_expected, max_allowed }
}

pub(super) fn retry(reader: &mut Reader<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    let Some(node) = reader.get("retry") else { return default };
    let Value::Table(table) = node.value else {
        let error = scalar::wrong_kind(&reader.shown(&node.path()), "a table", node.value);
        reader.fault(&node.path(), error);
        return default;
    };
    reader.known_only(&node, table, "retry", &RETRY_NAMES);
    let failures = kind_in_retry("pause_after_failures");
    RetryPolicy {
        delays: node.get("delays").map_or(default.delays, |it| delays(reader, &it)),
        jitter: node.get("jitter").and_then(|it| reader.read(&it, scalar::share)).unwrap_or(default.jitter),
        scale: node.get("scale").and_then(|it| reader.read(&it, scalar::truth)).unwrap_or(default.scale),
        holds_schedule: node
            .get("holds_schedule")
            .and_then(|it| reader.read(&it, scalar::truth))
            .unwrap_or(default.holds_schedule),
        pause_after_failures: node
            .get("pause_after_failures")
            .and_then(|it| reader.read(&it, |field, value| scalar::count(field, value, failures))),
        not_on_exit_codes: node
            .get("not_on_exit_codes")
            .map_or(default.not_on_exit_codes, |it| exit_codes(reader, &it)),
    }
}

fn delays(reader: &mut Reader<'_>, node: &Node<'_>) -> Vec<Duration> {
    let nodes = reader.list(node, "a list", RETRY_DELAYS_MAX);
    if matches!(node.value, Value::List(values) if values.is_empty()) {
        let field = reader.shown(&node.path());
        let way_out = "write at least one delay, such as `[\"5m\"]`";
        reader.fault(&node.path(), SpecError::Empty { field, way_out });
    }
    nodes.iter().filter_map(|it| reader.read(it, scalar::duration)).collect()
}

fn exit_codes(reader: &mut Reader<'_>, node: &Node<'_>) -> Vec<i32> {
    let nodes = reader.list(node, "a list", LIST_MAX);
    let code = |field: &dyn Display, value: &Value| {
        let code = scalar::whole(field, value, i64::from(i32::MIN), i64::from(i32::MAX))?;
        Ok(i32::try_from(code).unwrap_or_default())
    };
    nodes.iter().filter_map(|it| reader.read(it, code)).collect()
}

pub(super) fn missed(reader: &mut Reader<'_>) -> MissedPolicy {
    let default = MissedPolicy::default();
    let words = [("once", MissedRuns::Once), ("skip", MissedRuns::Skip), ("all", MissedRuns::All)];
    MissedPolicy {
        runs: reader.word("missed", &words).unwrap_or(default.runs),
        window: reader.duration("missed_window").unwrap_or(default.window),
        most: reader.count("missed_max").unwrap_or(default.most),
        grace: reader.duration("missed_grace").unwrap_or(default.grace),
    }
}

pub(super) fn overlap(reader: &mut Reader<'_>, want: Completeness) -> Overlap {
    let max_parallel = reader.count("max_parallel");
    let allow = Overlap::Allow { max_parallel: max_parallel.unwrap_or(MAX_PARALLEL_DEFAULT) };
    let words = [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("allow", allow)];
    let overlap = reader.word("overlap", &words);
    let may_be_elsewhere = want == Completeness::Part && reader.get("overlap").is_none();
    let unread = reader.get("overlap").is_some() && overlap.is_none();
    let overlap = overlap.unwrap_or_default();
    if let (Some(node), Overlap::Skip | Overlap::Queue) = (reader.get("max_parallel"), overlap)
        && !may_be_elsewhere
        && !unread
    {
        let word = if overlap == Overlap::Skip { "skip" } else { "queue" };
        let error = SpecError::OnlyWith {
            field: reader.shown(&node.path()),
            with: "`overlap = \"allow\"`",
            has: Some(format!("`overlap = \"{word}\"`")),
        };
        match reader.get("overlap") {
            Some(other) => reader.fault_between(&node.path(), &other.path(), error),
            None => reader.fault(&node.path(), error),
        }
    }
    overlap
}

pub(super) fn exclusive(reader: &mut Reader<'_>) -> Exclusive {
    let words = [("strict", Exclusive::Strict), ("best_effort", Exclusive::BestEffort)];
    reader.word("exclusive", &words).unwrap_or_default()
}

pub(super) fn place(reader: &mut Reader<'_>) -> Where {
    Where {
        pool: reader.name("pool").unwrap_or_else(Pool::default_pool),
        cost: reader.count("cost").unwrap_or(1),
        run_on_nodes: nodes(reader, "run_on_nodes"),
        dont_run_on_nodes: nodes(reader, "dont_run_on_nodes"),
    }
}

fn nodes(reader: &mut Reader<'_>, field: &'static str) -> Vec<NodeName> {
    let Some(node) = reader.get(field) else { return Vec::new() };
    let nodes = reader.list(&node, "a list of strings", LIST_MAX);
    nodes.iter().filter_map(|it| reader.read(it, scalar::parsed)).collect()
}

/// Words for people. Nothing at all is as good as nothing said.
pub(super) fn words(reader: &mut Reader<'_>, field: &'static str) -> Option<String> {
    let node = reader.get(field)?;
    let text = reader.read(&node, scalar::text)?;
    if WORDS_BYTES_MAX < text.len() {
        let (field, n_found) = (reader.shown(&node.path()), text.len());
        reader.fault(&node.path(), SpecError::TooLong { field, n_found, n_most: WORDS_BYTES_MAX });
    }
    Some(text.trim().to_owned()).filter(|it| !it.is_empty())
}

pub(super) fn labels(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let Some(node) = reader.get("labels") else { return BTreeMap::new() };
    let entries = reader.entries(&node);
    if LABELS_MAX < entries.len() {
        let (field, n_found) = (reader.shown(&node.path()), entries.len());
        reader.fault(&node.path(), SpecError::TooMany { field, n_found, n_most: LABELS_MAX });
    }
    let mut labels = BTreeMap::new();
    for (name, value) in entries {
        if let Some(text) = reader.read(&value, scalar::text) {
            labels.insert(name.to_owned(), text.to_owned());
        }
    }
    labels
}

pub(super) fn params(reader: &mut Reader<'_>) -> BTreeMap<String, Value> {
    let Some(node) = reader.get("params") else { return BTreeMap::new() };
    reader.bounded_depth(&node);
    reader.entries(&node).into_iter().map(|(name, it)| (name.to_owned(), it.value.clone())).collect()
}

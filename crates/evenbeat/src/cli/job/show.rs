//! `evenbeat job show`.

use evenbeat_core::ids::JobKey;
use serde_json::Value as Json;

use super::super::Exit;
use super::super::chart::counted;
use super::super::client::{ApiRequest, CommandError};
use super::super::format::{BOLD, DIM, length, reason_beside, style_of_word};
use super::super::remote::{CommandResult, RemoteContext};
use crate::printable;
use crate::views::model::{Instant, JobDefinition, JobView};

pub(super) fn run(key: &JobKey, remote: &mut RemoteContext<'_>) -> CommandResult {
    remote.send_and_print::<JobView>(ApiRequest::get(&["jobs", key.as_str()]), print)?;
    Ok(Exit::Ok)
}

fn print(job: &JobView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let style = style_of_word(&job.condition);
    let reason = reason_beside(&job.condition, &job.reason);
    let untracked = if job.tracked { String::new() } else { format!(" (not counted while {})", job.status) };
    writeln!(
        remote.out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#}{reason}  {}{untracked}",
        job.key, job.condition, job.status
    )?;
    let sentence = remote.clock.sentence(&job.sentence);
    writeln!(remote.out, "  {sentence}")?;
    let mut facts = Facts { remote: &mut *remote };
    facts.text("schedule", Some(&job.schedule))?;
    let paused = job.paused_by.as_ref().map(|by| match &job.pause_reason {
        Some(reason) => format!("by {by}: {reason}"),
        None => format!("by {by}"),
    });
    facts.text("paused", paused)?;
    facts.at("paused until", job.pause_until)?;
    facts.at("next run", job.next_run_at)?;
    facts.at("earliest start", job.can_start_by)?;
    facts.at("planned start", job.planned_start)?;
    facts.at("latest start", job.should_start_by)?;
    facts.at("expected end", job.expected_end)?;
    facts.at("deadline", job.deadline)?;
    facts.at("last start", job.last_start_at)?;
    facts.at("last end", job.last_end_at)?;
    let last = job.last_outcome.as_ref().map(|outcome| match job.last_exit_code {
        Some(code) => format!("{outcome}, exit code {code}"),
        None => outcome.to_string(),
    });
    facts.text("last outcome", last)?;
    facts.at("last good start", job.last_good_start_at)?;
    facts.text("failures in a row", Some(job.failure_count).filter(|n| 0 < *n))?;
    let takes = job.estimate.as_ref().map(|it| {
        let runs = counted(it.samples, "run");
        format!("{} ± {} ({runs})", length(it.mean.0), length(it.deviation.0))
    });
    facts.text("takes", takes)?;
    let owner = job.owner_node.as_ref().zip(job.owner_name.as_ref()).zip(job.owner_tag.as_ref());
    facts.text("runs on", owner.map(|((node, name), tag)| format!("{node} ({name}), run {tag}")))?;
    facts.at("running since", job.owner_started_at)?;
    facts.at("last ping", job.owner_last_ping_at)?;
    facts.at("in doubt since", job.steal_start_at)?;
    facts.text("open runs", Some(job.open_runs).filter(|n| 1 < *n))?;
    facts.text("waiting runs", Some(job.waiting_runs).filter(|n| 0 < *n))?;
    facts.at("placed at", job.placed_at)?;
    facts.at("created at", Some(job.created_at))?;
    facts.text("revision", Some(job.revision))?;
    writeln!(remote.out, "  {DIM}definition{DIM:#}")?;
    let JobDefinition(fields) = &job.definition;
    for (name, value) in fields.iter().filter(|(name, _)| !["name", "configuration"].contains(&name.as_str()))
    {
        define(name, value, remote)?;
    }
    Ok(())
}

/// Prints a field as in a job file, with one line for each of its parts.
fn define(name: &str, value: &Json, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    match value {
        Json::Object(fields) if !fields.is_empty() => {
            for (part, value) in fields {
                define(&format!("{name}.{}", key_text(part)), value, remote)?;
            }
        }
        value => writeln!(remote.out, "    {name} = {}", printable::line(&value_text(value)))?,
    }
    Ok(())
}

/// A TOML key, without quotes where possible.
fn key_text(key: &str) -> String {
    let is_bare = !key.is_empty() && key.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
    if is_bare { key.to_owned() } else { value_text(&Json::String(key.to_owned())) }
}

/// A TOML value in one line.
fn value_text(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(value_text).collect::<Vec<_>>().join(", ")),
        Json::Object(fields) => {
            let field =
                |(name, value): (&String, &Json)| format!("{} = {}", key_text(name), value_text(value));
            format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Prints labelled values one per line, and skips missing ones.
struct Facts<'a, 'b> {
    remote: &'a mut RemoteContext<'b>,
}

impl Facts<'_, '_> {
    fn text(&mut self, what: &str, value: Option<impl std::fmt::Display>) -> Result<(), CommandError> {
        if let Some(value) = value {
            writeln!(self.remote.out, "  {what:18}{}", printable::line(&value.to_string()))?;
        }
        Ok(())
    }

    fn at(&mut self, what: &str, at: Option<Instant>) -> Result<(), CommandError> {
        if let Some(at) = at {
            let shown = self.remote.clock.at_and_distance(at.0);
            writeln!(self.remote.out, "  {what:18}{shown}")?;
        }
        Ok(())
    }
}

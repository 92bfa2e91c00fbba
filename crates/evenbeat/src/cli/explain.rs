//! `evenbeat explain`: why a job is or is not running.

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, length, reason_beside, relative, style_of_word};
use super::remote::{CommandResult, RemoteContext};
use crate::views::model::{ExplanationView, Instant};

pub(crate) fn run(job: &JobKey, at: Option<Timestamp>, remote: &mut RemoteContext<'_>) -> CommandResult {
    remote.send_and_print(ApiRequest::get(&["jobs", job.as_str(), "explain"]).with("at", at), print)?;
    Ok(Exit::Ok)
}

fn print(it: &ExplanationView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let (style, clock) = (style_of_word(&it.condition), remote.clock.clone());
    writeln!(
        remote.out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#}{}  at {}",
        it.job,
        it.condition,
        reason_beside(&it.condition, &it.reason),
        clock.at(it.at.0)
    )?;
    writeln!(remote.out, "  {}", clock.sentence(&it.sentence))?;
    let until = |at: Option<Instant>| at.map_or(String::new(), |at| format!(" Until {}.", clock.at(at.0)));
    let (sentence, bound_until) = (clock.sentence(&it.binding_sentence), until(it.binding_until));
    writeln!(remote.out, "  {sentence}{bound_until} {DIM}({}){DIM:#}", it.binding)?;
    for wait in it.waits.iter().skip(1) {
        let sentence = clock.sentence(&wait.sentence);
        writeln!(remote.out, "  {DIM}also: {sentence}{} ({}){DIM:#}", until(wait.until), wait.reason)?;
    }
    if 0 < it.before {
        let first = it.before_first.join(", ");
        let more = if it.before_first.len() < it.before { ", …" } else { "" };
        writeln!(remote.out, "  {} ahead of it: {first}{more}", it.before)?;
    }
    let mut row = |what: &str, at: Option<Instant>| match at {
        Some(at) => {
            writeln!(remote.out, "  {what:16}{}  {DIM}{}{DIM:#}", clock.at(at.0), relative(at.0, it.at.0))
        }
        None => Ok(()),
    };
    row("starts at", it.starts_at)?;
    row("earliest start", it.can_start_by)?;
    row("latest start", it.should_start_by)?;
    // Only a job that is running or about to start has an expected end.
    let is_expected = it.starts_at.is_some() || it.binding == "running";
    row("expected end", it.expected_end.filter(|_| is_expected))?;
    row("deadline", it.deadline)?;
    writeln!(remote.out, "  {:16}{}", "expected length", length(it.expected_length.0))?;
    Ok(())
}

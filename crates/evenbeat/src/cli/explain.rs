//! `evenbeat explain`: why a job is or is not running.

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;

use super::Exit;
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, DIM, length, reason_beside, relative, style_of_word};
use crate::views::model::{ExplanationView, Instant};

pub(crate) fn run(job: &JobKey, at: Option<Timestamp>, desk: &mut Desk<'_>) -> Done {
    desk.ask_and_show(Ask::get(&["jobs", job.as_str(), "explain"]).with("at", at), print)?;
    Ok(Exit::Ok)
}

fn print(it: &ExplanationView, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    let (style, clock) = (style_of_word(&it.condition), desk.clock.clone());
    writeln!(
        desk.out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#}{}  at {}",
        it.job,
        it.condition,
        reason_beside(&it.condition, &it.reason),
        clock.at(it.at.0)
    )?;
    writeln!(desk.out, "  {}", clock.sentence(&it.sentence))?;
    let until = |at: Option<Instant>| at.map_or(String::new(), |at| format!(" Until {}.", clock.at(at.0)));
    let (sentence, bound_until) = (clock.sentence(&it.binding_sentence), until(it.binding_until));
    writeln!(desk.out, "  {sentence}{bound_until} {DIM}({}){DIM:#}", it.binding)?;
    for wait in it.waits.iter().skip(1) {
        let sentence = clock.sentence(&wait.sentence);
        writeln!(desk.out, "  {DIM}also: {sentence}{} ({}){DIM:#}", until(wait.until), wait.reason)?;
    }
    if 0 < it.before {
        let first = it.before_first.join(", ");
        let more = if it.before_first.len() < it.before { ", …" } else { "" };
        writeln!(desk.out, "  {} ahead of it: {first}{more}", it.before)?;
    }
    let mut row = |what: &str, at: Option<Instant>| match at {
        Some(at) => {
            writeln!(desk.out, "  {what:16}{}  {DIM}{}{DIM:#}", clock.at(at.0), relative(at.0, it.at.0))
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
    writeln!(desk.out, "  {:16}{}", "expected length", length(it.expected_length.0))?;
    Ok(())
}

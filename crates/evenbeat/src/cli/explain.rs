//! `evenbeat explain`: why a job runs or does not.

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;

use super::Exit;
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, DIM, relative, style_of_word};
use crate::api::model::{ExplanationView, Instant};

pub(crate) fn run(job: &JobKey, at: Option<Timestamp>, desk: &mut Desk<'_>) -> Done {
    desk.ask_and_show(Ask::get(&["jobs", job.as_str(), "explain"]).with("at", at), print)?;
    Ok(Exit::Ok)
}

fn print(it: &ExplanationView, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    let style = style_of_word(&it.condition);
    writeln!(
        desk.out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#} {DIM}{}{DIM:#}  at {}",
        it.job, it.condition, it.reason, it.at
    )?;
    writeln!(desk.out, "  {}", it.sentence)?;
    writeln!(desk.out, "  {} {DIM}({}){DIM:#}", it.binding_sentence, it.binding)?;
    for wait in it.waits.iter().skip(1) {
        let until = wait.until.map_or(String::new(), |until| format!(" Until {until}."));
        writeln!(desk.out, "  {DIM}also: {}{until}{DIM:#}", wait.sentence)?;
    }
    if 0 < it.before {
        let first = it.before_first.join(", ");
        let more = if it.before_first.len() < it.before { ", …" } else { "" };
        writeln!(desk.out, "  {} in line before it: {first}{more}", it.before)?;
    }
    let mut row = |what: &str, at: Option<Instant>| match at {
        Some(at) => writeln!(desk.out, "  {what:16}{at}  {DIM}{}{DIM:#}", relative(at.0, it.at.0)),
        None => Ok(()),
    };
    row("starts at", it.starts_at)?;
    row("can start by", it.can_start_by)?;
    row("should start by", it.should_start_by)?;
    row("expected end", it.expected_end)?;
    row("deadline", it.deadline)?;
    writeln!(desk.out, "  {:16}{}", "expected length", it.expected_length)?;
    Ok(())
}

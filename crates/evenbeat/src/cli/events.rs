//! `evenbeat events`: what happens, as it happens.

use evenbeat_core::ids::JobKey;

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, style_of_word};
use super::remote::{CommandResult, RemoteContext};
use crate::printable;
use crate::views::model::EventView;

/// Follows the events of a server until it ends the stream or the user does.
pub(crate) fn run(kinds: &[String], jobs: &[JobKey], remote: &mut RemoteContext<'_>) -> CommandResult {
    let mut request = ApiRequest::get(&["events"]);
    for kind in kinds {
        request = request.with("kind", Some(kind));
    }
    for job in jobs {
        request = request.with("job", Some(job));
    }
    let mut lines = EventLines::default();
    remote.follow(request, |part, remote| {
        for data in lines.push(part) {
            if remote.json {
                writeln!(remote.out, "{data}")?;
            } else {
                // A server that is newer may know events that this program does not.
                match serde_json::from_str::<EventView>(&data) {
                    Ok(event) => print(&event, remote)?,
                    Err(_) => writeln!(remote.out, "{}", printable::line(&data))?,
                }
            }
        }
        remote.out.flush()?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

/// The data of events, put together from parts that may end anywhere.
#[derive(Debug, Default)]
struct EventLines(Vec<u8>);

impl EventLines {
    fn push(&mut self, part: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(part);
        let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        let whole = String::from_utf8_lossy(&whole);
        whole.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }
}

fn print(event: &EventView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let (at, text) = match event {
        EventView::Job { at, job, change } => (Some(at), format!("job {BOLD}{job}{BOLD:#} {change}")),
        EventView::Run { at, job, run, change, outcome, took, .. } => {
            let word = outcome.as_deref().unwrap_or(change);
            let style = style_of_word(word);
            let took = took.map(|it| format!(" after {it}")).unwrap_or_default();
            (Some(at), format!("run of {BOLD}{job}{BOLD:#} {style}{word}{style:#}{took}  {DIM}{run}{DIM:#}"))
        }
        EventView::Condition { at, job, condition, reason, .. } => {
            let word = condition.as_deref().unwrap_or("not tracked");
            let style = style_of_word(word);
            let reason = reason.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
            (Some(at), format!("job {BOLD}{job}{BOLD:#} is {style}{word}{style:#}{reason}"))
        }
        EventView::Node { at, node, message, .. } => {
            let node = node.as_ref().map(|it| format!("node {BOLD}{it}{BOLD:#}: ")).unwrap_or_default();
            (Some(at), format!("{node}{message}"))
        }
        EventView::Score { at, score } => (Some(at), format!("distribution score {score}")),
        EventView::Rebalance { at, moved, old_score, new_score, .. } => {
            (Some(at), format!("rebalance moved {moved} jobs, score {old_score} to {new_score}"))
        }
        EventView::Jobs { at, changed, removed } => {
            (Some(at), format!("{changed} jobs changed, {removed} removed"))
        }
        EventView::Runs { at, started, ended } => {
            let ended: Vec<String> = ended.iter().map(|(outcome, n)| format!(", {n} {outcome}")).collect();
            (Some(at), format!("{started} runs started{}", ended.concat()))
        }
        EventView::Conditions { at, changed } => {
            let changed: Vec<String> = changed.iter().map(|(word, n)| format!("{n} to {word}")).collect();
            (Some(at), format!("conditions changed: {}", changed.join(", ")))
        }
        EventView::Resync { detail } => (None, format!("events are missing: {detail}")),
        EventView::CutOff { detail } => (None, format!("cut off: {detail}")),
    };
    let at = at.map(|at| remote.clock.at(at.0)).unwrap_or_default();
    writeln!(remote.out, "{DIM}{at}{DIM:#}  {text}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_come_in_parts() {
        let mut lines = EventLines::default();
        assert_eq!(lines.push(b"id: 1\nevent: job\nda"), [""; 0]);
        assert_eq!(lines.push(b"ta: {\"a\":1}\n\n: alive\n\ndata: 2"), ["{\"a\":1}"]);
        assert_eq!(lines.push(b"\n"), ["2"]);
    }
}

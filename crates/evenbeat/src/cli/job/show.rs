//! `evenbeat job show`.

use evenbeat_core::ids::JobKey;

use super::super::Exit;
use super::super::client::{Ask, Trouble};
use super::super::live::{Desk, Done};
use super::super::show::{BOLD, DIM, relative, style_of_word};
use crate::api::model::{Instant, JobView};

pub(super) fn run(key: &JobKey, desk: &mut Desk<'_>) -> Done {
    desk.ask_and_show::<JobView>(Ask::get(&["jobs", key.as_str()]), print)?;
    Ok(Exit::Ok)
}

fn print(job: &JobView, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    let style = style_of_word(&job.condition);
    let untracked = if job.tracked { "" } else { " (does not count while it is so)" };
    writeln!(
        desk.out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#} {DIM}{}{DIM:#}  {}{untracked}",
        job.key, job.condition, job.reason, job.status
    )?;
    writeln!(desk.out, "  {}", job.sentence)?;
    let mut facts = Facts { desk };
    facts.text("schedule", Some(&job.schedule))?;
    facts.text("target", Some(&job.target_kind))?;
    facts.text("pool", Some(&job.pool).filter(|it| *it != "default"))?;
    facts.text("site", job.site.as_ref())?;
    facts.text("tenant", job.tenant.as_ref())?;
    let labels: Vec<String> = job.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    facts.text("labels", Some(labels.join(" ")).filter(|it| !it.is_empty()))?;
    let paused = job.paused_by.as_ref().map(|by| match &job.pause_reason {
        Some(reason) => format!("by {by}: {reason}"),
        None => format!("by {by}"),
    });
    facts.text("paused", paused)?;
    facts.at("next run", job.next_run_at)?;
    facts.at("can start by", job.can_start_by)?;
    facts.at("planned start", job.planned_start)?;
    facts.at("should start by", job.should_start_by)?;
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
    let takes =
        job.estimate.as_ref().map(|it| format!("{} ± {} ({} runs)", it.mean, it.deviation, it.samples));
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
    facts.text("revision", Some(job.revision))
}

/// Facts below each other, those that are there.
struct Facts<'a, 'b> {
    desk: &'a mut Desk<'b>,
}

impl Facts<'_, '_> {
    fn text(&mut self, what: &str, value: Option<impl std::fmt::Display>) -> Result<(), Trouble> {
        if let Some(value) = value {
            writeln!(self.desk.out, "  {what:18}{value}")?;
        }
        Ok(())
    }

    fn at(&mut self, what: &str, at: Option<Instant>) -> Result<(), Trouble> {
        let now = self.desk.now;
        self.text(what, at.map(|at| format!("{at}  {DIM}{}{DIM:#}", relative(at.0, now))))
    }
}

//! `evenbeat attainment` and `evenbeat job stats`: how fresh jobs were.

use clap::Args;
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Duration;

use super::Exit;
use super::chart::thousands;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, length};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use crate::views::model::{AttainmentFigures, AttainmentView, JobAttainmentView};

/// Arguments of `evenbeat attainment`.
#[derive(Debug, Args)]
pub(crate) struct AttainmentArgs {
    /// How far back to look.
    #[arg(long, value_name = "LENGTH", default_value = "24h", value_parser = ["24h", "7d", "30d"])]
    window: String,
    /// How to group jobs: `fleet`, `tenant`, or `label:` and the name of a label.
    #[arg(long, value_name = "GROUP", default_value = "fleet")]
    by: String,
}

/// Prints the attainment of groups of jobs.
pub(crate) fn run(args: &AttainmentArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let request =
        ApiRequest::get(&["attainment"]).with("window", Some(&args.window)).with("by", Some(&args.by));
    remote.send_and_print(request, print_groups)?;
    Ok(Exit::Ok)
}

/// Prints the attainment of one job.
pub(crate) fn of_job(key: &JobKey, remote: &mut RemoteContext<'_>) -> CommandResult {
    remote.send_and_print(ApiRequest::get(&["jobs", key.as_str(), "attainment"]), print_job)?;
    Ok(Exit::Ok)
}

fn print_groups(it: &AttainmentView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if it.groups.is_empty() {
        writeln!(remote.out, "no jobs")?;
        return Ok(());
    }
    let group = it.by.strip_prefix("label:").unwrap_or(&it.by).to_uppercase();
    let rows: Vec<Vec<Cell>> = it
        .groups
        .iter()
        .map(|group| {
            let name = group.name.as_deref().unwrap_or(if it.by == "fleet" { "all jobs" } else { "(none)" });
            vec![
                Cell::plain(name),
                Cell::plain(share(&group.figures)),
                Cell::plain(late(&group.figures)),
                Cell::styled(thousands(group.jobs), DIM),
            ]
        })
        .collect();
    let columns = [
        (group.as_str(), Fit::Shorten(12)),
        ("ATTAINMENT", Fit::Whole),
        ("LATE", Fit::Whole),
        ("JOBS", Fit::Drop),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)?;
    if it.groups.len() < it.total_groups {
        let (n, all) = (thousands(it.groups.len() as u64), thousands(it.total_groups as u64));
        writeln!(remote.out, "{DIM}the lowest {n} of {all} groups{DIM:#}")?;
    }
    Ok(())
}

fn print_job(it: &JobAttainmentView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    writeln!(remote.out, "{BOLD}{}{BOLD:#}", it.job)?;
    for window in &it.windows {
        let (share, late) = (share(&window.figures), late(&window.figures));
        writeln!(remote.out, "  last {:5}{share:>10}  {DIM}{late} late{DIM:#}", window.window)?;
    }
    let clock = remote.clock.clone();
    for span in it.late.iter().take(10) {
        let to = span.to.map_or("now".to_owned(), |to| clock.at(to.0));
        writeln!(remote.out, "  late from {} to {to}", clock.at(span.from.0))?;
    }
    Ok(())
}

fn share(figures: &AttainmentFigures) -> String {
    figures.attainment.map_or("-".to_owned(), |share| format!("{:.3}%", (share * 1e5).floor() / 1e3))
}

fn late(figures: &AttainmentFigures) -> String {
    length(Duration::from_secs(figures.late_seconds))
}

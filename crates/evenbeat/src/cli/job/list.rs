//! `evenbeat job list`.

use clap::Args;

use super::super::client::{ApiRequest, CommandError};
use super::super::format::{DIM, NOTICE, relative, style_of_word};
use super::super::remote::{CommandResult, RemoteContext};
use super::super::table::{Cell, Fit, words};
use super::super::{Exit, chart};
use crate::views::model::{Instant, JobView, Page};

/// Filters of `evenbeat job list`.
#[derive(Debug, Args)]
pub(crate) struct JobListArgs {
    /// Only jobs whose key contains this text, ignoring case.
    #[arg(short = 'q', long = "query", value_name = "TEXT")]
    query: Option<String>,
    /// Only jobs whose key starts with this text.
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Only jobs with this label. Can be repeated.
    #[arg(short, long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Only jobs in this pool.
    #[arg(long)]
    pool: Option<String>,
    /// Only jobs of this site.
    #[arg(long)]
    site: Option<String>,
    /// Only jobs of this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only jobs in this condition.
    #[arg(long, value_parser = ["ok", "warning", "error"])]
    condition: Option<String>,
    /// Only jobs with this status.
    #[arg(long, value_parser = ["pending", "scheduled", "running", "paused", "disabled", "done"])]
    status: Option<String>,
    /// Show at most this many jobs.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
}

pub(super) fn run(args: &JobListArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let mut request = ApiRequest::get(&["jobs"])
        .with("q", args.query.as_ref())
        .with("prefix", args.prefix.as_ref())
        .with("pool", args.pool.as_ref())
        .with("site", args.site.as_ref())
        .with("tenant", args.tenant.as_ref())
        .with("condition", args.condition.as_ref())
        .with("status", args.status.as_ref());
    for label in &args.labels {
        request = request.with("label", Some(label));
    }
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    remote.fetch_all_and_print::<JobView>(&request, "after", most, table)?;
    Ok(Exit::Ok)
}

fn table(page: &Page<JobView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no jobs")?;
        return Ok(());
    }
    let now = remote.now;
    let when = |at: Option<Instant>| at.map_or("-".to_owned(), |at| relative(at.0, now));
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|job| {
            let condition = if job.tracked { &*job.condition } else { "-" };
            vec![
                Cell::plain(&job.key),
                Cell::styled(condition, style_of_word(condition)),
                Cell::plain(&*job.status),
                Cell::plain(when(job.next_run_at)),
                Cell::plain(when(job.last_start_at)),
                Cell::plain(job.last_outcome.as_deref().unwrap_or("-")),
                Cell::styled(&job.schedule, DIM),
            ]
        })
        .collect();
    let columns = [
        ("JOB", Fit::Shorten(16)),
        ("CONDITION", Fit::Whole),
        ("STATUS", Fit::Whole),
        ("NEXT RUN", Fit::Drop),
        ("LAST RUN", Fit::Drop),
        ("OUTCOME", Fit::Drop),
        ("SCHEDULE", Fit::Drop),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)?;
    if page.next.is_some() {
        let shown = chart::counted(chart::to_u64(page.items.len()), "job");
        writeln!(remote.out, "{NOTICE}{shown} shown; there are more (raise --limit){NOTICE:#}")?;
    }
    Ok(())
}

//! `evenbeat job list`.

use clap::Args;

use super::super::client::{ApiRequest, CommandError};
use super::super::format::{DIM, NOTICE, relative, style_of_word};
use super::super::remote::{CommandResult, RemoteContext};
use super::super::table::{Cell, Fit, words};
use super::super::{Exit, chart};
use super::filter::FilterArgs;
use crate::views::model::{CountedJobs, Instant, JobView, Page};

/// Filters of `evenbeat job list`.
#[derive(Debug, Args)]
pub(crate) struct JobListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Show at most this many jobs.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
}

pub(super) fn run(args: &JobListArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let request = args.filter.on(ApiRequest::get(&["jobs"]));
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let counted = request.clone().with("limit", Some(1)).with("count", Some(true));
    remote.fetch_all_and_print::<JobView>(&request, "after", most, |page, remote| {
        let total = match page.next {
            Some(_) => Some(remote.send(counted)?.read::<CountedJobs>()?),
            None => None,
        };
        table(page, total.as_ref(), remote)
    })?;
    Ok(Exit::Ok)
}

fn table(
    page: &Page<JobView>,
    total: Option<&CountedJobs>,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
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
        let of = total
            .and_then(|it| Some((it.total?, it.total_is_exact?)))
            .map_or(String::new(), |(n, is_exact)| {
                format!(" of {}{}", chart::thousands(n), if is_exact { "" } else { "+" })
            });
        writeln!(remote.out, "{NOTICE}{shown} shown{of}; there are more (raise --limit){NOTICE:#}")?;
    }
    Ok(())
}

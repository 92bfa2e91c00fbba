//! `evenbeat upcoming` without a file: the upcoming runs of a server's fleet.

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Duration;

use super::{LOOKAHEAD, UpcomingOptions};
use crate::cli::Exit;
use crate::cli::client::{ApiRequest, CommandError};
use crate::cli::format::{self, BOLD, DIM, NOTICE, relative};
use crate::cli::remote::{CommandResult, RemoteContext};
use crate::views::model::{OccurrenceView, Page, UpcomingPage};

/// Largest number of runs the server returns at once.
const PAGE_MAX: usize = 500;

pub(crate) fn run(options: &UpcomingOptions, remote: &mut RemoteContext<'_>) -> CommandResult {
    if let Some(to) = options.to.filter(|to| *to <= options.from) {
        return Err(CommandError::Usage(format!("--to ({to}) is not after --from ({})", options.from)));
    }
    let page = match &options.job {
        Some(job) => of_job(job, options, remote)?,
        None => of_fleet(options, remote)?,
    };
    if remote.json {
        let document = serde_json::to_value(&page).map_err(|error| CommandError::Bad(error.to_string()))?;
        format::json(remote.out, &document)?;
    } else {
        print(&page, options, remote)?;
    }
    Ok(Exit::Ok)
}

fn of_fleet(options: &UpcomingOptions, remote: &mut RemoteContext<'_>) -> Result<UpcomingPage, CommandError> {
    let page = |after: Option<String>, n_there: usize| {
        ApiRequest::get(&["upcoming"])
            .with("from", Some(options.from))
            .with("to", options.to)
            .with("limit", Some((options.limit - n_there).clamp(1, PAGE_MAX)))
            .with("after", after)
    };
    let mut all: UpcomingPage = remote.send(page(None, 0))?.read()?;
    while let Some(next) = all.next.take_if(|_| all.items.len() < options.limit) {
        let more: UpcomingPage = remote.send(page(Some(next), all.items.len()))?.read()?;
        all.items.extend(more.items);
        all.next = more.next;
    }
    Ok(all)
}

/// The upcoming runs of one job. If the default window has none, its next run.
fn of_job(
    job: &JobKey,
    options: &UpcomingOptions,
    remote: &mut RemoteContext<'_>,
) -> Result<UpcomingPage, CommandError> {
    let to = options.to.unwrap_or(options.from + LOOKAHEAD);
    // Without `--from` the server uses its own clock.
    let mut after =
        (options.from != remote.now).then(|| (options.from - Duration::from_millis(1)).to_string());
    let mut items: Vec<OccurrenceView> = Vec::new();
    loop {
        let request = ApiRequest::get(&["jobs", job.as_str(), "upcoming"])
            .with("limit", Some((options.limit - items.len()).clamp(1, PAGE_MAX)))
            .with("after", after.take());
        let page: Page<OccurrenceView> = remote.send(request)?.read()?;
        items.extend(page.items);
        after = page.next;
        let is_beyond = items.last().is_none_or(|last| to <= last.at.0);
        if after.is_none() || is_beyond || options.limit <= items.len() {
            break;
        }
    }
    let n_within = items.iter().filter(|it| it.at.0 < to).count();
    items.truncate(if options.to.is_none() { n_within.max(1) } else { n_within });
    Ok(UpcomingPage { from: options.from.into(), to: to.into(), total: items.len(), items, next: None })
}

fn print(
    page: &UpcomingPage,
    options: &UpcomingOptions,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
    let shown: Vec<&OccurrenceView> = page.items.iter().take(options.limit).collect();
    // `CET` and `CEST` differ in length.
    let width = shown.iter().map(|it| remote.clock.day_at(it.at.0).len()).max().unwrap_or(0);
    for it in &shown {
        let mark = if it.estimate { '~' } else { ' ' };
        let (at, when) = (remote.clock.day_at(it.at.0), relative(it.at.0, options.from));
        let held_up = it.held_up_by.as_ref().map_or(String::new(), |why| {
            let due = if it.due_at == it.at {
                String::new()
            } else {
                format!(", due {}", remote.clock.day_at(it.due_at.0))
            };
            format!("  {DIM}{why}{due}{DIM:#}")
        });
        writeln!(remote.out, "{mark}{at:width$}  {DIM}{when:>10}{DIM:#}  {BOLD}{}{BOLD:#}{held_up}", it.job)?;
    }
    match page.total.saturating_sub(shown.len()) {
        _ if shown.is_empty() => writeln!(remote.out, "no upcoming runs")?,
        more if 0 < more => writeln!(remote.out, "{NOTICE}… and {more} more (raise --limit){NOTICE:#}")?,
        _ => {}
    }
    Ok(())
}

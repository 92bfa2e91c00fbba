//! `evenbeat upcoming` without a file: the upcoming runs of a server's fleet.

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Duration;

use super::Exit;
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, DIM, NOTICE, relative};
use super::upcoming::Wanted;
use crate::views::model::{OccurrenceView, Page, UpcomingPage};

/// Largest number of runs the server returns at once.
const PAGE_MAX: usize = 500;

/// Default length of the window.
const LOOKAHEAD: Duration = Duration::from_hours(1);

pub(crate) fn run(wanted: &Wanted, desk: &mut Desk<'_>) -> Done {
    if let Some(to) = wanted.to.filter(|to| *to <= wanted.from) {
        return Err(Trouble::Usage(format!("--to ({to}) is not after --from ({})", wanted.from)));
    }
    let page = match &wanted.job {
        Some(job) => of_job(job, wanted, desk)?,
        None => of_fleet(wanted, desk)?,
    };
    if desk.json {
        let document = serde_json::to_value(&page).map_err(|error| Trouble::Bad(error.to_string()))?;
        super::show::json(desk.out, &document)?;
    } else {
        print(&page, wanted, desk)?;
    }
    Ok(Exit::Ok)
}

fn of_fleet(wanted: &Wanted, desk: &mut Desk<'_>) -> Result<UpcomingPage, Trouble> {
    let page = |after: Option<String>, n_there: usize| {
        Ask::get(&["upcoming"])
            .with("from", Some(wanted.from))
            .with("to", wanted.to)
            .with("limit", Some((wanted.limit - n_there).clamp(1, PAGE_MAX)))
            .with("after", after)
    };
    let mut all: UpcomingPage = desk.ask(page(None, 0))?.read()?;
    while let Some(next) = all.next.take_if(|_| all.items.len() < wanted.limit) {
        let more: UpcomingPage = desk.ask(page(Some(next), all.items.len()))?.read()?;
        all.items.extend(more.items);
        all.next = more.next;
    }
    Ok(all)
}

/// The upcoming runs of one job. If the default window has none, its next run.
fn of_job(job: &JobKey, wanted: &Wanted, desk: &mut Desk<'_>) -> Result<UpcomingPage, Trouble> {
    let to = wanted.to.unwrap_or(wanted.from + LOOKAHEAD);
    // Without `--from` the server uses its own clock.
    let mut after = (wanted.from != desk.now).then(|| (wanted.from - Duration::from_millis(1)).to_string());
    let mut items: Vec<OccurrenceView> = Vec::new();
    loop {
        let ask = Ask::get(&["jobs", job.as_str(), "upcoming"])
            .with("limit", Some((wanted.limit - items.len()).clamp(1, PAGE_MAX)))
            .with("after", after.take());
        let page: Page<OccurrenceView> = desk.ask(ask)?.read()?;
        items.extend(page.items);
        after = page.next;
        let is_beyond = items.last().is_none_or(|last| to <= last.at.0);
        if after.is_none() || is_beyond || wanted.limit <= items.len() {
            break;
        }
    }
    let n_within = items.iter().filter(|it| it.at.0 < to).count();
    items.truncate(if wanted.to.is_none() { n_within.max(1) } else { n_within });
    Ok(UpcomingPage { from: wanted.from.into(), to: to.into(), total: items.len(), items, next: None })
}

fn print(page: &UpcomingPage, wanted: &Wanted, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    let shown: Vec<&OccurrenceView> = page.items.iter().take(wanted.limit).collect();
    // `CET` and `CEST` differ in length.
    let width = shown.iter().map(|it| desk.clock.day_at(it.at.0).len()).max().unwrap_or(0);
    for it in &shown {
        let mark = if it.estimate { '~' } else { ' ' };
        let (at, when) = (desk.clock.day_at(it.at.0), relative(it.at.0, wanted.from));
        let held_up = it.held_up_by.as_ref().map_or(String::new(), |why| {
            let due = if it.due_at == it.at {
                String::new()
            } else {
                format!(", due {}", desk.clock.day_at(it.due_at.0))
            };
            format!("  {DIM}{why}{due}{DIM:#}")
        });
        writeln!(desk.out, "{mark}{at:width$}  {DIM}{when:>10}{DIM:#}  {BOLD}{}{BOLD:#}{held_up}", it.job)?;
    }
    match page.total.saturating_sub(shown.len()) {
        _ if shown.is_empty() => writeln!(desk.out, "no upcoming runs")?,
        more if 0 < more => writeln!(desk.out, "{NOTICE}… and {more} more (raise --limit){NOTICE:#}")?,
        _ => {}
    }
    Ok(())
}

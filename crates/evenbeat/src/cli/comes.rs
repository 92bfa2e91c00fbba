//! `evenbeat upcoming` without a file: what a server's fleet does between two instants.

use super::Exit;
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, DIM, NOTICE, relative};
use super::upcoming::Wanted;
use crate::api::model::{OccurrenceView, UpcomingPage};

/// So many a server gives at once.
const PAGE_MAX: usize = 500;

pub(crate) fn run(wanted: &Wanted, desk: &mut Desk<'_>) -> Done {
    if let Some(to) = wanted.to.filter(|to| *to <= wanted.from) {
        return Err(Trouble::Usage(format!("--to ({to}) is not after --from ({})", wanted.from)));
    }
    let mut all: Option<UpcomingPage> = None;
    loop {
        let n_there = all.as_ref().map_or(0, |it| it.items.len());
        let next = all.as_ref().and_then(|it| it.next.clone());
        // One job of many has few of a page: then all of it is looked through.
        let most = if wanted.job.is_some() { PAGE_MAX } else { (wanted.limit - n_there).clamp(1, PAGE_MAX) };
        let ask = Ask::get(&["upcoming"])
            .with("from", Some(wanted.from))
            .with("to", wanted.to)
            .with("limit", Some(most))
            .with("after", next);
        let mut page: UpcomingPage = desk.ask(ask)?.read()?;
        if let Some(job) = &wanted.job {
            page.items.retain(|it| it.job == job.as_str());
        }
        let all = match &mut all {
            Some(all) => {
                all.items.extend(page.items);
                all.next = page.next;
                all
            }
            none => none.insert(page),
        };
        if all.next.is_none() || wanted.limit <= all.items.len() {
            break;
        }
    }
    let Some(all) = all else { return Ok(Exit::Ok) };
    if desk.json {
        let document = serde_json::to_value(&all).map_err(|error| Trouble::Bad(error.to_string()))?;
        super::show::json(desk.out, &document)?;
    } else {
        print(&all, wanted, desk)?;
    }
    Ok(Exit::Ok)
}

fn print(page: &UpcomingPage, wanted: &Wanted, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    let shown: Vec<&OccurrenceView> = page.items.iter().take(wanted.limit).collect();
    // `CET` and `CEST` are not equally long.
    let width = shown.iter().map(|it| desk.clock.day_at(it.at.0).len()).max().unwrap_or(0);
    for it in &shown {
        let mark = if it.estimate { '~' } else { ' ' };
        let (at, when) = (desk.clock.day_at(it.at.0), relative(it.at.0, wanted.from));
        writeln!(desk.out, "{mark}{at:width$}  {DIM}{when:>10}{DIM:#}  {BOLD}{}{BOLD:#}", it.job)?;
    }
    let is_of_all = wanted.job.is_none();
    match page.total.saturating_sub(shown.len()) {
        _ if shown.is_empty() => writeln!(desk.out, "nothing is due")?,
        more if is_of_all && 0 < more => {
            writeln!(desk.out, "{NOTICE}… and {more} more (raise --limit){NOTICE:#}")?;
        }
        _ => {}
    }
    Ok(())
}

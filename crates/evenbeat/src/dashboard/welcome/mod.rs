//! The empty state that teaches: paste a crontab, compare, take it over.
//!
//! Reading a crontab changes nothing. Taking it over sends the same text again, with a hash of what was shown: a text that
//! was changed in between is shown again, and not taken over.

mod compare;
mod heat;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use evenbeat_core::job::Job;
use maud::{Markup, html};

use self::compare::LISTED_MAX;
use super::Pages;
use super::error::{NoPage, PageResult, see_other};
use super::flash::Flash;
use super::frame::{Frame, Nav};
use super::parts::{form_token, icon};
use super::times::{Times, count, counted};
use super::user::{FormFields, PageEditor, PageForm, PageUser, PageViewer};
use crate::intake::{ApplyOptions, IntakeError, JobChange};
use crate::printable;
use crate::views::takeover::{self, Takeover};

/// Largest crontab that fits into a form, as browsers send it.
const TEXT_MAX: usize = 40_000;

/// The form that has the crontab; buttons elsewhere on the page send it too.
const FORM: &str = "ct-form";

/// Errors that are listed for a text of which no line can be read.
const ERRORS_MAX: usize = 10;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/welcome", get(page).post(read)).route("/welcome/take", post(take))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    Ok(WelcomePage::new(&pages, String::new()).show(&user, &times))
}

async fn read(State(pages): State<Pages>, form: PageForm<PageViewer>) -> PageResult<Response> {
    let times = form.user.times(pages.app.intake.now());
    let mut page = WelcomePage::new(&pages, text_of(&form.fields));
    page.read(&pages).await?;
    Ok(page.show(&form.user, &times))
}

async fn take(State(pages): State<Pages>, form: PageForm<PageEditor>) -> PageResult<Response> {
    let times = form.user.times(pages.app.intake.now());
    let mut page = WelcomePage::new(&pages, text_of(&form.fields));
    page.read(&pages).await?;
    let Some(WelcomeReading::Read(takeover)) = &page.reading else {
        return Ok(page.show(&form.user, &times));
    };
    if form.fields.get("read") != Some(hash_of(&page.text).as_str()) {
        page.notice = Some(
            "The crontab was changed after it was read, so nothing was taken over. Look at it again."
                .to_owned(),
        );
        return Ok(page.show(&form.user, &times));
    }
    let keeps_times = form.fields.get("keep").is_some();
    let jobs = chosen(takeover, form.fields.all("line"), keeps_times);
    if jobs.is_empty() {
        page.notice = Some("No line is ticked, so nothing was taken over.".to_owned());
        return Ok(page.show(&form.user, &times));
    }
    let options = ApplyOptions { only_new: true, ..ApplyOptions::default() };
    match pages.app.intake.apply(form.user.actor(), jobs, options).await {
        Ok(applied) => {
            let n_new = applied.iter().filter(|it| it.change == JobChange::Created).count() as u64;
            let n_there = applied.len() as u64 - n_new;
            let mut text = "Comment their lines out in the crontab, or both will run them.".to_owned();
            if 0 < n_there {
                // Writing to a string cannot fail.
                let _ = write!(text, " {} were there already and stay as they are.", count(n_there));
            }
            let flash = Flash::done(format!("Took over {}", counted(n_new, "job")), text);
            Ok(see_other("/", Some(&flash.with_link("/?tab=all", "Show the jobs"))))
        }
        Err(IntakeError::Down(down)) => Err(NoPage::Down(down)),
        Err(other) => {
            page.notice = Some(format!(
                "Not all jobs were taken over: {other}. Read the crontab again to see which are left."
            ));
            Ok(page.show(&form.user, &times))
        }
    }
}

/// The crontab of a form as it was typed: space at its beginning counts, because lines are numbered.
fn text_of(fields: &FormFields) -> String {
    fields.all("crontab").first().map_or(String::new(), |it| it.replace("\r\n", "\n"))
}

fn hash_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The jobs whose lines are ticked, and those of the lines that are not listed.
fn chosen(takeover: &Takeover, ticked: &[String], keeps_times: bool) -> Vec<Job> {
    let ticked: BTreeSet<usize> = ticked.iter().filter_map(|it| it.parse().ok()).collect();
    let listed: BTreeSet<usize> = takeover.entries.iter().take(LISTED_MAX).map(|it| it.line).collect();
    let is_chosen = |line: &usize| ticked.contains(line) || !listed.contains(line);
    takeover.jobs().filter(|(line, _)| is_chosen(line)).map(|(_, it)| it.job(keeps_times)).collect()
}

/// What came of a text.
#[derive(Debug)]
enum WelcomeReading {
    Read(Box<Takeover>),
    /// No line of it could be read.
    Failed(Vec<String>),
}

#[derive(Debug)]
struct WelcomePage {
    text: String,
    is_fleet_empty: bool,
    reading: Option<WelcomeReading>,
    /// Why a request was refused.
    notice: Option<String>,
}

impl WelcomePage {
    fn new(pages: &Pages, text: String) -> WelcomePage {
        let is_fleet_empty = pages.app.fleet.ledger().n_jobs() == 0;
        WelcomePage { text, is_fleet_empty, reading: None, notice: None }
    }

    async fn read(&mut self, pages: &Pages) -> PageResult<()> {
        if self.text.trim().is_empty() {
            self.notice = Some("There is nothing to read yet. Paste a crontab first.".to_owned());
            return Ok(());
        }
        self.reading = Some(match takeover::read(&pages.app, &self.text).await? {
            Ok(takeover) if takeover.entries.is_empty() => {
                WelcomeReading::Failed(vec!["It has comments and variables, and no entries.".to_owned()])
            }
            Ok(takeover) => WelcomeReading::Read(Box::new(takeover)),
            Err(errors) => WelcomeReading::Failed(errors),
        });
        Ok(())
    }

    fn show<R>(&self, user: &PageUser<R>, times: &Times) -> Response {
        Frame::new(Nav::Welcome, "Add jobs", self.body(user, times)).show(user, times)
    }

    fn body<R>(&self, user: &PageUser<R>, times: &Times) -> Markup {
        let (title, note) = self.verdict();
        html! {
            @if let Some(notice) = &self.notice {
                div.banner.warn role="status" { (icon("warning")) span { (printable::line(notice)) } }
            }
            section.verdict aria-labelledby="v" {
                div { h1 id="v" { (icon("new")) (title) } p.sub { (note) } }
            }
            div.wel {
                section.sec aria-labelledby="p-h" {
                    div.sec-h { h2 id="p-h" { "1. Paste a crontab" } span.sub { "nothing is saved or run yet" } }
                    (self.form(user))
                }
                section.sec aria-labelledby="h-h" {
                    div.sec-h { h2 id="h-h" { "2. Compare" } span.sub { "rows are hours, columns are minutes" } }
                    @match &self.reading {
                        Some(WelcomeReading::Read(it)) => { (compare::comparison(it, times)) }
                        Some(WelcomeReading::Failed(errors)) => {
                            p { "No line of this text could be read as a crontab entry." }
                            ul { @for it in errors.iter().take(ERRORS_MAX) { li { (printable::line(it)) } } }
                            @if ERRORS_MAX < errors.len() { p.mut { "And " (count((errors.len() - ERRORS_MAX) as u64)) " more." } }
                        }
                        None => { (explanation()) }
                    }
                }
            }
            @if let Some(WelcomeReading::Read(it)) = &self.reading { (compare::take_over(it, FORM, user)) }
            section.sec.gap aria-labelledby="a-h" {
                div.sec-h { h2 id="a-h" { "Other ways" } }
                p { a.link href="/jobs/new" { "Add one job by hand" } ", or use the command line:" }
                dl.kv.cmds {
                    dt.mono { "crontab -l | evenbeat analyze -" } dd { "compares as above, in the terminal" }
                    dt.mono { "evenbeat job add shop --every 6h -- scrapy crawl shop" } dd { "adds one job" }
                    dt.mono { "evenbeat apply jobs.toml" } dd { "keeps jobs in files, under version control" }
                }
            }
        }
    }

    fn verdict(&self) -> (String, String) {
        match &self.reading {
            Some(WelcomeReading::Read(it)) => compare::verdict(it, self.is_fleet_empty),
            Some(WelcomeReading::Failed(_)) => {
                ("This does not look like a crontab".to_owned(), "Paste what crontab -l prints.".to_owned())
            }
            None => {
                let title =
                    if self.is_fleet_empty { "No jobs yet. Paste a crontab to begin" } else { "Add jobs" };
                let note = "See how its starts are spread over the day, and what Evenbeat would change, before anything is taken over.";
                (title.to_owned(), note.to_owned())
            }
        }
    }

    fn form<R>(&self, user: &PageUser<R>) -> Markup {
        let is_read = matches!(self.reading, Some(WelcomeReading::Read(_)));
        html! {
            form method="post" action="/welcome" id=(FORM) {
                (form_token(&user.session))
                @if is_read { input type="hidden" name="read" value=(hash_of(&self.text)); }
                label.sr for="ct" { "Crontab" }
                // The parser drops a line feed at the beginning.
                textarea.ta id="ct" name="crontab" spellcheck="false" autocomplete="off" maxlength=(TEXT_MAX)
                    placeholder="0 3 * * *   /srv/bin/backup --all\n*/15 * * * *   /srv/bin/sync" { "\n" (self.text) }
                div.peak-l.gap-s {
                    p { "Paste what " span.mono { "crontab -l" } " prints." }
                    button.btn.pri[!is_read] type="submit" { @if is_read { "Read it again" } @else { "Compare" } }
                }
            }
        }
    }
}

fn explanation() -> Markup {
    html! {
        p.t2 { "Most crontabs start everything at the full hour. Evenbeat spreads the starts: hours, days and the number of runs stay, only the minute changes." }
        p.t2 { "After reading you see each day as a map, how even it is from 0 to 1, and what becomes of every line. Lines that cannot be taken over say why." }
    }
}

//! Lists and counts with filters, the history of one job, the latest runs: how long people wait; and what a past run
//! takes on the disk.

use std::time::{Duration, Instant};

use evenbeat::testing::store::query::{JobFilter, RunQuery};
use evenbeat_core::run::Outcome;
use evenbeat_core::time::Duration as Length;

use crate::fleet::{self, N_SITES, N_TEAMS, PAST_FOR};
use crate::subject::Subject;
use crate::{Figures, Size};

const PAGE: usize = 50;
const TARGET_MS: f64 = 50.0;

/// How long some of the same took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) n: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Spread {
    pub(crate) fn of(mut took: Vec<Duration>) -> Spread {
        took.sort_unstable();
        let at = |share: f64| {
            let idx = (took.len() as f64 * share) as usize;
            took.get(idx.min(took.len().saturating_sub(1))).map_or(0.0, |it| it.as_secs_f64() * 1e3)
        };
        Spread { n: took.len(), p50_ms: at(0.5), p99_ms: at(0.99) }
    }
}

/// Asks something for the nth time, and says how many rows came.
type Ask<'a> = Box<dyn Fn(usize) -> usize + 'a>;

pub(crate) fn run<S: Subject>(subject: &S, size: Size, figures: &mut Figures) {
    let (bytes, n_runs) = subject.history();
    let bytes = bytes as f64 / n_runs.max(1) as f64;
    println!("  bytes on disk a past run, indexes included: {bytes:.0}");
    figures.push((format!("{}_bytes_a_past_run", S::NAME), bytes));
    println!();
    println!(
        "  {:<34} {:>10} {:>10} {:>9} {:>8}   (target P9: p99 under {TARGET_MS:.0} ms)",
        "page of 50", "p50 ms", "p99 ms", "queries", "rows"
    );
    for (name, ask) in jobs(subject, size).into_iter().chain(runs(subject, size)) {
        let began = Instant::now();
        let (mut took, mut n_rows) = (Vec::new(), 0);
        for nth in 0..size.n_queries {
            let asked = Instant::now();
            n_rows += ask(nth);
            took.push(asked.elapsed());
            if size.query_for_max < began.elapsed() {
                break;
            }
        }
        let spread = Spread::of(took);
        let miss = if TARGET_MS < spread.p99_ms { "   over the target" } else { "" };
        println!(
            "  {name:<34} {:>10.2} {:>10.2} {:>9} {:>8}{miss}",
            spread.p50_ms,
            spread.p99_ms,
            spread.n,
            n_rows / spread.n
        );
        let name = name.replace([' ', ','], "_");
        figures.push((format!("{}_{name}_ms_p50", S::NAME), spread.p50_ms));
        figures.push((format!("{}_{name}_ms_p99", S::NAME), spread.p99_ms));
    }
}

fn filter(change: impl FnOnce(&mut JobFilter)) -> JobFilter {
    let mut filter = JobFilter::default();
    change(&mut filter);
    filter
}

fn by_team(nth: usize) -> JobFilter {
    filter(|it| it.labels = vec![("team".to_owned(), format!("team-{}", nth % N_TEAMS))])
}

fn by_site(nth: usize) -> JobFilter {
    filter(|it| it.site = Some(format!("site-{}", nth % N_SITES).parse().expect("a site")))
}

fn by_text(nth: usize, n_jobs: usize) -> JobFilter {
    filter(|it| {
        it.key_text = Some(format!("{:04}@D", fleet::mixed(nth as u64) as usize % (n_jobs / 4).min(10_000)));
    })
}

fn jobs<S: Subject>(subject: &S, size: Size) -> Vec<(&'static str, Ask<'_>)> {
    let any = move |nth: usize| fleet::key(fleet::mixed(nth as u64) as usize % size.n_jobs);
    let list = move |filter: JobFilter| subject.list_jobs(&filter, None, PAGE).rows.len();
    let on =
        move |filter: JobFilter, nth: usize| subject.list_jobs(&filter, Some(&any(nth)), PAGE).rows.len();
    let count = move |filter: JobFilter| subject.count_jobs(&filter).n as usize;
    let pool = || filter(|it| it.pool = Some("crawlers".parse().expect("a pool")));
    let prefix = move |nth: usize| filter(|it| it.key_prefix = Some(any(nth).as_str()[..10].to_owned()));
    let paused = || filter(|it| it.is_paused = Some(true));
    vec![
        ("jobs from anywhere", Box::new(move |nth| on(JobFilter::default(), nth))),
        ("jobs by prefix", Box::new(move |nth| list(prefix(nth)))),
        ("jobs by text", Box::new(move |nth| list(by_text(nth, size.n_jobs)))),
        ("jobs by label", Box::new(move |nth| list(by_team(nth)))),
        ("jobs by label from anywhere", Box::new(move |nth| on(by_team(nth), nth))),
        ("jobs by pool from anywhere", Box::new(move |nth| on(pool(), nth))),
        ("jobs by site from anywhere", Box::new(move |nth| on(by_site(nth), nth))),
        ("jobs that are paused", Box::new(move |_| list(paused()))),
        ("jobs that run", Box::new(move |_| list(filter(|it| it.is_running = Some(true))))),
        ("count of all jobs", Box::new(move |_| count(JobFilter::default()))),
        ("count by label", Box::new(move |nth| count(by_team(nth)))),
        ("count by site", Box::new(move |nth| count(by_site(nth)))),
        ("count of paused jobs", Box::new(move |_| count(paused()))),
    ]
}

fn runs<S: Subject>(subject: &S, size: Size) -> Vec<(&'static str, Ask<'_>)> {
    let list = move |query: RunQuery| subject.list_runs(&query, PAGE).rows.len();
    let now = fleet::now();
    let hour = move |nth: usize| now - Length::from_millis(nth as i64 * (PAST_FOR.as_millis() / 250));
    let key = move |nth: usize| fleet::key(fleet::mixed(nth as u64) as usize % size.n_jobs);
    let since = Length::from_hours(1);
    vec![
        ("runs of a job", Box::new(move |nth| list(RunQuery { key: Some(key(nth)), ..RunQuery::default() }))),
        ("latest runs", Box::new(move |_| list(RunQuery::default()))),
        (
            "latest failures",
            Box::new(move |_| list(RunQuery { outcome: Some(Outcome::Failed), ..RunQuery::default() })),
        ),
        (
            "runs of an hour",
            Box::new(move |nth| {
                let (since, until) = (Some(hour(nth) - since), Some(hour(nth)));
                list(RunQuery { since, until, ..RunQuery::default() })
            }),
        ),
        (
            "failures of a job",
            Box::new(move |nth| {
                let (key, outcome) = (Some(key(nth)), Some(Outcome::Failed));
                list(RunQuery { key, outcome, ..RunQuery::default() })
            }),
        ),
        (
            "latest lost runs (there are none)",
            Box::new(move |_| list(RunQuery { outcome: Some(Outcome::Lost), ..RunQuery::default() })),
        ),
    ]
}

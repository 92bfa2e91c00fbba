//! The lists that people look at.

use evenbeat::store::query::{JobFilter, RunQuery, ScorePoint};
use evenbeat::store::sqlite::SqliteStore;
use evenbeat_core::ids::RunId;
use evenbeat_core::job::{Pause, PausedBy};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{RunPhase, Seen};

use crate::common::{HOUR, end_run, fresh, job, key, new_job, noon, open_run, put};

/// Jobs that differ in everything that one can look for.
fn fleet() -> SqliteStore {
    let mut store = fresh();
    for (name, label, pool) in
        [("shop@de", "prices", "browser"), ("shop@fr", "prices", "default"), ("Books", "stock", "default")]
    {
        let mut it = job(name);
        it.labels.insert("team".to_owned(), label.to_owned());
        it.terms.place.pool = pool.parse().unwrap();
        it.terms.site = (name != "Books").then(|| "shop".parse().unwrap());
        it.terms.tenant = (name == "Books").then(|| "acme".parse().unwrap());
        it.terms.enabled = name != "shop@fr";
        let mut it = new_job(it);
        it.state.pause = (name == "Books")
            .then(|| Box::new(Pause { by: PausedBy::Operator, reason: Some("stocktaking".to_owned()) }));
        let row = put(&mut store, it);
        if name == "shop@de" {
            open_run(&mut store, 1, &row, 1);
        }
    }
    let gone = put(&mut store, new_job(job("shop@gone")));
    let mut removed = new_job(job("shop@gone"));
    (removed.is_deleted, removed.seen) = (true, Seen::Version(gone.version));
    put(&mut store, removed);
    store
}

#[track_caller]
fn check(store: &SqliteStore, filter: &JobFilter, expected: &[&str]) {
    let page = store.look(|reader| reader.list_jobs(filter, None, 10)).unwrap();
    let keys: Vec<&str> = page.rows.iter().map(|row| row.job.key.as_str()).collect();
    assert_eq!(keys, expected, "{filter:?}");
    assert_eq!(page.next, None);
    let n_jobs = store.look(|reader| reader.count_jobs(filter)).unwrap();
    assert_eq!(n_jobs, expected.len() as u64, "{filter:?}");
}

#[test]
fn jobs_are_found_by_what_one_looks_for() {
    let store = fleet();
    let any = JobFilter::default;
    let label = |value: &str| vec![("team".to_owned(), value.to_owned())];
    check(&store, &any(), &["Books", "shop@de", "shop@fr"]);
    check(&store, &JobFilter { key_prefix: Some("shop".to_owned()), ..any() }, &["shop@de", "shop@fr"]);
    check(&store, &JobFilter { key_prefix: Some("hop".to_owned()), ..any() }, &[]);
    check(&store, &JobFilter { key_text: Some("OP@d".to_owned()), ..any() }, &["shop@de"]);
    check(&store, &JobFilter { key_text: Some("%".to_owned()), ..any() }, &[]);
    check(&store, &JobFilter { labels: label("prices"), ..any() }, &["shop@de", "shop@fr"]);
    let both = [label("prices"), label("stock")].concat();
    check(&store, &JobFilter { labels: both, ..any() }, &[]);
    check(&store, &JobFilter { pool: Some("browser".parse().unwrap()), ..any() }, &["shop@de"]);
    check(&store, &JobFilter { site: Some("shop".parse().unwrap()), ..any() }, &["shop@de", "shop@fr"]);
    check(&store, &JobFilter { tenant: Some("acme".parse().unwrap()), ..any() }, &["Books"]);
    check(&store, &JobFilter { is_paused: Some(true), ..any() }, &["Books"]);
    check(&store, &JobFilter { is_paused: Some(false), ..any() }, &["shop@de", "shop@fr"]);
    check(&store, &JobFilter { is_enabled: Some(false), ..any() }, &["shop@fr"]);
    check(&store, &JobFilter { is_running: Some(true), ..any() }, &["shop@de"]);
    let one = JobFilter { labels: label("prices"), is_running: Some(false), ..any() };
    check(&store, &one, &["shop@fr"]);
}

#[test]
fn labels_follow_the_definition() {
    let mut store = fleet();
    let row = store.look(|reader| reader.list_jobs(&JobFilter::default(), None, 1)).unwrap().rows.remove(0);
    let mut edit = new_job(job("Books"));
    edit.seen = Seen::Version(row.version);
    put(&mut store, edit);
    let stock = JobFilter { labels: vec![("team".to_owned(), "stock".to_owned())], ..JobFilter::default() };
    check(&store, &stock, &[]);
}

#[test]
fn jobs_come_in_pages() {
    let store = fleet();
    let page = |after: Option<&str>| {
        let after = after.map(key);
        store.look(|reader| reader.list_jobs(&JobFilter::default(), after.as_ref(), 2)).unwrap()
    };
    let first = page(None);
    assert_eq!((first.rows.len(), first.next), (2, Some(key("shop@de"))));
    let second = page(Some("shop@de"));
    assert_eq!((second.rows.len(), second.next), (1, None));
}

/// Three runs that are over, of two jobs, an hour apart, and one that is open.
fn history() -> SqliteStore {
    let mut store = fresh();
    let (mut a, b) = (put(&mut store, new_job(job("a"))), put(&mut store, new_job(job("b"))));
    for (no, outcome) in [(1, Outcome::Succeeded), (2, Outcome::Failed)] {
        a = open_run(&mut store, 1, &a, no);
        a = end_run(&mut store, 1, &a, no, outcome, if no == 1 { noon() } else { noon() + HOUR });
    }
    let b = open_run(&mut store, 1, &b, 3);
    end_run(&mut store, 1, &b, 3, Outcome::Failed, noon() + HOUR + HOUR);
    open_run(&mut store, 1, &a, 4);
    store
}

#[track_caller]
fn check_runs(store: &SqliteStore, query: &RunQuery, expected: &[u128]) {
    let page = store.look(|reader| reader.list_runs(query, None, 10)).unwrap();
    let runs: Vec<u128> = page.rows.iter().map(|row| row.run.0).collect();
    assert_eq!((runs.as_slice(), page.next), (expected, None), "{query:?}");
}

#[test]
fn runs_are_found_by_what_one_looks_for() {
    let store = history();
    let any = RunQuery::default;
    check_runs(&store, &any(), &[3, 2, 1]);
    check_runs(&store, &RunQuery { key: Some(key("a")), ..any() }, &[2, 1]);
    check_runs(&store, &RunQuery { key: Some(key("nobody")), ..any() }, &[]);
    check_runs(&store, &RunQuery { outcome: Some(Outcome::Failed), ..any() }, &[3, 2]);
    check_runs(&store, &RunQuery { since: Some(noon() + HOUR), ..any() }, &[3, 2]);
    check_runs(&store, &RunQuery { until: Some(noon() + HOUR), ..any() }, &[1]);
    let one = RunQuery { key: Some(key("a")), outcome: Some(Outcome::Failed), ..any() };
    check_runs(&store, &one, &[2]);
}

#[test]
fn runs_come_in_pages() {
    let store = history();
    let page = |before: Option<u128>| {
        store.look(|reader| reader.list_runs(&RunQuery::default(), before.map(RunId), 2)).unwrap()
    };
    let first = page(None);
    assert_eq!((first.rows.len(), first.next), (2, Some(RunId(2))));
    let second = page(Some(2));
    assert_eq!((second.rows.len(), second.next), (1, None));
}

#[test]
fn one_run_is_found_open_or_over() {
    let store = history();
    let phase = |run: u128| store.look(|reader| reader.run(RunId(run))).unwrap().map(|row| row.phase);
    assert_eq!(phase(1), Some(RunPhase::Ended(Outcome::Succeeded)));
    assert_eq!(phase(4), Some(RunPhase::Claimed));
    assert_eq!(phase(5), None);
}

#[test]
fn the_score_has_a_history() {
    let store = fresh();
    let point = |hour: i64, score: f64| ScorePoint {
        at: noon() + evenbeat_core::time::Duration::from_hours(hour),
        score,
        peak: 7,
        n_jobs: 42,
    };
    for (it, keep_since) in
        [(point(0, 0.5), noon()), (point(1, 0.75), noon()), (point(2, 1.0), noon() + HOUR)]
    {
        store.ask_and_wait(move |desk| desk.put_score(&it, keep_since)).unwrap();
    }
    let scores = |since, most| store.look(|reader| reader.scores(since, most)).unwrap();
    assert_eq!(scores(noon(), 10), [point(1, 0.75), point(2, 1.0)], "older ones were dropped");
    assert_eq!(scores(noon() + HOUR + HOUR, 10), [point(2, 1.0)]);
    assert_eq!(scores(noon(), 1), [point(1, 0.75)]);
}

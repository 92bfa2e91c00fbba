//! The lists that people look at.

use evenbeat::testing::store::query::{Count, EndedCount, EndedWindow, JobFilter, RunQuery, ScorePoint};
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::ids::RunId;
use evenbeat_core::job::{Pause, PausedBy};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{RunPhase, Seen};

use crate::sqlite_store::common::{Folder, HOUR, end_run, fresh, job, key, new_job, noon, open_run, put};

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
    let page = store.look(|tx| tx.list_jobs(filter, None, 10)).unwrap();
    let keys: Vec<&str> = page.rows.iter().map(|row| row.job.key.as_str()).collect();
    assert_eq!(keys, expected, "{filter:?}");
    assert_eq!(page.next, None);
    let n_jobs = store.look(|tx| tx.count_jobs(filter)).unwrap();
    assert_eq!(n_jobs, Count { n: expected.len() as u64, is_more: false }, "{filter:?}");
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
    let row = store.look(|tx| tx.list_jobs(&JobFilter::default(), None, 1)).unwrap().rows.remove(0);
    let mut edit = new_job(job("Books"));
    edit.seen = Seen::Version(row.version);
    put(&mut store, edit);
    let stock = JobFilter { labels: vec![("team".to_owned(), "stock".to_owned())], ..JobFilter::default() };
    check(&store, &stock, &[]);
}

#[test]
fn removed_jobs_lose_their_labels_until_they_come_back() {
    let mut store = fleet();
    let labelled = || {
        let mut it = job("shop@gone");
        it.labels.insert("team".to_owned(), "gone".to_owned());
        new_job(it)
    };
    let gone = JobFilter { labels: vec![("team".to_owned(), "gone".to_owned())], ..JobFilter::default() };
    let back = put(&mut store, labelled());
    check(&store, &gone, &["shop@gone"]);
    let mut removed = labelled();
    (removed.is_deleted, removed.seen) = (true, Seen::Version(back.version));
    put(&mut store, removed);
    check(&store, &gone, &[]);
    put(&mut store, labelled());
    check(&store, &gone, &["shop@gone"]);
}

/// So many jobs that a page does not look at all of them, of which only the last ones are enabled.
const N_FAR: usize = 10_500;
const N_ENABLED: usize = 100;

fn far_fleet() -> SqliteStore {
    let folder = std::mem::ManuallyDrop::new(Folder::new());
    let path = folder.file("store.db");
    let mut store = SqliteStore::open(&path, Options::default()).unwrap();
    put(&mut store, new_job(job("seed")));
    store.close().unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(&format!(
        "WITH RECURSIVE no(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM no WHERE n < {N_FAR})
         INSERT INTO job (key, definition, terms, target, pool, is_enabled, is_deleted, revision)
         SELECT printf('far-%05d', n), replace(definition, 'seed', printf('far-%05d', n)), terms, target, pool,
                {N_FAR} - {N_ENABLED} < n, 0, 1 FROM no, (SELECT * FROM job) ORDER BY n;
         CREATE TEMP TABLE memory_of_all AS SELECT j.id, m.* FROM job j, memory m WHERE j.key <> 'seed';
         UPDATE memory_of_all SET job_id = id;
         ALTER TABLE memory_of_all DROP COLUMN id;
         INSERT INTO memory SELECT * FROM memory_of_all"
    ))
    .unwrap();
    drop(conn);
    SqliteStore::open(&path, Options::default()).unwrap()
}

#[test]
fn a_page_that_would_take_long_ends_before_and_says_how_far_it_came() {
    let store = far_fleet();
    let filter =
        JobFilter { pool: Some("default".parse().unwrap()), is_enabled: Some(true), ..JobFilter::default() };
    let page = |after: Option<&str>, most: usize| {
        let after = after.map(key);
        store.look(|tx| tx.list_jobs(&filter, after.as_ref(), most)).unwrap()
    };
    let first = page(None, 50);
    assert_eq!((first.rows.len(), first.next), (0, Some(key("far-10000"))));
    let second = page(Some("far-10000"), 50);
    let last = second.rows.last().unwrap().job.key.clone();
    assert_eq!((second.rows.len(), &last, &second.next), (50, &key("far-10450"), &Some(last.clone())));
    let third = page(Some("far-10450"), 51);
    let keys: Vec<&str> = third.rows.iter().map(|row| row.job.key.as_str()).collect();
    assert_eq!((keys.len(), keys[0], keys[50], third.next), (51, "far-10451", "seed", None));
    let count = |filter: &JobFilter| store.look(|tx| tx.count_jobs(filter)).unwrap();
    assert_eq!(count(&filter), Count { n: 0, is_more: true });
    assert_eq!(count(&JobFilter::default()), Count { n: N_FAR as u64 + 1, is_more: false });
    let disabled = JobFilter { is_enabled: Some(false), ..JobFilter::default() };
    assert_eq!(count(&disabled), Count { n: (N_FAR - N_ENABLED) as u64, is_more: false });
}

#[test]
fn jobs_come_in_pages() {
    let store = fleet();
    let page = |after: Option<&str>| {
        let after = after.map(key);
        store.look(|tx| tx.list_jobs(&JobFilter::default(), after.as_ref(), 2)).unwrap()
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
    let page = store.look(|tx| tx.list_runs(query, None, 10)).unwrap();
    let runs: Vec<u128> = page.rows.iter().map(|row| row.run.0).collect();
    assert_eq!((runs.as_slice(), page.next), (expected, None), "{query:?}");
}

#[test]
fn the_latest_runs_of_several_jobs_come_in_one_go() {
    let store = history();
    let latest = |keys: &[&str], most: usize| -> Vec<(String, u128)> {
        let keys: Vec<_> = keys.iter().map(|name| key(name)).collect();
        let runs = store.look(|tx| tx.latest_runs(&keys, most)).unwrap();
        runs.iter().map(|row| (row.key.to_string(), row.run.0)).collect()
    };
    let found =
        |rows: &[(&str, u128)]| rows.iter().map(|(key, run)| ((*key).to_owned(), *run)).collect::<Vec<_>>();
    assert_eq!(latest(&["a", "nobody", "b"], 9), found(&[("a", 2), ("a", 1), ("b", 3)]));
    assert_eq!(latest(&["b", "a"], 1), found(&[("b", 3), ("a", 2)]));
    assert_eq!(latest(&[], 9), []);
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
fn what_came_after_a_run_is_found_in_its_order() {
    let store = history();
    let after = |name: &str, run: u128, most: usize| {
        let runs = store.look(|tx| tx.later_runs(&key(name), RunId(run), most)).unwrap();
        runs.iter().map(|row| row.run.0).collect::<Vec<_>>()
    };
    assert_eq!(after("a", 0, 10), [1, 2, 4]);
    assert_eq!(after("a", 1, 1), [2]);
    assert_eq!(after("a", 2, 10), [4]);
    assert_eq!(after("b", 3, 10), Vec::<u128>::new());
}

#[test]
fn ended_runs_are_counted_by_when_and_how() {
    let store = history();
    let window = EndedWindow { since: noon(), until: noon() + HOUR + HOUR, part: HOUR };
    let count = |part, outcome, n| EndedCount { part, outcome, n };
    let counted = store.look(|tx| tx.count_ended(window)).unwrap();
    assert_eq!(counted, [count(0, None, 1), count(1, None, 1), count(1, Some(Outcome::Failed), 1)]);
    let horizon = |most: usize| store.look(|tx| tx.ended_horizon(noon(), most)).unwrap();
    assert_eq!((horizon(0), horizon(1), horizon(3)), (Some(noon() + HOUR + HOUR), Some(noon() + HOUR), None));
}

#[test]
fn runs_come_in_pages() {
    let store = history();
    let page = |before: Option<u128>| {
        store.look(|tx| tx.list_runs(&RunQuery::default(), before.map(RunId), 2)).unwrap()
    };
    let first = page(None);
    assert_eq!((first.rows.len(), first.next), (2, Some(RunId(2))));
    let second = page(Some(2));
    assert_eq!((second.rows.len(), second.next), (1, None));
}

#[test]
fn runs_of_all_jobs_come_by_their_end_and_those_of_one_as_they_were_claimed() {
    let mut store = fresh();
    let (mut a, mut b) = (put(&mut store, new_job(job("a"))), put(&mut store, new_job(job("b"))));
    for (no, at) in [(1, noon() + HOUR + HOUR), (2, noon())] {
        a = open_run(&mut store, 1, &a, no);
        a = end_run(&mut store, 1, &a, no, Outcome::Failed, at);
    }
    b = open_run(&mut store, 1, &b, 3);
    end_run(&mut store, 1, &b, 3, Outcome::Failed, noon() + HOUR);
    let any = RunQuery::default;
    check_runs(&store, &any(), &[1, 3, 2]);
    check_runs(&store, &RunQuery { outcome: Some(Outcome::Failed), ..any() }, &[1, 3, 2]);
    check_runs(&store, &RunQuery { until: Some(noon() + HOUR + HOUR), ..any() }, &[3, 2]);
    check_runs(&store, &RunQuery { key: Some(key("a")), ..any() }, &[2, 1]);
    let page = |query: &RunQuery, before: u128| {
        let page = store.look(|tx| tx.list_runs(query, Some(RunId(before)), 1)).unwrap();
        (page.rows.iter().map(|row| row.run.0).collect::<Vec<_>>(), page.next.map(|it| it.0))
    };
    assert_eq!(page(&any(), 1), (vec![3], Some(3)));
    assert_eq!(page(&any(), 3), (vec![2], None));
    assert_eq!(page(&RunQuery { key: Some(key("a")), ..any() }, 2), (vec![1], None));
    assert_eq!(page(&any(), 99), (vec![], None), "a run that is gone, and older ones with it");
}

#[test]
fn one_run_is_found_open_or_over() {
    let store = history();
    let phase = |run: u128| store.look(|tx| tx.run(RunId(run))).unwrap().map(|row| row.phase);
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
        store.ask_and_wait(move |tx| tx.put_score(&it, keep_since)).unwrap();
    }
    let scores = |since, most| store.look(|tx| tx.scores(since, most)).unwrap();
    assert_eq!(scores(noon(), 10), [point(1, 0.75), point(2, 1.0)], "older ones were dropped");
    assert_eq!(scores(noon() + HOUR + HOUR, 10), [point(2, 1.0)]);
    assert_eq!(scores(noon(), 1), [point(1, 0.75)]);
}

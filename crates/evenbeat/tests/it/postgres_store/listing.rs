//! Lists for people.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat::testing::store::query::{Count, EndedCount, EndedWindow, JobFilter, RunQuery, ScorePoint};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{Job, Pause, PausedBy};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{EndBy, PutJob, Store};
use evenbeat_core::time::{Duration, Timestamp};

use crate::postgres_store::fleet::{Fleet, end, new_job, run_end};
use crate::support::postgres::runtime;

fn fleet() -> Fleet {
    let mut fleet = Fleet::new();
    let mut put = |name: &str, change: &dyn Fn(&mut Job), is_paused: bool| {
        let mut put = new_job(name, fleet.now);
        let mut job = Job::clone(&put.job);
        change(&mut job);
        if is_paused {
            put.state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
        }
        fleet.store.put_jobs(&[PutJob { job: Arc::new(job), ..put }]).unwrap();
    };
    put("books@de", &|job| job.terms.site = Some("shop".parse().unwrap()), false);
    put("books@fr", &|job| drop(job.labels.insert("team".to_owned(), "prices".to_owned())), true);
    put("cars", &|job| job.terms.enabled = false, false);
    put("Zoo", &|job| job.terms.tenant = Some("acme".parse().unwrap()), false);
    fleet
}

#[track_caller]
fn check(fleet: &Fleet, filter: &JobFilter, expected: &[&str]) {
    let store = &fleet.store.store;
    let page = runtime().block_on(store.list_jobs(filter, None, 10)).unwrap();
    let keys: Vec<&str> = page.rows.iter().map(|row| row.job.key.as_str()).collect();
    assert_eq!(keys, expected, "{filter:?}");
    let count = Count { n: expected.len() as u64, is_more: false };
    assert_eq!(runtime().block_on(store.count_jobs(filter)).unwrap(), count, "{filter:?}");
}

#[test]
fn several_jobs_come_in_the_order_in_which_they_are_named() {
    let fleet = fleet();
    let keys = ["cars", "nowhere", "Zoo", "books@de", "cars"].map(|key| key.parse().unwrap());
    let rows = runtime().block_on(fleet.store.store.jobs_of(&keys)).unwrap();
    assert_eq!(rows, ["cars", "Zoo", "books@de", "cars"].map(|name| fleet.row(name)));
    assert_eq!(runtime().block_on(fleet.store.store.jobs_of(&[])).unwrap(), []);
}

#[test]
fn jobs_are_found_by_what_one_looks_for() {
    let mut fleet = fleet();
    fleet.open(fleet.me, "open", 1);
    let any = JobFilter::default;
    check(&fleet, &any(), &["Zoo", "books@de", "books@fr", "cars", "open"]);
    check(&fleet, &JobFilter { key_prefix: Some("books".to_owned()), ..any() }, &["books@de", "books@fr"]);
    check(
        &fleet,
        &JobFilter { key_text: Some("O".to_owned()), ..any() },
        &["Zoo", "books@de", "books@fr", "open"],
    );
    let labels = vec![("team".to_owned(), "prices".to_owned())];
    check(&fleet, &JobFilter { labels, ..any() }, &["books@fr"]);
    check(&fleet, &JobFilter { site: Some("shop".parse().unwrap()), ..any() }, &["books@de"]);
    check(&fleet, &JobFilter { tenant: Some("acme".parse().unwrap()), ..any() }, &["Zoo"]);
    check(&fleet, &JobFilter { pool: Some("elsewhere".parse().unwrap()), ..any() }, &[]);
    check(&fleet, &JobFilter { is_paused: Some(true), ..any() }, &["books@fr"]);
    check(&fleet, &JobFilter { is_enabled: Some(false), ..any() }, &["cars"]);
    check(&fleet, &JobFilter { is_running: Some(true), ..any() }, &["open"]);
    check(
        &fleet,
        &JobFilter { is_running: Some(false), is_paused: Some(false), is_enabled: Some(true), ..any() },
        &["Zoo", "books@de"],
    );
}

#[test]
fn a_page_goes_on_after_the_last_row_of_the_one_before() {
    let fleet = fleet();
    let (store, any) = (&fleet.store.store, JobFilter::default());
    let first = runtime().block_on(store.list_jobs(&any, None, 3)).unwrap();
    assert_eq!((first.rows.len(), first.next.as_ref().map(JobKey::as_str)), (3, Some("books@fr")));
    let second = runtime().block_on(store.list_jobs(&any, first.next.as_ref(), 3)).unwrap();
    assert_eq!((second.rows[0].job.key.as_str(), second.next), ("cars", None));
}

#[test]
fn runs_are_found_by_job_outcome_and_end() {
    let mut fleet = Fleet::new();
    let at = Timestamp::from_millis;
    for (run, name, outcome) in
        [(1, "a", Outcome::Succeeded), (2, "b", Outcome::Failed), (3, "c", Outcome::Failed)]
    {
        let opened = fleet.open(fleet.me, name, run);
        let by = EndBy::Owner(run_end(outcome, at(1_000 * i64::try_from(run).unwrap())));
        let end = end(&opened, &fleet.row(name), by);
        fleet.store.end(fleet.epoch, &[end]).unwrap();
    }
    fleet.open(fleet.me, "open", 4);
    let store = fleet.store.store.clone();
    let n_open = runtime().block_on(store.open_runs_by_session()).unwrap();
    assert_eq!(n_open, BTreeMap::from([(fleet.me, 1)]));
    let check = |query: RunQuery, before: Option<u128>, expected: &[u128]| {
        let before = before.map(evenbeat_core::ids::RunId);
        let page = runtime().block_on(store.list_runs(&query, before, 10)).unwrap();
        assert_eq!(page.rows.iter().map(|it| it.run.0).collect::<Vec<_>>(), expected, "{query:?}");
    };
    let any = RunQuery::default;
    check(any(), None, &[3, 2, 1]);
    check(any(), Some(3), &[2, 1]);
    check(RunQuery { key: Some("b".parse().unwrap()), ..any() }, None, &[2]);
    check(RunQuery { outcome: Some(Outcome::Failed), ..any() }, None, &[3, 2]);
    check(RunQuery { since: Some(at(2_000)), until: Some(at(3_000)), ..any() }, None, &[2]);
    let page = runtime().block_on(store.list_runs(&any(), None, 2)).unwrap();
    assert_eq!(page.next.map(|it| it.0), Some(2));

    let after = |name: &str, run: u128| {
        let after = evenbeat_core::ids::RunId(run);
        let runs = runtime().block_on(store.later_runs(&name.parse().unwrap(), after, 10)).unwrap();
        runs.iter().map(|row| row.run.0).collect::<Vec<_>>()
    };
    assert_eq!((after("b", 0), after("b", 2), after("open", 3)), (vec![2], vec![], vec![4]));
    let window = EndedWindow { since: at(1_000), until: at(3_000), part: Duration::from_secs(1) };
    let count = |part, outcome, n| EndedCount { part, outcome, n };
    let counted = runtime().block_on(store.count_ended(window)).unwrap();
    assert_eq!(counted, [count(0, None, 1), count(1, None, 1), count(1, Some(Outcome::Failed), 1)]);
    let horizon = |most: usize| runtime().block_on(store.ended_horizon(at(0), most)).unwrap();
    assert_eq!((horizon(0), horizon(2), horizon(3)), (Some(at(3_000)), Some(at(1_000)), None));

    let latest = |keys: &[&str], most: usize| {
        let keys: Vec<JobKey> = keys.iter().map(|key| key.parse().unwrap()).collect();
        let runs = runtime().block_on(store.latest_runs(&keys, most)).unwrap();
        let mut runs: Vec<(String, u128)> = runs.iter().map(|it| (it.key.to_string(), it.run.0)).collect();
        runs.sort();
        runs
    };
    assert_eq!(latest(&["c", "nobody", "open", "a"], 9), [("a".to_owned(), 1), ("c".to_owned(), 3)]);
    assert_eq!(latest(&["a", "b", "c"], 0), []);
    assert_eq!(latest(&[], 9), []);
}

#[test]
fn scores_are_kept_for_a_while() {
    let fleet = Fleet::new();
    let store = &fleet.store.store;
    let point =
        |at: i64, score: f64| ScorePoint { at: Timestamp::from_millis(at), score, peak: 7, n_jobs: 9 };
    runtime().block_on(async {
        for it in [point(1, 10.0), point(2, 20.0), point(2, 25.0), point(3, 30.0)] {
            store.put_score(&it, Timestamp::from_millis(2)).await.unwrap();
        }
        let kept = store.scores(Timestamp::from_millis(0), 10).await.unwrap();
        assert_eq!(kept, [point(2, 25.0), point(3, 30.0)]);
        assert_eq!(store.scores(Timestamp::from_millis(3), 10).await.unwrap(), [point(3, 30.0)]);
    });
}

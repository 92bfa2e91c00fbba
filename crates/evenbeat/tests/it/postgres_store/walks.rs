//! How much of the tables a list touches, as the server counts it: little, whatever is asked, and never a whole table.

use std::sync::Arc;

use evenbeat::testing::store::postgres::BlockingStore;
use evenbeat::testing::store::query::{Count, EndedWindow, JobFilter, RunQuery};
use evenbeat::testing::store::run_times::{MemberBy, RunOrder};
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::job::Job;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{PutJob, Store};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use tokio_postgres::Client;

use crate::postgres_store::cluster::until;
use crate::postgres_store::fleet::{Fleet, new_job};
use crate::support::postgres::{Database, Way, runtime};

const N_JOBS: i64 = 12_000;
const N_ENABLED: i64 = 100;
const N_RUNS: i64 = 30_000;
/// Far more than a page has, far less than a table.
const FEW: i64 = 1_500;

struct Filled {
    database: Database,
    client: Client,
}

/// Jobs and runs, written by the server itself: only the last jobs are enabled, every 100th is paused, every 50th run
/// failed; ids go one way and ends the other.
fn filled() -> Filled {
    let mut fleet = Fleet::new();
    let seed = new_job("seed", fleet.now);
    let mut job = Job::clone(&seed.job);
    job.terms.site = Some("shop".parse().unwrap());
    fleet.store.put_jobs(&[PutJob { job: Arc::new(job), ..seed }]).unwrap();
    let Fleet { database, store, .. } = fleet;
    drop(store);
    let filling = database.connect();
    let key = "'far-' || lpad(n::text, 5, '0')";
    let fill = format!(
        "INSERT INTO job (key, definition, terms, target, pool, site, is_enabled, is_deleted, revision)
         SELECT {key}, replace(definition, 'seed', {key}), terms, target, pool, 'site-' || n % 4,
                {N_JOBS} - {N_ENABLED} < n, false, 1
         FROM job, generate_series(1, {N_JOBS}) n ORDER BY n;
         CREATE TEMP TABLE memory_of_all AS SELECT j.id, m.* FROM job j, memory m WHERE j.key <> 'seed';
         UPDATE memory_of_all SET job_id = id, paused_by = CASE WHEN id % 100 = 0 THEN 'operator' END;
         ALTER TABLE memory_of_all DROP COLUMN id;
         INSERT INTO memory SELECT * FROM memory_of_all;
         INSERT INTO label (name, value, key, job_id)
         SELECT 'team', 'team-' || id % 3, key, id FROM job WHERE key <> 'seed';
         INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, losses, claimed_at,
                          is_cancel_asked, ended_at, frozen_for)
         SELECT lpad(to_hex({N_RUNS} - n), 32, '0')::uuid, j.id, gen_random_uuid(), 1,
                CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'succeeded' END, n, 1, 'scheduler', 'pending', 0, n, false,
                n * 1000, 0
         FROM generate_series(0, {N_RUNS} - 1) n JOIN job j ON j.key = 'far-' || lpad((n % 100 + 1)::text, 5, '0')"
    );
    runtime().block_on(filling.batch_execute(&fill)).unwrap();
    runtime().block_on(filling.batch_execute("VACUUM ANALYZE")).unwrap();
    // What it touched itself is counted before anything is measured.
    drop(filling);
    let filled = Filled { client: database.connect(), database };
    filled.until_alone();
    filled
}

impl Filled {
    fn number(&self, sql: &str) -> i64 {
        runtime().block_on(self.client.query_one(sql, &[])).unwrap().get(0)
    }

    /// What it is told, and how many rows and entries of indexes the server touched for it.
    fn touched<T>(&self, ask: impl FnOnce(&BlockingStore) -> T) -> (T, i64) {
        let n_touched =
            "SELECT ((SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables) +
                         (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes))::bigint";
        let before = self.number(n_touched);
        let store = self.database.store(Way::Direct);
        let answer = ask(&store);
        drop(store);
        self.until_alone();
        (answer, self.number(n_touched) - before)
    }

    /// Who leaves hands in what it counted.
    fn until_alone(&self) {
        until("nobody else is there", || {
            self.number(
                "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
            ) == 0
        });
    }

    #[track_caller]
    fn check_jobs(&self, change: impl FnOnce(&mut JobFilter), n_expected: usize, n_touched_max: i64) {
        let mut filter = JobFilter::default();
        change(&mut filter);
        let after: JobKey = "far-06000".parse().unwrap();
        let (page, n_touched) = self
            .touched(|store| runtime().block_on(store.store.list_jobs(&filter, Some(&after), 50)).unwrap());
        assert_eq!(page.rows.len(), n_expected, "{filter:?}");
        assert!(n_touched <= n_touched_max, "{n_touched} rows were touched for {filter:?}");
    }

    #[track_caller]
    fn check_runs(&self, query: &RunQuery, before: Option<u128>, first: u128, n_touched_max: i64) {
        let before = before.map(RunId);
        let (page, n_touched) =
            self.touched(|store| runtime().block_on(store.store.list_runs(query, before, 50)).unwrap());
        assert_eq!((page.rows[0].run, page.rows.len()), (RunId(first), 50), "{query:?}");
        assert!(n_touched <= n_touched_max, "{n_touched} rows were touched for {query:?}");
    }
}

#[test]
fn a_page_touches_little_more_than_it_shows() {
    let filled = filled();
    let label = |it: &mut JobFilter| it.labels.push(("team".to_owned(), "team-1".to_owned()));
    filled.check_jobs(|_| {}, 50, FEW);
    filled.check_jobs(|it| it.key_prefix = Some("far-07".to_owned()), 50, FEW);
    filled.check_jobs(label, 50, FEW);
    filled.check_jobs(|it| it.site = Some("site-1".parse().unwrap()), 50, FEW);
    filled.check_jobs(|it| it.pool = Some("default".parse().unwrap()), 50, FEW);
    filled.check_jobs(|it| it.is_enabled = Some(false), 50, FEW);
    filled.check_jobs(|it| it.is_paused = Some(true), 50, FEW);
    filled.check_jobs(|it| it.is_running = Some(true), 0, FEW);

    let (any, at) = (RunQuery::default, Timestamp::from_millis);
    filled.check_runs(&any(), None, 1, FEW);
    filled.check_runs(&any(), Some(9_999), 10_000, FEW);
    let hour = RunQuery { since: Some(at(10_000_000)), until: Some(at(13_600_000)), ..any() };
    filled.check_runs(&hour, None, 30_000 - 13_599, FEW);
    let failed = RunQuery { outcome: Some(Outcome::Failed), ..hour };
    filled.check_runs(&failed, None, 30_000 - 13_550, FEW);
    filled.check_runs(&RunQuery { key: Some("far-00007".parse().unwrap()), ..any() }, None, 29_994, FEW);

    let key: JobKey = "far-00007".parse().unwrap();
    let (later, n_touched) =
        filled.touched(|store| runtime().block_on(store.store.later_runs(&key, RunId(9_000), 20)).unwrap());
    assert_eq!((later.len(), later[0].run), (20, RunId(9_094)));
    assert!(n_touched <= FEW, "{n_touched} rows were touched for later runs");
    // What is counted is looked at once, and nothing else.
    let window = EndedWindow { since: at(29_000_000), until: at(30_000_000), part: Duration::from_secs(100) };
    let (counted, n_touched) =
        filled.touched(|store| runtime().block_on(store.store.count_ended(window)).unwrap());
    assert_eq!((counted.len(), counted[0].n, counted[10].n), (20, 100, 2));
    assert!(n_touched <= 2 * FEW, "{n_touched} rows were touched to count 1,000 runs");
}

/// Two things that no index knows together: each is looked up, for so many jobs at most.
#[test]
fn a_page_that_would_take_long_ends_before_and_says_how_far_it_came() {
    let filled = filled();
    let filter = JobFilter { is_enabled: Some(true), is_paused: Some(false), ..JobFilter::default() };
    let page = |after: Option<&str>| {
        let after: Option<JobKey> = after.map(|it| it.parse().unwrap());
        filled
            .touched(|store| runtime().block_on(store.store.list_jobs(&filter, after.as_ref(), 50)).unwrap())
    };
    let (first, n_touched) = page(None);
    assert_eq!((first.rows.len(), first.next.as_ref().map(JobKey::as_str)), (0, Some("far-10000")));
    assert!(n_touched < 55_000, "{n_touched} rows were touched");
    let (second, _) = page(Some("far-10000"));
    assert_eq!((second.rows.len(), second.rows[0].job.key.as_str()), (50, "far-11901"));
    let (third, _) = page(Some("far-11990"));
    assert_eq!((third.rows.last().unwrap().job.key.as_str(), third.next), ("seed", None));

    let count = |filter: &JobFilter| {
        filled.touched(|store| runtime().block_on(store.store.count_jobs(filter)).unwrap()).0
    };
    assert_eq!(count(&filter), Count { n: 0, is_more: true });
    assert_eq!(count(&JobFilter::default()), Count { n: 12_001, is_more: false });
    let disabled = JobFilter { is_enabled: Some(false), ..JobFilter::default() };
    assert_eq!(count(&disabled), Count { n: 11_900, is_more: false });
}

#[test]
fn a_time_line_touches_little_more_than_it_draws() {
    let filled = filled();
    let window = TimeWindow::new(Timestamp::from_millis(10_000_000), Timestamp::from_millis(13_600_000));
    let ended = |order: RunOrder| {
        filled.touched(|store| runtime().block_on(store.store.ended_run_times(window, order, 50)).unwrap())
    };
    let (latest, n_touched) = ended(RunOrder::LatestEndFirst);
    assert_eq!(
        (latest.len(), latest[0].run, latest[0].pool.as_ref()),
        (50, RunId(30_000 - 13_599), "default")
    );
    assert!(n_touched <= FEW, "{n_touched} rows were touched");
    let (earliest, n_touched) = ended(RunOrder::EarliestEndFirst);
    assert_eq!((earliest.len(), earliest[0].end), (50, Some((Outcome::Failed, window.start()))));
    assert!(n_touched <= FEW, "{n_touched} rows were touched");

    let (open, n_touched) =
        filled.touched(|store| runtime().block_on(store.store.open_run_times(50)).unwrap());
    assert_eq!((open.len(), n_touched <= FEW), (0, true), "{n_touched} rows were touched");
    for (by, first) in [(MemberBy::Site, "shop"), (MemberBy::Label("team".to_owned()), "team-0")] {
        let (members, n_touched) =
            filled.touched(|store| runtime().block_on(store.store.members(&by, 50)).unwrap());
        assert_eq!(members.len(), 50);
        assert!(members.iter().any(|(_, group)| &**group == first || **group == *"site-0"), "{members:?}");
        assert!(n_touched <= FEW, "{n_touched} rows were touched for {by:?}");
    }
    let (names, _) = filled.touched(|store| runtime().block_on(store.store.label_names(50)).unwrap());
    assert_eq!(names, ["team"]);
}

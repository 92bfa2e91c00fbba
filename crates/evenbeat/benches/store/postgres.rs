//! PostgreSQL: the store in a database of its own, and a copy of it for raw SQL.

use std::sync::Arc;
use std::time::Duration;

use evenbeat::testing::store::keyword::Keyword;
use evenbeat::testing::store::postgres::{BlockingStore, PgStore};
use evenbeat::testing::store::query::{Count, JobFilter, JobPage, RunPage, RunQuery};
use evenbeat_core::ids::JobKey;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Row, Statement};
use uuid::Uuid;

use crate::fleet::{self, ME, PastRun, Turn};
use crate::subject::{Asker, Subject, Whose};
use crate::{Size, machine};

/// A load of a million is no call of a node's.
const DEADLINE: Duration = Duration::from_mins(2);
const N_CONNECTIONS: usize = 8;
/// So many past runs are written by one statement.
const FILL_BATCH: usize = 10_000;

pub(crate) struct Postgres {
    runtime: Arc<Runtime>,
    /// The address without the database.
    server: String,
    /// Given up before the databases are dropped.
    store: Option<BlockingStore>,
    settings: String,
}

impl Postgres {
    pub(crate) fn filled(server: &str, size: Size) -> Postgres {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let (server, _) = server.rsplit_once('/').expect("an address ends with a database");
        let mut filled = Postgres {
            runtime: Arc::new(runtime),
            server: server.to_owned(),
            store: None,
            settings: String::new(),
        };
        filled.drop_databases();
        filled.maintain(&format!("CREATE DATABASE {}", database(Whose::Ours)));
        let mut store = filled.open();
        filled.runtime.block_on(store.store.migrate()).expect("the tables can be made");
        fleet::fill(&mut store, size.n_jobs);
        drop(store);
        filled.add_runs(size);
        // A database that is in use cannot be copied, and its last connections take a moment to go.
        let copy = format!("CREATE DATABASE {} TEMPLATE {}", database(Whose::Raw), database(Whose::Ours));
        filled.maintain(&format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'",
            database(Whose::Ours)
        ));
        filled.maintain(&copy);
        let ours = filled.connect(Whose::Ours);
        let setting = |name: &str| -> String {
            let row = filled.runtime.block_on(ours.query_one(&format!("SHOW {name}"), &[]));
            format!("{name} {}", row.expect("a setting").get::<_, String>(0))
        };
        filled.settings =
            ["server_version", "fsync", "synchronous_commit", "shared_buffers"].map(setting).join(", ");
        filled.store = Some(filled.open());
        filled
    }

    fn open(&self) -> BlockingStore {
        let address = format!("{}/{}?sslmode=disable", self.server, database(Whose::Ours));
        let config: evenbeat::testing::store::postgres::PgConfig = address.parse().expect("an address");
        let config = config.with_deadline(DEADLINE).with_connections(N_CONNECTIONS);
        let store = PgStore::new(config).expect("a handle");
        BlockingStore { store, runtime: Arc::clone(&self.runtime) }
    }

    fn connect(&self, whose: Whose) -> Client {
        self.connect_to(&database(whose))
    }

    fn connect_to(&self, database: &str) -> Client {
        let address = format!("{}/{database}?sslmode=disable", self.server);
        let (client, connection) =
            self.runtime.block_on(tokio_postgres::connect(&address, NoTls)).expect("the server is there");
        self.runtime.spawn(connection);
        client
    }

    fn maintain(&self, sql: &str) {
        let client = self.connect_to("postgres");
        self.runtime.block_on(client.batch_execute(sql)).expect("the server does it");
    }

    fn drop_databases(&self) {
        for whose in [Whose::Ours, Whose::Raw] {
            self.maintain(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", database(whose)));
        }
    }

    /// The history, as quickly as it goes.
    fn add_runs(&self, size: Size) {
        let client = self.connect(Whose::Ours);
        let sql = "INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, \
                   losses, claimed_at, started_at, is_cancel_asked, ended_at, exit_code, frozen_for) \
                   SELECT u.id, u.job_id, $5, 4294967296, u.outcome, u.at, 1, 'scheduler', 'pending', 0, u.at, u.at, \
                   false, u.at, 0, 0 FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[]) \
                   AS u(id, job_id, outcome, at)";
        self.runtime.block_on(async {
            let last = client.query_one("SELECT max(id), count(*) FROM job", &[]).await.expect("jobs");
            let (last, n_jobs): (i64, i64) = (last.get(0), last.get(1));
            assert_eq!((last, n_jobs), (job_id(size.n_jobs - 1), last), "jobs have the ids of their order");
            client.batch_execute("SET synchronous_commit = off").await.expect("a setting");
            let insert = client.prepare(sql).await.expect("the table is there");
            let runs: Vec<PastRun> = fleet::past_runs(size.n_runs, size.n_jobs, fleet::now()).collect();
            for runs in runs.chunks(FILL_BATCH) {
                let id: Vec<Uuid> = runs.iter().map(|it| Uuid::from_u128(it.id.0)).collect();
                let job: Vec<i64> = runs.iter().map(|it| job_id(it.job_idx)).collect();
                let outcome: Vec<&str> = runs.iter().map(|it| it.outcome.keyword()).collect();
                let at: Vec<i64> = runs.iter().map(|it| it.ended_at.as_millis()).collect();
                client.execute(&insert, &[&id, &job, &outcome, &at, &session()]).await.expect("it fits");
            }
            client.batch_execute("VACUUM ANALYZE").await.expect("nobody else writes");
        });
    }

    fn number(&self, client: &Client, sql: &str) -> u64 {
        let row = self.runtime.block_on(client.query_one(sql, &[])).expect("the server answers");
        row.get::<_, i64>(0) as u64
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.store = None;
        self.drop_databases();
    }
}

fn database(whose: Whose) -> String {
    let who = match whose {
        Whose::Ours => "ours",
        Whose::Raw => "raw",
    };
    format!("evenbeat_bench_{}_{who}", std::process::id())
}

fn session() -> Uuid {
    Uuid::from_u128(ME.0)
}

fn job_id(idx: usize) -> i64 {
    idx as i64 + 1
}

impl Subject for Postgres {
    type Store = BlockingStore;

    const NAME: &'static str = "postgres";

    fn title(&self) -> String {
        format!("PostgreSQL, {}, {}", self.settings, machine::machine())
    }

    fn store(&self) -> BlockingStore {
        self.store.clone().expect("it is open")
    }

    fn raw_askers(&self, n: usize) -> Vec<Box<dyn Asker>> {
        (0..n).map(|_| Box::new(RawAsker::new(self, [CLAIM, END])) as Box<dyn Asker>).collect()
    }

    fn lean_askers(&self, n: usize) -> Vec<Box<dyn Asker>> {
        (0..n).map(|_| Box::new(RawAsker::new(self, [LEAN_CLAIM, LEAN_END])) as Box<dyn Asker>).collect()
    }

    fn server_cpu(&self, whose: Whose) -> f64 {
        let client = self.connect(whose);
        let sql =
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        let rows = self.runtime.block_on(client.query(sql, &[])).expect("the server answers");
        let nanos = |row: &Row| {
            let told = std::fs::read_to_string(format!("/proc/{}/schedstat", row.get::<_, i32>(0))).ok()?;
            told.split(' ').next()?.parse::<f64>().ok()
        };
        rows.iter().filter_map(nanos).sum::<f64>() / 1e9
    }

    fn begin_log(&self, whose: Whose) -> u64 {
        self.maintain("CHECKPOINT");
        self.log_bytes(whose)
    }

    fn log_bytes(&self, whose: Whose) -> u64 {
        let client = self.connect(whose);
        self.number(&client, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
    }

    fn history(&self) -> (u64, u64) {
        let client = self.connect(Whose::Ours);
        let bytes =
            "SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_partition_tree('run') WHERE isleaf";
        (self.number(&client, bytes), self.number(&client, "SELECT count(*) FROM run"))
    }

    fn list_jobs(&self, filter: &JobFilter, after: Option<&JobKey>, most: usize) -> JobPage {
        let BlockingStore { store, runtime } = self.store();
        runtime.block_on(store.list_jobs(filter, after, most)).expect("the store answers")
    }

    fn count_jobs(&self, filter: &JobFilter) -> Count {
        let BlockingStore { store, runtime } = self.store();
        runtime.block_on(store.count_jobs(filter)).expect("the store answers")
    }

    fn list_runs(&self, query: &RunQuery, most: usize) -> RunPage {
        let BlockingStore { store, runtime } = self.store();
        runtime.block_on(store.list_runs(query, None, most)).expect("the store answers")
    }
}

/// The least that hears what is to be run and writes the same rows: one statement is the whole transaction.
struct RawAsker {
    runtime: Arc<Runtime>,
    client: Client,
    claim: Statement,
    end: Statement,
}

macro_rules! hold {
    () => {
        "WITH held AS (\
           UPDATE memory m SET version = m.version + 1, fence = m.fence + 1, n_open = 1, owner_run = u.run, \
             owner_node = 'n1', owner_name = 'main', owned_since = $4 \
           FROM unnest($1::bigint[], $2::bigint[], $3::uuid[]) AS u(job_id, seen, run) \
           WHERE m.job_id = u.job_id AND m.version = u.seen RETURNING m.job_id, m.fence, u.run)"
    };
}
macro_rules! open {
    () => {
        "INSERT INTO open_run (id, job_id, session_id, fence, phase, due_at, attempt, \"trigger\", serves, losses, \
            claimed_at, is_cancel_asked) \
          SELECT run, job_id, $5, fence, 'claimed', $4, 1, 'scheduler', 'pending', 0, $4, false FROM held"
    };
}
macro_rules! keep {
    () => {
        "WITH gone AS (\
           DELETE FROM open_run o USING unnest($1::uuid[]) AS u(id) WHERE o.id = u.id RETURNING o.*), \
         kept AS (\
           INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, losses, \
             claimed_at, started_at, is_cancel_asked, ended_at, exit_code, frozen_for) \
           SELECT id, job_id, session_id, fence, 'succeeded', due_at, attempt, \"trigger\", serves, losses, \
             claimed_at, $2, is_cancel_asked, $2, 0, 0 FROM gone)"
    };
}
macro_rules! free {
    () => {
        " UPDATE memory m SET version = m.version + 1, n_open = 0, last_start_at = $2, last_end_at = $2, \
            last_good_start_at = $2, last_good_end_at = $2, next_run_at = $2, settled_until = $2, owner_run = NULL, \
            owner_node = NULL, owner_name = NULL, owned_since = NULL \
          FROM gone WHERE m.job_id = gone.job_id"
    };
}

const CLAIM: &str = concat!(
    hold!(),
    ", told AS (INSERT INTO change (position, job_id, changed_at) SELECT pg_current_xact_id(), job_id, $4 FROM held), \
     opened AS (",
    open!(),
    ") SELECT j.definition FROM held JOIN job j ON j.id = held.job_id"
);
const END: &str = concat!(
    keep!(),
    ", told AS (INSERT INTO change (position, job_id, changed_at) SELECT pg_current_xact_id(), job_id, $2 FROM gone)",
    free!()
);
const LEAN_CLAIM: &str = concat!(hold!(), " ", open!(), " RETURNING ''");
const LEAN_END: &str = concat!(keep!(), free!());

impl RawAsker {
    fn new(postgres: &Postgres, [claim, end]: [&str; 2]) -> RawAsker {
        let client = postgres.connect(Whose::Raw);
        let runtime = Arc::clone(&postgres.runtime);
        let (claim, end) = runtime.block_on(async {
            let claim = client.prepare(claim).await.expect("the tables are there");
            (claim, client.prepare(end).await.expect("the tables are there"))
        });
        RawAsker { runtime, client, claim, end }
    }
}

impl Asker for RawAsker {
    fn claim(&mut self, turns: &mut [Turn]) {
        let job: Vec<i64> = turns.iter().map(|it| job_id(it.job_idx)).collect();
        let seen: Vec<i64> = turns.iter().map(|it| it.version as i64).collect();
        let run: Vec<Uuid> = turns.iter().map(|it| Uuid::from_u128(it.run.0)).collect();
        let at = fleet::now().as_millis();
        let claimed =
            self.runtime.block_on(self.client.query(&self.claim, &[&job, &seen, &run, &at, &session()]));
        let claimed = claimed.expect("the server answers");
        assert_eq!(claimed.len(), turns.len(), "nobody else claims");
        for row in &claimed {
            std::hint::black_box(row.get::<_, &str>(0));
        }
        for turn in turns {
            turn.version += 1;
        }
    }

    fn end(&mut self, turns: &mut [Turn]) {
        let run: Vec<Uuid> = turns.iter().map(|it| Uuid::from_u128(it.run.0)).collect();
        let at = fleet::now().as_millis();
        let n_ended = self.runtime.block_on(self.client.execute(&self.end, &[&run, &at]));
        let n_ended = n_ended.expect("the server answers");
        assert_eq!(n_ended, turns.len() as u64, "nobody else ends them");
        for turn in turns {
            turn.version += 1;
        }
    }
}

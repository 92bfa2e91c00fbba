//! Where a node of the benchmark lives: a folder of its own, and a store that nobody else has.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::postgres::{BlockingStore, PgConfig, PgStore};
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
use evenbeat_core::schedule::{OnceAt, Placement, Schedule};
use evenbeat_core::store::{PutAnswer, PutJob, Seen, Store};
use rusqlite::{Connection, OpenFlags};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use crate::fleet;

static N_HOMES: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Debug)]
pub(crate) enum Backend {
    Sqlite,
    /// The address of a server.
    Postgres(String),
}

impl Backend {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Backend::Sqlite => "sqlite",
            Backend::Postgres(_) => "postgres",
        }
    }
}

/// A folder and a store, gone with it.
pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    pub(crate) backend: Backend,
    pub(crate) runtime: Arc<Runtime>,
    database: String,
}

/// One run that is over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Over {
    pub(crate) job_id: i64,
    pub(crate) due_at: i64,
    pub(crate) started_at: i64,
}

impl Home {
    pub(crate) fn new(backend: &Backend) -> Home {
        let database =
            format!("bench_node_{}_{}", std::process::id(), N_HOMES.fetch_add(1, Ordering::Relaxed));
        // Beside what was built: a temporary folder may be memory, which writes through to nothing.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&database);
        std::fs::create_dir_all(&folder).expect("a folder");
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let home = Home { folder, backend: backend.clone(), runtime: Arc::new(runtime), database };
        if let Backend::Postgres(server) = backend {
            home.maintain(server, &format!("CREATE DATABASE {}", home.database));
            home.runtime.block_on(home.pg_store().migrate()).expect("the tables can be made");
        }
        home
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("evenbeat.db")
    }

    /// The address that a process is told.
    pub(crate) fn address(&self) -> String {
        match &self.backend {
            Backend::Sqlite => format!("sqlite:{}", self.file().display()),
            Backend::Postgres(server) => address(server, &self.database),
        }
    }

    pub(crate) fn store(&self) -> AnyStore {
        match self.backend {
            Backend::Sqlite => AnyStore::Sqlite(open(&self.file())),
            Backend::Postgres(_) => AnyStore::Postgres(self.pg_store()),
        }
    }

    /// Writes all jobs, while nobody else is there.
    pub(crate) fn fill(&self, n_jobs: usize) {
        self.write(|store| {
            fleet::fill(store, n_jobs);
        });
    }

    /// Writes a job that is due now and runs this once.
    pub(crate) fn put_due(&self, name: &str, argv: &[&str]) {
        let now = fleet::now();
        let command = CommandTarget {
            argv: argv.iter().map(|&it| it.to_owned()).collect(),
            ..CommandTarget::default()
        };
        let once = Schedule::Once { at: OnceAt::Instant(now), finish_within: None };
        let job = Job::new(name.parse().expect("a key"), Target::Command(command), once);
        let mut state = JobState::new(now);
        state.place(&job, Placement::at(now, now));
        let put = PutJob {
            job: Arc::new(job),
            state,
            seen: Seen::Nothing,
            is_revision: true,
            is_deleted: false,
            records: Vec::new(),
            audit: None,
            request: None,
        };
        self.write(|store| {
            let answers = store.put_jobs(std::slice::from_ref(&put)).expect("the store answers");
            assert!(matches!(answers[..], [PutAnswer::Put(_)]), "{answers:?}");
        });
    }

    fn write(&self, work: impl FnOnce(&mut dyn Store)) {
        match self.backend {
            Backend::Sqlite => {
                let mut store = open(&self.file());
                work(&mut store);
                store.close().expect("the store closes");
            }
            Backend::Postgres(_) => {
                let runtime = Arc::clone(&self.runtime);
                work(&mut BlockingStore { store: self.pg_store(), runtime });
            }
        }
    }

    /// The runs that were due then and are over.
    pub(crate) fn over(&self, from: i64, to: i64) -> Vec<Over> {
        const COLUMNS: &str = "SELECT job_id, due_at, coalesce(started_at, ended_at) FROM run";
        match &self.backend {
            Backend::Sqlite => {
                let reader = self.reader();
                let sql = format!("{COLUMNS} WHERE due_at >= ?1 AND due_at < ?2");
                let mut select = reader.prepare(&sql).expect("the table is there");
                let rows = select.query_map([from, to], |row| {
                    Ok(Over { job_id: row.get(0)?, due_at: row.get(1)?, started_at: row.get(2)? })
                });
                rows.expect("rows").map(|row| row.expect("a row")).collect()
            }
            Backend::Postgres(server) => self.runtime.block_on(async {
                let client = connect(&address(server, &self.database)).await;
                let sql = format!("{COLUMNS} WHERE due_at >= $1 AND due_at < $2");
                let rows = client.query(&sql, &[&from, &to]).await.expect("rows");
                let over = rows.iter().map(|row| Over {
                    job_id: row.get(0),
                    due_at: row.get(1),
                    started_at: row.get(2),
                });
                over.collect()
            }),
        }
    }

    /// When the latest run was claimed, whether it is over or not.
    pub(crate) fn last_claim_at(&self) -> Option<i64> {
        const SQL: &str = "SELECT max(claimed_at) FROM \
                           (SELECT claimed_at FROM run UNION ALL SELECT claimed_at FROM open_run) AS claims";
        match &self.backend {
            Backend::Sqlite => self.reader().query_row(SQL, [], |row| row.get(0)).expect("a row"),
            Backend::Postgres(server) => self.runtime.block_on(async {
                let client = connect(&address(server, &self.database)).await;
                client.query_one(SQL, &[]).await.expect("a row").get(0)
            }),
        }
    }

    fn reader(&self) -> Connection {
        Connection::open_with_flags(self.file(), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the file is there")
    }

    fn pg_store(&self) -> PgStore {
        let config: PgConfig = self.address().parse().expect("an address");
        PgStore::new(config).expect("a handle")
    }

    fn maintain(&self, server: &str, sql: &str) {
        self.runtime.block_on(async {
            connect(&address(server, "postgres")).await.batch_execute(sql).await.expect("the server does it");
        });
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Backend::Postgres(server) = self.backend.clone() {
            self.maintain(&server, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database));
        }
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            println!("note: `{}` is left behind: {error}", self.folder.display());
        }
    }
}

fn open(file: &Path) -> SqliteStore {
    SqliteStore::open(file, Options::default()).expect("a file")
}

/// The same server, another database.
fn address(server: &str, database: &str) -> String {
    let (server, _) = server.rsplit_once('/').expect("an address ends with a database");
    format!("{server}/{database}?sslmode=disable")
}

async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("the server is there");
    tokio::spawn(connection);
    client
}

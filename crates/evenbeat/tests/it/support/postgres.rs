//! A database for each test, copied from one that was migrated once.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use evenbeat::testing::store::postgres::{BlockingStore, PgConfig, PgStore};
use evenbeat_sim::conformance::{Backend, FailOver};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

/// No test that is not about deadlines is to fail because the machine is busy.
const PATIENT: Duration = Duration::from_secs(30);

/// How tests reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Directly.
    Direct,
    /// Through PgBouncer in transaction mode.
    PgBouncer,
}

impl Way {
    /// The address of a database.
    pub(crate) fn address(self, database: &str) -> String {
        let (variable, tail) = match self {
            Way::Direct => ("EVENBEAT_TEST_POSTGRES", "?sslmode=disable"),
            Way::PgBouncer => ("EVENBEAT_TEST_PGBOUNCER", "?pgbouncer=true&sslmode=disable"),
        };
        let maintenance = said(variable);
        let (server, _) = maintenance.rsplit_once('/').expect("an address ends with a database");
        format!("{server}/{database}{tail}")
    }
}

/// What `scripts/with-servers` says.
pub(crate) fn said(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/with-servers cargo nextest run -p evenbeat`")
    })
}

/// One runtime for all stores and connections of a test.
pub(crate) fn runtime() -> Arc<Runtime> {
    static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();
    let build = || Arc::new(Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap());
    Arc::clone(RUNTIME.get_or_init(build))
}

/// A plain connection, without any store around it.
pub(crate) fn connect(address: &str) -> Client {
    let runtime = runtime();
    let (client, connection) = runtime.block_on(tokio_postgres::connect(address, NoTls)).unwrap();
    runtime.spawn(connection);
    client
}

/// A database of its own, gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
}

impl Database {
    pub(crate) fn new() -> Database {
        static N_DATABASES: AtomicU32 = AtomicU32::new(0);
        let template = template();
        let n = N_DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("evenbeat_test_{}_{n}", process::id());
        maintain(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        maintain(&format!("CREATE DATABASE {name} TEMPLATE {template}"));
        Database { name }
    }

    pub(crate) fn address(&self, way: Way) -> String {
        way.address(&self.name)
    }

    pub(crate) fn connect(&self) -> Client {
        connect(&self.address(Way::Direct))
    }

    pub(crate) fn config(&self, way: Way) -> PgConfig {
        let config: PgConfig = self.address(way).parse().unwrap();
        config.with_deadline(PATIENT)
    }

    pub(crate) fn store(&self, way: Way) -> BlockingStore {
        store(self.config(way))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        maintain(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

pub(crate) fn store(config: PgConfig) -> BlockingStore {
    BlockingStore { store: PgStore::new(config).unwrap(), runtime: runtime() }
}

fn maintain(sql: &str) {
    let client = connect(&Way::Direct.address("postgres"));
    runtime().block_on(client.batch_execute(sql)).unwrap();
}

/// A migrated database to copy from, made by the first test that needs it.
fn template() -> &'static str {
    static TEMPLATE: OnceLock<&str> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let name = "evenbeat_template";
        let client = connect(&Way::Direct.address("postgres"));
        runtime().block_on(async {
            client.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
            let sql = "SELECT FROM pg_database WHERE datname = $1 AND datistemplate";
            if client.query(sql, &[&name]).await.unwrap().is_empty() {
                client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
                client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
                let store = PgStore::new(Way::Direct.address(name).parse().unwrap()).unwrap();
                store.migrate().await.unwrap();
                drop(store);
                client.batch_execute(&format!("ALTER DATABASE {name} IS_TEMPLATE true")).await.unwrap();
            }
            client.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
        });
        name
    })
}

/// The store, as the conformance suite wants it. Its databases go with it.
#[derive(Debug)]
pub(crate) struct Postgres {
    way: Way,
    databases: Mutex<Vec<Database>>,
}

impl Postgres {
    pub(crate) fn by(way: Way) -> Postgres {
        Postgres { way, databases: Mutex::default() }
    }
}

impl Backend for Postgres {
    type Store = BlockingStore;

    fn fresh(&self) -> BlockingStore {
        let database = Database::new();
        let store = database.store(self.way);
        self.databases.lock().unwrap().push(database);
        store
    }
}

impl FailOver for Postgres {
    fn fail_over(&self, store: &mut BlockingStore) {
        store.runtime.block_on(store.store.new_epoch()).unwrap();
    }
}

//! A database of its own on the server that `scripts/with-servers` has started, for what needs leases.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::NoTls;

/// A database, gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Database {
    name: String,
    runtime: Runtime,
}

impl Database {
    pub(crate) fn new() -> Database {
        static N_DATABASES: AtomicU32 = AtomicU32::new(0);
        let no = N_DATABASES.fetch_add(1, Ordering::Relaxed);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let database = Database { name: format!("evenbeat_chaos_{}_{no}", process::id()), runtime };
        database.maintain(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", database.name));
        database.maintain(&format!("CREATE DATABASE {}", database.name));
        database
    }

    /// As a node's setting.
    pub(crate) fn setting(&self) -> String {
        let maintenance = server();
        let (server, _) = maintenance.rsplit_once('/').expect("an address ends with a database");
        format!("store={server}/{}?sslmode=disable", self.name)
    }

    /// The time that its nodes go by is ahead of ours by so much, from now on.
    pub(crate) fn set_clock(&self, millis: i64) {
        let maintenance = server();
        let (server, _) = maintenance.rsplit_once('/').expect("an address ends with a database");
        let sql = format!(
            "CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE \
             RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + {millis}"
        );
        self.execute(&format!("{server}/{}", self.name), &sql);
    }

    fn maintain(&self, sql: &str) {
        self.execute(&server(), sql);
    }

    fn execute(&self, database: &str, sql: &str) {
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(database, NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap();
            drop(client);
            let _ = connection.await;
        });
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.maintain(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

fn server() -> String {
    let variable = "EVENBEAT_TEST_POSTGRES";
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `scripts/with-servers cargo nextest run -p evenbeat`")
    })
}

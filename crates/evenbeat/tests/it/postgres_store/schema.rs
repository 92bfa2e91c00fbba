//! The same tables with the same columns on both databases, and what is found in them.

use std::collections::BTreeMap;
use std::path::Path;

use assert_cmd::Command;
use evenbeat::testing::store::sqlite::{Options, SqliteStore};

use crate::support::postgres::{Database, Way, runtime};

/// Table and column, whether it may be empty, and what kind of value it is.
type Columns = BTreeMap<(String, String), (bool, &'static str)>;

fn of_postgres(database: &Database) -> Columns {
    let sql = "SELECT c.table_name::text, c.column_name::text, c.is_nullable = 'YES', c.data_type::text
               FROM information_schema.columns c
               JOIN pg_class t ON t.relname = c.table_name
               WHERE c.table_schema = 'public' AND NOT t.relispartition";
    let rows = runtime().block_on(database.connect().query(sql, &[])).unwrap();
    let kind = |word: &str| match word {
        "bigint" | "boolean" | "xid8" => "number",
        "text" => "text",
        "uuid" | "bytea" => "bytes",
        "double precision" => "real",
        other => panic!("nobody said what a {other} is on SQLite"),
    };
    rows.iter().map(|row| ((row.get(0), row.get(1)), (row.get(2), kind(row.get(3))))).collect()
}

fn of_sqlite() -> Columns {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("schema-{}.db", std::process::id()));
    SqliteStore::open(&path, Options::default()).unwrap().close().unwrap();
    let conn = rusqlite::Connection::open(&path).unwrap();
    let sql =
        "SELECT t.name, c.name, NOT c.\"notnull\", c.type FROM sqlite_schema t, pragma_table_info(t.name) c
               WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let kind = |word: &str| match word {
        "INTEGER" => "number",
        "TEXT" => "text",
        "BLOB" => "bytes",
        "REAL" => "real",
        other => panic!("nobody said what a {other} is on PostgreSQL"),
    };
    let mut statement = conn.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, kind(&row.get::<_, String>(3)?))))
    });
    let columns = rows.unwrap().collect::<Result<_, _>>().unwrap();
    drop(statement);
    for ending in ["", "-wal", "-shm", ".lock"] {
        let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
    }
    columns
}

#[test]
fn both_databases_have_the_same_columns() {
    let (postgres, sqlite) = (of_postgres(&Database::new()), of_sqlite());
    assert!(100 < postgres.len(), "{} columns", postgres.len());
    assert_eq!(postgres, sqlite);
}

fn db(database: &Database, action: &[&str]) -> String {
    let mut command = Command::cargo_bin("evenbeat").unwrap();
    let done = command.arg("db").args(action).env("EVENBEAT_STORE", database.address(Way::Direct)).output();
    let done = done.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    format!("{}{}exit {}", text(done.stdout), text(done.stderr), done.status.code().unwrap())
}

#[test]
fn a_database_is_looked_after_from_the_command_line() {
    let database = Database::new();
    assert_eq!(db(&database, &["migrate"]), "the store is up to date\nexit 0");
    assert_eq!(db(&database, &["check"]), "0 jobs, 0 open runs: no problems\nexit 0");
    assert_eq!(db(&database, &["new-epoch"]), "started epoch 1\nexit 0");
    assert!(
        db(&database, &["backup", "x.db"]).starts_with("error: a PostgreSQL database is copied by its own")
    );

    let orphan = "INSERT INTO outbox (run_id, job_id, fence) VALUES (gen_random_uuid(), 1, 1)";
    runtime().block_on(database.connect().batch_execute(orphan)).unwrap();
    let said = db(&database, &["check"]);
    assert!(said.starts_with("message of a run that is not open: "), "{said}");
    assert!(said.ends_with("0 jobs, 0 open runs: 1 finding\nexit 1"), "{said}");

    let newer = "INSERT INTO migration VALUES (99, 'later', 'x', 0)";
    runtime().block_on(database.connect().batch_execute(newer)).unwrap();
    let said = db(&database, &["migrate"]);
    assert!(said.contains("the tables are of a newer version than this program (step 99, `later`"), "{said}");
}

//! SQLite: the store in a file on the disk, and a copy of the file for raw SQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use evenbeat::testing::store::keyword::Keyword;
use evenbeat::testing::store::query::{Count, JobFilter, JobPage, RunPage, RunQuery};
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::ids::{JobKey, RunId};
use rusqlite::{Connection, params};

use crate::fleet::{self, ME, Turn};
use crate::subject::{Asker, Subject, Whose};
use crate::{Size, machine};

pub(crate) struct Sqlite {
    store: Option<SqliteStore>,
    folder: PathBuf,
    size_bytes: u64,
}

impl Sqlite {
    pub(crate) fn filled(size: Size) -> Sqlite {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let mut filled = Sqlite { store: None, folder, size_bytes: 0 };
        let path = filled.path(Whose::Ours);
        let mut store = SqliteStore::open(&path, Options::default()).expect("a new file");
        fleet::fill(&mut store, size.n_jobs);
        store.close().expect("the store closes");
        add_runs(&path, size);
        fs::copy(&path, filled.path(Whose::Raw)).expect("the file can be copied");
        filled.size_bytes = fs::metadata(&path).map_or(0, |it| it.len());
        filled.store = Some(SqliteStore::open(&path, Options::default()).expect("the file is there"));
        filled
    }

    fn path(&self, whose: Whose) -> PathBuf {
        self.folder.join(match whose {
            Whose::Ours => "ours.db",
            Whose::Raw => "raw.db",
        })
    }

    fn connect(&self, whose: Whose) -> Connection {
        let conn = Connection::open(self.path(whose)).expect("the file is there");
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 8192;
             PRAGMA cache_size = -65536; PRAGMA busy_timeout = 10000",
        )
        .expect("settings");
        conn
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.store = None;
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            println!("note: `{}` stays: {error}", self.folder.display());
        }
    }
}

/// The history, as quickly as it goes.
fn add_runs(path: &Path, size: Size) {
    let mut conn = Connection::open(path).expect("the file is there");
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144").expect("settings");
    let tx = conn.transaction().expect("nobody else writes");
    let indexes = indexes_of_runs(&tx);
    for (name, _) in &indexes {
        tx.execute_batch(&format!("DROP INDEX {name}")).expect("the index is there");
    }
    {
        let mut insert = tx
            .prepare(
                "INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, losses,
                 claimed_at, started_at, is_cancel_asked, ended_at, exit_code, frozen_for)
                 VALUES (?1, ?2, ?3, 4294967296, ?4, ?5, 1, 'scheduler', 'pending', 0, ?5, ?5, 0, ?5, 0, 0)",
            )
            .expect("the table is there");
        for run in fleet::past_runs(size.n_runs, size.n_jobs, fleet::now()) {
            let outcome = run.outcome.keyword();
            let at = run.ended_at.as_millis();
            insert
                .execute(params![bytes(run.id), job_id(run.job_idx), session(), outcome, at])
                .expect("it fits");
        }
    }
    // Sorted once they are much quicker made than row by row.
    for (_, sql) in &indexes {
        tx.execute_batch(sql).expect("the index can be made");
    }
    tx.commit().expect("it fits");
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody else reads");
}

/// By name, with what makes them.
fn indexes_of_runs(conn: &Connection) -> Vec<(String, String)> {
    let sql =
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'run' AND sql IS NOT NULL";
    let mut statement = conn.prepare(sql).expect("a schema");
    let indexes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("a schema");
    indexes.collect::<rusqlite::Result<_>>().expect("a schema")
}

fn bytes(run: RunId) -> [u8; 16] {
    run.0.to_be_bytes()
}

fn session() -> [u8; 16] {
    ME.0.to_be_bytes()
}

fn job_id(idx: usize) -> i64 {
    idx as i64 + 1
}

impl Subject for Sqlite {
    type Store = SqliteStore;

    const NAME: &'static str = "sqlite";

    fn title(&self) -> String {
        let megabytes = self.size_bytes / 1_000_000;
        format!("SQLite, file on disk, synchronous FULL, {megabytes} MB, {}", machine::machine())
    }

    fn store(&self) -> SqliteStore {
        self.store.clone().expect("it is open")
    }

    /// One connection for all of them: SQLite has one writer, and waiting for a lock costs less than asking for it.
    fn raw_askers(&self, n: usize) -> Vec<Box<dyn Asker>> {
        let conn = Arc::new(Mutex::new(self.connect(Whose::Raw)));
        (0..n).map(|_| Box::new(RawAsker(Arc::clone(&conn))) as Box<dyn Asker>).collect()
    }

    fn begin_log(&self, whose: Whose) -> u64 {
        let conn = self.connect(whose);
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody else writes");
        self.log_bytes(whose)
    }

    fn log_bytes(&self, whose: Whose) -> u64 {
        fs::metadata(self.path(whose).with_extension("db-wal")).map_or(0, |it| it.len())
    }

    fn history(&self) -> (u64, u64) {
        let conn = self.connect(Whose::Ours);
        let sql = "SELECT (SELECT sum(pgsize) FROM dbstat('main', 1)
                   WHERE name = 'run' OR name IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'run')),
                   (SELECT count(*) FROM run)";
        let number = |it: i64| it as u64;
        conn.query_row(sql, [], |row| Ok((number(row.get(0)?), number(row.get(1)?))))
            .expect("the table is there")
    }

    fn list_jobs(&self, filter: &JobFilter, after: Option<&JobKey>, most: usize) -> JobPage {
        self.store().look(|reader| reader.list_jobs(filter, after, most)).expect("the store answers")
    }

    fn count_jobs(&self, filter: &JobFilter) -> Count {
        self.store().look(|reader| reader.count_jobs(filter)).expect("the store answers")
    }

    fn list_runs(&self, query: &RunQuery, most: usize) -> RunPage {
        self.store().look(|reader| reader.list_runs(query, None, most)).expect("the store answers")
    }
}

/// The least that does the same.
struct RawAsker(Arc<Mutex<Connection>>);

impl Asker for RawAsker {
    fn claim(&mut self, turns: &mut [Turn]) {
        let mut conn = self.0.lock().expect("nobody broke down");
        let at = fleet::now().as_millis();
        write(&mut conn, |conn| {
            let mut take = conn.prepare_cached(
                "UPDATE memory SET version = version + 1, fence = fence + 1, n_open = 1, owner_run = ?3,
                 owner_node = 'n1', owner_name = 'main', owned_since = ?4 WHERE job_id = ?1 AND version = ?2",
            )?;
            let mut open = conn.prepare_cached(
                "INSERT INTO open_run (id, job_id, session_id, fence, phase, due_at, attempt, \"trigger\", serves, losses,
                 claimed_at, is_cancel_asked)
                 VALUES (?1, ?2, ?3, 1, 'claimed', ?4, 1, 'scheduler', 'pending', 0, ?4, 0)",
            )?;
            let mut what = conn.prepare_cached("SELECT definition FROM job WHERE id = ?1")?;
            for turn in &mut *turns {
                let (id, run) = (job_id(turn.job_idx), bytes(turn.run));
                std::hint::black_box(what.query_row([id], |row| row.get::<_, String>(0))?);
                let n_taken = take.execute(params![id, turn.version as i64, run, at])?;
                assert_eq!(n_taken, 1, "nobody else claims");
                open.execute(params![run, id, session(), at])?;
                turn.version += 1;
            }
            Ok(())
        });
    }

    fn end(&mut self, turns: &mut [Turn]) {
        let mut conn = self.0.lock().expect("nobody broke down");
        let at = fleet::now().as_millis();
        write(&mut conn, |conn| {
            let mut close = conn.prepare_cached("DELETE FROM open_run WHERE id = ?1")?;
            let mut keep = conn.prepare_cached(
                "INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, losses,
                 claimed_at, started_at, is_cancel_asked, ended_at, exit_code, frozen_for)
                 VALUES (?1, ?2, ?3, 1, 'succeeded', ?4, 1, 'scheduler', 'pending', 0, ?4, ?4, 0, ?4, 0, 0)",
            )?;
            let mut free = conn.prepare_cached(
                "UPDATE memory SET version = version + 1, n_open = 0, last_start_at = ?3, last_end_at = ?3,
                 last_good_start_at = ?3, last_good_end_at = ?3, next_run_at = ?3, settled_until = ?3,
                 owner_run = NULL, owner_node = NULL, owner_name = NULL, owned_since = NULL
                 WHERE job_id = ?1 AND version = ?2",
            )?;
            for turn in &mut *turns {
                let (id, run) = (job_id(turn.job_idx), bytes(turn.run));
                assert_eq!(close.execute([run])?, 1, "nobody else ends it");
                keep.execute(params![run, id, session(), at])?;
                assert_eq!(free.execute(params![id, turn.version as i64, at])?, 1, "nobody else writes");
                turn.version += 1;
            }
            Ok(())
        });
    }
}

fn write(conn: &mut Connection, write: impl FnOnce(&Connection) -> rusqlite::Result<()>) {
    let statement = |sql| conn.prepare_cached(sql)?.execute([]).map(|_| ());
    statement("BEGIN IMMEDIATE")
        .and_then(|()| write(conn))
        .and_then(|()| statement("COMMIT"))
        .expect("it is written");
}

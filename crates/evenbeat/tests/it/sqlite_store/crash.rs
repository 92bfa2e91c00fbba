//! A process that is killed in the middle of its work.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat_core::ids::RunId;

use rusqlite::{Connection, OpenFlags};

use crate::sqlite_store::common::{Folder, job, new_job, open_run, put};

/// Set for the process that is killed: the file that it writes to.
const WRITES_TO: &str = "EVENBEAT_TEST_WRITES_TO";

/// Opens runs on several threads for ever, and says each one that was granted.
fn write_until_killed(path: &Path) {
    let store = SqliteStore::open(path, Options::default()).unwrap();
    let process = u128::from(std::process::id());
    std::thread::scope(|scope| {
        for thread in 0..4_u128 {
            let mut store = store.clone();
            scope.spawn(move || {
                for no in 0_u128.. {
                    let row = put(&mut store, new_job(job(&format!("job-{process}-{thread}-{no}"))));
                    let run = process << 64 | thread << 32 | no;
                    open_run(&mut store, process, &row, run);
                    println!("granted {run}");
                }
            });
        }
    });
}

fn was_closed_cleanly(path: &Path) -> String {
    let conn = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    conn.query_row("SELECT value FROM setting WHERE name = 'closed_cleanly'", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_clean_stop_is_written_down() {
    let folder = Folder::new();
    let path = folder.file("store.db");
    let mut store = SqliteStore::open(&path, Options::default()).unwrap();
    put(&mut store, new_job(job("a")));
    assert_eq!(was_closed_cleanly(&path), "0");
    store.close().unwrap();
    assert_eq!(was_closed_cleanly(&path), "1");
}

#[test]
fn what_was_answered_survives_a_kill() {
    if let Ok(path) = std::env::var(WRITES_TO) {
        return write_until_killed(Path::new(&path));
    }
    let folder = Folder::new();
    let path = folder.file("store.db");
    let mut granted: Vec<RunId> = Vec::new();
    for n_until_kill in [1, 30, 75] {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite_store::crash::what_was_answered_survives_a_kill", "--nocapture"])
            .env(WRITES_TO, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut n_granted = 0;
        for line in lines {
            let line = line.unwrap();
            // The last line may be cut off by the kill.
            let Some(run) = line.strip_prefix("granted ").and_then(|run| run.parse().ok()) else { continue };
            n_granted += 1;
            if n_granted == n_until_kill {
                writer.kill().unwrap();
            }
            granted.push(RunId(run));
        }
        assert!(!writer.wait().unwrap().success());
        assert!(n_until_kill <= n_granted);

        assert_eq!(was_closed_cleanly(&path), "0", "so that the next start looks through the file");
        let store = SqliteStore::open(&path, Options::default()).unwrap();
        assert_eq!(store.check().unwrap().findings, [] as [String; 0]);
        let lost: Vec<&RunId> =
            granted.iter().filter(|run| store.look(|it| it.run(**run)).unwrap().is_none()).collect();
        assert!(lost.is_empty(), "granted and lost: {lost:?}");
    }
}

//! Backups, and what a check finds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use evenbeat::testing::store::sqlite::{BackupError, Options, SqliteStore};
use evenbeat_core::store::Views;
use rusqlite::Connection;

use crate::sqlite_store::common::{Folder, fresh, job, new_job, open_run, put};

#[test]
fn a_backup_is_made_while_others_write() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(folder.file("store.db"), Options::default()).unwrap();
    for no in 0..300 {
        put(&mut store, new_job(job(&format!("before{no}"))));
    }
    let copy = folder.file("copy.db");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut store = store.clone();
            for no in 0_u128.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                let row = put(&mut store, new_job(job(&format!("during{no}"))));
                open_run(&mut store, 1, &row, no);
            }
        });
        store.backup(&copy).unwrap();
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!folder.file("copy.db.part").exists());
    let restored = SqliteStore::open(&copy, Options::default()).unwrap();
    assert_eq!(restored.check().unwrap().findings, [] as [String; 0]);
    let n_restored = restored.jobs(None, 10_000).unwrap().len();
    let n_now = store.jobs(None, 10_000).unwrap().len();
    assert!((300..=n_now).contains(&n_restored), "{n_restored} of {n_now}");
}

#[test]
fn a_backup_never_overwrites() {
    let folder = Folder::new();
    let store = SqliteStore::open(folder.file("store.db"), Options::default()).unwrap();
    let precious = folder.file("precious");
    fs::write(&precious, "a thesis").unwrap();
    let error = store.backup(&precious).unwrap_err();
    assert!(matches!(error, BackupError::Exists { .. }));
    assert!(
        error.to_string().ends_with("already exists, and a backup never overwrites; choose another name")
    );
    assert_eq!(fs::read(&precious).unwrap(), b"a thesis");
    assert!(store.backup(folder.file("nowhere/copy.db")).is_err());
}

/// What a check says after somebody has been at the file.
#[track_caller]
fn check(tampered: &str, expected: &[&str]) {
    let folder = Folder::new();
    let path = folder.file("store.db");
    let mut store = SqliteStore::open(&path, Options::default()).unwrap();
    let row = put(&mut store, new_job(job("a")));
    open_run(&mut store, 1, &row, 7);
    store.close().unwrap();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(&format!("PRAGMA foreign_keys = OFF; {tampered}")).unwrap();
    conn.close().unwrap();
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    assert_eq!(store.check().unwrap().findings, expected);
}

#[test]
fn a_check_finds_what_should_not_be_there() {
    let run = "00000000000000000000000000000007";
    check("", &[]);
    check("UPDATE memory SET n_open = 2", &["job counts other runs than are open: a: 2 counted, 1 open"]);
    check("DELETE FROM session", &[&format!("open run of no session: {run}")]);
    check("DELETE FROM memory", &["job has no memory: a"]);
    check(
        "INSERT INTO counter VALUES ('site', 'shop', 3, NULL)",
        &["counter of site shop says 3, and 0 are held; a recount mends it"],
    );
    check(
        "UPDATE open_run SET takes = '[[\"site\", \"shop\"]]'",
        &["counter of site shop is held and not there"],
    );
    check(
        "INSERT INTO label VALUES ('team', 'x', 'b', 99)",
        &["a row of `label` names a row of `job` that is not there"],
    );
    check("INSERT INTO outbox VALUES (1, x'09', 1, 1)", &["message of a run that is not open: 09"]);
    check("INSERT INTO record VALUES (1, 99, 'missed', 'late', 0, 0, 1, 0)", &["record of no job: 1"]);
    check("INSERT INTO counter_claim VALUES ('site', 'shop', 0, x'09')", &["claim of no counter: site shop"]);
}

#[test]
fn a_check_counts_what_it_has_seen() {
    let mut store = fresh();
    let row = put(&mut store, new_job(job("a")));
    put(&mut store, new_job(job("b")));
    open_run(&mut store, 1, &row, 7);
    let report = store.check().unwrap();
    assert_eq!((report.n_jobs, report.n_open_runs), (2, 1));
}

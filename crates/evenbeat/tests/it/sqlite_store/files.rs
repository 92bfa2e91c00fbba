//! Which files are opened, and which are left as they are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use evenbeat::testing::store::sqlite::{OpenError, Options, SqliteStore};
use evenbeat_core::store::{Store, Views};
use rusqlite::Connection;

use crate::sqlite_store::common::{Folder, fresh, job, join, key, new_job, put};

/// Set for the other process: the file that it is to open.
const OTHER_OPENS: &str = "EVENBEAT_TEST_OTHER_OPENS";

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(path, Options::default())
}

/// A store with something in it, closed.
fn closed_store(folder: &Folder) -> std::path::PathBuf {
    let path = folder.file("store.db");
    let mut store = open(&path).unwrap();
    for no in 0..200 {
        put(&mut store, new_job(job(&format!("job{no}"))));
    }
    store.close().unwrap();
    path
}

/// It is refused for this reason, and nothing of it has changed.
#[track_caller]
fn check_refused(path: &Path, expected: &str) {
    let before = fs::read(path).unwrap();
    let error = open(path).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    assert!(error.contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    assert!(fs::read(path).unwrap() == before, "the file has changed");
}

#[test]
fn a_new_file_is_for_its_owner_alone() {
    let folder = Folder::new();
    let path = folder.file("store.db");
    let store = open(&path).unwrap();
    for name in ["store.db", "store.db.lock"] {
        let mode = fs::metadata(folder.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!folder.file("store.db.new").exists());
    drop(store);
    assert!(!folder.file("store.db-wal").exists(), "a clean stop carries the log over");
}

#[test]
fn what_was_written_is_there_again() {
    let folder = Folder::new();
    let path = closed_store(&folder);
    let store = open(&path).unwrap();
    assert_eq!(store.jobs(None, 1_000).unwrap().len(), 200);
    assert_eq!(store.check().unwrap().findings, [] as [String; 0]);
}

#[test]
fn a_closed_store_says_so() {
    let mut store = fresh();
    let other = store.clone();
    store.close().unwrap();
    let closed = "the store did not answer: the store is closed";
    assert_eq!(store.recount().unwrap_err().to_string(), closed);
    assert_eq!(other.sessions().unwrap_err().to_string(), closed);
    assert_eq!(other.close().unwrap_err().to_string(), closed);
}

#[test]
fn a_second_handle_waits_for_no_one() {
    let folder = Folder::new();
    let path = folder.file("store.db");
    let store = open(&path).unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("is in use by process {} since 20", std::process::id())), "{error}");
    assert!(error.contains("stop that process, or give this one a file of its own"), "{error}");
    let link = folder.file("other-name.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(open(&link), Err(OpenError::InUse { .. })), "under another name neither");
    store.close().unwrap();
    open(&path).unwrap();
}

#[test]
fn a_second_process_is_told_who_has_the_file() {
    if let Ok(path) = std::env::var(OTHER_OPENS) {
        println!("other: {}", open(Path::new(&path)).unwrap_err());
        return;
    }
    let folder = Folder::new();
    let path = folder.file("store.db");
    let _store = open(&path).unwrap();
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite_store::files::a_second_process_is_told_who_has_the_file", "--nocapture"])
        .env(OTHER_OPENS, &path)
        .output()
        .unwrap();
    let said = String::from_utf8(other.stdout).unwrap();
    assert!(said.contains("other: "), "{said}");
    assert!(said.contains(&format!("is in use by process {}", std::process::id())), "{said}");
}

#[test]
fn a_newer_file_is_left_alone() {
    let folder = Folder::new();
    let path = closed_store(&folder);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("INSERT INTO migration VALUES (99, 'far ahead', 'x', 0)").unwrap();
    conn.close().unwrap();
    check_refused(
        &path,
        "the tables are of a newer version than this program (step 99, `far ahead`; this program",
    );
}

#[test]
fn a_step_that_was_tampered_with_is_left_alone() {
    let folder = Folder::new();
    let path = closed_store(&folder);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("UPDATE migration SET checksum = 'x'").unwrap();
    conn.close().unwrap();
    check_refused(
        &path,
        "step 1 of the tables, `begin`, was not made by a release of this program (checksum x",
    );
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = Folder::new();
    let (text, empty, other) = (folder.file("a.txt"), folder.file("b.db"), folder.file("c.db"));
    fs::write(&text, "not a database at all").unwrap();
    check_refused(&text, "it is not an SQLite database");
    fs::write(&empty, "").unwrap();
    check_refused(&empty, "it is empty");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    check_refused(&other, "it is another program's SQLite database");
}

#[test]
fn a_damaged_file_is_left_alone() {
    let folder = Folder::new();
    let path = closed_store(&folder);
    let whole = fs::read(&path).unwrap();
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        check_refused(&path, "is damaged (");
    };
    damaged(&|bytes| bytes.truncate(bytes.len() / 2));
    damaged(&|bytes| {
        let middle = bytes.len() / 2;
        bytes[middle..middle + 20_000].fill(0xab);
    });
    damaged(&|bytes| bytes[4_096..8_192].fill(0));
    fs::write(&path, whole).unwrap();
    open(&path).unwrap();
}

#[test]
fn a_log_without_its_file_is_not_buried() {
    let folder = Folder::new();
    fs::write(folder.file("store.db-wal"), "the last hours").unwrap();
    let error = open(&folder.file("store.db")).unwrap_err().to_string();
    assert!(error.contains("its log is there, but the file itself is missing"), "{error}");
    assert_eq!(fs::read(folder.file("store.db-wal")).unwrap(), b"the last hours");
    assert!(!folder.file("store.db").exists());
}

#[test]
fn a_start_that_was_interrupted_is_done_again() {
    let folder = Folder::new();
    fs::write(folder.file("store.db.new"), "half a store").unwrap();
    let mut store = open(&folder.file("store.db")).unwrap();
    join(&mut store, 1);
    assert!(!folder.file("store.db.new").exists());
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = Folder::new();
    let error = open(&folder.file("nowhere/store.db")).unwrap_err().to_string();
    assert!(error.contains("nowhere/store.db` cannot be used; create it, or choose another path"), "{error}");
}

#[test]
fn a_restored_copy_begins_a_new_epoch() {
    let folder = Folder::new();
    let mut store = open(&folder.file("store.db")).unwrap();
    let before = join(&mut store, 1);
    let after = store.new_epoch().unwrap();
    assert_eq!(after.0, before.0 + 1);
    assert!(!store.watch(1).unwrap().is_open);
}

#[test]
fn one_job_that_cannot_be_read_does_not_stop_the_others() {
    let folder = Folder::new();
    let path = closed_store(&folder);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("UPDATE job SET definition = '{}', terms = '{' WHERE key = 'job7'").unwrap();
    conn.close().unwrap();
    let mut store = open(&path).unwrap();
    let broken = store.job(&key("job7")).unwrap().unwrap();
    assert!(!broken.job.enabled && broken.state.pause.is_some());
    assert_eq!(store.jobs(None, 1_000).unwrap().len(), 200);
    let evenbeat_core::store::Changes::Rows { rows, .. } = store.changes(None, 1_000).unwrap() else {
        panic!("no cursor")
    };
    assert_eq!(rows.iter().filter(|it| it.state.pause.is_some()).count(), 1);
    let findings = store.check().unwrap().findings;
    assert!(findings.len() == 1 && findings[0].starts_with("job job7 cannot be read ("), "{findings:?}");
    let mut mended = new_job(job("job7"));
    mended.seen = evenbeat_core::store::Seen::Version(broken.version);
    assert_eq!(put(&mut store, mended).state.pause, None);
}

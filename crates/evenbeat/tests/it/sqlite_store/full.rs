//! A disk without room.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evenbeat::testing::store::sqlite::{Health, Options, SqliteStore};
use evenbeat_core::store::{PutJob, Retention, Store, StoreDown, Views};

use crate::sqlite_store::common::{Folder, HOUR, job, new_job, noon, record};
use crate::support::wait::until_so;

/// Something that needs a lot of room.
pub(crate) fn large(no: usize) -> PutJob {
    PutJob { records: vec![record(noon()); 500], ..new_job(job(&format!("job{no}"))) }
}

/// Writes, from this one on, until nothing goes any more.
pub(crate) fn fill(store: &mut SqliteStore, first: usize) -> (usize, StoreDown) {
    for no in first..1_000 {
        if let Err(down) = store.put_jobs(&[large(no)]) {
            return (no, down);
        }
    }
    panic!("there is too much room");
}

fn check_full_and_recovered(store: SqliteStore, make_room: impl FnOnce(&mut SqliteStore)) {
    check_refused_and_recovered(store, "has no room", make_room);
}

/// A file that takes nothing after a while, for a reason, until that is mended.
pub(crate) fn check_refused_and_recovered(
    mut store: SqliteStore,
    reason: &str,
    mend: impl FnOnce(&mut SqliteStore),
) {
    assert_eq!(store.health(), Health::Ok);
    let (n_written, down) = fill(&mut store, 0);
    assert!(0 < n_written);
    assert!(down.0.contains("store.db") && down.0.contains(reason), "{down}");
    assert!(matches!(store.health(), Health::ReadOnly { why, .. } if why == down.0), "{:?}", store.health());
    assert_eq!(
        store.jobs(None, 1_000).unwrap().len(),
        n_written,
        "what was answered is there, and can be read"
    );
    assert!(store.put_jobs(&[large(n_written)]).is_err());
    assert_eq!(store.jobs(None, 1_000).unwrap().len(), n_written, "and nothing else is");

    mend(&mut store);
    until_so("the store recovers", || store.health() == Health::Ok);
    store.put_jobs(&[large(n_written)]).unwrap();
    assert_eq!(store.check().unwrap().findings, [] as [String; 0]);
    store.close().unwrap();
}

#[test]
fn the_log_begins_anew_again_and_again() {
    const LOG_MAX_BYTES: u64 = 512 * 1024;
    let folder = Folder::new();
    let options = Options { log_max_bytes: LOG_MAX_BYTES, ..Options::default() };
    let mut store = SqliteStore::open(folder.file("store.db"), options).unwrap();
    for no in 0..60 {
        store.put_jobs(&[large(no)]).unwrap();
    }
    // The last group may go beyond it.
    let bound = 2 * LOG_MAX_BYTES;
    let n_bytes = |name: &str| fs::metadata(folder.file(name)).unwrap().len();
    assert!(bound < n_bytes("store.db"), "{} bytes are too few to show it", n_bytes("store.db"));
    assert!(n_bytes("store.db-wal") < bound, "{} bytes of log", n_bytes("store.db-wal"));
}

#[test]
fn a_file_that_may_not_grow_is_read_only_until_there_is_room() {
    let folder = Folder::new();
    let options = Options { size_max_bytes: Some(1024 * 1024), ..Options::default() };
    let store = SqliteStore::open(folder.file("store.db"), options).unwrap();
    check_full_and_recovered(store, |store| {
        assert!(0 < store.trim(&keep_nothing()).unwrap().n_records);
    });
}

fn keep_nothing() -> Retention {
    Retention::new(-HOUR, -HOUR, -HOUR, 1_000_000)
}

/// A small disk, where tests may mount one; else a file that may not grow stands for it.
enum SmallDisk {
    Mounted(PathBuf),
    Limited,
}

impl SmallDisk {
    fn at(folder: &Path) -> SmallDisk {
        fs::create_dir_all(folder).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(folder).output();
        match mount {
            Ok(mount) if mount.status.success() => SmallDisk::Mounted(folder.to_owned()),
            _ => SmallDisk::Limited,
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let SmallDisk::Mounted(folder) = self {
            let _ = Command::new("umount").arg(folder).output();
        }
    }
}

#[test]
fn a_full_disk_is_read_only_until_there_is_room() {
    let folder = Folder::new();
    let place = folder.file("disk");
    let disk = SmallDisk::at(&place);
    let ballast = place.join("ballast");
    fs::write(&ballast, vec![1; 512 * 1024]).unwrap();
    let size_max_bytes = matches!(disk, SmallDisk::Limited).then_some(1024 * 1024);
    let options = Options { size_max_bytes, ..Options::default() };
    let store = SqliteStore::open(place.join("store.db"), options).unwrap();
    check_full_and_recovered(store, |store| match disk {
        // Nobody asks for anything: the store finds out by itself.
        SmallDisk::Mounted(_) => fs::remove_file(&ballast).unwrap(),
        SmallDisk::Limited => {
            store.trim(&keep_nothing()).unwrap();
        }
    });
}

//! A disk that takes no more for another reason than that it is full: a write that fails, and a file system that
//! has become read-only under an open file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evenbeat::testing::store::sqlite::{Health, Options, SqliteStore};
use evenbeat_core::store::{Store, Views};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::sqlite_store::common::{Folder, join};
use crate::sqlite_store::full::{check_refused_and_recovered, fill};

/// Set for the process whose files may not grow beyond a limit.
const WRITES_TO: &str = "EVENBEAT_TEST_FAILING_WRITES_TO";
const FILE_BYTES_MAX: u64 = 1024 * 1024;

fn limit_files(to: Option<u64>) {
    setrlimit(Resource::Fsize, Rlimit { current: to, maximum: None }).unwrap();
}

/// A write beyond the limit fails as one does on a broken disk, for the signal that would end the process is ignored. A
/// process of its own, for the limit holds for all of it.
#[test]
fn a_file_that_cannot_be_written_is_read_only_until_it_can() {
    if let Some(path) = std::env::var_os(WRITES_TO) {
        let store = SqliteStore::open(PathBuf::from(path), Options::default()).unwrap();
        limit_files(Some(FILE_BYTES_MAX));
        check_refused_and_recovered(store, "cannot be read or written", |_| limit_files(None));
        return;
    }
    let folder = Folder::new();
    let name = "sqlite_store::broken_disk::a_file_that_cannot_be_written_is_read_only_until_it_can";
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(WRITES_TO, folder.file("store.db"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned() + &String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

/// A small file system in a file, where tests may mount one.
struct Ext4 {
    image: PathBuf,
    place: PathBuf,
}

impl Ext4 {
    fn new(folder: &Folder) -> Option<Ext4> {
        let it = Ext4 { image: folder.file("image"), place: folder.file("disk") };
        fs::create_dir_all(&it.place).unwrap();
        fs::File::create(&it.image).unwrap().set_len(32 * 1024 * 1024).unwrap();
        (run("mkfs.ext4", &["-q".as_ref(), &it.image]) && it.mount()).then_some(it)
    }

    fn mount(&self) -> bool {
        run("mount", &["-o".as_ref(), "loop,errors=remount-ro".as_ref(), &self.image, &self.place])
    }

    /// Makes the kernel find an error in it: it then lets nobody write any more.
    fn break_down(&self) -> bool {
        let place = self.place.to_str().unwrap();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let device = mounts.lines().find_map(|line| {
            let mut words = line.split(' ');
            let device = words.next()?;
            (words.next()? == place).then(|| device.trim_start_matches("/dev/"))
        });
        fs::write(format!("/sys/fs/ext4/{}/trigger_fs_error", device.unwrap()), "1").is_ok()
    }

    fn mend(&self) {
        assert!(run("umount", &[&self.place]), "nobody has it open");
        run("e2fsck", &["-fy".as_ref(), &self.image]);
        assert!(self.mount(), "it is mended");
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        run("umount", &[&self.place]);
    }
}

fn run(program: &str, args: &[&Path]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|done| done.status.success())
}

/// Such a disk comes back only when nobody has it open: what was answered is there then.
#[test]
fn what_was_answered_outlives_a_file_system_that_became_read_only() {
    let folder = Folder::new();
    let disk = Ext4::new(&folder);
    let path = disk.as_ref().map_or(folder.file("store.db"), |disk| disk.place.join("store.db"));
    // Where nothing can be mounted, a file that may not grow stands for it.
    let size_max_bytes = disk.is_none().then_some(FILE_BYTES_MAX);
    let mut store = SqliteStore::open(&path, Options { size_max_bytes, ..Options::default() }).unwrap();
    join(&mut store, 1);
    store.put_jobs(&[crate::sqlite_store::full::large(0)]).unwrap();
    let is_broken = disk.as_ref().is_none_or(Ext4::break_down);
    assert!(is_broken, "the kernel can be told");
    let (n_written, down) = fill(&mut store, 1);
    assert!(matches!(store.health(), Health::ReadOnly { why, .. } if why == down.0), "{:?}", store.health());
    assert_eq!(store.jobs(None, 1_000).unwrap().len(), n_written, "what was answered can be read");
    // What cannot be written any more is told; all that was answered is there already.
    let _ = store.close();
    if let Some(disk) = &disk {
        disk.mend();
    }
    let store = SqliteStore::open(&path, Options::default()).unwrap();
    assert_eq!(store.jobs(None, 1_000).unwrap().len(), n_written);
    assert_eq!(store.check().unwrap().findings, [] as [String; 0]);
    store.close().unwrap();
}

//! What a machine can do to a node without killing it: it says what is wrong, ends with a code or goes on, and
//! what runs is not touched.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use crate::chaos::clocks::Faults;
use crate::chaos::fleet::{Witness, all_run, is_sound, node_of, progress};
use crate::chaos::history::Book;
use crate::chaos::node::{Node, live_for, until};

/// Someone else's number; nobody on this machine has it.
const STRANGER: u32 = 61_234;

/// So that even root goes by the permissions of files.
const WITHOUT_PRIVILEGES: &str =
    "exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all \"$@\"";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A node that goes by the permissions of files, as all nodes do that are not root's.
fn plain_node() -> Node {
    let mut node = Node::with("");
    if is_root() {
        node.begin_by(WITHOUT_PRIVILEGES);
    }
    node
}

/// What a node says that does not want to serve, with the names of the folder taken out.
fn refused(node: &Node) -> (Option<i32>, String) {
    let (code, text) = node.refuses();
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with('{')).collect();
    (code, text.join("\n").replace(node.folder().to_str().unwrap(), "FOLDER"))
}

#[test]
fn a_data_directory_that_cannot_be_written_is_named() {
    let node = plain_node();
    fs::set_permissions(node.path("data"), fs::Permissions::from_mode(0o500)).unwrap();
    let said = refused(&node);
    fs::set_permissions(node.path("data"), fs::Permissions::from_mode(0o700)).unwrap();
    let expected = "error: data directory `FOLDER/data` cannot be used (it must belong to the user that runs evenbeat, \
                    and be writable): Permission denied (os error 13)";
    // Which of its folders it was that could not be made does not matter.
    assert_eq!((said.0, said.1.replace("data/runs", "data").as_str()), (Some(1), expected));
}

#[test]
fn a_data_directory_of_someone_else_is_named() {
    let node = plain_node();
    let theirs = node.path("data");
    if is_root() {
        chown(&theirs, Some(STRANGER), Some(STRANGER)).unwrap();
    } else {
        // Whoever is not root cannot give anything away, but root has enough folders.
        fs::remove_dir(&theirs).unwrap();
        std::os::unix::fs::symlink("/usr", &theirs).unwrap();
    }
    let (code, text) = refused(&node);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with("error: `FOLDER/data` belongs to user ") && text.contains("run it as user "),
        "{text}"
    );
}

#[test]
fn too_few_files_to_begin_with_are_said_and_end_it() {
    let mut node = Node::with("");
    node.begin_by("ulimit -n 8");
    let (code, text) = refused(&node);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("error: ") && text.contains("Too many open files"), "{text}");
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn too_few_processes_to_begin_with_are_said_and_end_it() {
    let mut node = Node::with("");
    // Nobody limits root; so it becomes somebody else, of whom there is no other process.
    let place = std::env::temp_dir().join(format!("evenbeat-chaos-{}", std::process::id()));
    if is_root() {
        // Where others can reach it, too.
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_evenbeat"), place.join("evenbeat")).unwrap();
        node.use_program(place.join("evenbeat"));
        let stranger = format!("setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups");
        node.begin_by(&format!("exec prlimit --nproc=2:2 {stranger} \"$@\""));
    } else {
        node.begin_by("exec prlimit --nproc=1:1 \"$@\"");
    }
    let (code, text) = refused(&node);
    let _ = fs::remove_dir_all(&place);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("error: cannot start threads"), "{text}");
}

/// A long run, short ones beside it, and some more.
fn fleet(n_more: usize) -> Vec<Witness> {
    let mut all = vec![Witness::new("long", "1s", 300), Witness::new("short", "1s", 2)];
    all.extend((0..n_more).map(|no| Witness::new(&format!("w{no}"), "1s", 50)));
    all
}

/// Waits until the long run executes, and says under which fence.
fn long_runs(node: &Node) -> (u64, u64) {
    let before = progress(&node.witnesses(), "long");
    until("the long run", || progress(&node.witnesses(), "long").filter(|now| Some(*now) != before))
}

#[test]
fn a_full_disk_stops_no_run_and_is_got_over() {
    check_full("size=16m", |filler| {
        let Ok(mut file) = fs::File::options().create(true).append(true).open(filler.join("0")) else {
            return;
        };
        while file.write_all(&[1; 4_096]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
    });
}

#[test]
fn a_disk_without_inodes_stops_no_run_and_is_got_over() {
    let mut no = 0;
    check_full("size=64m,nr_inodes=300", |filler| {
        while fs::File::create(filler.join(no.to_string())).is_ok() {
            no += 1;
        }
    });
}

fn check_full(disk: &str, mut fill: impl FnMut(&Path)) {
    let mut node = node_of(&fleet(4));
    let is_mounted = node.put_on_small_disk(disk);
    if !is_mounted {
        // Files that may not grow stand for it: as many blocks of 512 bytes as an empty store has, and a few more.
        node.begin_by("trap '' XFSZ; ulimit -f 1200");
    }
    node.start();
    let book = Book::open(&node);
    let pid = node.pid();
    let (fence, _) = long_runs(&node);
    let filler = node.data("filler");
    if is_mounted {
        fs::create_dir(&filler).unwrap();
    }
    // It says so, and does not end.
    until("a word about the disk", || {
        assert!(!node.has_ended(), "{}", node.log());
        // Again and again: a run that ends leaves room for another.
        if is_mounted {
            fill(&filler);
        }
        let log = node.log();
        ["has no room", "No space left", "cannot be read or written"]
            .iter()
            .any(|it| log.contains(it))
            .then_some(())
    });
    // What runs goes on.
    let (still, tick) = long_runs(&node);
    assert!(fence != still || 0 < tick);
    live_for(1_500);
    assert_eq!(node.pid(), pid);
    if is_mounted {
        fs::remove_dir_all(&filler).unwrap();
    } else {
        node.stop();
        node.begin_plainly();
        node.start();
    }
    all_run(&node, &["long", "short"]);
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
    eprintln!("{disk}: {figures:?}");
}

#[test]
fn a_node_without_files_to_spare_goes_on() {
    let witnesses = fleet(60);
    let mut node = node_of(&witnesses);
    node.begin_by("ulimit -n 64");
    node.start();
    let book = Book::open(&node);
    let (fence, _) = long_runs(&node);
    until("a run that could not be started", || {
        assert!(!node.has_ended(), "{}", node.log());
        node.log().contains("Too many open files").then_some(())
    });
    // The long run was not touched: it counts on, or has come to its end and the next one counts.
    assert!(fence <= long_runs(&node).0);
    all_run(&node, &["long", "short"]);
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
    eprintln!("64 files: {figures:?}");
}

#[test]
fn a_node_that_can_start_no_process_waits_until_it_can() {
    let mut node = node_of(&fleet(10));
    let faults = Faults::of(&mut node);
    node.start();
    let book = Book::open(&node);
    let (fence, _) = long_runs(&node);
    faults.forbid_forks(true);
    until("a run that could not be started", || {
        node.log().contains("Resource temporarily unavailable").then_some(())
    });
    let n_before = node.log().matches("run not started").count();
    live_for(2_000);
    let n_tries = node.log().matches("run not started").count() - n_before;
    assert!(!node.has_ended(), "{}", node.log());
    assert!(fence <= long_runs(&node).0);
    // Nor does it spin.
    assert!(n_tries < 60, "{n_tries} attempts in vain");
    faults.forbid_forks(false);
    all_run(&node, &["long", "short"]);
    let figures = is_sound(&mut node, &book);
    assert_eq!(figures.n_lost, 0);
    eprintln!("{n_tries} vain attempts in 2 s: {figures:?}");
}

//! `evenbeat db` on files: what it says, what it leaves alone, how it ends.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use evenbeat::testing::store::sqlite::{Options, SqliteStore};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("db-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder.canonicalize().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What the command says and how it ends, without the folder and without numbers of processes.
    fn db(&self, args: &[&str]) -> String {
        let mut command = Command::cargo_bin("evenbeat").unwrap();
        let done =
            command.arg("db").args(args).current_dir(&self.0).env_clear().env("HOME", &self.0).output();
        let done = done.unwrap();
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap().replace(&format!("{}/", self.0.display()), "");
            text.replace(&std::process::id().to_string(), "PID")
        };
        format!("{}{}exit {}", text(done.stdout), text(done.stderr), done.status.code().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn check(folder: &Folder, args: &[&str], expected: &str) {
    assert_eq!(folder.db(args), expected);
}

#[test]
fn a_store_is_made_checked_and_copied() {
    let folder = Folder::new("copied");
    let a = ["--store", "sqlite:a.db"];
    check(&folder, &[&["migrate"][..], &a].concat(), "the store is up to date\nexit 0");
    check(&folder, &[&["check"][..], &a].concat(), "0 jobs, 0 open runs: no problems\nexit 0");
    let copied = "copied to b.db; before you use the copy in place of the original, run `evenbeat db new-epoch` on it\nexit 0";
    check(&folder, &[&["backup", "b.db"][..], &a].concat(), copied);
    check(&folder, &["new-epoch", "--store", "sqlite:b.db"], "started epoch 2\nexit 0");
    let json = folder.db(&["check", "--json", "--store", "sqlite:b.db"]);
    assert!(json.contains("\"findings\": []"), "{json}");
}

#[test]
fn a_store_in_use_can_be_checked_and_copied_and_not_be_taken() {
    let folder = Folder::new("in-use");
    let store = SqliteStore::open(folder.file("a.db"), Options::default()).unwrap();
    check(&folder, &["check", "--store", "sqlite:a.db"], "0 jobs, 0 open runs: no problems\nexit 0");
    assert!(folder.db(&["backup", "b.db", "--store", "sqlite:a.db"]).starts_with("copied to b.db"));
    for action in ["migrate", "new-epoch"] {
        let said = folder.db(&[action, "--store", "sqlite:a.db"]);
        assert!(said.starts_with("error: `a.db` is in use by process PID"), "{said}");
        assert!(said.ends_with("exit 1"), "{said}");
    }
    store.close().unwrap();
    check(&folder, &["migrate", "--store", "sqlite:a.db"], "the store is up to date\nexit 0");
}

#[test]
fn what_is_no_store_is_left_alone() {
    let folder = Folder::new("none");
    std::fs::write(folder.file("notes.txt"), "milk\n").unwrap();
    let not_ours = "error: `notes.txt` is not an Evenbeat store (it is not an SQLite database); it was left unchanged; \
                    choose another path\nexit 1";
    for args in [&["check"][..], &["migrate"], &["new-epoch"], &["backup", "b.db"]] {
        check(&folder, &[args, &["--store", "sqlite:notes.txt"]].concat(), not_ours);
    }
    assert_eq!(std::fs::read_to_string(folder.file("notes.txt")).unwrap(), "milk\n");
    let missing = "error: `a.db` does not exist; check the path, or start a server to create it\nexit 1";
    for args in [&["check"][..], &["new-epoch"], &["backup", "b.db"]] {
        check(&folder, &[args, &["--store", "sqlite:a.db"]].concat(), missing);
    }
    assert!(!folder.file("a.db").exists() && !folder.file("b.db").exists());
}

#[test]
fn a_copy_overwrites_nothing() {
    let folder = Folder::new("overwrites");
    folder.db(&["migrate", "--store", "sqlite:a.db"]);
    std::fs::write(folder.file("b.db"), "mine").unwrap();
    let exists = "error: `b.db` already exists, and a backup never overwrites; choose another name\nexit 1";
    check(&folder, &["backup", "b.db", "--store", "sqlite:a.db"], exists);
    assert_eq!(std::fs::read_to_string(folder.file("b.db")).unwrap(), "mine");
}

#[test]
fn wrong_usage_says_what_would_be_right() {
    let folder = Folder::new("usage");
    let unused = "error: `.local/state/evenbeat/evenbeat.db` does not exist; check the path, or start a server to \
                  create it\nexit 1";
    std::fs::create_dir_all(folder.file(".local/state/evenbeat")).unwrap();
    check(&folder, &["check"], unused);
    let other =
        "error: `…@db/beat` is not a store; write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`\nexit 2";
    check(&folder, &["check", "--store", "mysql://ann:secret@db/beat"], other);
}

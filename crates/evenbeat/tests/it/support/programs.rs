//! The small programs that chaos is made with, built from C by the compiler that the store needs anyway.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A run that shows that it was alone; see its source.
pub(crate) fn witness() -> PathBuf {
    built("witness", include_str!("witness.c"), &[])
}

/// A run that shows its fence with whatever it writes; see its source.
pub(crate) fn writer() -> PathBuf {
    built("writer", include_str!("writer.c"), &[])
}

/// What gives a node a wall clock that can be set, and forks that fail; see its source.
pub(crate) fn faults() -> PathBuf {
    built("faults.so", include_str!("faults.c"), &["-shared", "-fPIC", "-ldl"])
}

/// Built once for all tests, whichever is the first.
fn built(name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (source, flags).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chaos-programs");
    let program = folder.join(format!("{:016x}-{name}", hasher.finish()));
    if program.exists() {
        return program;
    }
    fs::create_dir_all(&folder).unwrap();
    let own = folder.join(format!("{}-{:?}-{name}", std::process::id(), std::thread::current().id()));
    let text = own.with_extension("c");
    fs::write(&text, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror", "-o"]).arg(&own).arg(&text).args(flags);
    let done = compiler.output().expect("a C compiler is there, for SQLite was built by it");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    fs::remove_file(&text).unwrap();
    // Whoever is first does not matter: both are the same.
    fs::rename(&own, &program).unwrap();
    program
}

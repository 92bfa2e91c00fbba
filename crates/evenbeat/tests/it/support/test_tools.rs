//! The python programs that some tests use.

use std::path::PathBuf;
use std::process::Command;

/// A program of scripts/test-tools.txt.
pub(crate) fn tool(name: &str) -> Command {
    let folder = std::env::var_os("EVENBEAT_TEST_TOOLS").unwrap_or_else(|| {
        panic!("EVENBEAT_TEST_TOOLS is not set; run `scripts/test`, or export EVENBEAT_TEST_TOOLS=$(scripts/test-tools-env)")
    });
    let path = PathBuf::from(folder).join(name);
    assert!(path.exists(), "there is no {}; run `scripts/test-tools-env`", path.display());
    Command::new(path)
}

pub(crate) fn python() -> Command {
    tool("python")
}

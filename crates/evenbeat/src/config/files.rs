//! Files that a configuration names, looked at before a node starts (S14).

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::fault::{Fault, Place};
use super::kind::Trouble;
use super::values::Config;

/// Bits of a mode by which others than its owner can do anything with a file.
const OPEN_TO_OTHERS: u32 = 0o077;

/// What is wrong with the files that a configuration names. Whoever is about to serve asks this; who only reads the store
/// need not.
pub fn check_files(config: &Config) -> Vec<Fault> {
    tokens_file(config).into_iter().collect()
}

fn tokens_file(config: &Config) -> Option<Fault> {
    let path = config.tokens_file.as_ref()?;
    // Only looked at: whoever checks a configuration need not be the user that serves with it.
    let mode = fs::metadata(path).map(|it| it.mode());
    let (message, help) = match mode {
        Ok(mode) if mode & OPEN_TO_OTHERS == 0 => return None,
        Ok(mode) => (
            format!("others than its owner have access to the tokens (mode {:04o})", mode & 0o7777),
            format!("run `chmod 600 {}`", path.display()),
        ),
        Err(error) => (
            format!("the tokens cannot be found: {error}"),
            "look at the path, or leave `tokens_file` out".to_owned(),
        ),
    };
    let place = Place::Other(path.display().to_string());
    Some(Fault::new(
        place,
        Some("tokens_file".to_owned()),
        Trouble { message, label: None, help: Some(help) },
    ))
}

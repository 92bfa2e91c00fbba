//! Suggestions for unknown keys.

use super::env;
use super::table::{self, KEYS, NAME};

/// The right table for a key in the wrong one.
pub(super) fn elsewhere(written: &str) -> Option<String> {
    let leaf = written.rsplit('.').next().unwrap_or(written);
    let homes = KEYS.iter().map(|key| key.path).filter(|path| path.contains('.') || *path == leaf);
    let homes: Vec<String> = homes
        .filter(|path| path.rsplit('.').next() == Some(leaf) && *path != written)
        .map(|path| format!("`{}`", path.replace(NAME, "NAME")))
        .collect();
    if homes.is_empty() { None } else { Some(format!("write it as {}", homes.join(" or "))) }
}

pub(super) fn all_keys_help() -> String {
    "run `evenbeat config` to see every key".to_owned()
}

pub(super) fn inline_help(table: &str) -> String {
    let key = table::children(&format!("{table}.{NAME}")).first().copied().unwrap_or_default();
    let value = match key {
        "plan" => "\"free\"",
        "kind" => "\"slack\"",
        "jobs" => "[\"shop*\"]",
        _ => "8",
    };
    format!("write it as `{{NAME = {{{key} = {value}}}}}`")
}

/// The hint for `EVENBEAT_POOLS_DEFAULT_CAPACITY`: a table with user-chosen names is a single variable.
pub(super) fn named_table_help(name: &str) -> Option<String> {
    let table =
        table::named_tables().find(|table| name.starts_with(&format!("{}_", env::variable_of(table))))?;
    Some(format!(
        "`{table}` is set by the single variable `{}`: {}",
        env::variable_of(table),
        inline_help(table)
    ))
}

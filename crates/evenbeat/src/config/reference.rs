//! Generates docs/reference/configuration.md from the table of keys.

use std::fmt::Write as _;

use super::env::{self, PLAIN};
use super::table::{self, KEYS, KeyDefault, NAME, effective_keys};

const INTRODUCTION: &str = "# Configuration

A node reads one TOML file, then environment variables, then flags; later sources override earlier ones. `evenbeat config`
prints the effective configuration and where each value comes from; `evenbeat config --check` only validates it. Errors of
all sources are reported together.

The file is the first of these: `--config FILE`, `EVENBEAT_CONFIG`, `$XDG_CONFIG_HOME/evenbeat/evenbeat.toml` (or
`~/.config/evenbeat/evenbeat.toml` if `XDG_CONFIG_HOME` is not set), `/etc/evenbeat/evenbeat.toml`. The last two are
optional. The file may be up to 1 MiB, and must be writable only by its owner.

Every key can be set by a variable: `EVENBEAT_` and the key in capitals, with `_` for each dot (`dispatch.late_share` is
`EVENBEAT_DISPATCH_LATE_SHARE`). Write a list with commas or as in TOML. A table with names that you choose is one variable
with an inline table: `EVENBEAT_POOLS='{default = {capacity = 8}}'`. Unknown variables that start with `EVENBEAT_` are
errors, except for those that runs receive, `EVENBEAT_SERVER` and `EVENBEAT_CA`, which are for other commands, and those of
Evenbeat's own tests.

On the command line, use `--store`, `--data-dir`, `--listen` and `--node` (`node.name`), or `--set KEY=VALUE` for any key:
`--set log.level=debug`, `--set pools.browsers.capacity=8`.

Write durations as in job files (`90s`, `1h30m`), and sizes as `512KiB`, `10MiB` or `2GB`. `\"none\"` removes a limit. A name
with dots needs quotes in a header: `[sites.\"shop.example\"]`.

On SIGHUP, a node reads its configuration and its job files again. It takes up new values of `jobs`, `public_url`,
`log.level` and of everything in `alerts` and `retention`, and logs what changed. Other keys need a restart; the log names
those that differ. If the configuration is not valid, nothing changes.
";

/// The text of the reference.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut table = None;
    for key in effective_keys() {
        let its_table = key.path.rsplit_once('.').map(|(table, _)| table);
        if its_table != table || key.path == KEYS[0].path {
            let header = its_table
                .map_or("Top level".to_owned(), |table| format!("`[{}]`", table.replace(NAME, "NAME")));
            let _ = write!(text, "\n## {header}\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
            table = its_table;
        }
        let default = match key.default {
            KeyDefault::Text("") => "`[]`".to_owned(),
            KeyDefault::Text(word) => format!("`{}`", as_written(key, word)),
            KeyDefault::Computed(words) => words.to_owned(),
        };
        let path = key.path.replace(NAME, "NAME");
        let _ = writeln!(text, "| `{path}` | {} | {default} | {} |", key.kind.describe(), key.meaning);
    }
    text.push_str(
        "\n## Plain variables\n\nThese have the lowest precedence: every other source overrides them, including the file. An \
         empty variable counts as not set. One that this version cannot use is ignored with a warning.\n\n",
    );
    text.push_str("| Variable | Key |\n|---|---|\n");
    for plain in PLAIN.iter().filter(|plain| table::find(plain.key).is_some_and(|key| key.has_effect)) {
        let unit = if plain.is_millis { ", in milliseconds" } else { "" };
        let _ = writeln!(text, "| `{}` | `{}`{unit} |", plain.name, plain.key);
    }
    let tables: Vec<String> =
        table::named_tables().map(|table| format!("`{}`", env::variable_of(table))).collect();
    let _ =
        write!(text, "\nTables with names that you choose are set by the variables {}.\n", tables.join(", "));
    text
}

/// A default as it would be written in a file.
fn as_written(key: &table::Key, word: &str) -> String {
    match key.kind.value_of(word) {
        evenbeat_core::value::Value::Text(text) => format!("\"{text}\""),
        _ => word.to_owned(),
    }
}

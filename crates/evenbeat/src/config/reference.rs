//! docs/reference/configuration.md, made from the table of keys.

use std::fmt::Write as _;

use super::env::{self, PLAIN};
use super::table::{self, Default, KEYS, NAME, effective_keys};

const INTRODUCTION: &str = "# Configuration

One TOML file, the environment and flags, each winning over those before it. `evenbeat config` prints what holds and where
each value is from; `evenbeat config --check` only validates. All faults of all sources are shown at once.

The file is the first of these: `--config FILE`, `EVENBEAT_CONFIG`, `$XDG_CONFIG_HOME/evenbeat/evenbeat.toml` (without
`XDG_CONFIG_HOME`, `~/.config/evenbeat/evenbeat.toml`), `/etc/evenbeat/evenbeat.toml`. The last two need not be there. It
has 1 MiB at most, and nobody but its owner may be able to write to it.

Every key is a variable too: `EVENBEAT_` and the key in capitals, with `_` for each dot (`dispatch.late_share` is
`EVENBEAT_DISPATCH_LATE_SHARE`). A list is written with commas or as in TOML. A table of names is one variable with an
inline table: `EVENBEAT_POOLS='{default = {capacity = 8}}'`. Other variables that begin with `EVENBEAT_` are refused, but
for those that runs are given, `EVENBEAT_SERVER`, which is for other commands, and those of Evenbeat's own tests.

On the command line, `--store`, `--data-dir`, `--listen` and `--node` (`node.name`) have flags of their own, and
`--set KEY=VALUE` sets any key: `--set log.level=debug`, `--set pools.browsers.capacity=8`.

Durations are written as in job files (`90s`, `1h30m`), sizes as `512KiB`, `10MiB` or `2GB`. `\"none\"` takes a limit away.
A name that has dots needs quotes in a header: `[sites.\"shop.example\"]`.
";

/// The text of the reference.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let mut table = None;
    for key in effective_keys() {
        let its_table = key.path.rsplit_once('.').map(|(table, _)| table);
        if its_table != table || key.path == KEYS[0].path {
            let header = its_table
                .map_or("At the top".to_owned(), |table| format!("`[{}]`", table.replace(NAME, "NAME")));
            let _ = write!(text, "\n## {header}\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
            table = its_table;
        }
        let default = match key.default {
            Default::Text("") => "`[]`".to_owned(),
            Default::Text(word) => format!("`{}`", as_written(key, word)),
            Default::Worked(words) => words.to_owned(),
        };
        let path = key.path.replace(NAME, "NAME");
        let _ = writeln!(text, "| `{path}` | {} | {default} | {} |", key.kind.describe(), key.meaning);
    }
    text.push_str(
        "\n## Plain variables\n\nAnything else wins over these, also the file. An empty one is not set. One that this version \
         can do nothing with is ignored with a warning.\n\n",
    );
    text.push_str("| Variable | Key |\n|---|---|\n");
    for plain in PLAIN.iter().filter(|plain| table::find(plain.key).is_some_and(|key| key.has_effect)) {
        let unit = if plain.is_millis { ", in milliseconds" } else { "" };
        let _ = writeln!(text, "| `{}` | `{}`{unit} |", plain.name, plain.key);
    }
    let tables: Vec<String> =
        table::named_tables().map(|table| format!("`{}`", env::variable_of(table))).collect();
    let _ = write!(text, "\nTables of names are the variables {}.\n", tables.join(", "));
    text
}

/// A default as it would stand in a file.
fn as_written(key: &table::Key, word: &str) -> String {
    match key.kind.value_of(word) {
        evenbeat_core::value::Value::Text(text) => format!("\"{text}\""),
        _ => word.to_owned(),
    }
}

//! The path of a key, with the user-chosen name in it, if any.

use std::fmt;
use std::str::FromStr;

use evenbeat_core::ids::{Channel, NameError, Pool, Site, Tenant};

use super::table::{KEYS, Key, NAME};

/// The path of a key, including a user-chosen name: `pools.default.capacity`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConfigPath {
    /// The path as in the table of keys.
    pub(super) pattern: &'static str,
    pub(super) name: Option<String>,
}

impl ConfigPath {
    /// A path without a user-chosen name.
    pub(super) fn plain(pattern: &'static str) -> ConfigPath {
        ConfigPath { pattern, name: None }
    }

    pub(super) fn named(pattern: &'static str, name: &str) -> ConfigPath {
        ConfigPath { pattern, name: Some(name.to_owned()) }
    }

    pub(super) fn key(&self) -> &'static Key {
        let found = KEYS.iter().find(|key| key.path == self.pattern);
        found.unwrap_or_else(|| panic!("`{}` is read, but is not in the table of keys", self.pattern))
    }

    /// The table of the key as in a TOML header; `None` at the top level.
    pub(super) fn table(&self) -> Option<String> {
        let (table, _) = self.pattern.rsplit_once('.')?;
        Some(self.with_name(table))
    }

    /// The last word of the path.
    pub(super) fn leaf(&self) -> &'static str {
        self.pattern.rsplit('.').next().unwrap_or_default()
    }

    fn with_name(&self, pattern: &str) -> String {
        match &self.name {
            Some(name) => pattern.replace(NAME, &quoted(name)),
            None => pattern.to_owned(),
        }
    }
}

impl fmt::Display for ConfigPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_name(self.pattern))
    }
}

/// A name as a TOML key.
pub(super) fn quoted(name: &str) -> String {
    let is_bare = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if name.chars().all(is_bare) { name.to_owned() } else { format!("\"{name}\"") }
}

/// Checks a user-chosen name.
pub(super) fn check_name(table: &str, name: &str) -> Result<(), NameError> {
    match table {
        "pools" => Pool::from_str(name).map(drop),
        "sites" => Site::from_str(name).map(drop),
        "tenants" => Tenant::from_str(name).map(drop),
        "alerts.channels" => Channel::from_str(name).map(drop),
        "alerts.routes" => Tenant::from_str(name).map(drop).map_err(|error| renamed(error, "route")),
        _ => Tenant::from_str(name).map(drop).map_err(|error| renamed(error, "plan")),
    }
}

/// The names of plans and routes follow the same rules as all other names.
fn renamed(error: NameError, what: &'static str) -> NameError {
    match error {
        NameError::Empty { .. } => NameError::Empty { what },
        NameError::TooLong { text, .. } => NameError::TooLong { what, text },
        NameError::BadCharacter { text, found, .. } => NameError::BadCharacter { what, text, found },
        NameError::BadStart { text, found, .. } => NameError::BadStart { what, text, found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_as_it_would_be_written() {
        let site = ConfigPath::named("sites.<name>.min_gap", "shop.example");
        assert_eq!(site.to_string(), "sites.\"shop.example\".min_gap");
        assert_eq!((site.table().as_deref(), site.leaf()), (Some("sites.\"shop.example\""), "min_gap"));
        assert_eq!(ConfigPath::plain("listen").to_string(), "listen");
        assert_eq!(ConfigPath::plain("listen").table(), None);
    }

    #[test]
    fn a_name_has_its_own_rules() {
        let said = |table, name| check_name(table, name).map_err(|error| error.to_string());
        assert_eq!(said("pools", "gpu-1"), Ok(()));
        assert_eq!(
            said("plans", "-x"),
            Err("plan `-x` starts with `-`; start with a letter or a digit".to_owned())
        );
        assert_eq!(said("sites", ""), Err("a site is empty".to_owned()));
    }
}

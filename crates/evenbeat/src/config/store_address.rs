//! Where a store is: `sqlite:PATH` or `postgres://…` (C3).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A file of this machine.
    Sqlite(PathBuf),
    /// A server, by its URL; that may hold a password, so it is not shown.
    Postgres(String),
}

/// An address that does not name a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreAddressError {
    /// Neither of the two.
    #[error("`{0}` is not a store; write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`")]
    Unknown(String),
    /// A file without a name.
    #[error("`sqlite:` names no file; write `sqlite:PATH`")]
    NoPath,
}

impl FromStr for StoreAddress {
    type Err = StoreAddressError;

    fn from_str(text: &str) -> Result<StoreAddress, StoreAddressError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err(StoreAddressError::NoPath)
            } else {
                Ok(StoreAddress::Sqlite(path.into()))
            };
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(StoreAddress::Postgres(text.to_owned()));
        }
        // Whatever stands before an `@` may be a password, and so may parameters.
        let shown = text.rsplit_once('@').map_or(text.to_owned(), |(_, rest)| format!("…@{rest}"));
        // An address as `host=… password=…`: only the names are shown, whatever the values are.
        if text.contains('=') && !text.contains("://") {
            let named =
                |it: &str| it.split_once('=').map_or("…".to_owned(), |(name, _)| format!("{name}=…"));
            let shown: Vec<String> = text.split_whitespace().map(named).collect();
            return Err(StoreAddressError::Unknown(shown.join(" ")));
        }
        let shown = match shown.split_once('?') {
            Some((before, _)) => format!("{before}?…"),
            None => shown,
        };
        Err(StoreAddressError::Unknown(shown))
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            StoreAddress::Postgres(url) => {
                let rest = url.split_once("://").map_or("", |(_, rest)| rest);
                let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
                // Parameters may hold secrets too.
                write!(f, "postgres://{}", rest.split('?').next().unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        let place: Result<StoreAddress, StoreAddressError> = text.parse();
        assert_eq!(place.map_or_else(|error| error.to_string(), |it| it.to_string()), shown);
    }

    #[test]
    fn a_store_is_a_file_or_a_server() {
        check("sqlite:evenbeat.db", "sqlite:evenbeat.db");
        check("sqlite:///var/lib/a.db", "sqlite:/var/lib/a.db");
        check(
            "postgres://ann:secret@db.example:5432/beat?sslmode=require",
            "postgres://db.example:5432/beat",
        );
        check("postgresql://db.example/beat", "postgres://db.example/beat");
        check("sqlite:", "`sqlite:` names no file; write `sqlite:PATH`");
    }

    #[test]
    fn anything_else_is_refused_and_no_password_is_shown() {
        let way_out = "is not a store; write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`";
        check("evenbeat.db", &format!("`evenbeat.db` {way_out}"));
        check("mysql://ann:secret@db/beat", &format!("`…@db/beat` {way_out}"));
        check("mysql://ann@db/beat?password=secret", &format!("`…@db/beat?…` {way_out}"));
        check("host=db password=secret user=ann", &format!("`host=… password=… user=…` {way_out}"));
        check("password='two words'", &format!("`password=… …` {way_out}"));
        check("user=a@b password=secret", &format!("`user=… password=…` {way_out}"));
        check("mysql://db/beat?password=secret", &format!("`mysql://db/beat?…` {way_out}"));
    }
}

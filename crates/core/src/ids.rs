//! Names and numbers of things, each a type of its own: a run cannot be passed where a session is
//! meant, and what a name may look like is decided in one place. Copies of a name share its text.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::nearest::shortened;

/// A job's key: `name`, or `name@configuration` for one of several configurations of one name.
///
/// Ordered bytewise by the whole text, everywhere; that order breaks ties.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey(Arc<str>);

impl JobKey {
    /// The key of a name and, if there is one, its configuration.
    pub fn new(name: &str, configuration: Option<&str>) -> Result<JobKey, NameError> {
        let key = match configuration {
            Some(configuration) => {
                check_name("configuration", configuration)?;
                format!("{name}@{configuration}")
            }
            None => name.to_owned(),
        };
        check_name("job name", name)?;
        Ok(JobKey(key.into()))
    }

    /// The part that several configurations share.
    pub fn name(&self) -> &str {
        self.0.split_once('@').map_or(&*self.0, |(name, _)| name)
    }

    /// The part after the `@`.
    pub fn configuration(&self) -> Option<&str> {
        self.0.split_once('@').map(|(_, configuration)| configuration)
    }

    /// The whole key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A number that depends on the key alone: the same on every node, in every release.
    pub fn stable_hash(&self) -> u64 {
        stable_hash(self.0.as_bytes())
    }
}

impl FromStr for JobKey {
    type Err = NameError;

    fn from_str(text: &str) -> Result<JobKey, NameError> {
        // As `new` does, but the text is there already: a million keys are read at start-up.
        let name = match text.split_once('@') {
            Some((name, configuration)) => {
                check_name("configuration", configuration)?;
                name
            }
            None => text,
        };
        check_name("job name", name)?;
        Ok(JobKey(text.into()))
    }
}

impl Borrow<str> for JobKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A name that a person gives to something, of one kind.
macro_rules! names {
    ($($(#[$doc:meta])* $type:ident, $what:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<$type, NameError> {
                check_name($what, text)?;
                Ok($type(text.into()))
            }
        }

        shown_as_text!($type);
    )*};
}

macro_rules! shown_as_text {
    ($type:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

shown_as_text!(JobKey);

names! {
    /// One server of the cluster. A label: what owns runs is a [`SessionId`].
    NodeName, "node name";
    /// Named capacity that jobs draw on.
    Pool, "pool";
    /// A limit shared by jobs: a domain, an account, an API.
    Site, "site";
    /// Whose quota a job counts against.
    Tenant, "tenant";
    /// A way to tell people that something is wrong: a mailbox, a webhook, a command.
    Channel, "channel";
}

impl Pool {
    /// The pool of jobs that name none.
    pub fn default_pool() -> Pool {
        Pool("default".into())
    }
}

/// One attempt at an occurrence. A UUID of version 7, minted at the rim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u128);

/// One occurrence that a job owes besides its pending one. A UUID, minted at the rim for what people ask
/// for; what comes from the job's own schedule is known by when it was due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtraId(pub u128);

/// One life of one process that owns runs. A UUID, minted at the rim; never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u128);

/// The number of a lease; of two leases of one job the later has the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

macro_rules! shown_as_uuid {
    ($($type:ident)*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let bits = self.0;
                write!(
                    f,
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    bits >> 96,
                    bits >> 80 & 0xffff,
                    bits >> 64 & 0xffff,
                    bits >> 48 & 0xffff,
                    bits & 0xffff_ffff_ffff
                )
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

shown_as_uuid!(RunId SessionId ExtraId);

/// FNV-1a. Where the core needs something that looks random it takes it from identity: replays
/// agree, nodes agree, and a fleet still spreads out.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The low bits of a short FNV hash still show the last letter; a final mix hides it.
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ hash >> 33
}

/// Why a text cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing was written.
    #[error("a {what} is empty")]
    Empty {
        /// The kind of name.
        what: &'static str,
    },
    /// More than [`NAME_BYTES_MAX`] bytes.
    #[error("{what} `{text}` is longer than {NAME_BYTES_MAX} bytes")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// What was written, cut short.
        text: String,
    },
    /// A character that names do not have.
    #[error("{what} `{text}` contains {}; use letters, digits, `.`, `_`, `:` and `-`", shown(*found))]
    BadCharacter {
        /// The kind of name.
        what: &'static str,
        /// What was written.
        text: String,
        /// The first character that is not allowed.
        found: char,
    },
    /// A name begins with a letter or a digit, so that it never looks like a flag or a hidden file.
    #[error("{what} `{text}` starts with `{found}`; start with a letter or a digit")]
    BadStart {
        /// The kind of name.
        what: &'static str,
        /// What was written.
        text: String,
        /// The first character.
        found: char,
    },
}

fn shown(found: char) -> String {
    match found {
        ' ' => "a space".to_owned(),
        _ => format!("the character `{}`", found.escape_debug()),
    }
}

/// The longest name of anything.
pub const NAME_BYTES_MAX: usize = 128;

/// What a name looks like, as a regular expression for schemas. `check_name` decides.
pub const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$";

/// What a job's key looks like: one name, or two with an `@` between them.
pub const KEY_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}(@[A-Za-z0-9][A-Za-z0-9._:-]{0,127})?$";

fn check_name(what: &'static str, text: &str) -> Result<(), NameError> {
    let Some(first) = text.chars().next() else { return Err(NameError::Empty { what }) };
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { what, text: shortened(text) });
    }
    let allowed = |it: &char| it.is_ascii_alphanumeric() || ['.', '_', ':', '-'].contains(it);
    if let Some(found) = text.chars().find(|it| !allowed(it)) {
        return Err(NameError::BadCharacter { what, text: shortened(text), found });
    }
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::BadStart { what, text: shortened(text), found: first });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<JobKey>() {
            Ok(key) => format!("{} | {}", key.name(), key.configuration().unwrap_or("-")),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_key_is_a_name_with_or_without_a_configuration() {
        check("ExampleScraper", "ExampleScraper | -");
        check("ExampleScraper@test", "ExampleScraper | test");
        check("shop.example:prices_v2-nightly", "shop.example:prices_v2-nightly | -");
    }

    #[test]
    fn a_bad_key_is_refused_with_the_reason() {
        check("", "a job name is empty");
        check("@test", "a job name is empty");
        check("a@", "a configuration is empty");
        check(
            "a@b@c",
            "configuration `b@c` contains the character `@`; use letters, digits, `.`, `_`, `:` and `-`",
        );
        check("my job", "job name `my job` contains a space; use letters, digits, `.`, `_`, `:` and `-`");
        check("a/b", "job name `a/b` contains the character `/`; use letters, digits, `.`, `_`, `:` and `-`");
        check("-rf", "job name `-rf` starts with `-`; start with a letter or a digit");
        check(&"x".repeat(129), &format!("job name `{}…` is longer than 128 bytes", "x".repeat(60)));
    }

    #[test]
    fn keys_are_ordered_bytewise() {
        let mut keys: Vec<JobKey> =
            ["b", "a@x", "a", "B", "a.b"].iter().map(|it| it.parse().unwrap()).collect();
        keys.sort();
        let keys: Vec<&str> = keys.iter().map(JobKey::as_str).collect();
        assert_eq!(keys, ["B", "a", "a.b", "a@x", "b"]);
    }

    #[test]
    fn ids_are_printed_as_uuids() {
        let run = RunId(0x0198_c0de_0000_7000_8000_0000_0000_002a);
        assert_eq!(run.to_string(), "0198c0de-0000-7000-8000-00000000002a");
    }

    #[test]
    fn a_stable_hash_never_changes() {
        assert_eq!(stable_hash(b""), 0xecba_3df2_c338_3c52);
        let spread: std::collections::BTreeSet<u64> =
            (0..60).map(|it| stable_hash(format!("job{it}").as_bytes()) % 60).collect();
        assert!(30 < spread.len(), "sixty names fall on {} of sixty minutes", spread.len());
    }
}

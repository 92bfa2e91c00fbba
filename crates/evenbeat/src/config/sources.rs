//! The inputs of a configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use crate::jobfile::SourceText;

/// All inputs of a configuration.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file, if there is one.
    pub file: Option<SourceText>,
    /// Whether the content of the file is unknown, so that a missing key means nothing.
    pub is_file_unread: bool,
    /// The whole environment.
    pub variables: BTreeMap<String, OsString>,
    /// The flags of the command line.
    pub flags: Vec<Flag>,
    /// Facts about the machine.
    pub machine: Machine,
}

/// Shows nothing, because any value may be a secret.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// A flag of the command line.
#[derive(Clone, PartialEq, Eq)]
pub enum Flag {
    /// A dedicated flag.
    Named {
        /// The flag as typed: `--listen`.
        flag: &'static str,
        /// The key that it sets.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The value of `--set KEY=VALUE`.
    Set(String),
}

impl fmt::Debug for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flag::Named { flag, .. } => f.write_str(flag),
            Flag::Set(text) => write!(f, "--set {}", text.split('=').next().unwrap_or_default()),
        }
    }
}

/// Facts about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of cores.
    pub n_cores: u32,
    /// Host name.
    pub host_name: String,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { n_cores: 1, host_name: "localhost".to_owned() }
    }
}

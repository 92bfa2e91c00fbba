//! What a configuration is read from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use crate::jobfile::SourceText;

/// All that a configuration is read from; nothing else is looked at.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The file, if there is one.
    pub file: Option<SourceText>,
    /// Whether nobody knows what the file says: then nothing is concluded from its silence.
    pub is_file_unread: bool,
    /// The whole environment.
    pub variables: BTreeMap<String, OsString>,
    /// What was said on the command line.
    pub flags: Vec<Flag>,
    /// What the node runs on.
    pub machine: Machine,
}

/// Nothing of it is shown: any of it may be a secret.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// Something that was said on the command line.
#[derive(Clone, PartialEq, Eq)]
pub enum Flag {
    /// A flag of its own.
    Named {
        /// As it is written: `--listen`.
        flag: &'static str,
        /// The key that it stands for.
        key: &'static str,
        /// What it says.
        value: String,
    },
    /// `--set KEY=VALUE`, the part after the flag.
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

/// What the node runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// How many runs it can truly do at a time.
    pub n_cores: u32,
    /// What it is called.
    pub host_name: String,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine { n_cores: 1, host_name: "localhost".to_owned() }
    }
}

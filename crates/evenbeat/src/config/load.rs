//! Finds the configuration file and reads the environment. Nothing else in the configuration touches the system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::env::CONFIG_VARIABLE;
use super::error::{ConfigError, Location};
use super::show::Origins;
use super::sources::{Flag, Machine, Sources};
use super::value_type::ValueError;
use super::values::Config;
use crate::jobfile::{FILE_BYTES_MAX, SourceText};

/// The system-wide configuration file.
const SYSTEM_FILE: &str = "/etc/evenbeat/evenbeat.toml";

/// Mode bits that let users other than the owner write to a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// What the command line sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFlags {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// All other flags.
    pub flags: Vec<Flag>,
}

/// A configuration and the origins of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedConfig {
    pub config: Config,
    /// Where each value comes from.
    pub origins: Origins,
    /// The file, if there is one.
    pub file: Option<SourceText>,
}

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigErrors {
    /// The file, if it could be read.
    pub file: Option<SourceText>,
    /// All errors.
    pub errors: Vec<ConfigError>,
    /// Whether the file could not be read at all.
    pub is_unread: bool,
}

/// Finds and reads the file, the environment and the flags. Fails with all errors at once.
pub fn load(args: &ConfigFlags) -> Result<LoadedConfig, ConfigErrors> {
    let variables: BTreeMap<String, OsString> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    load_with(args, variables, machine())
}

fn load_with(
    args: &ConfigFlags,
    variables: BTreeMap<String, OsString>,
    machine: Machine,
) -> Result<LoadedConfig, ConfigErrors> {
    let mut errors = Vec::new();
    let found = find(args, &variables);
    let is_unread = matches!(found, Some((_, Err(_))));
    let file = found.map(|(path, read)| {
        let text = read.unwrap_or_else(|error| {
            errors.push(ConfigError::new(Location::File(None), None, error));
            ConfigFile { text: String::new(), mode: 0 }
        });
        if text.mode & WRITABLE_BY_OTHERS != 0 {
            errors.push(ConfigError::new(Location::File(None), None, writable(&path, text.mode)));
        }
        SourceText { name: path.display().to_string(), text: text.text }
    });
    let flags = args.flags.clone();
    let sources = Sources { file: file.clone(), is_file_unread: is_unread, variables, flags, machine };
    match Config::read(&sources) {
        Ok((config, origins)) if errors.is_empty() => Ok(LoadedConfig { config, origins, file }),
        read => {
            errors.extend(read.err().unwrap_or_default());
            Err(ConfigErrors { file, errors, is_unread })
        }
    }
}

/// An open file.
struct ConfigFile {
    text: String,
    mode: u32,
}

/// The configuration file and its content. `None` if none was named and none of the default files exists.
fn find(
    args: &ConfigFlags,
    variables: &BTreeMap<String, OsString>,
) -> Option<(PathBuf, Result<ConfigFile, ValueError>)> {
    let variable = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = args.file.clone().or_else(|| variable(CONFIG_VARIABLE)) {
        let read = open(&named).map_err(|error| unreadable(&error));
        return Some((named, read));
    }
    let own = variable("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
    let own = own.or_else(|| variable("HOME").map(|home| home.join(".config")));
    let own = own.map(|folder| folder.join("evenbeat/evenbeat.toml"));
    for path in own.into_iter().chain([PathBuf::from(SYSTEM_FILE)]) {
        match open(&path) {
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            read => return Some((path, read.map_err(|error| unreadable(&error)))),
        }
    }
    None
}

enum ReadError {
    Io(io::Error),
    TooLarge,
    NotUtf8 { line: usize },
}

fn open(path: &Path) -> Result<ConfigFile, ReadError> {
    let file = File::open(path).map_err(ReadError::Io)?;
    // Check the mode of the open file: the path may point to another one by now.
    let mode = file.metadata().map_err(ReadError::Io)?.mode();
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if FILE_BYTES_MAX < bytes.len() {
        return Err(ReadError::TooLarge);
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        ReadError::NotUtf8 { line: good.filter(|byte| **byte == b'\n').count() + 1 }
    })?;
    Ok(ConfigFile { text, mode })
}

fn unreadable(error: &ReadError) -> ValueError {
    let (message, help) = match error {
        ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            ("the configuration file does not exist".to_owned(), "check the path, or omit it")
        }
        ReadError::Io(error) => {
            (format!("the configuration file cannot be read: {error}"), "check its permissions")
        }
        ReadError::TooLarge => (
            format!("the configuration file is larger than the {FILE_BYTES_MAX} bytes allowed"),
            "is this a configuration file? jobs belong in job files",
        ),
        ReadError::NotUtf8 { line } => (
            format!("the configuration file is not UTF-8; the first invalid byte is on line {line}"),
            "save it as UTF-8",
        ),
    };
    ValueError { message, label: None, help: Some(help.to_owned()) }
}

fn writable(path: &Path, mode: u32) -> ValueError {
    let message = format!(
        "the configuration file is writable by users other than its owner (mode {:04o})",
        mode & 0o7777
    );
    let help = Some(format!("run `chmod go-w {}`", path.display()));
    ValueError { message, label: None, help }
}

/// The machine that this process runs on.
pub(crate) fn machine() -> Machine {
    let n_cores =
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    let host_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Machine { n_cores, host_name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_cores() {
        assert!(1 <= machine().n_cores);
    }
}

//! Chooses the effective value of each key, and fills in defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evenbeat_core::lease::TimingsSpec;
use evenbeat_core::time::Duration;

use super::collect::{SourceValue, SourceValues};
use super::error::{ConfigError, Location};
use super::path::ConfigPath;
use super::show::ValueOrigin;
use super::sources::Sources;
use super::table::{self, KEYS, KeyDefault, NAME};
use super::value_type::{Setting, ValueError};

/// Units per core of the pool `default`. More than one, because most runs spend their time waiting.
const UNITS_A_CORE: u32 = 4;

/// The effective value of a key.
#[derive(Clone, Debug)]
pub(super) struct EffectiveValue {
    pub(super) setting: Setting,
    pub(super) location: Location,
    pub(super) origin: ValueOrigin,
}

/// The effective values of all keys.
#[derive(Debug)]
pub(super) struct Resolution {
    pub(super) values: BTreeMap<ConfigPath, EffectiveValue>,
    pub(super) collected: SourceValues,
}

/// The built-in plans and their limits.
const PLANS: [(&str, &[(&str, &str)]); 2] = [
    (
        "free",
        &[
            ("plans.<name>.max_concurrent_jobs", "2"),
            ("plans.<name>.max_run_time", "10m"),
            ("plans.<name>.max_pages_per_run", "100"),
            ("plans.<name>.max_snapshots", "1500"),
        ],
    ),
    ("unlimited", &[]),
];

pub(super) fn resolve(sources: &Sources, mut collected: SourceValues) -> Resolution {
    let built_in = PLANS.iter().map(|(plan, _)| ("plans", *plan)).chain([("pools", "default")]);
    for (table, name) in built_in {
        if !collected.entries.iter().any(|(in_table, known, _)| *in_table == table && known == name) {
            collected.entries.push((table, name.to_owned(), Location::Machine));
        }
    }
    let mut best: BTreeMap<ConfigPath, SourceValue> = BTreeMap::new();
    for written in std::mem::take(&mut collected.written) {
        if best.get(&written.path).is_none_or(|other| other.precedence <= written.precedence) {
            best.insert(written.path.clone(), written);
        }
    }
    let effective = |it: SourceValue| {
        (it.path, EffectiveValue { setting: it.setting, location: it.location, origin: it.origin })
    };
    let mut resolved = Resolution { values: best.into_values().map(effective).collect(), collected };
    resolved.plain_defaults();
    resolved.machine_defaults(sources);
    resolved.lease_defaults();
    resolved.named_defaults(sources);
    resolved
}

impl Resolution {
    /// The effective value of a key. `None` if it has no default and no valid value.
    pub(super) fn get(&self, path: &ConfigPath) -> Option<&Setting> {
        self.values.get(path).map(|value| &value.setting)
    }

    pub(super) fn plain(&self, key: &'static str) -> Option<&Setting> {
        self.get(&ConfigPath::plain(key))
    }

    /// Where a key was set; the machine for a default.
    pub(super) fn location(&self, path: &ConfigPath) -> Location {
        self.values.get(path).map_or(Location::Machine, |value| value.location.clone())
    }

    pub(super) fn is_set(&self, path: &ConfigPath) -> bool {
        self.values.get(path).is_some_and(|value| value.origin != ValueOrigin::Default)
    }

    /// Whether one of these keys has an invalid value, so that no rule can be checked.
    pub(super) fn is_any_broken(&self, paths: &[ConfigPath]) -> bool {
        let is_broken =
            |path: &ConfigPath| self.collected.broken.contains(path) || self.is_lost(path.pattern);
        self.collected.is_file_lost || paths.iter().any(is_broken)
    }

    /// Whether the table of a path was set in a way that could not be read.
    pub(super) fn is_lost(&self, path: &str) -> bool {
        self.collected.lost_tables.iter().any(|table| {
            path.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// The names that a table has entries for.
    pub(super) fn names(&self, table: &str) -> Vec<String> {
        let entries = self.collected.entries.iter().filter(|(in_table, ..)| *in_table == table);
        let mut names: Vec<String> = entries.map(|(_, name, _)| name.clone()).collect();
        names.sort();
        names
    }

    pub(super) fn report(&mut self, location: Location, key: &ConfigPath, error: ValueError) {
        self.collected.errors.push(ConfigError::new(location, Some(key.to_string()), error));
        self.collected.broken.insert(key.clone());
    }

    fn default(&mut self, path: ConfigPath, setting: Setting) {
        let value = EffectiveValue { setting, location: Location::Machine, origin: ValueOrigin::Default };
        self.values.entry(path).or_insert(value);
    }

    /// Parses a default, written as in a variable.
    fn default_text(&mut self, path: ConfigPath, text: &str) {
        let kind = path.key().kind;
        match kind.read(&path.to_string(), &kind.value_of(text)) {
            Ok(setting) => self.default(path, setting),
            Err(error) => panic!("the default of `{path}` is not valid: {}", error.message),
        }
    }

    fn plain_defaults(&mut self) {
        for key in KEYS.iter().filter(|key| !key.path.contains(NAME)) {
            if let KeyDefault::Text(text) = key.default {
                self.default_text(ConfigPath::plain(key.path), text);
            }
        }
    }

    fn machine_defaults(&mut self, sources: &Sources) {
        let data_dir = ConfigPath::plain("data_dir");
        if let Some(folder) = default_data_dir(sources) {
            self.default(data_dir.clone(), Setting::Text(folder));
        } else if !self.is_set(&data_dir) && !self.is_any_broken(std::slice::from_ref(&data_dir)) {
            let message = "cannot choose a data directory: neither `STATE_DIRECTORY`, `XDG_STATE_HOME` \
                           nor `HOME` names an absolute path";
            let help = Some("set `data_dir`".to_owned());
            self.report(
                Location::Machine,
                &data_dir,
                ValueError { message: message.to_owned(), label: None, help },
            );
        }
        if let Some(Setting::Text(folder)) = self.get(&data_dir) {
            let folder = PathBuf::from(folder);
            let store = super::store_address::StoreAddress::Sqlite(folder.join("evenbeat.db"));
            let socket = folder.join("evenbeat.sock").display().to_string();
            self.default(ConfigPath::plain("store"), Setting::Store(store));
            self.default(ConfigPath::plain("socket"), Setting::Text(socket));
        }
        let node = ConfigPath::plain("node.name");
        match sources.machine.host_name.parse() {
            Ok(name) => self.default(node, Setting::NodeName(name)),
            Err(error) if !self.is_set(&node) && !self.is_any_broken(std::slice::from_ref(&node)) => {
                let message = format!("the host name is not a valid node name: {error}");
                let help = Some("set `node.name`".to_owned());
                self.report(Location::Machine, &node, ValueError { message, label: None, help });
            }
            Err(_) => {}
        }
    }

    fn lease_defaults(&mut self) {
        let spec = match self.plain("lease.profile") {
            Some(Setting::Word("fast")) => TimingsSpec::FAST,
            _ => TimingsSpec::DEFAULT,
        };
        for (key, length) in timings_of(&spec) {
            self.default(ConfigPath::plain(key), Setting::Length(length));
        }
    }

    fn named_defaults(&mut self, sources: &Sources) {
        let default_plan = self.plain("default_plan").cloned();
        for table in table::named_tables() {
            for name in self.names(table) {
                let built_in = PLANS.iter().find(|(plan, _)| table == "plans" && *plan == name);
                for (pattern, text) in built_in.into_iter().flat_map(|(_, limits)| limits.iter()) {
                    let key = table::find(pattern).map(|key| key.path);
                    self.default_text(ConfigPath::named(key.unwrap_or(pattern), &name), text);
                }
                for key in KEYS.iter().filter(|key| key.path.starts_with(&format!("{table}.{NAME}."))) {
                    let path = ConfigPath::named(key.path, &name);
                    match (key.default, key.path) {
                        (KeyDefault::Text(text), _) => self.default_text(path, text),
                        (KeyDefault::Computed(_), "tenants.<name>.plan") => {
                            if let Some(plan) = &default_plan {
                                self.default(path, plan.clone());
                            }
                        }
                        (KeyDefault::Computed(_), _) if table == "pools" && name == "default" => {
                            let units = sources.machine.n_cores.saturating_mul(UNITS_A_CORE);
                            self.default(path, Setting::Count(units.clamp(1, 1_000_000)));
                        }
                        // A pool without a capacity is an error, which the rules report.
                        (KeyDefault::Computed(_), _) => {}
                    }
                }
            }
        }
    }
}

/// The individual timings, by key.
pub(super) fn timings_of(spec: &TimingsSpec) -> [(&'static str, Duration); 10] {
    [
        ("lease.heartbeat", spec.heartbeat),
        ("lease.attempt", spec.attempt),
        ("lease.self_fence", spec.self_fence),
        ("lease.stop_bound", spec.stop_bound),
        ("lease.freeze_bound", spec.freeze_bound),
        ("lease.window", spec.window),
        ("lease.probe", spec.probe),
        ("lease.gap", spec.gap),
        ("lease.quarantine", spec.quarantine),
        ("lease.backoff_cap", spec.backoff_cap),
    ]
}

/// The default data directory.
fn default_data_dir(sources: &Sources) -> Option<String> {
    let variable = |name: &str| sources.variables.get(name).and_then(|it| it.to_str());
    // systemd may pass several directories; the first one is ours.
    let first = |list: &'static str| variable(list).and_then(|list| list.split(':').next());
    let own = first("STATE_DIRECTORY").map(PathBuf::from);
    let state = || variable("XDG_STATE_HOME").map(|folder| Path::new(folder).join("evenbeat"));
    let home = || variable("HOME").map(|folder| Path::new(folder).join(".local/state/evenbeat"));
    let is_absolute = |folder: &PathBuf| folder.is_absolute();
    let found = own.filter(is_absolute).or_else(|| state().filter(is_absolute));
    found.or_else(|| home().filter(is_absolute)).map(|folder| folder.display().to_string())
}

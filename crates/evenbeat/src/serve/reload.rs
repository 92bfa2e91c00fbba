//! SIGHUP: the configuration is read again, and what can change in a running process does (K5).

use crate::app::App;
use crate::app::housekeeping::HousekeepingRules;
use crate::config::{Config, ConfigErrors, LoadedConfig, Origins};
use crate::serve::LogControl;

/// How many errors of a configuration are logged, one line each.
const ERRORS_MAX: usize = 20;

/// Reads the configuration again, as it was read when the process started.
pub type ReadConfig = Box<dyn Fn() -> Result<LoadedConfig, ConfigErrors> + Send + Sync>;

/// Where the configuration of a process comes from, and which of it is in use.
pub struct ConfigSource {
    read: ReadConfig,
    log: LogControl,
    /// As the process was started. Keys that need a restart still have these values.
    started_with: Origins,
    /// As it was last reloaded.
    current: Origins,
}

impl ConfigSource {
    /// `origins` is what the process starts with.
    pub fn new(read: ReadConfig, origins: Origins, log: LogControl) -> ConfigSource {
        ConfigSource { read, log, current: origins.clone(), started_with: origins }
    }

    /// Reads the configuration and applies what can be changed in a running process. Returns it, unless it is not valid:
    /// then nothing changes.
    pub(super) fn reload(&mut self, app: &App) -> Option<Config> {
        let LoadedConfig { config, origins, .. } = match (self.read)() {
            Ok(loaded) => loaded,
            Err(errors) => {
                log_errors(&errors);
                return None;
            }
        };
        // First, so that the lines below are logged at the level that is wanted.
        self.log.set_level(config.log.level);
        app.alerts.reload(config.alerts.clone());
        let logs = app.keep.load().logs.as_ref().map(|(places, _)| (places.clone(), config.retention.logs));
        let (retention, scores) = (config.retention(), config.retention.scores);
        app.keep.store(HousekeepingRules { retention, scores, logs }.into());
        self.log_changes(&origins);
        self.current = origins;
        Some(config)
    }

    fn log_changes(&self, origins: &Origins) {
        let (mut changed, mut needing_restart) = (0, 0);
        for change in self.current.changes(origins).into_iter().filter(|it| it.is_reloadable) {
            changed += 1;
            let (key, before, after) = (change.key, change.before, change.after);
            tracing::info!(key, before, after, "configuration changed");
        }
        for change in self.started_with.changes(origins).into_iter().filter(|it| !it.is_reloadable) {
            needing_restart += 1;
            let (key, running, configured) = (change.key, change.before, change.after);
            tracing::warn!(key, running, configured, "configuration change needs a restart");
        }
        tracing::info!(changed, needing_restart, "configuration reloaded");
    }
}

impl std::fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigSource").finish_non_exhaustive()
    }
}

fn log_errors(errors: &ConfigErrors) {
    for error in errors.errors.iter().take(ERRORS_MAX) {
        tracing::error!(error = error.message, "configuration invalid");
    }
    tracing::error!(errors = errors.errors.len(), "configuration not reloaded; nothing changed");
}

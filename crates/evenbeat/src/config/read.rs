//! Reads a configuration from its sources, or reports every error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenbeat_core::engine::{DispatchSettings, PoolSettings, StartRate};
use evenbeat_core::placement::{Balance, Strategy};
use evenbeat_core::slot::BalanceBy;
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::Duration;

use super::alert_rules;
use super::collect::collect;
use super::error::ConfigError;
use super::path::ConfigPath;
use super::resolve::{Resolution, resolve};
use super::rules;
use super::show::Origins;
use super::sources::Sources;
use super::value_type::Setting;
use super::values::{
    AgendaSettings, AuthSettings, Config, LogFormat, LogLevel, LogSettings, MetricsJobs, MetricsSettings,
    QuotaLimits, RetentionSettings, RunSettings, TlsSettings,
};

impl Config {
    /// Reads a configuration and the origin of each value. A pure function: does not access the disk or the clock.
    pub fn read(sources: &Sources) -> Result<(Config, Origins), Vec<ConfigError>> {
        let mut resolved = resolve(sources, collect(sources));
        rules::check(&mut resolved);
        // Without the file's content we cannot know the configuration, even if nothing else is wrong.
        let is_known = resolved.collected.errors.is_empty() && !resolved.collected.is_file_lost;
        let lease = match rules::timings(&resolved) {
            Ok(lease) if is_known => lease,
            _ => return Err(resolved.collected.errors),
        };
        let config = Values(&resolved).config(lease);
        let ignored = std::mem::take(&mut resolved.collected.ignored);
        let values = resolved.values.into_iter().map(|(path, it)| (path, it.setting, it.origin));
        let file = sources.file.as_ref().map(|file| file.name.clone());
        Ok((config, Origins::new(file, values, ignored)))
    }
}

/// Values that are known to be present and valid.
struct Values<'a>(&'a Resolution);

impl Values<'_> {
    fn config(&self, lease: evenbeat_core::lease::Timings) -> Config {
        Config {
            store: match self.plain("store") {
                Setting::Store(place) => place.clone(),
                other => bug("store", other),
            },
            data_dir: self.text("data_dir").into(),
            listen: match self.plain("listen") {
                Setting::Address(address) => Some(*address),
                Setting::Nothing => None,
                other => bug("listen", other),
            },
            hosts: self.texts("hosts"),
            auth: AuthSettings {
                trusts_loopback: matches!(self.plain("auth.loopback"), Setting::Word("trust")),
                trusted_proxies: self
                    .texts("auth.trusted_proxies")
                    .iter()
                    .filter_map(|it| it.parse().ok())
                    .collect(),
                request_rate: self.maybe_count(&ConfigPath::plain("auth.request_rate")),
            },
            tls: self.tls(),
            socket: self.text("socket").into(),
            node: self.node_name("node.name"),
            instance: self.node_name("node.instance"),
            pools: self.pools(),
            scheduler_interval: self.length("scheduler_interval"),
            balance: self.balance(),
            first_run_within: self.maybe_length(&ConfigPath::plain("balance.first_run_within")),
            dispatch: self.dispatch(),
            agenda: AgendaSettings {
                lookahead: self.length("agenda.lookahead"),
                rebuild_every: self.length("agenda.rebuild_every"),
            },
            lease,
            start_within: self.length("start_within"),
            sites: self.by_name("sites", |name| CounterLimit {
                max_open: self.maybe_count(&ConfigPath::named("sites.<name>.max_concurrent", name)),
                min_gap: self.maybe_length(&ConfigPath::named("sites.<name>.min_gap", name)),
                max_per_hour: self.maybe_count(&ConfigPath::named("sites.<name>.max_per_hour", name)),
            }),
            plans: self.by_name("plans", |name| self.plan(name)),
            tenants: self.by_name("tenants", |name| self.plan_of(name)),
            default_plan: self.text("default_plan"),
            quota: self.quota(),
            commands: self.commands(),
            retention: RetentionSettings {
                runs: self.length("retention.runs"),
                records: self.length("retention.records"),
                logs: self.length("retention.logs"),
                scores: self.length("retention.scores"),
                audit: self.length("retention.audit"),
            },
            alerts: alert_rules::settings(self.0),
            topic: self.text("queue.topic"),
            metrics: self.metrics(),
            traces: match self.plain("traces.endpoint") {
                Setting::Text(text) => text.parse().ok(),
                Setting::Nothing => None,
                other => bug("traces.endpoint", other),
            },
            log: self.log(),
            jobs: self.texts("jobs").into_iter().map(PathBuf::from).collect(),
        }
    }

    fn tls(&self) -> Option<TlsSettings> {
        match (self.plain("tls.cert"), self.plain("tls.key")) {
            (Setting::Text(cert), Setting::Text(key)) => {
                Some(TlsSettings { cert: cert.into(), key: key.into() })
            }
            _ => None,
        }
    }

    fn pools(&self) -> BTreeMap<evenbeat_core::ids::Pool, PoolSettings> {
        self.by_name("pools", |name| PoolSettings {
            capacity: self.count(&ConfigPath::named("pools.<name>.capacity", name)),
            reserved: self.count(&ConfigPath::named("pools.<name>.reserved", name)),
        })
    }

    fn balance(&self) -> Balance {
        Balance {
            strategy: match self.word("balance.strategy") {
                "least_loaded" => Strategy::LeastLoaded,
                "none" => Strategy::None,
                _ => Strategy::Phase,
            },
            by: if self.word("balance.by") == "work" { BalanceBy::Work } else { BalanceBy::Runs },
            width: match self.plain("balance.slot_minutes") {
                Setting::Slot(width) => *width,
                other => bug("balance.slot_minutes", other),
            },
        }
    }

    fn dispatch(&self) -> DispatchSettings {
        let maybe = |key| self.maybe_length(&ConfigPath::plain(key)).unwrap_or(Duration::ZERO);
        let start_rate = self.maybe_count(&ConfigPath::plain("dispatch.start_rate"));
        let burst = self.maybe_count(&ConfigPath::plain("dispatch.start_burst"));
        let batch = self.count(&ConfigPath::plain("dispatch.batch"));
        DispatchSettings {
            lookahead: self.truth("dispatch.lookahead"),
            late_share: self.count(&ConfigPath::plain("dispatch.late_share")),
            short: maybe("dispatch.short"),
            start_rate: start_rate
                .map(|per_second| StartRate { per_second, burst: burst.unwrap_or(per_second) }),
            prefer_for: maybe("dispatch.prefer_for"),
            batch: usize::try_from(batch).unwrap_or(usize::MAX),
            ..DispatchSettings::default()
        }
    }

    fn plan(&self, name: &str) -> QuotaLimits {
        let path = |pattern| ConfigPath::named(pattern, name);
        QuotaLimits {
            max_concurrent_jobs: self.maybe_count(&path("plans.<name>.max_concurrent_jobs")),
            max_run_time: self.maybe_length(&path("plans.<name>.max_run_time")),
            max_pages_per_run: self.maybe_count(&path("plans.<name>.max_pages_per_run")),
            max_snapshots: self.maybe_count(&path("plans.<name>.max_snapshots")),
            max_db_bytes: self.maybe_size(&path("plans.<name>.max_db_bytes")),
        }
    }

    fn quota(&self) -> QuotaLimits {
        QuotaLimits {
            max_concurrent_jobs: self.maybe_count(&ConfigPath::plain("quota.max_concurrent_jobs")),
            max_run_time: self.maybe_length(&ConfigPath::plain("quota.max_run_time")),
            max_pages_per_run: self.maybe_count(&ConfigPath::plain("quota.max_pages_per_run")),
            max_snapshots: self.maybe_count(&ConfigPath::plain("quota.max_snapshots")),
            max_db_bytes: self.maybe_size(&ConfigPath::plain("quota.max_db_bytes")),
        }
    }

    fn plan_of(&self, tenant: &str) -> String {
        match self.get(&ConfigPath::named("tenants.<name>.plan", tenant)) {
            Setting::Text(plan) => plan.clone(),
            other => bug("tenants.<name>.plan", other),
        }
    }

    fn commands(&self) -> RunSettings {
        RunSettings {
            allow_shell: self.truth("commands.allow_shell"),
            grace: self.length("commands.grace"),
            output_max: self.maybe_size(&ConfigPath::plain("commands.output_max")).unwrap_or_default(),
            env_pass: self.texts("commands.env_pass"),
            max_orphan: self.length("commands.max_orphan"),
            max_frozen: self.length("commands.max_frozen"),
            nofile: self.maybe_count(&ConfigPath::plain("commands.nofile")),
        }
    }

    fn metrics(&self) -> MetricsSettings {
        MetricsSettings {
            listen: match self.plain("metrics.listen") {
                Setting::Nothing => None,
                Setting::Address(address) => Some(*address),
                other => bug("metrics.listen", other),
            },
            jobs: match self.plain("metrics.jobs") {
                Setting::Text(text) => text.parse().unwrap_or_default(),
                Setting::Nothing => MetricsJobs::None,
                other => bug("metrics.jobs", other),
            },
            jobs_max: usize::try_from(self.count(&ConfigPath::plain("metrics.jobs_max")))
                .unwrap_or(usize::MAX),
        }
    }

    fn log(&self) -> LogSettings {
        LogSettings {
            level: match self.word("log.level") {
                "error" => LogLevel::Error,
                "warn" => LogLevel::Warn,
                "debug" => LogLevel::Debug,
                "trace" => LogLevel::Trace,
                _ => LogLevel::Info,
            },
            format: match self.word("log.format") {
                "human" => LogFormat::Human,
                "json" => LogFormat::Json,
                _ => LogFormat::Auto,
            },
        }
    }

    /// A table whose names were checked when they were read.
    fn by_name<K: Ord + std::str::FromStr, V>(
        &self,
        table: &str,
        read: impl Fn(&str) -> V,
    ) -> BTreeMap<K, V> {
        let names = self.0.names(table);
        names.iter().filter_map(|name| Some((name.parse().ok()?, read(name)))).collect()
    }

    fn get(&self, path: &ConfigPath) -> &Setting {
        self.0.get(path).unwrap_or_else(|| panic!("`{path}` has no value"))
    }

    fn plain(&self, key: &'static str) -> &Setting {
        self.get(&ConfigPath::plain(key))
    }

    fn text(&self, key: &'static str) -> String {
        match self.plain(key) {
            Setting::Text(text) => text.clone(),
            other => bug(key, other),
        }
    }

    fn texts(&self, key: &'static str) -> Vec<String> {
        match self.plain(key) {
            Setting::Texts(texts) => texts.clone(),
            other => bug(key, other),
        }
    }

    fn node_name(&self, key: &'static str) -> evenbeat_core::ids::NodeName {
        match self.plain(key) {
            Setting::NodeName(name) => name.clone(),
            other => bug(key, other),
        }
    }

    fn truth(&self, key: &'static str) -> bool {
        match self.plain(key) {
            Setting::Truth(truth) => *truth,
            other => bug(key, other),
        }
    }

    fn word(&self, key: &'static str) -> &'static str {
        match self.plain(key) {
            Setting::Word(word) => word,
            other => bug(key, other),
        }
    }

    fn length(&self, key: &'static str) -> Duration {
        let path = ConfigPath::plain(key);
        self.maybe_length(&path).unwrap_or_else(|| bug(key, self.get(&path)))
    }

    fn count(&self, path: &ConfigPath) -> u32 {
        self.maybe_count(path).unwrap_or_else(|| bug(path.pattern, self.get(path)))
    }

    fn maybe_length(&self, path: &ConfigPath) -> Option<Duration> {
        match self.get(path) {
            Setting::Nothing => None,
            Setting::Length(length) => Some(*length),
            other => bug(path.pattern, other),
        }
    }

    fn maybe_count(&self, path: &ConfigPath) -> Option<u32> {
        match self.get(path) {
            Setting::Nothing => None,
            Setting::Count(number) => Some(*number),
            other => bug(path.pattern, other),
        }
    }

    fn maybe_size(&self, path: &ConfigPath) -> Option<u64> {
        match self.get(path) {
            Setting::Nothing => None,
            Setting::Size(size) => Some(size.0),
            other => bug(path.pattern, other),
        }
    }
}

/// The table declares one type, but the reader expects another.
fn bug(key: &str, found: &Setting) -> ! {
    panic!("the table of keys and the reader disagree about `{key}`: {found:?}")
}

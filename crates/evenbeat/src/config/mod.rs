//! The configuration of a node: one TOML file, the environment and flags, in increasing order of precedence (C3).
//!
//! [`Config::read`] is a pure function of [`Sources`]: the file, the variables, the flags and facts about the machine. It
//! returns typed values and their origins, or every error of every source at once. Only [`load()`] accesses the disk and
//! the environment.
//!
//! There is one table of keys, in `table.rs`. Parsing, printing and the reference are all generated from it:
//!
//! ```text
//!   table --+--> collect: the keys that each source sets, with their locations
//!           |        |
//!           |        v
//!           +--> resolve: the source with the highest precedence, or the default
//!           |        |
//!           |        +--> rules: values that contradict each other
//!           |        v
//!           |     Config, Origins
//!           +--> docs/reference/configuration.md
//! ```

mod alert_rules;
mod alerts;
mod collect;
mod env;
mod error;
mod help;
mod http_endpoint;
mod load;
mod mask;
mod network;
mod path;
mod read;
mod reference;
mod resolve;
mod rules;
mod show;
mod size;
mod source;
mod sources;
mod store_address;
mod table;
mod toml_text;
mod value_type;
mod values;

pub use alerts::{
    AlertSettings, ChannelKind, ChannelSettings, EmailSettings, EmailTls, HttpSettings, SecretSource,
};
pub use error::{ConfigError, diagnostics};
pub use http_endpoint::HttpEndpoint;
pub(crate) use load::machine;
pub use load::{ConfigErrors, ConfigFlags, LoadedConfig, load};
pub use mask::{masked, names_a_secret};
pub use network::Network;
pub use reference::reference;
pub use show::Origins;
pub use sources::{Flag, Machine, Sources};
pub use store_address::StoreAddress;
pub use values::{
    AgendaSettings, Config, LogFormat, LogLevel, LogSettings, MetricsJobs, MetricsSettings, TRIM_MOST,
    TlsSettings,
};

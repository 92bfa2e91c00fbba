//! The configuration of a node: one TOML file, the environment and flags, each winning over those before it (C3).
//!
//! [`Config::read`] is a pure function of [`Sources`]: what the file, the variables and the flags say, and what the
//! machine is. It answers with plain typed values and with where each of them is from, or with every fault of every
//! source at once. [`load()`] is the one place that looks at the disk and at the environment.
//!
//! There is one table of keys, in `table.rs`. What is accepted, what is printed and what the reference says are all made
//! from it:
//!
//! ```text
//!   table --+--> gather: what each source says, key by key, with its place
//!           |        |
//!           |        v
//!           +--> resolve: the highest source that says something, else the default
//!           |        |
//!           |        +--> rules: values that contradict each other
//!           |        v
//!           |     Config, Origins
//!           +--> docs/reference/configuration.md
//! ```

mod env;
mod fault;
mod gather;
mod hint;
mod kind;
mod load;
mod mask;
mod path;
mod read;
mod reference;
mod resolve;
mod rules;
mod show;
mod size;
mod sources;
mod store_address;
mod table;
mod toml_text;
mod values;
mod voice;

pub use fault::{Fault, Place, diagnostics};
pub(crate) use load::machine;
pub use load::{Asked, Loaded, Refused, load};
pub use reference::reference;
pub use show::{Origin, Origins};
pub use sources::{Flag, Machine, Sources};
pub use store_address::{PlaceError, StorePlace};
pub use values::{
    AgendaSettings, Config, KeepFor, Limits, LogFormat, LogLevel, LogSettings, RunSettings, TRIM_MOST,
};

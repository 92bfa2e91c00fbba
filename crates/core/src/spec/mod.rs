//! From what people wrote to a valid job: the one validation that job files, API and command line
//! share (J1).
//!
//! It goes in three steps, none of which stops at the first fault:
//!
//! ```text
//!   Table --read--> JobSpec --over defaults--> JobSpec --validate--> Job, and warnings
//! ```
//!
//! - [`JobSpec::read`] settles names: aliases, presets and short forms become one canonical table.
//! - [`JobSpec::over`] fills what a job does not say from a table of defaults.
//! - [`JobSpec::validate`] gives every value its meaning, and holds them against each other.
//!
//! And back: [`written`] makes a table of a job, for storage and export, and [`JobSpec::restore`] the
//! same job of that table.
//!
//! Every [`SpecFault`] knows its [`Place`]: in which of the tables, at which path, and where it matters
//! at which bytes of a text. So a file can be pointed into, whatever was renamed or merged since.

mod alerts;
#[cfg(test)]
mod any_job;
mod error;
mod fault;
mod field;
mod fields;
mod hint;
mod hours;
mod job;
mod merge;
mod node;
mod policy;
#[cfg(test)]
mod properties;
mod read;
mod reader;
#[cfg(test)]
mod sample;
mod schedule;
mod schedule_text;
mod scalar;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod warn;
mod warning;
mod write;

pub use error::SpecError;
pub use fault::{Origin, Place, SpecFault, Warning};
pub use field::{FieldDefault, FieldKind, FieldSpec, Section};
pub use fields::all_names;
pub use job::ValidJob;
pub use read::JobSpec;
pub use schedule_text::schedule_fields;
pub use table::{
    ALERT_FIELDS, BLACKOUT_FIELDS, COMMAND_FIELDS, HTTP_FIELDS, JOB_FIELDS, QUEUE_FIELDS, RETRY_FIELDS,
};
pub use warning::SpecWarning;
pub use write::written;

//! Job files: TOML that people write, review and keep beside their code.
//!
//! ```toml
//! [defaults]                       # for every job of this file
//! tz = "Europe/Berlin"
//!
//! [template.crawl]                 # for every job that picks it
//! fresh = "24h"
//! pool = "browsers"
//!
//! [[job]]
//! name = "shop.example"
//! template = "crawl"
//! command = ["crawl", "shop.example"]
//! ```
//!
//! A job's own fields win over its template's, and those over the defaults. What a field means is
//! decided by [`evenbeat_core::spec`], as for every other door; here it is only found in the text
//! again, so that [`Diagnostics`] can point at it.

mod diagnostic;
mod fault;
mod layout;
mod load;
mod render;
mod source;
mod spans;
pub(crate) mod tree;

pub use diagnostic::{Diagnostic, Diagnostics, Note, Severity};
pub use load::{JobFile, Loaded, LoadedJob, load};
pub(crate) use source::Lines;
pub use source::{FILE_BYTES_MAX, Position, SourceText};
pub(crate) use spans::Spans;

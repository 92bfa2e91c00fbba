//! Job files: TOML files that declare jobs.
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
//! A job's own fields override its template's, and those override the defaults. [`evenbeat_core::spec`] interprets the
//! fields, as for the API. This module finds their places in the text, so that [`Diagnostics`] can point at them.

mod diagnostic;
mod fault;
mod layout;
mod load;
mod reference;
mod render;
pub(crate) mod schema;
mod source;
mod spans;
pub(crate) mod tree;

pub use diagnostic::{Diagnostic, Diagnostics, Note, Severity};
pub use load::{LoadedFiles, load};
pub use reference::filled as filled_reference;
pub use schema::file_schema;
pub(crate) use source::LineIndex;
pub use source::{FILE_BYTES_MAX, SourceText};
pub(crate) use spans::Spans;

//! The agenda: every occurrence of every job over a window, sorted by instant and then by job key,
//! bytewise (D1). It answers `upcoming`, draws the timeline and feeds whatever looks ahead.
//!
//! An [`Agenda`] is a value. It is built once and never edited, only replaced, so that its holder
//! sees one state of the fleet. To go on from where the last one ended, build one whose window
//! begins there: from a cursor, not from now, nothing due is dropped.
//!
//! # How it is laid out
//!
//! An occurrence is one 4-byte *word*: ten bits for its millisecond within the second, above
//! twenty-two for the number of its job. Jobs are numbered in the order of their keys, so that within
//! a second plain integer order is the order that is needed. What remains is to know each word's
//! second, and for that there are two ways:
//!
//! ```text
//!   dense     starts   0     2  2        5        where the words of each second begin
//!                      |     |           |
//!             words    a  b  c  d  e
//!
//!   sparse    seconds  7  7  1904  86000          the second of each word
//!             words    a  b  c     d
//! ```
//!
//! Dense, a query is two loads, and a search within the second if it asks for milliseconds; sparse, a
//! binary search. Dense costs 4 bytes a second, sparse 4 bytes an occurrence, and the cheaper one is
//! taken: dense where the window has fewer seconds than occurrences. So an agenda occupies at most 8
//! bytes an occurrence and a small constant, for a busy minute as for a quiet month. The keys come on
//! top; a [rebuild](Agenda::rebuild) of an agenda of the same jobs shares them.
//!
//! # How it is built
//!
//! By counting, not by comparing. A job is expanded into offsets from the start of the window, of 4
//! bytes each (31 days are fewer than 2^32 milliseconds). Nearly every job keeps to one millisecond
//! for all its occurrences, because nearly every interval is a whole number of seconds; so it is one
//! *strand*, and sorting a handful of strands by millisecond is all that is needed to visit
//! occurrences by (millisecond, job). A job that wanders (`every 1500ms`) is as many strands as it has
//! occurrences, which is slower and as right. Visited in that order, occurrences are dealt out to
//! their seconds: stable, so within a second the order stays.

mod build;
mod counting;
mod error;
mod query;
mod key_table;
mod slice;
mod source;
mod strands;
mod table;
#[cfg(test)]
mod tests;

pub use error::{AgendaError, JOBS_MAX, OCCURRENCES_MAX, WINDOW_MAX};
pub use query::Agenda;
pub use slice::{Iter, Occurrence, Slice};
pub use source::{Source, When};

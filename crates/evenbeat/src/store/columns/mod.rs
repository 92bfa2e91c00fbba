//! Rows as plain values, one for each column: the same for both databases.
//!
//! Instants and lengths are milliseconds in 64 bits, numbers are 64 bits, ids are the 128 bits of a UUID.

mod memory;
mod run;
mod session;

pub use memory::MemoryColumns;
pub use run::{
    DueColumns, EndedColumns, RunColumns, counter_of, report_from_text, report_to_text, takes_from_text,
    takes_to_text,
};
pub use session::{pools_from_text, pools_to_text, timings_from_text, timings_to_text};

/// A number that never comes near the limit of what a database can hold.
pub fn stored_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The same, read back.
pub fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// A small number, read back.
pub fn small_number(stored: i64) -> u32 {
    u32::try_from(stored.max(0)).unwrap_or(u32::MAX)
}

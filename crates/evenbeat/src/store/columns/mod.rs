//! Rows as plain values, one for each column: the same for both databases.
//!
//! Instants and durations are milliseconds in 64 bits, numbers are 64 bits, ids are the 128 bits of a UUID. A few
//! columns hold JSON. Its fields are in alphabetical order, so that equal values are equal texts.

mod memory;
mod run;
mod session;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value as Json;

pub use memory::MemoryColumns;
pub use run::{
    DueColumns, EndedColumns, RunColumns, counter_of, report_to_text, takes_from_text, takes_to_text,
};
pub use session::{pools_from_text, pools_to_text, timings_from_text, timings_to_text};

/// A number as a database stores it. None of ours comes near the limit.
pub fn stored_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number, read back.
pub fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// A small number, read back.
pub fn small_number(stored: i64) -> u32 {
    u32::try_from(stored.max(0)).unwrap_or(u32::MAX)
}

/// Reads a JSON field. A value of the wrong type counts as missing: the rest of a row is worth more than none of it.
fn lenient<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(field: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Json::deserialize(field)?).unwrap_or_default())
}

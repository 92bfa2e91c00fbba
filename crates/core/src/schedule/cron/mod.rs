//! Cron expressions, read and walked by Vixie's rules.
//!
//! A text goes through three forms. [`CronText`] is what a person wrote: perhaps a zone in front,
//! then fields, a nickname or `@every`. [`CronExpr`] is the rule itself, in which `H` may still wait
//! for a choice. [`CronPlan`] is what is walked: a few bit sets without any pointer, so that a
//! million of them are an array.
//!
//! # What can be written
//!
//! Five fields (minute, hour, day of month, month, day of week), or six with seconds first. A field
//! is a list of numbers, names, ranges and steps; ranges may wrap around (`22-2`, `FRI-MON`). `L`,
//! `L-3`, `LW` and `15W` are days of a month, `FRIL` and `FRI#3` days of a week. `H` leaves a value
//! to placement, which balances the load: `H`, `H/15`, `H(0-29)`, `H(0-29)/10`.
//!
//! # Where tools differ
//!
//! - A day must match both day fields if one of them begins with `*` (or is `?`), else either of
//!   them. `0 12 */2 * 0,6` is noon of odd days that are weekend days, as in Vixie cron.
//! - An expression whose minute and hour fields both do not begin with `*` means the clock on the
//!   wall: what the clocks skip in spring runs once, right after the gap; what they show twice in
//!   autumn runs the first time. Any other expression means elapsed time: nothing extra after a gap,
//!   and both passes of a fold.
//!
//! # How it is walked
//!
//! A zone is a row of segments of constant offset. Inside one, local time is a straight line, and
//! the plan is asked about that line in whole months: a bit set of the days that match, and the same
//! few times on each. Only where two segments meet is there anything to think about, and the whole
//! thought is one number: how far the clocks on the wall have already been.

mod error;
mod expr;
mod field;
mod hashed;
mod local;
mod parse;
mod plan;
mod text_span;
mod text;
mod times;
mod walk;

#[cfg(test)]
mod tests;

pub use error::CronError;
pub use expr::CronExpr;
pub use field::CronField;
pub use hashed::HashedTerm;
pub use plan::CronPlan;
pub use text::{CronRule, CronText, ZonePrefix};
pub use walk::DstNote;

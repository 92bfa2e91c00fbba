//! Where on the time line a job goes (A3 to A10, A12, A15).
//!
//! # The idea
//!
//! An interval of six hours has 24 phases at slot resolution: 24 sets of four slots a day, which
//! tile the day. A new job takes the set that carries least. That is asked in one order, always:
//!
//! 1. fewest occurrences against its wishes (avoided hours, blackouts),
//! 2. smallest peak among the slots it would fall into,
//! 3. smallest sum of them,
//! 4. smallest sum of the hours around them,
//! 5. farthest from any slot that carries something,
//! 6. earliest.
//!
//! Inside the slot the same is asked of its minutes, then of the seconds of the chosen minute; the
//! millisecond follows from how many share the second. So the answer is one instant, the same for
//! the same load on every node, and the job keeps its rhythm from there.
//!
//! Nothing here changes anything: a placement is a value, and so is a plan to move jobs.

mod changes;
mod fine;
mod fleet;
mod hashed;
mod ledger;
mod phase;
mod protection;
mod rebalance;
mod spot;
mod wishes;

#[cfg(test)]
mod tests;

pub use changes::LedgerChanges;
pub use fleet::place_fleet;
pub use hashed::place_hashed;
pub use ledger::{Balance, DayOutlook, Ledger, LedgerJob, LedgerSnapshot, PoolNo};
pub use phase::place_every;
pub use protection::{KeptReason, MOVE_COOLDOWN, PROTECTION_MAX};
pub use rebalance::{Kept, Move, PlanLimits, RebalancePlan, RebalancePlanner, plan_rebalance};
pub use spot::{Spot, Strategy};
pub use wishes::{WishedHours, Wishes};

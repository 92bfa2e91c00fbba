//! What must hold in every world, one property a file.
//!
//! A checker sees every fact as it happens, and may look at the store when the world has ended. It
//! shares no code with what it checks: of the core it uses words (ids, rows, definitions), never a
//! decision. Where it needs arithmetic (which instants a schedule names, what lies in a blackout) it has
//! its own, written the plain slow way.
//!
//! Checkers are of two kinds. Those about processes believe only what executed. Those about the store
//! believe only what survived: a failover takes commits back, and then they never were (`history.rs`).

mod projection;
mod clock;
mod conservation;
mod ends_once;
mod fences_grow;
mod finding;
mod grid;
mod history;
mod hours;
mod limits;
mod liveness;
mod one_copy;
mod premises;
mod rhythm;
mod segments;
mod store_rows;
mod starvation;
mod timely;
mod unbroken;
mod windows;
#[cfg(test)]
mod fake_store;
#[cfg(test)]
mod fact_builder;

use evenbeat_core::store::Views;
use evenbeat_core::time::Timestamp;

pub use conservation::Conservation;
pub use ends_once::EndsOnce;
pub use fences_grow::FencesGrow;
pub use finding::Violation;
pub use limits::Limits;
pub use liveness::Liveness;
pub use one_copy::OneCopy;
pub use premises::Premises;
pub use rhythm::RhythmKeeping;
pub use starvation::Starvation;
pub use timely::Timeliness;
pub use unbroken::Integrity;
pub use windows::Windows;

use crate::fact::{Fact, RealTime};

/// Checks one property.
pub trait Checker {
    /// The property, in a word.
    fn name(&self) -> &'static str;

    /// Something happened.
    fn see(&mut self, fact: &Fact);

    /// The world has ended.
    fn end(&mut self, end: &WorldEnd<'_>);

    /// What was wrong, in the order in which it was noticed; at most a handful.
    fn violations(&self) -> &[Violation];
}

/// How a world looks when it has ended.
#[derive(Clone, Copy)]
pub struct WorldEnd<'a> {
    /// The store.
    pub store: &'a dyn Views,
    /// When it ended.
    pub now: RealTime,
    /// The store's clock then.
    pub store_now: Timestamp,
}

impl std::fmt::Debug for WorldEnd<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorldEnd")
            .field("now", &self.now)
            .field("store_now", &self.store_now)
            .finish_non_exhaustive()
    }
}

/// Every checker there is.
pub fn all(premises: &Premises) -> Vec<Box<dyn Checker>> {
    vec![
        Box::new(OneCopy::new()),
        Box::new(FencesGrow::new()),
        Box::new(EndsOnce::new()),
        Box::new(Conservation::new()),
        Box::new(Timeliness::new(premises)),
        Box::new(Limits::new(premises)),
        Box::new(RhythmKeeping::new()),
        Box::new(Windows::new(premises)),
        Box::new(Integrity::new(premises)),
        Box::new(Starvation::new(premises)),
        Box::new(Liveness::new(premises)),
    ]
}

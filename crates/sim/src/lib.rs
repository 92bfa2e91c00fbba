//! The engine of `evenbeat-core` on virtual time, for tests only.
//!
//! **As a proof** it lives through worlds that a seed describes ([`setup`]): nodes with clocks of their own, a database
//! that answers late, fails over and forgets, processes that outlive their scheduler, people who edit in between, and
//! faults of every class ([`faults`]). The [`world`] tells [facts](fact) to [`checkers`], which share no code with
//! what they check. A seed gives the same world every time ([`hunt`]). Rules can be taken out one by one, and a check
//! must notice.
//!
//! **As a specification** the [`mod@reference`] store says in plain maps what is asked of a database, and [`mod@conformance`]
//! holds every store to it, case by case; [`differential`] holds it against the reference over random requests.

/// The core's public face is all that a simulated world may touch.
pub use evenbeat_core as core;

pub mod checkers;
pub mod conformance;
pub mod dice;
pub mod differential;
pub mod fact;
pub mod faults;
pub mod hunt;
pub mod reference;
pub mod setup;
pub mod trace;
pub mod world;

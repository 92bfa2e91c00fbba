//! "What if": a question about the live fleet, answered by simulation. Nothing is changed by it.
//!
//! `fleet` turns the live fleet into a scenario, for the page and for `evenbeat simulate` alike. `question` is what people
//! ask on the page, `answer` runs the simulations and collects the figures.

mod answer;
mod figures;
mod fleet;
mod question;
mod search;
mod words;

pub(crate) use answer::{SimulationStop, WhatIfAnswer, answer, load};
pub(crate) use figures::{BrokenLimit, FirstLate, LimitName, PoolFigures, is_added};
pub(crate) use fleet::{LiveFleet, LiveJob, ServerFacts, is_idle, leave_out, live_fleet, next_quarter};
pub(crate) use question::WhatIfQuestion;
pub(crate) use search::SlotShare;
pub(crate) use words::{length, percent};

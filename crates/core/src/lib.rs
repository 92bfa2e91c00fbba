//! Every decision of Evenbeat, and nothing else: no I/O, no clock, no randomness, no locks.
//!
//! # The words
//!
//! | Word | Meaning |
//! |---|---|
//! | [job](job::Job) | a recurring duty: what to run, when, within which limits |
//! | [terms](job::Terms) | of those, what a decision needs: all but key, target and words for people |
//! | [schedule](schedule::Schedule) | its rule of recurrence: `every`, `fresh`, `cron`, `once`, `manual` |
//! | [placement](schedule::Placement) | where the rule was set down on the time line |
//! | [rhythm](schedule::Rhythm) | both together: instants that can be walked and counted |
//! | occurrence | one due moment of one job, `(job, due_at)` |
//! | [run] | one attempt at an occurrence |
//! | [outcome](run::Outcome) | how a run ended |
//! | [slot](slot::Slot) | a cell of the time line, used to level load |
//! | [distribution](distribution::Distribution) | how evenly starts are spread over a window |
//! | [agenda](agenda::Agenda) | the sorted future occurrences of a window |
//! | [lease], [fence](ids::Fence) | a session's right to run one job now; its strictly growing number |
//! | [condition](condition::Condition) | `ok`, `warning`, `error`, always with a reason |
//! | [store] | where nodes meet: it compares and writes, and decides nothing |
//! | [engine](engine::Engine) | what one node decides with: one event in, commands out |
//! | [explanation](explain::Explanation) | why a job runs or does not, from the code that decides |
//! | [roster](roster::Roster) | how all jobs stand, counted and listed by condition |
//! | [incident](alert::Incident) | trouble of one job, from its first sign until the job is well again |
//!
//! # Which way data flows
//!
//! ```text
//!   what people wrote         what is remembered          what time it is
//!     value -> spec -> Job         JobState                    now
//!                       \             |             ________/
//!                        v            v            v
//!          urgency: deadline, can_start_by, should_start_by, planned start
//!                                     |
//!                                     v
//!                   condition: ok / warning / error, with reasons
//!
//!   rows of the store ->  engine: view -> waiting -> ready (rank) -> plan  ->  commands
//!                            ^                                                     |
//!                            +---- events: what came of them, what time it is -----+
//! ```
//!
//! Modules stand in the order of their dependence, which is the order to read them in: each uses
//! only those above it (a test holds them to it).

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a test knows how small its numbers are"
    )
)]

pub mod nearest;
pub mod rights;
pub mod ids;
pub mod time;
pub mod civil;
pub mod zone;
pub mod value;
pub mod schedule;
pub mod blackout;
pub mod estimate;
pub mod run;
pub mod why;
pub mod retry;
pub mod missed;
pub mod job;
pub mod unsatisfiable;
pub mod spec;
pub mod urgency;
pub mod occurrence;
pub mod repair;
pub mod rank;
pub mod condition;
pub mod attainment;
mod sorted_index;
mod chunked_slab;
mod keyed_slab;
mod keyed_parts;
pub mod key_search;
pub mod slot;
pub mod upcoming;
pub mod distribution;
pub mod expected_running;
mod day_counts;
pub mod placement;
pub mod agenda;
pub mod rules;
pub mod lease;
pub mod notice;
pub mod store;
pub mod edit;
pub mod engine;
pub mod explain;
pub mod roster;
pub mod alert;

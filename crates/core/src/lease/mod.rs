//! One copy, many nodes: who may run a job, and when that is certain (L1 to L6).
//!
//! # The promise
//!
//! At most one copy of a job runs at a time, through crashes, pauses, partitions, clock steps,
//! database outages and failovers. It does not rest on any clock being right, nor on two clocks
//! agreeing: only on clocks running at nearly the same speed.
//!
//! # The parts
//!
//! A *session* is one life of one process that owns runs. It has one row in the store: a counter,
//! its *beat*, and whether it is *dead*. A claim gives a run to a session, with a *fence* that grows
//! with every claim of that job and never repeats.
//!
//! **The owner** beats every [`heartbeat`](Timings::heartbeat): it raises its counter, unless it is
//! dead. It trusts its lease for [`self_fence`](Timings::self_fence) from the moment at which it
//! *began* its last successful beat: a slow round trip must shorten trust, never stretch it. When
//! trust ends it freezes its runs, at once and by a process of their own, so that a stopped scheduler
//! changes nothing. A later beat that succeeds thaws them, after it has revoked those that are no longer its
//! own: a failover may have lost a claim, and another may run that job by now. If it learns that it is dead, it
//! kills them all. See [`LeaseOwner`].
//!
//! **The watcher** (every node watches every other) reads all counters every
//! [`probe`](Timings::probe). A session whose counter it saw standing still for a whole
//! [`window`](Timings::window) may be fenced: one write that marks it dead if the counter is still the
//! one that was seen. The window is counted on the watcher's own clock, from *after* the answer that
//! first showed the counter, and tested *before* the write is sent. If two readings lie too far apart
//! the watcher knows nothing of the time between them, and every window starts again: after an outage
//! of the database every session gets a full window to speak first (the *amnesty*). See [`Watcher`].
//!
//! Only then are the runs of a dead session released, and the ordinary claims do the rest.
//!
//! # Why it holds
//!
//! Let the owner's last successful beat have been begun at real time `a`, and have reached the store
//! at `c`, not before `a`. The owner's runs execute nothing after `a + F(1+ρ) + K`: trust of `F` on a
//! clock that may be slow by `ρ`, and `K` for a freeze or a kill to take effect. A fencing write that
//! succeeds at `t` needs a reading of that very beat at `t₁`, not before `c`, and a window of `S`
//! since then on a clock that may be fast by `ρ`: so `t ≥ t₁ + S/(1+ρ) ≥ a + S/(1+ρ)`. The write itself
//! makes sure that no later beat came in between, and after it none can succeed. So all that is
//! needed is `S/(1+ρ) > F(1+ρ) + K`, and [`Timings::new`] refuses anything else.
//!
//! Lost answers only make the owner more careful. Beats that arrive late only restart the watcher's
//! window. A claim that arrives late makes an owner without a process, which costs time, not safety.
//!
//! # Failover
//!
//! A new primary may have lost the last commits, so what it says about beats and claims may be old.
//! Each primary's reign is an *epoch*. The first is open from birth; a later one is closed to claims,
//! fencing and release until some node has watched it for [`quarantine`](Timings::quarantine) on its
//! own clock: by then every owner whose last beat was lost has frozen. An owner that is running and
//! trusted goes on; a frozen one thaws only after the quarantine. See [`Reign`].

mod owner;
mod reign;
mod timings;
mod watcher;

#[cfg(test)]
mod tests;

pub use owner::{BeatAnswer, HeldRun, LeaseOwner, LeaseState, Verdict};
pub use reign::{Epoch, Reign};
pub use timings::{DRIFT, TimingFault, Timings, TimingsSpec};
pub use watcher::{SessionBeat, Silent, Watcher};

//! What can be taken out of the nodes and workers of a world, one at a time.

/// Something that a weakened world does not do as it should. Only for tests: each must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldWeakness {
    /// Shims have no timer of their own: only the scheduler halts runs whose lease is over.
    FenceInScheduler,
    /// Runs whose lease is over go on.
    NoFreeze,
    /// A shim begins its process without a look at its lease.
    ShimIgnoresDeadlineBeforeStart,
    /// The end of a run is reported while its process still executes.
    ReportsEndBeforeGone,
    /// A new scheduler extends every run that it finds on its node, whether it took it over or not.
    ExtendsUnadopted,
    /// Leases go by the clock on the wall.
    LeaseByWallClock,
    /// After a node stood still its processes go on well before their shims look at their clocks.
    ShimWakesLate,
    /// A failover looks like any other moment.
    FailoverUnseen,
    /// A revoked run is left running.
    RevokeDoesNothing,
    /// A worker goes on although it has not beaten for as long as it may.
    WorkerOutstaysTrust,
    /// A worker begins whatever is delivered to it, also if another was first.
    WorkerBeginsUnwon,
}

impl WorldWeakness {
    /// All of them.
    pub const ALL: [WorldWeakness; 11] = [
        WorldWeakness::FenceInScheduler,
        WorldWeakness::NoFreeze,
        WorldWeakness::ShimIgnoresDeadlineBeforeStart,
        WorldWeakness::ReportsEndBeforeGone,
        WorldWeakness::ExtendsUnadopted,
        WorldWeakness::LeaseByWallClock,
        WorldWeakness::ShimWakesLate,
        WorldWeakness::FailoverUnseen,
        WorldWeakness::RevokeDoesNothing,
        WorldWeakness::WorkerOutstaysTrust,
        WorldWeakness::WorkerBeginsUnwon,
    ];
}

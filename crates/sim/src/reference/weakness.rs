//! Rules that can be taken out of the reference store, one at a time.

/// A rule that a weakened store does not keep. Only for tests: each must be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// A row is written whatever its version.
    NoCompareAndSet,
    /// A run is ended under any fence.
    NoFenceCheckOnEnd,
    /// A run can be ended by any session that knows its fence.
    NoOwnerCheckOnEnd,
    /// The dead claim.
    NoSessionCheckOnClaim,
    /// A session is fenced off though it has beaten since.
    NoBeatCheckOnFence,
    /// Claims, fencing and releases go through in any epoch, open or not.
    NoEpochCheck,
    /// A failover has no quarantine.
    EpochBornOpen,
    /// Runs of the living are released.
    ReleaseWithoutDeath,
    /// Ended runs hold their counters for ever.
    CountersNotReleased,
    /// Counters have no limits.
    CountersNotChecked,
    /// A claim keeps the last lease's fence.
    FenceDoesNotGrow,
    /// After a failover fences go on where the lost commits left them.
    FenceIgnoresEpoch,
    /// After a failover versions go on where the lost commits left them.
    VersionsRepeat,
    /// Claims are never too early.
    NoNotBefore,
    /// Who was fenced off hears that all is well.
    DeadMayBeat,
    /// A result that comes after the run was lost takes the place of `lost`.
    LateResultCounts,
    /// A job that comes back begins with the first fence again.
    TombstoneForgetsFence,
    /// A key whose tombstone was trimmed begins with the first fence again.
    TrimForgetsFence,
    /// A plan is applied as far as it goes.
    PlanInPieces,
    /// A node's earlier life goes on after its runs were taken over.
    AdoptWithoutFencing,
}

impl Weakness {
    /// All of them.
    pub const ALL: [Weakness; 20] = [
        Weakness::NoCompareAndSet,
        Weakness::NoFenceCheckOnEnd,
        Weakness::NoOwnerCheckOnEnd,
        Weakness::NoSessionCheckOnClaim,
        Weakness::NoBeatCheckOnFence,
        Weakness::NoEpochCheck,
        Weakness::EpochBornOpen,
        Weakness::ReleaseWithoutDeath,
        Weakness::CountersNotReleased,
        Weakness::CountersNotChecked,
        Weakness::FenceDoesNotGrow,
        Weakness::FenceIgnoresEpoch,
        Weakness::VersionsRepeat,
        Weakness::NoNotBefore,
        Weakness::DeadMayBeat,
        Weakness::LateResultCounts,
        Weakness::TombstoneForgetsFence,
        Weakness::TrimForgetsFence,
        Weakness::PlanInPieces,
        Weakness::AdoptWithoutFencing,
    ];
}

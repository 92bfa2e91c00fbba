//! Batches on their way to the store.

use crate::time::BootTime;

/// Which batches have been sent and not answered.
#[derive(Debug)]
pub(crate) struct Batches {
    /// How many batches of bids.
    pub(super) n_claims: u32,
    /// When the first of these may have been sent.
    pub(super) claims_since: BootTime,
    /// Whether the last batch of bids was full: more jobs are due than one batch can start.
    pub(super) is_burst: bool,
    pub(super) is_ending: bool,
    pub(super) is_settling: bool,
}

impl Default for Batches {
    fn default() -> Batches {
        Batches {
            n_claims: 0,
            claims_since: BootTime::from_millis(0),
            is_burst: false,
            is_ending: false,
            is_settling: false,
        }
    }
}

impl Batches {
    pub(super) fn is_any_open(&self) -> bool {
        0 < self.n_claims || self.is_ending || self.is_settling
    }
}

//! The reign of one primary database, as one node sees it.

use super::Timings;
use crate::time::BootTime;

/// The number of a reign: it grows with every failover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// What a node knows of the current epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reign {
    epoch: Epoch,
    is_open: bool,
    /// When this node first heard of it, on its own clock, after the answer.
    seen_since: BootTime,
}

impl Reign {
    /// An epoch that a node hears of for the first time.
    pub fn new(epoch: Epoch, is_open: bool, answered_at: BootTime) -> Reign {
        Reign { epoch, is_open, seen_since: answered_at }
    }

    /// What is known after one more answer. An older epoch is a primary that has not noticed its fall:
    /// nothing it says counts.
    pub fn observe(&mut self, epoch: Epoch, is_open: bool, answered_at: BootTime) {
        if self.epoch < epoch {
            *self = Reign::new(epoch, is_open, answered_at);
        } else if self.epoch == epoch {
            // An epoch never closes again.
            self.is_open |= is_open;
        }
    }

    /// Its number.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether claims, fencing and releases are allowed.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether this node has watched it for long enough to open it.
    pub fn may_be_opened(&self, now: BootTime, timings: &Timings) -> bool {
        !self.is_open && timings.quarantine() <= now - self.seen_since
    }

    /// Whether frozen runs may go on in it.
    pub fn may_thaw(&self, now: BootTime, timings: &Timings) -> bool {
        self.is_open || timings.thaw_after() <= now - self.seen_since
    }
}

//! What need not be kept for ever.

use crate::time::Duration;

/// How long what is over is kept. Lengths, not instants: the store counts back from its own clock, so that a node whose
/// clock is wrong removes nothing too early. Open runs and living sessions always stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How long ended runs are kept.
    pub runs: Duration,
    /// How long records are kept.
    pub records: Duration,
    /// How long audit entries are kept.
    pub audit: Duration,
    /// How long the row of a removed job is kept. It stays longer while runs or records of the job are left.
    pub tombstones: Duration,
    /// The most rows of each kind that one call removes, so that no other request waits long for it.
    pub most: usize,
}

/// The shortest time for which a removed job keeps its row: every node has read the removal from the feed by then.
const TOMBSTONES_MIN: Duration = Duration::from_days(1);

impl Retention {
    /// Keeps everything for these lengths, and removed jobs for at least as long as their history.
    pub fn new(runs: Duration, records: Duration, audit: Duration, most: usize) -> Retention {
        let tombstones = TOMBSTONES_MIN.max(runs).max(records);
        Retention { runs, records, audit, tombstones, most }
    }
}

/// How many rows went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Runs.
    pub n_runs: usize,
    /// Records.
    pub n_records: usize,
    /// Audit entries.
    pub n_audit: usize,
    /// Removed jobs without any history left.
    pub n_tombstones: usize,
    /// Dead sessions without any run left.
    pub n_sessions: usize,
}

impl Trimmed {
    /// The largest of the counts: less than the limit of the call if nothing is left to remove.
    pub fn most(&self) -> usize {
        let Trimmed { n_runs, n_records, n_audit, n_tombstones, n_sessions } = *self;
        n_runs.max(n_records).max(n_audit).max(n_tombstones).max(n_sessions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_jobs_stay_as_long_as_their_history() {
        let tombstones = |runs: i64, records: i64| {
            let hours = Duration::from_hours;
            Retention::new(hours(runs), hours(records), hours(1), 10).tombstones
        };
        assert_eq!(tombstones(1, 1), Duration::from_hours(24));
        assert_eq!(tombstones(720, 1), Duration::from_hours(720));
        assert_eq!(tombstones(1, 48), Duration::from_hours(48));
    }
}

//! The part of the history that can have runs with the ids of a batch.
//!
//! History has a partition for each day on which runs ended, and no run ends before its id is created. So only the days
//! since then can have it, as far as clocks agree on the day.

use uuid::Uuid;

/// How far the clocks of the nodes that create an id and end its run, and of the server, may be apart.
const CLOCKS_APART_MAX_MS: i64 = 86_400_000;
/// Ids that were created further apart are not searched together, because the history between them may be long.
pub(super) const DRAWN_APART_MAX_MS: i64 = 100;

/// Whether a run `r` has ended between two instants, or until tomorrow if that is later. There are partitions of future
/// days too, and searching each of them costs more than finding an id.
macro_rules! ended_between {
    ($since:literal, $until:literal) => {
        concat!(
            "r.ended_at >= ",
            $since,
            " AND r.ended_at < greatest(",
            $until,
            ", (extract(epoch FROM now()) * 1000)::bigint + 86400000)"
        )
    };
}
pub(super) use ended_between;

/// The range of the ids of a batch, and of the instants at which their runs can have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistoryRange {
    pub(super) first: Uuid,
    pub(super) last: Uuid,
    pub(super) since: i64,
    /// Tomorrow, if that is later.
    pub(super) until: i64,
}

impl HistoryRange {
    pub(super) fn of(runs: impl Iterator<Item = Uuid>) -> HistoryRange {
        let mut over =
            HistoryRange { first: Uuid::max(), last: Uuid::nil(), since: i64::MAX, until: i64::MIN };
        for run in runs {
            over.first = over.first.min(run);
            over.last = over.last.max(run);
            match drawn_at(run) {
                Some(at) => over.since = over.since.min(at.saturating_sub(CLOCKS_APART_MAX_MS)),
                None => (over.since, over.until) = (i64::MIN, i64::MAX),
            }
        }
        over
    }
}

/// When an id was created. `None` if it does not have the time.
pub(super) fn drawn_at(run: Uuid) -> Option<i64> {
    let is_said = run.get_version_num() == 7;
    i64::try_from(run.as_u128() >> 80).ok().filter(|_| is_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(runs: &[u128], expected: (u128, u128, i64, i64)) {
        let HistoryRange { first, last, since, until } =
            HistoryRange::of(runs.iter().copied().map(Uuid::from_u128));
        assert_eq!((first.as_u128(), last.as_u128(), since, until), expected, "{runs:?}");
    }

    #[test]
    fn history_is_looked_at_from_when_the_oldest_id_was_drawn() {
        let drawn = |millis: u128, no: u128| millis << 80 | 7 << 76 | 2 << 62 | no;
        let (early, late) = (drawn(1_781_528_400_123, 5), drawn(1_781_528_400_124, 1));
        check(&[late, early], (early, late, 1_781_442_000_123, i64::MIN));
        check(&[late], (late, late, 1_781_442_000_124, i64::MIN));
        check(&[late, 17, early], (17, late, i64::MIN, i64::MAX));
        let other_version = 1_781_528_400_123 << 80 | 4 << 76;
        check(&[other_version], (other_version, other_version, i64::MIN, i64::MAX));
    }
}

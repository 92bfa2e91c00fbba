//! Where runs that are over would stand, if ids of a batch were theirs.
//!
//! History lies in one table for each day on which runs ended, and no run ends before its id is drawn. So only the days
//! since then can hold it, as far as clocks agree on the day.

use uuid::Uuid;

/// How far the clocks of whoever draws an id, of whoever ends its run, and of the server may be apart.
const CLOCKS_APART_MAX_MS: i64 = 86_400_000;
/// Ids that were drawn further apart are not looked for at once: history between them may be long.
pub(super) const DRAWN_APART_MAX_MS: i64 = 100;

/// Whether a run `r` has ended between the instants that two parameters say, or until tomorrow if that is later. Days to
/// come have tables too, and to look into each costs more than to look for an id.
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

/// The ids of a batch, and when their runs have ended if they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) first: Uuid,
    pub(super) last: Uuid,
    pub(super) since: i64,
    /// Or until tomorrow.
    pub(super) until: i64,
}

impl Over {
    pub(super) fn of(runs: impl Iterator<Item = Uuid>) -> Over {
        let mut over = Over { first: Uuid::max(), last: Uuid::nil(), since: i64::MAX, until: i64::MIN };
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

/// None if the id does not say.
pub(super) fn drawn_at(run: Uuid) -> Option<i64> {
    let is_said = run.get_version_num() == 7;
    i64::try_from(run.as_u128() >> 80).ok().filter(|_| is_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(runs: &[u128], expected: (u128, u128, i64, i64)) {
        let Over { first, last, since, until } = Over::of(runs.iter().copied().map(Uuid::from_u128));
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

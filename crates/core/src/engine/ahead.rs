//! Whether those who will soon be due find room in time (B12): the next minutes of a pool, foreseen.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::view::JobIdx;
use crate::time::{Duration, Timestamp};

/// A job that will soon be due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpcomingJob {
    pub(crate) idx: JobIdx,
    pub(crate) at: Timestamp,
    pub(crate) latest: Timestamp,
    pub(crate) cost: u32,
    pub(crate) expected: Duration,
}

/// The jobs that would start too late if one unit became free at each of these instants. `soon` is sorted by when the
/// jobs come due. A job that is in time takes the units that are free first, and passes them on when it ends.
pub(crate) fn too_late(units: impl Iterator<Item = Timestamp>, soon: &[UpcomingJob]) -> Vec<JobIdx> {
    let mut units: BinaryHeap<Reverse<Timestamp>> = units.map(Reverse).collect();
    let mut too_late = Vec::new();
    for it in soon {
        let mut taken = Vec::new();
        while u32::try_from(taken.len()).is_ok_and(|n| n < it.cost) {
            let Some(Reverse(free_at)) = units.pop() else { break };
            taken.push(free_at);
        }
        let has_room = u32::try_from(taken.len()).is_ok_and(|n| n == it.cost);
        let start = taken.last().copied().unwrap_or(it.at).max(it.at);
        if has_room && start <= it.latest {
            units.extend(taken.iter().map(|_| Reverse(start + it.expected)));
        } else {
            too_late.push(it.idx);
            units.extend(taken.into_iter().map(Reverse));
        }
    }
    too_late
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    /// Each job as (due at, must start by, cost, length). Expects the numbers of those that are too late.
    #[track_caller]
    fn check(units: &[i64], soon: &[(i64, i64, u32, i64)], expected: &[u32]) {
        let soon: Vec<UpcomingJob> = (0..)
            .zip(soon)
            .map(|(number, (due, latest, cost, length))| UpcomingJob {
                idx: JobIdx(number),
                at: at(*due),
                latest: at(*latest),
                cost: *cost,
                expected: Duration::from_secs(*length),
            })
            .collect();
        let late = too_late(units.iter().map(|it| at(*it)), &soon);
        assert_eq!(late, expected.iter().map(|it| JobIdx(*it)).collect::<Vec<_>>());
    }

    #[test]
    fn one_unit_serves_one_after_the_other_until_the_time_is_up() {
        check(&[0], &[(10, 30, 1, 10), (10, 30, 1, 10), (10, 30, 1, 10), (10, 30, 1, 10)], &[3]);
        check(&[0, 0], &[(10, 30, 1, 10), (10, 30, 1, 10), (10, 30, 1, 10), (10, 30, 1, 10)], &[]);
    }

    #[test]
    fn a_unit_that_is_free_too_late_is_none() {
        check(&[], &[(10, 30, 1, 10)], &[0]);
        check(&[30], &[(10, 30, 1, 10)], &[]);
        check(&[31], &[(10, 30, 1, 10)], &[0]);
    }

    #[test]
    fn a_large_one_needs_all_its_units_at_once_and_takes_none_if_it_is_too_late() {
        check(&[0, 20], &[(10, 30, 2, 10), (10, 40, 1, 5)], &[]);
        check(&[0, 20], &[(10, 19, 2, 10), (10, 12, 1, 5)], &[0]);
        check(&[0], &[(10, 19, 2, 10), (10, 12, 1, 5)], &[0]);
    }
}

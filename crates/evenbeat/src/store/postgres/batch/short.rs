//! The short path: one statement is the whole transaction, for ordinary runs.
//!
//! The long path locks the jobs of a batch, reads them, decides, and writes. Here the server compares and sets: it
//! changes the row that it finds by index. Rows that don't match are left alone, whatever the reason, and the long
//! path decides about them in another transaction. That is correct because the claims and ends of a batch don't
//! depend on each other, except those that name the same job or run. Those all take the long path, in order.
//!
//! # Why a definition that is read beside the compare-and-set belongs to it
//!
//! A statement sees all tables as they were when it began. If a row of `memory` is locked, the statement waits, and
//! then reads that row again if it has changed, but no other row. Every change of a job raises the version in `memory`,
//! in the same transaction, and no version is used twice. So if the version is the expected one in both reads, nothing
//! about the job has changed between them. If the row has changed at all, its version no longer matches, and the
//! statement leaves it alone.
//!
//! # Why the server finds each row by its index, in the order of the batch
//!
//! Locks must be taken in one order, and a plan that was made while a table was small must still be good when it is
//! large. A join by `=` may start on either side, and starts with the table if that is small. `= ANY(ARRAY[..])` with
//! one value can only use an index, once for each row of the other side, in the order of that side; `IS NOT DISTINCT
//! FROM` can only be a filter. If several indexes have the column, but only one starts with it, they all cost the
//! same as long as the table seems empty; but only that one can find the first row in the order of the column. Other
//! plans, such as reading a whole table, [are disabled](crate::store::postgres::config::PgConfig).
//!
//! # Why the epoch cannot change under it
//!
//! A transaction that reads the table of epochs holds a lock on it until it commits, and [a new
//! epoch](crate::store::postgres::PgStore::new_epoch) waits for all of those. A server that was just promoted has no
//! such transactions. Whether the session is alive is checked once, at the start, as on the long path. A session that
//! is fenced a moment later may own a run that never starts; it is released together with the other runs of that
//! session.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use evenbeat_core::ids::{JobKey, RunId};
use tokio_postgres::Row;

use crate::store::postgres::PgStore;
use crate::store::postgres::connect::ConnectionUse;
use crate::store::postgres::error::PgError;
use crate::store::postgres::transaction::{Param, Statement, Transaction};

/// How many claims and ends took which path, since the handle was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCounts {
    /// Answered on the short path.
    pub n_short: u64,
    /// Answered on the long path.
    pub n_long: u64,
}

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct PathCounters {
    n_short: AtomicU64,
    n_long: AtomicU64,
}

impl PathCounters {
    pub(super) fn add(&self, n_short: usize, n_long: usize) {
        self.n_short.fetch_add(n_short as u64, Ordering::Relaxed);
        self.n_long.fetch_add(n_long as u64, Ordering::Relaxed);
    }
}

impl PgStore {
    /// How many claims and ends took which path.
    pub fn path_counts(&self) -> PathCounts {
        let counters = &self.inner.path_counters;
        PathCounts {
            n_short: counters.n_short.load(Ordering::Relaxed),
            n_long: counters.n_long.load(Ordering::Relaxed),
        }
    }
}

/// The elements of a batch whose job is named only once, with their positions, by key: locks are taken in that order.
/// Nothing if two name the same run.
pub(super) fn by_key<T>(
    batch: &[T],
    key: impl Fn(&T) -> &JobKey,
    run: impl Fn(&T) -> RunId,
) -> impl Iterator<Item = (usize, &T)> {
    let mut runs: Vec<RunId> = batch.iter().map(run).collect();
    runs.sort_unstable();
    runs.dedup();
    let mut by_key: Vec<(usize, &T)> =
        if runs.len() == batch.len() { batch.iter().enumerate().collect() } else { Vec::new() };
    by_key.sort_unstable_by(|one, other| key(one.1).cmp(key(other.1)));
    let mut once = Vec::with_capacity(by_key.len());
    for same in by_key.chunk_by(|one, other| key(one.1) == key(other.1)) {
        if let [it] = same {
            once.push(*it);
        }
    }
    once.into_iter()
}

/// Most parts of a large batch. Each has its own connection, so that the server uses several cores, and works on one
/// part while the answer to another is read.
const N_PARTS: usize = 4;
/// Smallest size of a part. A smaller one would cost more than it saves, because each part is a transaction.
const PART_MIN: usize = 250;

/// The parts of a batch. The last ones may be empty.
pub(super) fn parts<T>(batch: &[T]) -> [&[T]; N_PARTS] {
    let n_parts = (batch.len() / PART_MIN).clamp(1, N_PARTS);
    let mut parts = batch.chunks(batch.len().div_ceil(n_parts).max(1));
    array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Runs all parts of a batch at once, and joins the answers.
pub(super) async fn ask_parts<'a, T, A, F>(
    batch: &'a [T],
    ask: impl Fn(&'a [T]) -> F,
) -> Result<Vec<A>, PgError>
where
    F: Future<Output = Result<Vec<A>, PgError>>,
{
    match parts(batch) {
        [one, [], ..] => ask(one).await,
        parts => {
            let [one, two, three, four] = parts.map(|part| Box::pin(ask(part)));
            let (one, two, three, four) = tokio::try_join!(one, two, three, four)?;
            Ok([one, two, three, four].into_iter().flatten().collect())
        }
    }
}

/// Whether a request may be repeated when it is unknown whether it was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The run identifies it, so it gets the same answer.
    Harmless,
    /// The second answer would be different.
    Never,
}

/// Runs a statement on the short path. `None` if nothing was written and the long path must decide.
pub(super) async fn ask(
    store: &PgStore,
    repeat: Repeat,
    query: &Statement,
    params: &[Param<'_>],
) -> Result<Option<Vec<Row>>, PgError> {
    let tx = Transaction::new(store, ConnectionUse::Runs).await?;
    match tx.query_alone(query, params).await {
        Ok(rows) => {
            tx.give_back();
            Ok(Some(rows))
        }
        Err(fail) => {
            let is_unsure = tx.was_committing() && repeat == Repeat::Never;
            if fail.is_undone(is_unsure) || fail.is_taken() { Ok(None) } else { Err(fail) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(n: usize, expected: [usize; N_PARTS]) {
        let batch: Vec<usize> = (0..n).collect();
        let parts = parts(&batch);
        assert_eq!(parts.map(<[usize]>::len), expected, "{n}");
        assert_eq!(parts.concat(), batch, "{n}");
    }

    #[track_caller]
    fn check_by_key(batch: &[(&str, u128)], expected: &[usize]) {
        let batch: Vec<(JobKey, RunId)> =
            batch.iter().map(|(key, run)| (key.parse().unwrap(), RunId(*run))).collect();
        let found: Vec<usize> = by_key(&batch, |it| &it.0, |it| it.1).map(|(place, _)| place).collect();
        assert_eq!(found, expected, "{batch:?}");
    }

    #[test]
    fn what_names_a_job_or_a_run_twice_goes_the_long_way() {
        check_by_key(&[], &[]);
        check_by_key(&[("c", 1), ("a", 2), ("b", 3)], &[1, 2, 0]);
        check_by_key(&[("c", 1), ("a", 2), ("c", 3), ("b", 4)], &[1, 3]);
        check_by_key(&[("c", 1), ("a", 2), ("b", 1)], &[]);
    }

    #[test]
    fn a_large_batch_is_cut_into_parts() {
        check(0, [0, 0, 0, 0]);
        check(1, [1, 0, 0, 0]);
        check(499, [499, 0, 0, 0]);
        check(500, [250, 250, 0, 0]);
        check(501, [251, 250, 0, 0]);
        check(999, [333, 333, 333, 0]);
        check(1_000, [250, 250, 250, 250]);
        check(1_001, [251, 251, 251, 248]);
    }
}

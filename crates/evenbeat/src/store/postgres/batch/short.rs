//! The short way: one statement is the whole transaction, for runs with nothing out of the ordinary about them.
//!
//! The long way locks the jobs of a batch, reads them, decides, and writes. Here the server compares and sets by
//! itself: the row that it finds by its index is the one that it changes. What does not match is left alone, whatever
//! the reason, and the long way decides about it in a transaction of its own. That is right because the claims and ends
//! of a batch do not depend on each other, except those that name the same job or run: of such, all go the long way,
//! in their order.
//!
//! # Why a definition that is read beside the compare-and-set belongs to it
//!
//! A statement sees all tables as they were when it began. It then waits for the row of a memory if another has locked
//! it, and looks at that row anew if it was changed meanwhile, but at no other. Every change of a job raises the version
//! in its memory, in the same transaction, and no version comes again. So if the version is the one that was seen by the
//! asker in both looks, nothing about the job has changed between them; and if the row was changed at all, its version
//! no longer matches, and the statement leaves it alone.
//!
//! # Why the server finds each row by its index, in the order in which it is named
//!
//! Locks must be taken in one order, and a plan that was made while a table was small must do when it is large. A join
//! by `=` may begin on either side, and begins with the table if that is small. `= ANY(ARRAY[..])` of one value can
//! only be looked up in an index, once for each row of the other side, in that side's order; `IS NOT DISTINCT FROM`
//! can only be tested. Where several indexes have the column, though only one begins with it, all look alike as long as
//! the table is thought to be empty; the first row in the order of the column can only come from the one. What is left,
//! such as to read a whole table, [is switched off](crate::store::postgres::config::PgConfig).
//!
//! # Why the epoch cannot change under it
//!
//! Whoever reads the table of epochs holds a lock on it until it commits, and [a new
//! epoch](crate::store::postgres::PgStore::new_epoch) waits for all of those. A server that was just promoted has no
//! such transactions. That the session lives is looked at once, at the beginning, as on the long way: a session that is
//! fenced off a moment later may own a run that nobody starts, and whoever released its other runs releases that one too.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use evenbeat_core::ids::{JobKey, RunId};
use tokio_postgres::Row;

use crate::store::postgres::PgStore;
use crate::store::postgres::connect::Lane;
use crate::store::postgres::fail::Fail;
use crate::store::postgres::tx::{Param, Query, Tx};

/// How many claims and ends went which way, since the handle was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Answered by the one statement.
    pub n_short: u64,
    /// Answered by the long way.
    pub n_long: u64,
}

#[derive(Debug, Default)]
pub(in crate::store::postgres) struct WaysCounted {
    n_short: AtomicU64,
    n_long: AtomicU64,
}

impl WaysCounted {
    pub(super) fn add(&self, n_short: usize, n_long: usize) {
        self.n_short.fetch_add(n_short as u64, Ordering::Relaxed);
        self.n_long.fetch_add(n_long as u64, Ordering::Relaxed);
    }
}

impl PgStore {
    /// How many claims and ends went which way.
    pub fn ways(&self) -> Ways {
        let ways = &self.inner.ways;
        Ways { n_short: ways.n_short.load(Ordering::Relaxed), n_long: ways.n_long.load(Ordering::Relaxed) }
    }
}

/// Those of a batch that do not name the same job as another, with their places, by key: locks are taken in that order.
/// None at all if two name the same run.
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

/// A large batch is asked in up to so many parts at once, each on a connection of its own: the server works on one while
/// the answer to another is read, and with more than one of its cores.
const N_PARTS: usize = 4;
/// A part with fewer would cost more than it saves: each is a transaction that must reach the disk.
const PART_MIN: usize = 250;

/// The parts of a batch; the last ones may be empty.
pub(super) fn parts<T>(batch: &[T]) -> [&[T]; N_PARTS] {
    let n_parts = (batch.len() / PART_MIN).clamp(1, N_PARTS);
    let mut parts = batch.chunks(batch.len().div_ceil(n_parts).max(1));
    array::from_fn(|_| parts.next().unwrap_or_default())
}

/// Asks all parts of a batch at once, and puts the answers together.
pub(super) async fn ask_parts<'a, T, A, F>(batch: &'a [T], ask: impl Fn(&'a [T]) -> F) -> Result<Vec<A>, Fail>
where
    F: Future<Output = Result<Vec<A>, Fail>>,
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

/// Whether a request may be asked again when nobody knows whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It is known by its run, and gets the same answer.
    Harmless,
    /// The second answer would be another.
    Never,
}

/// Asks on the short way; none if nothing was written, and the long way must decide.
pub(super) async fn ask(
    store: &PgStore,
    repeat: Repeat,
    query: &Query,
    params: &[Param<'_>],
) -> Result<Option<Vec<Row>>, Fail> {
    let tx = Tx::new(store, Lane::Runs).await?;
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

//! The feed of changes: first all jobs, by id, then the changes since the load began.
//!
//! A cursor is a token for a position that this handle remembers. A reader that was away for longer than changes are
//! kept starts over.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use evenbeat_core::store::{Changes, Cursor, JobNews, Version};
use evenbeat_core::time::{Duration, Timestamp};
use rusqlite::{OptionalExtension, Result, Row, params};

use super::read_tx::ReadTx;
use super::rows;
use super::sql::memory_columns;
use crate::store::columns::{number, small_number, stored_number};
use crate::store::definition::broken_state;

/// Most positions that are remembered. Those that were used last stay, because a reader that loads a million jobs
/// page by page must not displace the others.
const TOKENS_MAX: usize = 4_096;

/// How long changes are kept.
pub(super) const CHANGES_KEPT_FOR: Duration = Duration::from_hours(1);

/// The position of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeedPosition {
    /// It has all jobs up to this id, and started when this was the last change.
    Loading { after_id: i64, begun_at: i64 },
    /// It has read all changes up to this one.
    Following { position: i64 },
}

/// The positions behind the cursors of this handle.
pub(super) struct Tokens {
    next: u64,
    n_uses: u64,
    /// Each with the number of its last use.
    places: BTreeMap<u64, (FeedPosition, u64)>,
}

impl Tokens {
    /// Tokens of an earlier process must not be valid in this one, so they start from the time.
    pub(super) fn new(now: Timestamp) -> Tokens {
        Tokens { next: number(now.as_millis()) << 20, n_uses: 0, places: BTreeMap::new() }
    }

    fn place(&mut self, token: u64) -> Option<FeedPosition> {
        self.n_uses += 1;
        let (place, used) = self.places.get_mut(&token)?;
        *used = self.n_uses;
        Some(*place)
    }

    fn give(&mut self, place: FeedPosition) -> u64 {
        let token = self.next;
        self.next += 1;
        self.n_uses += 1;
        if TOKENS_MAX <= self.places.len() {
            let oldest = self.places.iter().min_by_key(|(_, (_, used))| *used).map(|(token, _)| *token);
            oldest.map(|oldest| self.places.remove(&oldest));
        }
        self.places.insert(token, (place, self.n_uses));
        token
    }
}

impl ReadTx<'_> {
    pub(super) fn find_changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes> {
        let (epoch, _) = self.find_epoch()?;
        let place = match since {
            None => Some(FeedPosition::Loading { after_id: 0, begun_at: self.last_position()? }),
            Some(cursor) if cursor.epoch != epoch => None,
            Some(cursor) => self.place(cursor.position),
        };
        let Some(place) = place else { return Ok(Changes::Reset) };
        let (rows, next, is_last) = match place {
            FeedPosition::Loading { after_id, begun_at } => self.load(after_id, begun_at, most)?,
            FeedPosition::Following { position } if self.is_forgotten(position)? => {
                return Ok(Changes::Reset);
            }
            FeedPosition::Following { position } => self.follow(position, most)?,
        };
        let next = match since {
            Some(cursor) if next == place => cursor,
            _ => Cursor { epoch, position: self.remember(next) },
        };
        Ok(Changes::Rows { rows, next, is_last })
    }

    fn place(&self, token: u64) -> Option<FeedPosition> {
        self.context.tokens.lock().unwrap_or_else(PoisonError::into_inner).place(token)
    }

    fn remember(&self, place: FeedPosition) -> u64 {
        self.context.tokens.lock().unwrap_or_else(PoisonError::into_inner).give(place)
    }

    /// The position of the last change, which is always kept. 0 if there was no change.
    pub(super) fn last_position(&self) -> Result<i64> {
        self.one("SELECT ifnull(max(position), 0) FROM change", [], |row| row.get(0))
    }

    /// Whether changes after this one were trimmed.
    fn is_forgotten(&self, position: i64) -> Result<bool> {
        let first: Option<i64> =
            self.one("SELECT min(position) FROM change", [], |row| row.get(0)).optional()?.flatten();
        Ok(first.is_some_and(|first| position < first - 1))
    }

    fn load(&self, after_id: i64, begun_at: i64, most: usize) -> Result<(Vec<JobNews>, FeedPosition, bool)> {
        let mut statement = self.prepared(concat!(
            "SELECT j.id, j.key, j.terms, j.target, j.is_deleted, m.version, m.n_open, ",
            memory_columns!(),
            "
             FROM job j JOIN memory m ON m.job_id = j.id WHERE ?1 < j.id ORDER BY j.id LIMIT ?2"
        ))?;
        let mut found = statement.query(params![after_id, limit(most) + 1])?;
        let (mut rows, mut last_id) = (Vec::new(), after_id);
        while let Some(row) = found.next()? {
            if rows.len() == most {
                return Ok((rows, FeedPosition::Loading { after_id: last_id, begun_at }, false));
            }
            last_id = row.get(0)?;
            rows.push(self.news(row)?);
        }
        Ok((rows, FeedPosition::Following { position: begun_at }, self.last_position()? == begun_at))
    }

    /// A page of changes, each job once. Reads only as many changes of a burst as it returns.
    fn follow(&self, position: i64, most: usize) -> Result<(Vec<JobNews>, FeedPosition, bool)> {
        let mut statement = self.prepared(concat!(
            "SELECT c.last, j.key, j.terms, j.target, j.is_deleted, m.version, m.n_open, ",
            memory_columns!(),
            "
             FROM (SELECT max(position) AS last, job_id
                   FROM (SELECT position, job_id FROM change WHERE ?1 < position ORDER BY position LIMIT ?2)
                   GROUP BY job_id) c
             JOIN job j ON j.id = c.job_id JOIN memory m ON m.job_id = j.id ORDER BY c.last"
        ))?;
        let mut found = statement.query(params![position, limit(most)])?;
        let (mut rows, mut position) = (Vec::new(), position);
        while let Some(row) = found.next()? {
            position = row.get(0)?;
            rows.push(self.news(row)?);
        }
        Ok((rows, FeedPosition::Following { position }, self.last_position()? <= position))
    }

    pub(super) fn news(&self, row: &Row<'_>) -> Result<JobNews> {
        let text = row.get_ref(2)?;
        let (terms, unreadable) = match self.context.terms.cached(text.as_bytes()?) {
            Some(terms) => (terms, None),
            None => self.context.terms.terms_or_broken(text.as_str()?),
        };
        let state = rows::memory(row, 7)?;
        Ok(JobNews {
            key: rows::key(row, 1)?,
            terms,
            is_published: row.get_ref(3)?.as_bytes()? == b"queue",
            state: match unreadable {
                None => state,
                Some(unreadable) => broken_state(state, unreadable),
            },
            version: Version(number(row.get(5)?)),
            n_open: small_number(row.get(6)?),
            is_deleted: row.get(4)?,
        })
    }
}

/// A limit of rows as an SQL number.
pub(super) fn limit(most: usize) -> i64 {
    stored_number(u64::try_from(most).unwrap_or(u64::MAX)).min(i64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_was_used_longest_ago_is_forgotten() {
        let mut tokens = Tokens::new(Timestamp::UNIX_EPOCH);
        let place = |position: i64| FeedPosition::Following { position };
        let first = tokens.give(place(1));
        let second = tokens.give(place(2));
        for position in 3..i64::try_from(TOKENS_MAX).unwrap() {
            tokens.give(place(position));
        }
        assert_eq!(tokens.place(first), Some(place(1)));
        let (one, other) = (tokens.give(place(-1)), tokens.give(place(-2)));
        assert_eq!(tokens.place(second), None);
        for (token, position) in [(first, 1), (one, -1), (other, -2)] {
            assert_eq!(tokens.place(token), Some(place(position)));
        }
    }
}

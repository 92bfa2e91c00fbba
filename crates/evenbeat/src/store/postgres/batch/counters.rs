//! Limits that span nodes, as a batch of claims reads and changes them.

use std::collections::{BTreeMap, VecDeque};

use evenbeat_core::ids::RunId;
use evenbeat_core::store::{CounterKey, Take};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::store::counter_room::{CounterRoom, HOUR};
use crate::store::postgres::error::PgError;
use crate::store::postgres::rows::{counter_key, counter_row};
use crate::store::postgres::transaction::{Statement, Transaction};

const PAIRS: &[Type] = &[Type::TEXT_ARRAY, Type::TEXT_ARRAY];

/// Creates missing counters, so that they can be locked.
pub(super) static ADD_COUNTERS: Statement = Statement {
    sql: "INSERT INTO counter (kind, key, n_open) \
          SELECT u.kind, u.key, 0 FROM unnest($1::text[], $2::text[]) AS u(kind, key) \
          WHERE NOT EXISTS (SELECT FROM counter c WHERE c.kind = u.kind AND c.key = u.key) \
          ORDER BY u.kind, u.key COLLATE \"C\" ON CONFLICT DO NOTHING",
    types: PAIRS,
};

pub(super) static LOCK_COUNTERS: Statement = Statement {
    sql: "SELECT c.kind, c.key, c.n_open, c.last_claim_at FROM counter c \
          JOIN unnest($1::text[], $2::text[]) AS u(kind, key) ON c.kind = u.kind AND c.key = u.key COLLATE \"C\" \
          ORDER BY c.kind, c.key FOR UPDATE OF c",
    types: PAIRS,
};

/// The latest claims of the last hour, as many as the limit needs.
pub(super) static CLAIMS_OF_HOUR: Statement = Statement {
    sql: "SELECT u.kind, u.key, l.claimed_at \
          FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u(kind, key, most) \
          CROSS JOIN LATERAL (SELECT claimed_at FROM counter_claim c \
            WHERE c.kind = u.kind AND c.key = u.key COLLATE \"C\" AND now_ms() - 3600000 < c.claimed_at \
            ORDER BY claimed_at DESC LIMIT coalesce(u.most, 0)) l \
          ORDER BY l.claimed_at",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY],
};

pub(super) static WRITE_COUNTERS: Statement = Statement {
    sql: "UPDATE counter c SET n_open = c.n_open + u.n, last_claim_at = $4 \
          FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u(kind, key, n) \
          WHERE c.kind = u.kind AND c.key = u.key COLLATE \"C\"",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8],
};

/// Stores the claims, and removes those that are more than an hour old.
pub(super) static WRITE_CLAIMS: Statement = Statement {
    sql: "WITH old AS (\
            DELETE FROM counter_claim c USING unnest($1::text[], $2::text[]) AS u(kind, key) \
            WHERE c.kind = u.kind AND c.key = u.key COLLATE \"C\" AND c.claimed_at <= $4 - 3600000) \
          INSERT INTO counter_claim (kind, key, claimed_at, run_id) \
          SELECT u.kind, u.key, $4, u.run_id FROM unnest($1::text[], $2::text[], $3::uuid[]) AS u(kind, key, run_id) \
          ON CONFLICT DO NOTHING",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY, Type::INT8],
};

#[derive(Debug, Default)]
struct Counter {
    n_open: u32,
    last_claim_at: Option<Timestamp>,
    /// The latest claims of the last hour, oldest first.
    claimed_at: VecDeque<Timestamp>,
}

/// The counters of a batch.
#[derive(Debug)]
pub(super) struct Counters {
    now: Timestamp,
    by_key: BTreeMap<CounterKey, Counter>,
    taken: Vec<(CounterKey, RunId)>,
}

/// The counters of a batch, and how many claims an hour the largest limit of each allows.
pub(super) struct RequestedCounters<'a>(BTreeMap<&'a CounterKey, Option<u32>>);

impl RequestedCounters<'_> {
    pub(super) fn columns(&self) -> (Vec<&str>, Vec<&str>, Vec<Option<i64>>) {
        let kinds = self.0.keys().map(|it| it.kind()).collect();
        let names = self.0.keys().map(|it| it.key()).collect();
        let most = self.0.values().map(|most| most.map(i64::from)).collect();
        (kinds, names, most)
    }
}

impl Counters {
    pub(super) fn requested<'a>(takes: impl Iterator<Item = &'a Take>) -> RequestedCounters<'a> {
        let mut requested: BTreeMap<&CounterKey, Option<u32>> = BTreeMap::new();
        for Take { counter, limit } in takes {
            let most = requested.entry(counter).or_default();
            *most = (*most).max(limit.max_per_hour);
        }
        RequestedCounters(requested)
    }

    pub(super) fn read(counted: &[Row], hourly: &[Row], now: Timestamp) -> Result<Counters, PgError> {
        let mut counters = BTreeMap::new();
        for row in counted {
            let found = counter_row(row)?;
            let counter =
                Counter { n_open: found.n_open, last_claim_at: found.last_claim_at, ..Counter::default() };
            counters.insert(found.counter, counter);
        }
        for row in hourly {
            let claimed_at = Timestamp::from_millis(row.try_get(2)?);
            let counter: &mut Counter = counters.entry(counter_key(row)?).or_default();
            counter.claimed_at.push_back(claimed_at);
        }
        Ok(Counters { now, by_key: counters, taken: Vec::new() })
    }

    pub(super) fn room(&self, Take { counter, limit }: &Take) -> CounterRoom {
        let unused = Counter::default();
        let counter = self.by_key.get(counter).unwrap_or(&unused);
        if limit.max_open.is_some_and(|most| most <= counter.n_open) || limit.max_per_hour == Some(0) {
            return CounterRoom::NotByTime;
        }
        let after_gap = limit.min_gap.and_then(|gap| Some(counter.last_claim_at? + gap));
        let in_hour = counter.claimed_at.iter().filter(|claimed_at| self.now < **claimed_at + HOUR);
        let after_hour = limit.max_per_hour.and_then(|most| {
            // With `most` claims allowed, the last but `most - 1` must be an hour old before there is room.
            let nth = usize::try_from(most).ok()?.checked_sub(1)?;
            in_hour.rev().nth(nth).map(|claimed_at| *claimed_at + HOUR)
        });
        CounterRoom::after(after_gap.max(after_hour), self.now)
    }

    pub(super) fn take(&mut self, key: &CounterKey, run: RunId) {
        let counter = self.by_key.entry(key.clone()).or_default();
        counter.n_open += 1;
        counter.last_claim_at = Some(self.now);
        counter.claimed_at.push_back(self.now);
        self.taken.push((key.clone(), run));
    }

    pub(super) async fn write(&self, tx: &Transaction) -> Result<(), PgError> {
        let mut n_taken: BTreeMap<&CounterKey, i64> = BTreeMap::new();
        for (counter, _) in &self.taken {
            *n_taken.entry(counter).or_default() += 1;
        }
        let kind: Vec<&str> = n_taken.keys().map(|it| it.kind()).collect();
        let key: Vec<&str> = n_taken.keys().map(|it| it.key()).collect();
        let n: Vec<i64> = n_taken.values().copied().collect();
        let claim_kind: Vec<&str> = self.taken.iter().map(|(it, _)| it.kind()).collect();
        let claim_key: Vec<&str> = self.taken.iter().map(|(it, _)| it.key()).collect();
        let run: Vec<Uuid> = self.taken.iter().map(|(_, run)| Uuid::from_u128(run.0)).collect();
        let at = self.now.as_millis();
        let is_any = !self.taken.is_empty();
        tokio::try_join!(
            biased;
            tx.query_if(is_any, &WRITE_COUNTERS, [&kind, &key, &n, &at]),
            tx.query_if(is_any, &WRITE_CLAIMS, [&claim_kind, &claim_key, &run, &at]),
        )?;
        Ok(())
    }
}

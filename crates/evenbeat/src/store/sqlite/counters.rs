//! Limits that span jobs. Their rows change only together with the run that takes or frees them.

use std::collections::BTreeMap;

use evenbeat_core::ids::RunId;
use evenbeat_core::store::{CounterKey, CounterRow, Take};
use evenbeat_core::time::{CLOCK_SLACK, Timestamp};
use rusqlite::{OptionalExtension, Result, params};

use super::rows::Id;
use super::write_tx::WriteTx;
use crate::store::columns::small_number;
use crate::store::counter_room::{CounterRoom, HOUR};

impl WriteTx<'_> {
    pub(super) fn room(&self, Take { counter, limit }: &Take) -> Result<CounterRoom> {
        let (kind, key) = (counter.kind(), counter.key());
        let sql = "SELECT n_open, last_claim_at FROM counter WHERE kind = ?1 AND key = ?2";
        let found = self.read.one(sql, [kind, key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (n_open, last_claim_at): (i64, Option<i64>) = found.unwrap_or_default();
        let is_full = limit.max_open.is_some_and(|most| most <= small_number(n_open));
        if is_full || limit.max_per_hour == Some(0) {
            return Ok(CounterRoom::NotByTime);
        }
        let last_claim_at = last_claim_at.map(Timestamp::from_millis);
        let after_gap = limit.min_gap.and_then(|gap| Some(last_claim_at? + gap));
        let after_hour = match limit.max_per_hour {
            None => None,
            // With `most` claims allowed, the last but `most - 1` must be an hour old before there is room.
            Some(most) => {
                let sql =
                    "SELECT claimed_at FROM counter_claim WHERE kind = ?1 AND key = ?2 AND ?3 < claimed_at
                           ORDER BY claimed_at DESC LIMIT 1 OFFSET ?4";
                let hour_ago = (self.now - HOUR).as_millis();
                let args = params![kind, key, hour_ago, most - 1];
                let oldest: Option<i64> = self.read.one(sql, args, |row| row.get(0)).optional()?;
                oldest.map(|claimed_at| Timestamp::from_millis(claimed_at) + HOUR)
            }
        };
        Ok(CounterRoom::after(after_gap.max(after_hour), self.now))
    }

    pub(super) fn take(&mut self, counter: &CounterKey, run: RunId) -> Result<()> {
        let (kind, key, now) = (counter.kind(), counter.key(), self.now);
        self.run(
            "INSERT INTO counter (kind, key, n_open, last_claim_at) VALUES (?1, ?2, 1, ?3)
             ON CONFLICT (kind, key) DO UPDATE SET n_open = n_open + 1, last_claim_at = excluded.last_claim_at",
            params![kind, key, now.as_millis()],
        )?;
        self.run(
            "DELETE FROM counter_claim WHERE kind = ?1 AND key = ?2 AND claimed_at <= ?3",
            params![kind, key, (now - HOUR).as_millis()],
        )?;
        self.run(
            "INSERT INTO counter_claim (kind, key, claimed_at, run_id) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
            params![kind, key, now.as_millis(), Id::of(run.0)],
        )?;
        Ok(())
    }

    pub(super) fn free_counter(&mut self, counter: &CounterKey) -> Result<()> {
        let sql = "UPDATE counter SET n_open = max(n_open - 1, 0) WHERE kind = ?1 AND key = ?2";
        self.run(sql, [counter.kind(), counter.key()])?;
        Ok(())
    }

    pub(super) fn do_recount(&mut self) -> Result<Vec<CounterRow>> {
        let mut held: BTreeMap<CounterKey, u32> = BTreeMap::new();
        for counter in self.read.held_counters()? {
            *held.entry(counter).or_default() += 1;
        }
        let mut wrong = Vec::new();
        for row in self.read.find_counters()? {
            let n_open = held.get(&row.counter).copied().unwrap_or(0);
            if row.n_open != n_open {
                let sql = "UPDATE counter SET n_open = ?3 WHERE kind = ?1 AND key = ?2";
                self.run(sql, params![row.counter.kind(), row.counter.key(), n_open])?;
                wrong.push(row);
            }
        }
        let (now, latest) = (self.now.as_millis(), (self.now + CLOCK_SLACK).as_millis());
        self.run("UPDATE counter SET last_claim_at = ?1 WHERE ?2 < last_claim_at", [now, latest])?;
        self.run("UPDATE counter_claim SET claimed_at = ?1 WHERE ?2 < claimed_at", [now, latest])?;
        Ok(wrong)
    }
}

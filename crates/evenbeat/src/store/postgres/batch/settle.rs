//! What time alone has changed about jobs.

use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Settle, SettleAnswer, StoreDown};
use uuid::Uuid;

use super::records::{WRITE_RECORDS, write_records};
use super::{Jobs, LOCK_JOBS, READ_JOBS, WRITE_JOBS, keys};
use crate::store::postgres::PgStore;
use crate::store::postgres::connect::Lane;
use crate::store::postgres::epoch::{REIGN, reign};
use crate::store::postgres::fail::Fail;
use crate::store::postgres::rows::Reader;
use crate::store::postgres::sessions::LIVING;
use crate::store::postgres::tx::{Tx, transact};

impl PgStore {
    /// Writes what time alone has changed about jobs.
    pub async fn settle(
        &self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        transact!(self, Lane::Pool, |tx| run(&tx, &self.inner.reader, me, epoch, settles))
    }
}

async fn run(
    tx: &Tx,
    reader: &Reader,
    me: SessionId,
    epoch: Epoch,
    settles: &[Settle],
) -> Result<Vec<SettleAnswer>, Fail> {
    let keys = keys(settles.iter().map(|it| &it.key));
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&REIGN, &LIVING, &LOCK_JOBS, &READ_JOBS, &WRITE_JOBS, &WRITE_RECORDS]).await?;
    let ((), reigning, living, _, rows) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&REIGN, []),
        tx.query(&LIVING, [&id]),
        tx.query(&LOCK_JOBS, [&keys]),
        tx.query(&READ_JOBS, [&keys]),
    )?;
    let reign = reign(&reigning)?;
    if !reign.is_current_and_open(epoch) || living.is_empty() {
        tx.rollback().await?;
        return Ok(vec![SettleAnswer::Refused; settles.len()]);
    }
    let mut jobs = Jobs::read(reader, &rows, &reign)?;
    let answers = settles.iter().map(|settle| settle_one(&mut jobs, settle)).collect();
    let changed = jobs.changed();
    tokio::try_join!(biased; changed.write(tx), write_records(tx, &jobs), tx.commit())?;
    Ok(answers)
}

fn settle_one(jobs: &mut Jobs, settle: &Settle) -> SettleAnswer {
    let Some(mut row) = jobs.row(&settle.key) else { return SettleAnswer::Gone };
    if row.is_deleted || row.version != settle.seen {
        return SettleAnswer::Stale(row);
    }
    let owner = row.state.owner.take();
    row.state = settle.state.clone();
    row.state.owner = owner;
    SettleAnswer::Settled(jobs.write(&settle.key, row, &settle.records))
}

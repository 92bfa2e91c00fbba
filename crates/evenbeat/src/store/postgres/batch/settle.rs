//! Changes of jobs by time alone.

use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Settle, SettleAnswer, StoreDown};
use uuid::Uuid;

use super::records::{WRITE_RECORDS, write_records};
use super::{BatchJobs, LOCK_JOBS, READ_JOBS, WRITE_JOBS, keys};
use crate::store::postgres::PgStore;
use crate::store::postgres::connect::ConnectionUse;
use crate::store::postgres::epoch::{CURRENT_EPOCH, read_epoch};
use crate::store::postgres::error::PgError;
use crate::store::postgres::rows::RowReader;
use crate::store::postgres::sessions::LIVING;
use crate::store::postgres::transaction::{Transaction, transact};

impl PgStore {
    /// Writes state that changed with time alone.
    pub async fn settle(
        &self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| run(&tx, &self.inner.reader, me, epoch, settles))
    }
}

async fn run(
    tx: &Transaction,
    reader: &RowReader,
    me: SessionId,
    epoch: Epoch,
    settles: &[Settle],
) -> Result<Vec<SettleAnswer>, PgError> {
    let keys = keys(settles.iter().map(|it| &it.key));
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&CURRENT_EPOCH, &LIVING, &LOCK_JOBS, &READ_JOBS, &WRITE_JOBS, &WRITE_RECORDS]).await?;
    let ((), epoch_rows, living, _, rows) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&CURRENT_EPOCH, []),
        tx.query(&LIVING, [&id]),
        tx.query(&LOCK_JOBS, [&keys]),
        tx.query(&READ_JOBS, [&keys]),
    )?;
    let current = read_epoch(&epoch_rows)?;
    if !current.is_current_and_open(epoch) || living.is_empty() {
        tx.rollback().await?;
        return Ok(vec![SettleAnswer::Refused; settles.len()]);
    }
    let mut jobs = BatchJobs::read(reader, &rows, &current)?;
    let answers = settles.iter().map(|settle| settle_one(&mut jobs, settle)).collect();
    let changed = jobs.changed();
    tokio::try_join!(biased; changed.write(tx), write_records(tx, &jobs), tx.commit())?;
    Ok(answers)
}

fn settle_one(jobs: &mut BatchJobs, settle: &Settle) -> SettleAnswer {
    let Some(mut row) = jobs.row(&settle.key) else { return SettleAnswer::Gone };
    if row.is_deleted || row.version != settle.seen {
        return SettleAnswer::Stale(row);
    }
    let owner = row.state.owner.take();
    row.state = settle.state.clone();
    row.state.owner = owner;
    SettleAnswer::Settled(jobs.write(&settle.key, row, &settle.records))
}

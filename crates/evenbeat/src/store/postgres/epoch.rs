//! Epochs: they change when a failover or a restored backup may have lost commits.
//!
//! The server's timeline changes when a standby becomes the primary. A node that finds a timeline other than that of
//! the latest epoch creates a new epoch, which is closed. Only the first epoch starts open.

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::transaction::{Statement, Transaction, transact};
use crate::store::columns::{number, stored_number};

/// Reads the timeline from the server's files.
macro_rules! read_timeline {
    () => {
        "(SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) \
          FROM pg_control_system())"
    };
}

/// The server's timeline. It cannot change while a connection to a primary lives, so without a pooler the connection
/// remembers it ([`REMEMBER`]).
macro_rules! timeline {
    () => {
        concat!(
            "coalesce(nullif(current_setting('evenbeat.timeline', true), ''), ",
            $crate::store::postgres::epoch::read_timeline!(),
            ")"
        )
    };
}
pub(super) use read_timeline;
pub(super) use timeline;

/// Runs when a connection is opened. Fails on a standby.
pub(super) const REMEMBER: &str =
    concat!("SELECT set_config('evenbeat.timeline', ", read_timeline!(), ", false)");

/// The latest epoch as a transaction sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentEpoch {
    pub(super) epoch: Epoch,
    pub(super) is_open: bool,
    pub(super) now: Timestamp,
}

impl CurrentEpoch {
    /// Whether claims, fencing and releases are allowed in this epoch.
    pub(super) fn is_current_and_open(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.is_open
    }
}

pub(super) static CURRENT_EPOCH: Statement = Statement {
    sql: concat!(
        "SELECT no, is_open, now_ms() FROM epoch \
         WHERE no = (SELECT max(no) FROM epoch) AND timeline = ",
        timeline!()
    ),
    types: &[],
};

static MAKE: Statement = Statement {
    sql: concat!(
        "INSERT INTO epoch (no, timeline, is_open, begun_at) \
         SELECT coalesce(max(no), 0) + 1, ",
        timeline!(),
        ", count(*) = 0, now_ms() FROM epoch \
         HAVING NOT coalesce((SELECT timeline FROM epoch ORDER BY no DESC LIMIT 1) = ",
        timeline!(),
        ", false) ON CONFLICT DO NOTHING"
    ),
    types: &[],
};

static ANOTHER: Statement = Statement {
    sql: concat!(
        "INSERT INTO epoch (no, timeline, is_open, begun_at) \
         SELECT coalesce(max(no), 0) + 1, ",
        timeline!(),
        ", false, now_ms() FROM epoch RETURNING no"
    ),
    types: &[],
};

static OPEN: Statement = Statement {
    sql: "UPDATE epoch SET is_open = true WHERE no = $1 AND no = (SELECT max(no) FROM epoch) RETURNING no",
    types: &[Type::INT8],
};

/// Reads the rows of [`CURRENT_EPOCH`].
pub(super) fn read_epoch(rows: &[Row]) -> Result<CurrentEpoch, PgError> {
    let row = rows.first().ok_or(PgError::NoEpoch)?;
    Ok(CurrentEpoch {
        epoch: Epoch(number(row.try_get(0)?)),
        is_open: row.try_get(1)?,
        now: Timestamp::from_millis(row.try_get(2)?),
    })
}

impl PgStore {
    /// Opens the current epoch after its quarantine. False if it is not the current one.
    pub async fn open_epoch(&self, epoch: Epoch) -> Result<bool, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| open(&tx, epoch))
    }

    /// Begins a new, closed epoch: for a database that was restored from a backup, while no node runs.
    pub async fn new_epoch(&self) -> Result<Epoch, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| another(&tx))
    }

    /// Creates the epoch of the server's timeline, unless it exists.
    pub(super) async fn make_epoch(&self) -> Result<(), PgError> {
        let tx = Transaction::new(self, ConnectionUse::Write).await?;
        tx.ready(&[&MAKE]).await?;
        tokio::try_join!(biased; tx.begin(), tx.query(&MAKE, []), tx.commit())?;
        tx.give_back();
        Ok(())
    }
}

async fn open(tx: &Transaction, epoch: Epoch) -> Result<bool, PgError> {
    tx.ready(&[&CURRENT_EPOCH, &OPEN]).await?;
    let ((), rows) = tokio::try_join!(biased; tx.begin(), tx.query(&CURRENT_EPOCH, []))?;
    let is_current = read_epoch(&rows)?.epoch == epoch;
    let no = stored_number(epoch.0);
    let (opened, ()) = tokio::try_join!(biased; tx.query_if(is_current, &OPEN, [&no]), tx.commit())?;
    Ok(!opened.is_empty())
}

/// Waits for all transactions that have read the epoch, so that none of them claims in an epoch that is over.
const WAIT_FOR_READERS: &str = "LOCK TABLE epoch IN ACCESS EXCLUSIVE MODE";

async fn another(tx: &Transaction) -> Result<Epoch, PgError> {
    tx.ready(&[&ANOTHER]).await?;
    let ((), (), rows, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.execute(WAIT_FOR_READERS),
        tx.query(&ANOTHER, []),
        tx.commit(),
    )?;
    let row = rows.first().ok_or(PgError::Retry)?;
    Ok(Epoch(number(row.try_get(0)?)))
}

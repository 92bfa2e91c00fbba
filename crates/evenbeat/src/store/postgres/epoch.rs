//! Epochs: which life of the database this is.
//!
//! The server's timeline changes at once when a standby becomes the primary. Whoever sees a timeline that the latest
//! epoch does not name makes a new epoch, and that one is closed; only the very first is born open.

use evenbeat_core::lease::Epoch;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::Lane;
use super::fail::Fail;
use super::tx::{Query, Tx, transact};
use crate::store::columns::{number, stored_number};

/// To ask for it reads a file each time.
macro_rules! asked_timeline {
    () => {
        "(SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) \
          FROM pg_control_system())"
    };
}

/// The server's timeline. It does not change as long as a connection to a primary lives, so a connection that is ours
/// remembers it ([`REMEMBER`]).
macro_rules! timeline {
    () => {
        concat!(
            "coalesce(nullif(current_setting('evenbeat.timeline', true), ''), ",
            $crate::store::postgres::epoch::asked_timeline!(),
            ")"
        )
    };
}
pub(super) use asked_timeline;
pub(super) use timeline;

/// To be asked when a connection begins; fails on a standby.
pub(super) const REMEMBER: &str =
    concat!("SELECT set_config('evenbeat.timeline', ", asked_timeline!(), ", false)");

/// The latest epoch as it is seen by a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reign {
    pub(super) epoch: Epoch,
    pub(super) is_open: bool,
    pub(super) now: Timestamp,
}

impl Reign {
    /// Whether claims, fencing and releases go through under this epoch.
    pub(super) fn is_current_and_open(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.is_open
    }
}

pub(super) static REIGN: Query = Query {
    sql: concat!(
        "SELECT no, is_open, now_ms() FROM epoch \
         WHERE no = (SELECT max(no) FROM epoch) AND timeline = ",
        timeline!()
    ),
    types: &[],
};

static MAKE: Query = Query {
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

static ANOTHER: Query = Query {
    sql: concat!(
        "INSERT INTO epoch (no, timeline, is_open, begun_at) \
         SELECT coalesce(max(no), 0) + 1, ",
        timeline!(),
        ", false, now_ms() FROM epoch RETURNING no"
    ),
    types: &[],
};

static OPEN: Query = Query {
    sql: "UPDATE epoch SET is_open = true WHERE no = $1 AND no = (SELECT max(no) FROM epoch) RETURNING no",
    types: &[Type::INT8],
};

/// What the answer to [`REIGN`] says.
pub(super) fn reign(rows: &[Row]) -> Result<Reign, Fail> {
    let row = rows.first().ok_or(Fail::NoEpoch)?;
    Ok(Reign {
        epoch: Epoch(number(row.try_get(0)?)),
        is_open: row.try_get(1)?,
        now: Timestamp::from_millis(row.try_get(2)?),
    })
}

impl PgStore {
    /// Opens the current epoch after its quarantine; false if it is not the current one.
    pub async fn open_epoch(&self, epoch: Epoch) -> Result<bool, StoreDown> {
        transact!(self, Lane::Pool, |tx| open(&tx, epoch))
    }

    /// Begins a new, closed epoch: for a database that was put back from a copy, while no node runs.
    pub async fn new_epoch(&self) -> Result<Epoch, StoreDown> {
        transact!(self, Lane::Pool, |tx| another(&tx))
    }

    /// Makes the epoch of the server's timeline, unless somebody has.
    pub(super) async fn make_epoch(&self) -> Result<(), Fail> {
        let tx = Tx::new(self, Lane::Pool).await?;
        tx.ready(&[&MAKE]).await?;
        tokio::try_join!(biased; tx.begin(), tx.query(&MAKE, []), tx.commit())?;
        tx.give_back();
        Ok(())
    }
}

async fn open(tx: &Tx, epoch: Epoch) -> Result<bool, Fail> {
    tx.ready(&[&REIGN, &OPEN]).await?;
    let ((), rows) = tokio::try_join!(biased; tx.begin(), tx.query(&REIGN, []))?;
    let is_current = reign(&rows)?.epoch == epoch;
    let no = stored_number(epoch.0);
    let (opened, ()) = tokio::try_join!(biased; tx.query_if(is_current, &OPEN, [&no]), tx.commit())?;
    Ok(!opened.is_empty())
}

/// Waits for everybody who has made sure of the epoch and is not done yet: nobody claims under an epoch that is over.
const WAIT_FOR_READERS: &str = "LOCK TABLE epoch IN ACCESS EXCLUSIVE MODE";

async fn another(tx: &Tx) -> Result<Epoch, Fail> {
    tx.ready(&[&ANOTHER]).await?;
    let ((), (), rows, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.execute(WAIT_FOR_READERS),
        tx.query(&ANOTHER, []),
        tx.commit(),
    )?;
    let row = rows.first().ok_or(Fail::Again)?;
    Ok(Epoch(number(row.try_get(0)?)))
}

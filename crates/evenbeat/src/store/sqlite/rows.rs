//! Rows of the tables as values, and back: which column stands where is known only here.

use evenbeat_core::ids::{JobKey, SessionId};
use evenbeat_core::job::JobState;
use evenbeat_core::missed::RecordRange;
use evenbeat_core::occurrence::{Record, RecordKind};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{RecordRow, RunRow, SessionKind, SessionRow, SessionSpec};
use evenbeat_core::time::Timestamp;
use rusqlite::types::{FromSql, ToSqlOutput, ValueRef};
use rusqlite::{Result, Row, ToSql};

use crate::store::columns::{DueColumns, EndedColumns, MemoryColumns, RunColumns, number, pools_from_text};
use crate::store::keyword::{Keyword, OpenPhase, ServesKind};

/// An id as the 16 bytes of a UUID, which sort as the number does.
#[derive(Clone, Copy)]
pub(super) struct Id([u8; 16]);

impl Id {
    pub(super) fn of(number: u128) -> Id {
        Id(number.to_be_bytes())
    }
}

impl ToSql for Id {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.0)))
    }
}

/// The upper bound of a page: an id, or something greater than all ids.
pub(super) fn before_or_all(id: Option<u128>) -> Vec<u8> {
    id.map_or_else(|| vec![0xff; 17], |id| id.to_be_bytes().to_vec())
}

pub(super) fn id(row: &Row<'_>, idx: usize) -> Result<u128> {
    row.get(idx).map(u128::from_be_bytes)
}

fn id_or_none(row: &Row<'_>, idx: usize) -> Result<Option<u128>> {
    Ok(row.get::<_, Option<[u8; 16]>>(idx)?.map(u128::from_be_bytes))
}

/// A keyword. An unknown one counts as missing: a gap in a row is better than a fleet that does not start.
pub(super) fn keyword<W: Keyword>(row: &Row<'_>, idx: usize) -> Result<Option<W>> {
    Ok(row.get_ref(idx)?.as_str_or_null()?.and_then(W::from_keyword))
}

pub(super) fn key(row: &Row<'_>, idx: usize) -> Result<JobKey> {
    parsed_key(row.get_ref(idx)?.as_str()?, idx)
}

/// Parses a key from this column.
pub(super) fn parsed_key(text: &str, idx: usize) -> Result<JobKey> {
    text.parse().map_err(|fault| {
        rusqlite::Error::FromSqlConversionFailure(idx, rusqlite::types::Type::Text, Box::new(fault))
    })
}

/// The state from the columns of `memory_columns!`. Reading a column is costly, so columns that depend on a missing
/// one are not read.
pub(super) fn memory(row: &Row<'_>, first: usize) -> Result<JobState> {
    let at = |offset: usize| first + offset;
    let anchor_at: Option<i64> = row.get(at(2))?;
    let is_placed = anchor_at.is_some();
    let estimate_mean: Option<f64> = row.get(at(17))?;
    let is_estimated = estimate_mean.is_some();
    let paused_by = keyword(row, at(21))?;
    let is_paused = paused_by.is_some();
    let owner_run = id_or_none(row, at(23))?;
    let is_owned = owner_run.is_some();
    let columns = MemoryColumns {
        created_at: row.get(at(0))?,
        placed_at: get_if(is_placed, row, at(1))?,
        anchor_at,
        choices: get_if(is_placed, row, at(3))?,
        next_run_at: row.get(at(4))?,
        settled_until: row.get(at(5))?,
        last_start_at: row.get(at(6))?,
        last_end_at: row.get(at(7))?,
        last_good_start_at: row.get(at(8))?,
        last_good_end_at: row.get(at(9))?,
        last_exit_code: row.get(at(10))?,
        failure_count: row.get(at(11))?,
        attempt: row.get(at(12))?,
        losses: row.get(at(13))?,
        attempt_outcome: keyword(row, at(14))?,
        last_outcome: keyword(row, at(15))?,
        n_served: row.get(at(16))?,
        estimate_mean,
        estimate_variance: get_if(is_estimated, row, at(18))?,
        estimate_samples: get_if(is_estimated, row, at(19))?,
        extras: row.get(at(20))?,
        paused_by,
        pause_reason: get_if(is_paused, row, at(22))?,
        owner_run,
        owner_node: get_if(is_owned, row, at(24))?,
        owner_name: get_if(is_owned, row, at(25))?,
        owned_since: get_if(is_owned, row, at(26))?,
    };
    Ok(columns.state())
}

fn get_if<T: FromSql>(is_asked: bool, row: &Row<'_>, idx: usize) -> Result<Option<T>> {
    if is_asked { row.get(idx) } else { Ok(None) }
}

fn run_columns(row: &Row<'_>) -> Result<RunColumns> {
    Ok(RunColumns {
        id: id(row, 0)?,
        key: key(row, 1)?,
        session_id: id(row, 2)?,
        fence: row.get(3)?,
        // The safest guess for an unknown keyword: a run that executes is never given back.
        phase: OpenPhase::Running,
        due: DueColumns {
            due_at: row.get(4)?,
            attempt: row.get(5)?,
            trigger: keyword(row, 6)?.unwrap_or(Trigger::Scheduler),
            serves: keyword(row, 7)?.unwrap_or(ServesKind::Pending),
            extra_id: id_or_none(row, 8)?,
            losses: row.get(9)?,
            last_outcome: keyword(row, 10)?,
            params: row.get(11)?,
        },
        claimed_at: row.get(12)?,
        started_at: row.get(13)?,
        is_cancel_asked: row.get(14)?,
        takes: row.get(15)?,
        ended: None,
        report: None,
    })
}

/// A row of `open_run_sql!`.
pub(super) fn open_run(row: &Row<'_>) -> Result<RunRow> {
    let phase = keyword(row, 16)?.unwrap_or(OpenPhase::Running);
    Ok(RunColumns { phase, ..run_columns(row)? }.row())
}

/// A row of `run_sql!`.
pub(super) fn run(row: &Row<'_>) -> Result<RunRow> {
    let ended = EndedColumns {
        outcome: keyword(row, 16)?.unwrap_or(Outcome::Unknown),
        ended_at: row.get(17)?,
        exit_code: row.get(18)?,
        frozen_for: row.get(19)?,
        late_outcome: keyword(row, 20)?,
        late_ended_at: row.get(21)?,
    };
    Ok(RunColumns { ended: Some(ended), report: row.get(22)?, ..run_columns(row)? }.row())
}

/// A row of `session_sql!`.
pub(super) fn session(row: &Row<'_>) -> Result<SessionRow> {
    let node = row.get_ref(1)?.as_str()?.parse().map_err(|fault| {
        rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(fault))
    })?;
    Ok(SessionRow {
        spec: SessionSpec {
            id: SessionId(id(row, 0)?),
            node,
            name: row.get(2)?,
            boot_id: id(row, 3)?,
            home: id(row, 9)?,
            kind: keyword(row, 4)?.unwrap_or(SessionKind::Node),
            pools: pools_from_text(row.get_ref(5)?.as_str()?),
            zone_data: row.get(10)?,
        },
        beat: number(row.get(6)?),
        is_dead: row.get(7)?,
        is_draining: row.get(8)?,
    })
}

/// Columns: reason, first, last, n, recorded.
pub(super) fn record(row: &Row<'_>, key: &JobKey) -> Result<RecordRow> {
    let range = RecordRange {
        first: Timestamp::from_millis(row.get(1)?),
        last: Timestamp::from_millis(row.get(2)?),
        count: number(row.get(3)?),
    };
    Ok(RecordRow {
        key: key.clone(),
        record: Record { range, what: keyword(row, 0)?.unwrap_or(RecordKind::MissedLate) },
        recorded_at: Timestamp::from_millis(row.get(4)?),
    })
}

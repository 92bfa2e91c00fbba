//! The table `memory`: reads its columns from a row, and writes many rows with one statement.

use evenbeat_core::job::PausedBy;
use evenbeat_core::run::Outcome;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::store::columns::MemoryColumns;
use crate::store::keyword::Keyword;

/// The one list of the columns from `created_at` on, with their types.
macro_rules! memory_columns {
    ($then:ident) => {
        $then! {
            created_at: i64, placed_at: Option<i64>, anchor_at: Option<i64>, choices: Option<Vec<u8>>,
            next_run_at: Option<i64>, settled_until: Option<i64>, last_start_at: Option<i64>,
            last_end_at: Option<i64>, last_good_start_at: Option<i64>, last_good_end_at: Option<i64>,
            last_exit_code: Option<i64>, failure_count: i64, attempt: i64, losses: i64,
            attempt_outcome: Option<&'static str>, last_outcome: Option<&'static str>, n_served: i64,
            estimate_mean: Option<f64>, estimate_variance: Option<f64>, estimate_samples: Option<i64>,
            extras: Option<String>, paused_by: Option<&'static str>, pause_reason: Option<String>,
            owner_run: Option<Uuid>, owner_node: Option<String>, owner_name: Option<String>,
            owned_since: Option<i64>
        }
    };
}

/// The number of columns from `created_at` on.
pub(super) const N_COLUMNS: usize = 27;

/// Those columns of the table `m`, to select them.
macro_rules! select_memory {
    () => {
        "m.created_at, m.placed_at, m.anchor_at, m.choices, m.next_run_at, m.settled_until, m.last_start_at, \
         m.last_end_at, m.last_good_start_at, m.last_good_end_at, m.last_exit_code, m.failure_count, m.attempt, \
         m.losses, m.attempt_outcome, m.last_outcome, m.n_served, m.estimate_mean, m.estimate_variance, \
         m.estimate_samples, m.extras, m.paused_by, m.pause_reason, m.owner_run, m.owner_node, m.owner_name, \
         m.owned_since"
    };
}

/// Like `select_memory!`, but without zeros, for a million jobs at once: sending a number takes the server longer than
/// comparing it with 0.
macro_rules! select_memory_without_zeros {
    () => {
        "m.created_at, m.placed_at, m.anchor_at, m.choices, m.next_run_at, m.settled_until, m.last_start_at, \
         m.last_end_at, m.last_good_start_at, m.last_good_end_at, m.last_exit_code, nullif(m.failure_count, 0), \
         nullif(m.attempt, 0), nullif(m.losses, 0), m.attempt_outcome, m.last_outcome, nullif(m.n_served, 0), \
         m.estimate_mean, m.estimate_variance, m.estimate_samples, m.extras, m.paused_by, m.pause_reason, \
         m.owner_run, m.owner_node, m.owner_name, m.owned_since"
    };
}

/// The names of those columns.
macro_rules! memory_names {
    () => {
        "created_at, placed_at, anchor_at, choices, next_run_at, settled_until, last_start_at, last_end_at, \
         last_good_start_at, last_good_end_at, last_exit_code, failure_count, attempt, losses, attempt_outcome, \
         last_outcome, n_served, estimate_mean, estimate_variance, estimate_samples, extras, paused_by, \
         pause_reason, owner_run, owner_node, owner_name, owned_since"
    };
}

/// The types of those columns as arrays.
macro_rules! memory_types {
    ($($before:expr),*) => {
        &[
            $($before,)*
            Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::BYTEA_ARRAY, Type::INT8_ARRAY,
            Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY,
            Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::TEXT_ARRAY,
            Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::FLOAT8_ARRAY, Type::FLOAT8_ARRAY, Type::INT8_ARRAY,
            Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY, Type::TEXT_ARRAY,
            Type::TEXT_ARRAY, Type::INT8_ARRAY
        ]
    };
}

/// Those columns except the owner's, each the `i.no`-th value of an array, as the first parameters of a statement.
/// Looking up a value in an array costs the server a fraction of the row that `unnest` would make.
macro_rules! state_of_arrays {
    () => {
        "($1::bigint[])[i.no] AS created_at, ($2::bigint[])[i.no] AS placed_at, ($3::bigint[])[i.no] AS anchor_at, \
         ($4::bytea[])[i.no] AS choices, ($5::bigint[])[i.no] AS next_run_at, \
         ($6::bigint[])[i.no] AS settled_until, ($7::bigint[])[i.no] AS last_start_at, \
         ($8::bigint[])[i.no] AS last_end_at, ($9::bigint[])[i.no] AS last_good_start_at, \
         ($10::bigint[])[i.no] AS last_good_end_at, ($11::bigint[])[i.no] AS last_exit_code, \
         ($12::bigint[])[i.no] AS failure_count, ($13::bigint[])[i.no] AS attempt, ($14::bigint[])[i.no] AS losses, \
         ($15::text[])[i.no] AS attempt_outcome, ($16::text[])[i.no] AS last_outcome, \
         ($17::bigint[])[i.no] AS n_served, ($18::float8[])[i.no] AS estimate_mean, \
         ($19::float8[])[i.no] AS estimate_variance, ($20::bigint[])[i.no] AS estimate_samples, \
         ($21::text[])[i.no] AS extras, ($22::text[])[i.no] AS paused_by, ($23::text[])[i.no] AS pause_reason"
    };
}

/// Sets the columns from `u`, where blank values are NULL.
macro_rules! set_state {
    () => {
        "created_at = coalesce(u.created_at, 0), placed_at = u.placed_at, anchor_at = u.anchor_at, \
         choices = u.choices, next_run_at = u.next_run_at, settled_until = u.settled_until, \
         last_start_at = u.last_start_at, last_end_at = u.last_end_at, \
         last_good_start_at = u.last_good_start_at, last_good_end_at = u.last_good_end_at, \
         last_exit_code = u.last_exit_code, failure_count = coalesce(u.failure_count, 0), \
         attempt = coalesce(u.attempt, 0), losses = coalesce(u.losses, 0), attempt_outcome = u.attempt_outcome, \
         last_outcome = u.last_outcome, n_served = coalesce(u.n_served, 0), estimate_mean = u.estimate_mean, \
         estimate_variance = u.estimate_variance, estimate_samples = u.estimate_samples, extras = u.extras, \
         paused_by = u.paused_by, pause_reason = u.pause_reason"
    };
}

/// The types of those parameters, and of the parameters after them.
macro_rules! state_types {
    ($($behind:expr),* $(,)?) => {
        &[
            Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::BYTEA_ARRAY, Type::INT8_ARRAY,
            Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY,
            Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::TEXT_ARRAY,
            Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::FLOAT8_ARRAY, Type::FLOAT8_ARRAY, Type::INT8_ARRAY,
            Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY, $($behind),*
        ]
    };
}
pub(super) use {
    memory_names, memory_types, select_memory, select_memory_without_zeros, set_state, state_of_arrays,
    state_types,
};

/// The number of columns without the owner's.
const N_STATE_COLUMNS: usize = 23;

macro_rules! arrays {
    ($($column:ident: $type:ty),*) => {
        /// Many rows, column by column.
        #[derive(Debug, Default)]
        pub(super) struct MemoryArrays {
            $($column: Vec<$type>),*
        }

        impl MemoryArrays {
            pub(super) fn with_capacity(n: usize) -> MemoryArrays {
                MemoryArrays { $($column: Vec::with_capacity(n)),* }
            }

            pub(super) fn params(&self) -> [&(dyn ToSql + Sync); N_COLUMNS] {
                [$(&self.$column),*]
            }

            pub(super) fn leave_blanks_out(&mut self) {
                $(leave_blanks_out(&mut self.$column);)*
            }
        }
    };
}
memory_columns!(arrays);

/// The value that most rows have.
pub(super) trait Blank {
    fn is_blank(&self) -> bool;
}

impl<T> Blank for Option<T> {
    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

impl Blank for i64 {
    fn is_blank(&self) -> bool {
        *self == 0
    }
}

/// Empties a column that has only blank values. The server reads missing values as NULL, much faster than it unpacks an
/// array.
pub(super) fn leave_blanks_out<T: Blank>(column: &mut Vec<T>) {
    if column.iter().all(Blank::is_blank) {
        column.clear();
    }
}

impl MemoryArrays {
    /// The parameters without the owner's.
    pub(super) fn state_params(&self) -> impl Iterator<Item = &(dyn ToSql + Sync)> {
        self.params().into_iter().take(N_STATE_COLUMNS)
    }

    pub(super) fn push(&mut self, columns: MemoryColumns) {
        let keyword = |outcome: Option<Outcome>| outcome.map(Keyword::keyword);
        self.created_at.push(columns.created_at);
        self.placed_at.push(columns.placed_at);
        self.anchor_at.push(columns.anchor_at);
        self.choices.push(columns.choices);
        self.next_run_at.push(columns.next_run_at);
        self.settled_until.push(columns.settled_until);
        self.last_start_at.push(columns.last_start_at);
        self.last_end_at.push(columns.last_end_at);
        self.last_good_start_at.push(columns.last_good_start_at);
        self.last_good_end_at.push(columns.last_good_end_at);
        self.last_exit_code.push(columns.last_exit_code);
        self.failure_count.push(columns.failure_count);
        self.attempt.push(columns.attempt);
        self.losses.push(columns.losses);
        self.attempt_outcome.push(keyword(columns.attempt_outcome));
        self.last_outcome.push(keyword(columns.last_outcome));
        self.n_served.push(columns.n_served);
        self.estimate_mean.push(columns.estimate_mean);
        self.estimate_variance.push(columns.estimate_variance);
        self.estimate_samples.push(columns.estimate_samples);
        self.extras.push(columns.extras);
        self.paused_by.push(columns.paused_by.map(Keyword::keyword));
        self.pause_reason.push(columns.pause_reason);
        self.owner_run.push(columns.owner_run.map(Uuid::from_u128));
        self.owner_node.push(columns.owner_node);
        self.owner_name.push(columns.owner_name);
        self.owned_since.push(columns.owned_since);
    }
}

/// Reads the columns of a row, starting at `from`. Zeros may be NULL.
pub(super) fn memory_columns_of(row: &Row, from: usize) -> Result<MemoryColumns, Error> {
    let keyword = |idx: usize| -> Result<Option<&str>, Error> { row.try_get(from + idx) };
    let number = |idx: usize| row.try_get(from + idx).map(Option::<i64>::unwrap_or_default);
    Ok(MemoryColumns {
        created_at: row.try_get(from)?,
        placed_at: row.try_get(from + 1)?,
        anchor_at: row.try_get(from + 2)?,
        choices: row.try_get(from + 3)?,
        next_run_at: row.try_get(from + 4)?,
        settled_until: row.try_get(from + 5)?,
        last_start_at: row.try_get(from + 6)?,
        last_end_at: row.try_get(from + 7)?,
        last_good_start_at: row.try_get(from + 8)?,
        last_good_end_at: row.try_get(from + 9)?,
        last_exit_code: row.try_get(from + 10)?,
        failure_count: number(11)?,
        attempt: number(12)?,
        losses: number(13)?,
        attempt_outcome: keyword(14)?.and_then(Outcome::from_keyword),
        last_outcome: keyword(15)?.and_then(Outcome::from_keyword),
        n_served: number(16)?,
        estimate_mean: row.try_get(from + 17)?,
        estimate_variance: row.try_get(from + 18)?,
        estimate_samples: row.try_get(from + 19)?,
        extras: row.try_get(from + 20)?,
        paused_by: keyword(21)?.and_then(PausedBy::from_keyword),
        pause_reason: row.try_get(from + 22)?,
        owner_run: row.try_get::<_, Option<Uuid>>(from + 23)?.map(|it| it.as_u128()),
        owner_node: row.try_get(from + 24)?,
        owner_name: row.try_get(from + 25)?,
        owned_since: row.try_get(from + 26)?,
    })
}

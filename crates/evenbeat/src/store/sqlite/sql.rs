//! Lists of columns that several statements share, joined at compile time.

/// The state of a job, as [`rows::memory`](super::rows::memory) reads it.
macro_rules! memory_columns {
    () => {
        "m.created_at, m.placed_at, m.anchor_at, m.choices, m.next_run_at, m.settled_until, m.last_start_at, \
         m.last_end_at, m.last_good_start_at, m.last_good_end_at, m.last_exit_code, m.failure_count, m.attempt, \
         m.losses, m.attempt_outcome, m.last_outcome, m.n_served, m.estimate_mean, m.estimate_variance, \
         m.estimate_samples, m.extras, m.paused_by, m.pause_reason, m.owner_run, m.owner_node, m.owner_name, \
         m.owned_since"
    };
}

/// A job with its state.
macro_rules! job_columns {
    () => {
        concat!(
            "j.id, j.key, j.definition, j.is_deleted, j.revision, m.version, m.fence, m.n_open, ",
            memory_columns!()
        )
    };
}

/// A job with its state, and the tables.
macro_rules! job_sql {
    ($rest:literal) => {
        concat!("SELECT ", job_columns!(), " FROM job j JOIN memory m ON m.job_id = j.id ", $rest)
    };
}

/// The columns of both tables of runs, from `id` to `takes`, with the key of the job.
macro_rules! run_columns {
    () => {
        "r.id, j.key, r.session_id, r.fence, r.due_at, r.attempt, r.\"trigger\", r.serves, r.extra_id, r.losses, \
         r.last_outcome, r.params, r.claimed_at, r.started_at, r.is_cancel_asked, r.takes"
    };
}

/// An open run.
macro_rules! open_run_sql {
    ($rest:literal) => {
        concat!("SELECT ", run_columns!(), ", r.phase FROM open_run r JOIN job j ON j.id = r.job_id ", $rest)
    };
}

/// The other columns of an ended run.
macro_rules! run_over_columns {
    () => {
        ", r.outcome, r.ended_at, r.exit_code, r.frozen_for, r.late_outcome, r.late_ended_at, r.report"
    };
}

/// An ended run.
macro_rules! run_sql {
    ($rest:literal) => {
        concat!(
            "SELECT ",
            run_columns!(),
            run_over_columns!(),
            " FROM run r JOIN job j ON j.id = r.job_id ",
            $rest
        )
    };
}

/// A session.
macro_rules! session_sql {
    ($rest:literal) => {
        concat!(
            "SELECT id, node, name, boot_id, kind, pools, beat, is_dead, is_draining, home, zone_data FROM session ",
            $rest
        )
    };
}

pub(super) use {
    job_columns, job_sql, memory_columns, open_run_sql, run_columns, run_over_columns, run_sql, session_sql,
};

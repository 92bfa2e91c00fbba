-- Instants are milliseconds since 1970 (UTC), lengths are milliseconds, ids are the 16 bytes of a UUID, words are
-- those of the glossary. The same tables and columns as on PostgreSQL: a test compares them.

CREATE TABLE setting (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE epoch (
    no INTEGER NOT NULL PRIMARY KEY,
    timeline TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    begun_at INTEGER NOT NULL
) STRICT;

-- One row for one life of a process.
CREATE TABLE session (
    id BLOB NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    name TEXT NOT NULL,
    boot_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    pools TEXT NOT NULL,
    beat INTEGER NOT NULL,
    is_dead INTEGER NOT NULL,
    is_draining INTEGER NOT NULL,
    joined_at INTEGER NOT NULL,
    beaten_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What people defined. Changes seldom.
CREATE TABLE job (
    id INTEGER NOT NULL PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL,
    -- The part of the definition that decisions need, once more and by itself: jobs share it, so that a million are
    -- read quickly.
    terms TEXT NOT NULL,
    target TEXT NOT NULL,
    pool TEXT NOT NULL,
    site TEXT,
    tenant TEXT,
    is_enabled INTEGER NOT NULL,
    is_deleted INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;
-- What lists walk, each in the order of keys and without removed jobs: a page begins anywhere and reads little more than
-- it shows. What the conditions name is in the index too: else the row is looked up for it.
CREATE INDEX job_by_key ON job (key, is_deleted) WHERE NOT is_deleted;
CREATE INDEX job_by_pool ON job (pool, key, is_deleted) WHERE NOT is_deleted;
CREATE INDEX job_by_site ON job (site, key, is_deleted) WHERE site IS NOT NULL AND NOT is_deleted;
CREATE INDEX job_by_tenant ON job (tenant, key, is_deleted) WHERE tenant IS NOT NULL AND NOT is_deleted;
CREATE INDEX job_disabled ON job (key, is_enabled, is_deleted) WHERE NOT is_enabled AND NOT is_deleted;

-- Of jobs that are not removed. The key is here once more because lists are in its order.
CREATE TABLE label (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    key TEXT NOT NULL,
    job_id INTEGER NOT NULL REFERENCES job (id),
    PRIMARY KEY (name, value, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_by_job ON label (job_id);

-- What is remembered of a job. Changes with every run.
CREATE TABLE memory (
    job_id INTEGER NOT NULL PRIMARY KEY REFERENCES job (id),
    version INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    n_open INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    placed_at INTEGER,
    anchor_at INTEGER,
    choices BLOB,
    next_run_at INTEGER,
    settled_until INTEGER,
    last_start_at INTEGER,
    last_end_at INTEGER,
    last_good_start_at INTEGER,
    last_good_end_at INTEGER,
    last_exit_code INTEGER,
    failure_count INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    attempt_outcome TEXT,
    last_outcome TEXT,
    n_served INTEGER NOT NULL,
    estimate_mean REAL,
    estimate_variance REAL,
    estimate_samples INTEGER,
    extras TEXT,
    paused_by TEXT,
    pause_reason TEXT,
    owner_run BLOB,
    owner_node TEXT,
    owner_name TEXT,
    owned_since INTEGER
) STRICT;
-- Few are.
CREATE INDEX memory_paused ON memory (job_id, paused_by) WHERE paused_by IS NOT NULL;

-- Which job changed when: appended to by every transaction that changes a job or its memory.
CREATE TABLE change (
    position INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (position, job_id)
) STRICT, WITHOUT ROWID;

-- Runs that are not over. A run moves from here to `run` once, and never back.
CREATE TABLE open_run (
    id BLOB NOT NULL PRIMARY KEY,
    job_id INTEGER NOT NULL REFERENCES job (id),
    session_id BLOB NOT NULL,
    fence INTEGER NOT NULL,
    phase TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    "trigger" TEXT NOT NULL,
    serves TEXT NOT NULL,
    extra_id BLOB,
    losses INTEGER NOT NULL,
    last_outcome TEXT,
    params TEXT,
    claimed_at INTEGER NOT NULL,
    started_at INTEGER,
    is_cancel_asked INTEGER NOT NULL,
    takes TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX open_run_by_session ON open_run (session_id, id);
CREATE INDEX open_run_by_job ON open_run (job_id, id);

-- Runs that are over.
CREATE TABLE run (
    id BLOB NOT NULL,
    job_id INTEGER NOT NULL,
    session_id BLOB NOT NULL,
    fence INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    "trigger" TEXT NOT NULL,
    serves TEXT NOT NULL,
    extra_id BLOB,
    losses INTEGER NOT NULL,
    last_outcome TEXT,
    params TEXT,
    claimed_at INTEGER NOT NULL,
    started_at INTEGER,
    is_cancel_asked INTEGER NOT NULL,
    takes TEXT,
    ended_at INTEGER NOT NULL,
    exit_code INTEGER,
    frozen_for INTEGER NOT NULL,
    late_outcome TEXT,
    late_ended_at INTEGER,
    report TEXT,
    PRIMARY KEY (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_by_job ON run (job_id, id);
CREATE INDEX run_by_end ON run (ended_at, id);
-- What went well is nearly all there is, and is found by its end.
CREATE INDEX run_by_outcome ON run (outcome, ended_at, id) WHERE outcome <> 'succeeded';
-- A dead session goes with its last run: it must be quick to see whether there is one.
CREATE INDEX run_by_session ON run (session_id);

-- Occurrences that got no run of their own, as ranges: a billion of them cost one row.
CREATE TABLE record (
    id INTEGER NOT NULL PRIMARY KEY,
    job_id INTEGER NOT NULL,
    what TEXT NOT NULL,
    reason TEXT NOT NULL,
    first_due_at INTEGER NOT NULL,
    last_due_at INTEGER NOT NULL,
    n INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL
) STRICT;
CREATE INDEX record_by_job ON record (job_id, first_due_at);
CREATE INDEX record_by_age ON record (recorded_at);

-- Limits that span nodes: changed only by the transaction that opens or ends a run.
CREATE TABLE counter (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    n_open INTEGER NOT NULL,
    last_claim_at INTEGER,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

-- The claims of the last hour.
CREATE TABLE counter_claim (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    run_id BLOB NOT NULL,
    PRIMARY KEY (kind, key, claimed_at, run_id)
) STRICT, WITHOUT ROWID;

-- Start messages that wait to be published.
CREATE TABLE outbox (
    no INTEGER NOT NULL PRIMARY KEY,
    run_id BLOB NOT NULL UNIQUE,
    job_id INTEGER NOT NULL,
    fence INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    no INTEGER NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;

-- How evenly the fleet was spread.
CREATE TABLE score (
    at INTEGER NOT NULL PRIMARY KEY,
    score REAL NOT NULL,
    peak INTEGER NOT NULL,
    n_jobs INTEGER NOT NULL
) STRICT;

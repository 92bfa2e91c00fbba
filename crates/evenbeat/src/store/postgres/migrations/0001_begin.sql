-- Instants are milliseconds since 1970 (UTC), lengths are milliseconds, words are those of the glossary. The same
-- tables and columns as on SQLite: a test compares them.

-- The clock that everything here goes by.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

CREATE TABLE setting (
    name text NOT NULL PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE epoch (
    no bigint NOT NULL PRIMARY KEY,
    timeline text NOT NULL,
    is_open boolean NOT NULL,
    begun_at bigint NOT NULL
);

-- One row for one life of a process.
CREATE TABLE session (
    id uuid NOT NULL PRIMARY KEY,
    node text NOT NULL,
    name text NOT NULL,
    boot_id uuid NOT NULL,
    kind text NOT NULL,
    pools text NOT NULL,
    beat bigint NOT NULL,
    is_dead boolean NOT NULL,
    is_draining boolean NOT NULL,
    joined_at bigint NOT NULL,
    beaten_at bigint NOT NULL
) WITH (fillfactor = 50);

-- What people defined. Changes seldom.
CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" NOT NULL UNIQUE,
    definition text NOT NULL,
    -- The part of the definition that decisions need, once more and by itself: jobs share it, so that a million are
    -- read quickly.
    terms text NOT NULL,
    target text NOT NULL,
    pool text NOT NULL,
    site text,
    tenant text,
    is_enabled boolean NOT NULL,
    is_deleted boolean NOT NULL,
    revision bigint NOT NULL
);
-- What lists walk, each in the order of keys and without removed jobs: a page begins anywhere and reads little more than
-- it shows.
CREATE INDEX job_by_key ON job (key) WHERE NOT is_deleted;
CREATE INDEX job_by_pool ON job (pool, key) WHERE NOT is_deleted;
CREATE INDEX job_by_site ON job (site, key) WHERE site IS NOT NULL AND NOT is_deleted;
CREATE INDEX job_by_tenant ON job (tenant, key) WHERE tenant IS NOT NULL AND NOT is_deleted;
CREATE INDEX job_disabled ON job (key) WHERE NOT is_enabled AND NOT is_deleted;

-- Of jobs that are not removed. The key is here once more because lists are in its order.
CREATE TABLE label (
    name text NOT NULL,
    value text NOT NULL,
    key text COLLATE "C" NOT NULL,
    job_id bigint NOT NULL,
    PRIMARY KEY (name, value, key) INCLUDE (job_id)
);
CREATE INDEX label_by_job ON label (job_id);

-- What is remembered of a job. Changes with every run.
CREATE TABLE memory (
    job_id bigint NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    fence bigint NOT NULL,
    n_open bigint NOT NULL,
    created_at bigint NOT NULL,
    placed_at bigint,
    anchor_at bigint,
    choices bytea,
    next_run_at bigint,
    settled_until bigint,
    last_start_at bigint,
    last_end_at bigint,
    last_good_start_at bigint,
    last_good_end_at bigint,
    last_exit_code bigint,
    failure_count bigint NOT NULL,
    attempt bigint NOT NULL,
    losses bigint NOT NULL,
    attempt_outcome text,
    last_outcome text,
    n_served bigint NOT NULL,
    estimate_mean double precision,
    estimate_variance double precision,
    estimate_samples bigint,
    extras text,
    paused_by text,
    pause_reason text,
    owner_run uuid,
    owner_node text,
    owner_name text,
    owned_since bigint
) WITH (fillfactor = 50);
-- Few are. Of columns that a run changes there must be no index, not even in a condition: each run would then write to
-- all indexes.
CREATE INDEX memory_paused ON memory (job_id) WHERE paused_by IS NOT NULL;

-- Which job changed when: appended to by every transaction that changes a job or its memory. No row is looked for by
-- itself, so nothing keeps them apart: that would cost more than to write them.
CREATE TABLE change (
    position xid8 NOT NULL,
    job_id bigint NOT NULL,
    changed_at bigint NOT NULL
);
CREATE INDEX change_by_position ON change (position);

-- Runs that are not over. A run moves from here to `run` once, and never back.
CREATE TABLE open_run (
    id uuid NOT NULL PRIMARY KEY,
    job_id bigint NOT NULL,
    session_id uuid NOT NULL,
    fence bigint NOT NULL,
    phase text NOT NULL,
    due_at bigint NOT NULL,
    attempt bigint NOT NULL,
    "trigger" text NOT NULL,
    serves text NOT NULL,
    extra_id uuid,
    losses bigint NOT NULL,
    last_outcome text,
    params text,
    claimed_at bigint NOT NULL,
    started_at bigint,
    is_cancel_asked boolean NOT NULL,
    takes text
) WITH (fillfactor = 80);
-- Without the id, so that an id is only ever looked for in the primary key: this table is often empty, and then all
-- indexes look alike to the planner.
CREATE INDEX open_run_by_session ON open_run (session_id);
CREATE INDEX open_run_by_job ON open_run (job_id);

-- Runs that are over.
CREATE TABLE run (
    id uuid NOT NULL,
    job_id bigint NOT NULL,
    session_id uuid NOT NULL,
    fence bigint NOT NULL,
    outcome text NOT NULL,
    due_at bigint NOT NULL,
    attempt bigint NOT NULL,
    "trigger" text NOT NULL,
    serves text NOT NULL,
    extra_id uuid,
    losses bigint NOT NULL,
    last_outcome text,
    params text,
    claimed_at bigint NOT NULL,
    started_at bigint,
    is_cancel_asked boolean NOT NULL,
    takes text,
    ended_at bigint NOT NULL,
    exit_code bigint,
    frozen_for bigint NOT NULL,
    late_outcome text,
    late_ended_at bigint,
    report text,
    PRIMARY KEY (ended_at, id)
) PARTITION BY RANGE (ended_at);
CREATE INDEX run_by_id ON run (id);
CREATE INDEX run_by_job ON run (job_id, id);
CREATE INDEX run_by_session ON run (session_id);
-- What went well is nearly all there is, and is found by its end.
CREATE INDEX run_by_outcome ON run (outcome, ended_at, id) WHERE outcome <> 'succeeded';
-- For days that no partition was made for in time.
CREATE TABLE run_of_other_days PARTITION OF run DEFAULT;

-- Occurrences that got no run of their own, as ranges: a billion of them cost one row.
CREATE TABLE record (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL,
    what text NOT NULL,
    reason text NOT NULL,
    first_due_at bigint NOT NULL,
    last_due_at bigint NOT NULL,
    n bigint NOT NULL,
    recorded_at bigint NOT NULL
);
CREATE INDEX record_by_job ON record (job_id, first_due_at);
CREATE INDEX record_by_age ON record (recorded_at);

-- Limits that span nodes: changed only by the transaction that opens or ends a run.
CREATE TABLE counter (
    kind text NOT NULL,
    key text COLLATE "C" NOT NULL,
    n_open bigint NOT NULL,
    last_claim_at bigint,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);

-- The claims of the last hour.
CREATE TABLE counter_claim (
    kind text NOT NULL,
    key text COLLATE "C" NOT NULL,
    claimed_at bigint NOT NULL,
    run_id uuid NOT NULL,
    PRIMARY KEY (kind, key, claimed_at, run_id)
);

-- Start messages that wait to be published.
CREATE TABLE outbox (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id uuid NOT NULL UNIQUE,
    job_id bigint NOT NULL,
    fence bigint NOT NULL
);

CREATE TABLE audit (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    detail text NOT NULL
);

-- How evenly the fleet was spread.
CREATE TABLE score (
    at bigint NOT NULL PRIMARY KEY,
    score double precision NOT NULL,
    peak bigint NOT NULL,
    n_jobs bigint NOT NULL
);

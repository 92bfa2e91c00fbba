-- When jobs were late, and when a person had paused them. A row without an end goes on. Jobs are not referenced, because
-- a removed one must not be kept for it.
CREATE TABLE job_span (
    job_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    from_at INTEGER NOT NULL,
    to_at INTEGER,
    PRIMARY KEY (job_id, kind, from_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_span_by_end ON job_span (to_at, job_id);

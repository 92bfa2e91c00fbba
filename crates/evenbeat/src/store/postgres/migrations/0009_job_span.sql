-- When jobs were late, and when a person had paused them. A row without an end goes on. Jobs are not referenced, because
-- a removed one must not be kept for it.
CREATE TABLE job_span (
    job_id bigint NOT NULL,
    kind text NOT NULL,
    from_at bigint NOT NULL,
    to_at bigint,
    PRIMARY KEY (job_id, kind, from_at)
);
CREATE INDEX job_span_by_end ON job_span (to_at, job_id);

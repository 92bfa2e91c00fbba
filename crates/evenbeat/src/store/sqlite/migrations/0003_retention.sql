-- Removed jobs as the last trim found them. A job whose version is still this one has not changed since then.
CREATE TABLE tombstone (
    job_id INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT;
CREATE INDEX job_removed ON job (id) WHERE is_deleted = 1;
CREATE INDEX audit_by_age ON audit (at);

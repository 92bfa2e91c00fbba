-- Removed jobs as the last trim found them. A job whose version is still this one has not changed since then.
CREATE TABLE tombstone (
    job_id bigint NOT NULL PRIMARY KEY,
    version bigint NOT NULL,
    seen_at bigint NOT NULL
);
CREATE INDEX job_removed ON job (id) WHERE is_deleted;
CREATE INDEX audit_by_age ON audit (at);

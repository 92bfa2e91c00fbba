-- Requests for runs, so that one can be found by its id before it has a run, and recognised when it is repeated.
CREATE TABLE request (
    id uuid NOT NULL PRIMARY KEY,
    job_id bigint NOT NULL,
    requested_at bigint NOT NULL,
    key_hash uuid,
    body_hash uuid
);
CREATE INDEX request_by_age ON request (requested_at);
CREATE INDEX request_by_key ON request (key_hash, requested_at) WHERE key_hash IS NOT NULL;

-- Sessions that have been silent, for people to see. A row holds while the session's beat is still the one noted here,
-- so the next beat clears it. Apart from the session: whoever beats or fences it must not wait for this.
CREATE TABLE doubt (
    session_id uuid NOT NULL PRIMARY KEY,
    beat bigint NOT NULL,
    doubted_at bigint NOT NULL
);

-- What an entry is about, and what its fields were before and after; and the chain that shows whether entries were
-- changed or removed later. Entries are chained a moment after they were written, so that no writer waits for another.
ALTER TABLE audit ADD COLUMN subject text NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN before_json text;
ALTER TABLE audit ADD COLUMN after_json text;
ALTER TABLE audit ADD COLUMN chain_no bigint;
ALTER TABLE audit ADD COLUMN chain_hash bytea;
CREATE UNIQUE INDEX audit_by_chain ON audit (chain_no) WHERE chain_no IS NOT NULL;
CREATE INDEX audit_unchained ON audit (no) WHERE chain_no IS NULL;
CREATE INDEX audit_by_subject ON audit (subject, no);

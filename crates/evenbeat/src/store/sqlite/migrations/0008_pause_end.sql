-- When pauses end automatically. Apart from the job: no run reads or writes this.
CREATE TABLE pause_end (
    key TEXT NOT NULL PRIMARY KEY,
    ends_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pause_end_by_time ON pause_end (ends_at);

-- When pauses end automatically. Apart from the job: no run reads or writes this.
CREATE TABLE pause_end (
    key text COLLATE "C" NOT NULL PRIMARY KEY,
    ends_at bigint NOT NULL
);
CREATE INDEX pause_end_by_time ON pause_end (ends_at);

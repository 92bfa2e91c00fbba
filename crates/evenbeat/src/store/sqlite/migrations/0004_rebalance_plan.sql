-- Rebalance plans that can still be applied, by any process.
CREATE TABLE rebalance_plan (
    no INTEGER NOT NULL PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    caller TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    plan TEXT NOT NULL
) STRICT;

-- Incidents: trouble of one job or of the scheduler itself. Those that are not settled are read by the node that alerts.
CREATE TABLE incident (
    subject TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    severity TEXT NOT NULL,
    closed_at INTEGER,
    is_settled INTEGER NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (subject, opened_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX incident_unsettled ON incident (subject) WHERE is_settled = 0;
CREATE INDEX incident_by_age ON incident (opened_at, subject);

-- Messages, one for each channel, until their receiver has accepted them; then as a record of what was sent.
CREATE TABLE alert_delivery (
    no INTEGER NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    channel TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_try_at INTEGER NOT NULL,
    claimed_by BLOB,
    claimed_until INTEGER NOT NULL,
    last_try_at INTEGER,
    answer TEXT,
    done_at INTEGER,
    UNIQUE (channel, id)
) STRICT;
CREATE INDEX alert_delivery_pending ON alert_delivery (channel, no) WHERE state = 'pending';
CREATE INDEX alert_delivery_by_age ON alert_delivery (created_at);

-- Times at which nobody is told about some jobs.
CREATE TABLE mute (
    id BLOB NOT NULL PRIMARY KEY,
    scope TEXT NOT NULL,
    value TEXT NOT NULL,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The one node that alerts, and when it last looked.
CREATE TABLE alert_lease (
    no INTEGER NOT NULL PRIMARY KEY,
    holder BLOB NOT NULL,
    held_until INTEGER NOT NULL,
    looked_at INTEGER NOT NULL
) STRICT;

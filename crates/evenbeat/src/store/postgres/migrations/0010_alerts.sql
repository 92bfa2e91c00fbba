-- Incidents: trouble of one job or of the scheduler itself. Those that are not settled are read by the node that alerts.
CREATE TABLE incident (
    subject text COLLATE "C" NOT NULL,
    opened_at bigint NOT NULL,
    cause text NOT NULL,
    severity text NOT NULL,
    closed_at bigint,
    is_settled boolean NOT NULL,
    detail text NOT NULL,
    PRIMARY KEY (subject, opened_at)
);
CREATE INDEX incident_unsettled ON incident (subject) WHERE NOT is_settled;
CREATE INDEX incident_by_age ON incident (opened_at, subject);

-- Messages, one for each channel, until their receiver has accepted them; then as a record of what was sent.
CREATE TABLE alert_delivery (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    payload text NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    next_try_at bigint NOT NULL,
    claimed_by uuid,
    claimed_until bigint NOT NULL,
    last_try_at bigint,
    answer text,
    done_at bigint,
    UNIQUE (channel, id)
);
CREATE INDEX alert_delivery_pending ON alert_delivery (channel, no) WHERE state = 'pending';
CREATE INDEX alert_delivery_by_age ON alert_delivery (created_at);

-- Times at which nobody is told about some jobs.
CREATE TABLE mute (
    id uuid NOT NULL PRIMARY KEY,
    scope text NOT NULL,
    value text NOT NULL,
    starts_at bigint NOT NULL,
    ends_at bigint NOT NULL,
    reason text NOT NULL,
    actor text NOT NULL
);

-- The one node that alerts, and when it last looked.
CREATE TABLE alert_lease (
    no bigint NOT NULL PRIMARY KEY,
    holder uuid NOT NULL,
    held_until bigint NOT NULL,
    looked_at bigint NOT NULL
);

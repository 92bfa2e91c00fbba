-- Tokens for the API. Only a hash of the secret is kept, and dead tokens stay for a while so that people can see them.
CREATE TABLE token (
    id TEXT NOT NULL PRIMARY KEY,
    hash BLOB NOT NULL,
    label TEXT NOT NULL,
    role TEXT NOT NULL,
    pools TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT, WITHOUT ROWID;

-- Sessions of the pages, by the hash of what the cookie holds. One that was opened with a token ends with it.
CREATE TABLE page_session (
    hash BLOB NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    opened_by TEXT NOT NULL,
    token_id TEXT,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Links that open a page session once, by the hash of their code.
CREATE TABLE login_link (
    hash BLOB NOT NULL PRIMARY KEY,
    role TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

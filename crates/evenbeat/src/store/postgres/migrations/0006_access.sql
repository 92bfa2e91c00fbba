-- Tokens for the API. Only a hash of the secret is kept, and dead tokens stay for a while so that people can see them.
CREATE TABLE token (
    id text NOT NULL PRIMARY KEY,
    hash bytea NOT NULL,
    label text NOT NULL,
    role text NOT NULL,
    pools text NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint
);

-- Sessions of the pages, by the hash of what the cookie holds. One that was opened with a token ends with it.
CREATE TABLE page_session (
    hash bytea NOT NULL PRIMARY KEY,
    role text NOT NULL,
    opened_by text NOT NULL,
    token_id text,
    created_at bigint NOT NULL,
    seen_at bigint NOT NULL
);

-- Links that open a page session once, by the hash of their code.
CREATE TABLE login_link (
    hash bytea NOT NULL PRIMARY KEY,
    role text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL
);

//! Tokens, page sessions and login links, for all nodes.

use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::transaction::{Statement, transact};
use super::views::{ask, limit, read};
use crate::store::access::{
    DEAD_TOKENS_KEPT_FOR, LOGIN_LINK_LIFE, LOGIN_LINKS_MAX, LoginLinkRow, PAGE_SESSION_IDLE,
    PAGE_SESSION_LIFE, PAGE_SESSIONS_MAX, PageSessionRow, RUN_KEY_SETTING, RevokeAnswer, SecretHash,
    TOKENS_MAX, TokenRow, grant_of, pools_from_list, pools_to_list, role_of,
};

/// The count is not exact if several tokens are added in the same moment: it guards against a runaway script.
static PUT_TOKEN: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM token WHERE revoked_at < now_ms() - $8 OR expires_at < now_ms() - $8) \
          INSERT INTO token (id, hash, label, role, pools, created_at, created_by, expires_at) \
          SELECT $1, $2, $3, $4, $5, now_ms(), $6, $7 WHERE (SELECT count(*) FROM token \
            WHERE revoked_at IS NULL AND coalesce(now_ms() < expires_at, true)) < $9 RETURNING 1",
    types: &[
        Type::TEXT,
        Type::BYTEA,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::TEXT,
        Type::INT8,
        Type::INT8,
        Type::INT8,
    ],
};
static REVOKE: Statement = Statement {
    sql: "WITH ended AS (DELETE FROM page_session WHERE token_id = $1), \
          revoked AS (UPDATE token SET revoked_at = now_ms() WHERE id = $1 AND revoked_at IS NULL \
            AND coalesce(now_ms() < expires_at, true) RETURNING 1) \
          SELECT (SELECT count(*) FROM revoked), (SELECT count(*) FROM token WHERE id = $1)",
    types: &[Type::TEXT],
};
static TOUCH_TOKEN: Statement =
    Statement { sql: "UPDATE token SET last_used_at = now_ms() WHERE id = $1", types: &[Type::TEXT] };
static PUT_LINK: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM login_link WHERE created_at <= now_ms() - $4 OR hash IN (\
            SELECT hash FROM login_link ORDER BY created_at DESC OFFSET $5)) \
          INSERT INTO login_link (hash, role, created_by, created_at) VALUES ($1, $2, $3, now_ms())",
    types: &[Type::BYTEA, Type::TEXT, Type::TEXT, Type::INT8, Type::INT8],
};
static TAKE_LINK: Statement = Statement {
    sql: "DELETE FROM login_link WHERE hash = $1 AND now_ms() - $2 < created_at RETURNING role, created_by",
    types: &[Type::BYTEA, Type::INT8],
};
static PUT_SESSION: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM page_session WHERE seen_at <= now_ms() - $5 OR created_at <= now_ms() - $6 \
            OR hash IN (SELECT hash FROM page_session ORDER BY seen_at DESC OFFSET $7)) \
          INSERT INTO page_session (hash, role, opened_by, token_id, created_at, seen_at) \
          VALUES ($1, $2, $3, $4, now_ms(), now_ms())",
    types: &[Type::BYTEA, Type::TEXT, Type::TEXT, Type::TEXT, Type::INT8, Type::INT8, Type::INT8],
};
static SESSION: Statement = Statement {
    sql: "SELECT role, opened_by, token_id, created_at, seen_at FROM page_session WHERE hash = $1",
    types: &[Type::BYTEA],
};
static TOUCH_SESSION: Statement =
    Statement { sql: "UPDATE page_session SET seen_at = now_ms() WHERE hash = $1", types: &[Type::BYTEA] };
static END_SESSION: Statement =
    Statement { sql: "DELETE FROM page_session WHERE hash = $1", types: &[Type::BYTEA] };
/// Writes the row even if it is there, so that the answer is the one that all nodes see.
static KEEP_RUN_KEY: Statement = Statement {
    sql: "INSERT INTO setting AS s (name, value) VALUES ($1, $2) \
          ON CONFLICT (name) DO UPDATE SET value = s.value RETURNING value",
    types: &[Type::TEXT, Type::TEXT],
};

macro_rules! token_sql {
    ($rest:literal) => {
        concat!(
            "SELECT id, hash, label, role, pools, created_at, created_by, expires_at, revoked_at, last_used_at FROM token ",
            $rest
        )
    };
}

static TOKENS: Statement = Statement { sql: token_sql!("ORDER BY created_at DESC, id"), types: &[] };
static TOKEN: Statement = Statement { sql: token_sql!("WHERE id = $1"), types: &[Type::TEXT] };

impl PgStore {
    /// Adds a token, unless there are too many. Returns whether it was added.
    pub async fn put_token(&self, token: &TokenRow) -> Result<bool, StoreDown> {
        let (hash, role, pools) =
            (token.hash.0.as_slice(), token.grant.as_str(), pools_to_list(&token.pools));
        let expires_at = token.expires_at.map(Timestamp::as_millis);
        let (kept_for, most) = (DEAD_TOKENS_KEPT_FOR.as_millis(), limit(TOKENS_MAX));
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(
            &tx,
            &PUT_TOKEN,
            [&token.id, &hash, &token.label, &role, &pools, &token.created_by, &expires_at, &kept_for, &most]
        ))?;
        Ok(!rows.is_empty())
    }

    /// All tokens, the newest first.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &TOKENS, []))?;
        read(&rows, token_row)
    }

    /// One token.
    pub async fn token(&self, id: &str) -> Result<Option<TokenRow>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &TOKEN, [&id]))?;
        Ok(read(&rows, token_row)?.pop())
    }

    /// Revokes a token, and ends the page sessions that were opened with it.
    pub async fn revoke_token(&self, id: &str) -> Result<RevokeAnswer, StoreDown> {
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &REVOKE, [&id]))?;
        let counts: Vec<(i64, i64)> = read(&rows, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        Ok(match counts.first() {
            Some((1.., _)) => RevokeAnswer::Revoked,
            Some((_, 1..)) => RevokeAnswer::AlreadyDead,
            _ => RevokeAnswer::Unknown,
        })
    }

    /// Notes that a token was used.
    pub async fn touch_token(&self, id: &str) -> Result<(), StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &TOUCH_TOKEN, [&id]))?;
        Ok(())
    }

    /// Adds a login link.
    pub async fn put_login_link(&self, link: &LoginLinkRow) -> Result<(), StoreDown> {
        let (hash, role) = (link.hash.0.as_slice(), link.role.as_str());
        let (life, most) = (LOGIN_LINK_LIFE.as_millis(), limit(LOGIN_LINKS_MAX - 1));
        transact!(self, ConnectionUse::Write, |tx| ask(
            &tx,
            &PUT_LINK,
            [&hash, &role, &link.created_by, &life, &most]
        ))?;
        Ok(())
    }

    /// Removes a login link and returns it, if it can still be used.
    pub async fn take_login_link(&self, hash: SecretHash) -> Result<Option<LoginLinkRow>, StoreDown> {
        let (bytes, life) = (hash.0.as_slice(), LOGIN_LINK_LIFE.as_millis());
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &TAKE_LINK, [&bytes, &life]))?;
        let link = |row: &Row| {
            Ok(LoginLinkRow { hash, role: role_of(row.try_get(0)?), created_by: row.try_get(1)? })
        };
        Ok(read(&rows, link)?.pop())
    }

    /// Adds a page session that begins now.
    pub async fn put_page_session(&self, session: &PageSessionRow) -> Result<(), StoreDown> {
        let (hash, role) = (session.hash.0.as_slice(), session.role.as_str());
        let (idle, life) = (PAGE_SESSION_IDLE.as_millis(), PAGE_SESSION_LIFE.as_millis());
        let most = limit(PAGE_SESSIONS_MAX - 1);
        transact!(self, ConnectionUse::Write, |tx| ask(
            &tx,
            &PUT_SESSION,
            [&hash, &role, &session.opened_by, &session.token_id, &idle, &life, &most]
        ))?;
        Ok(())
    }

    /// One page session.
    pub async fn page_session(&self, hash: SecretHash) -> Result<Option<PageSessionRow>, StoreDown> {
        let bytes = hash.0.as_slice();
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &SESSION, [&bytes]))?;
        let session = |row: &Row| {
            Ok(PageSessionRow {
                hash,
                role: role_of(row.try_get(0)?),
                opened_by: row.try_get(1)?,
                token_id: row.try_get(2)?,
                created_at: Timestamp::from_millis(row.try_get(3)?),
                seen_at: Timestamp::from_millis(row.try_get(4)?),
            })
        };
        Ok(read(&rows, session)?.pop())
    }

    /// Notes that a page session was used.
    pub async fn touch_page_session(&self, hash: SecretHash) -> Result<(), StoreDown> {
        let bytes = hash.0.as_slice();
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &TOUCH_SESSION, [&bytes]))?;
        Ok(())
    }

    /// Ends a page session.
    pub async fn end_page_session(&self, hash: SecretHash) -> Result<(), StoreDown> {
        let bytes = hash.0.as_slice();
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &END_SESSION, [&bytes]))?;
        Ok(())
    }

    /// Keeps a key of run tokens unless there is one, and returns the one that is kept.
    pub async fn keep_run_key(&self, proposed: &str) -> Result<String, StoreDown> {
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(
            &tx,
            &KEEP_RUN_KEY,
            [&RUN_KEY_SETTING, &proposed]
        ))?;
        let kept = read(&rows, |row| Ok(row.try_get(0)?))?.pop();
        kept.ok_or_else(|| PgError::Retry.down())
    }
}

fn token_row(row: &Row) -> Result<TokenRow, PgError> {
    let instant =
        |idx: usize| Ok::<_, PgError>(row.try_get::<_, Option<i64>>(idx)?.map(Timestamp::from_millis));
    let hash: &[u8] = row.try_get(1)?;
    let hash =
        hash.try_into().map_err(|_| PgError::Text("a token has a hash of another length".to_owned()))?;
    Ok(TokenRow {
        id: row.try_get(0)?,
        hash: SecretHash(hash),
        label: row.try_get(2)?,
        grant: grant_of(row.try_get(3)?),
        pools: pools_from_list(row.try_get(4)?),
        created_at: Timestamp::from_millis(row.try_get(5)?),
        created_by: row.try_get(6)?,
        expires_at: instant(7)?,
        revoked_at: instant(8)?,
        last_used_at: instant(9)?,
    })
}

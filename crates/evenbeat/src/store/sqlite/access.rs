//! Tokens, page sessions and login links.

use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Timestamp;
use rusqlite::{OptionalExtension, Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::write_tx::WriteTx;
use crate::store::access::{
    DEAD_TOKENS_KEPT_FOR, LOGIN_LINK_LIFE, LOGIN_LINKS_MAX, LoginLinkRow, PAGE_SESSION_IDLE,
    PAGE_SESSION_LIFE, PAGE_SESSIONS_MAX, PageSessionRow, RUN_KEY_SETTING, RevokeAnswer, SecretHash,
    TOKENS_MAX, TokenRow, TokenState, grant_of, pools_from_list, pools_to_list, role_of,
};

impl WriteTx<'_> {
    /// Adds a token, unless there are too many. Returns whether it was added.
    pub fn put_token(&mut self, token: &TokenRow) -> Result<bool, StoreDown> {
        let answer = self.do_put_token(token);
        self.or_down(answer)
    }

    fn do_put_token(&mut self, token: &TokenRow) -> Result<bool> {
        let (now, dead_before) = (self.now.as_millis(), (self.now - DEAD_TOKENS_KEPT_FOR).as_millis());
        self.run("DELETE FROM token WHERE revoked_at < ?1 OR expires_at < ?1", [dead_before])?;
        let sql = "SELECT count(*) FROM token WHERE revoked_at IS NULL AND coalesce(?1 < expires_at, 1)";
        let n_valid: i64 = self.read.one(sql, [now], |row| row.get(0))?;
        if limit(TOKENS_MAX) <= n_valid {
            return Ok(false);
        }
        self.run(
            "INSERT INTO token (id, hash, label, role, pools, created_at, created_by, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                token.id,
                token.hash.0,
                token.label,
                token.grant.as_str(),
                pools_to_list(&token.pools),
                now,
                token.created_by,
                token.expires_at.map(Timestamp::as_millis)
            ],
        )?;
        Ok(true)
    }

    /// Revokes a token, and ends the page sessions that were opened with it.
    pub fn revoke_token(&mut self, id: &str) -> Result<RevokeAnswer, StoreDown> {
        let answer = self.do_revoke_token(id);
        self.or_down(answer)
    }

    fn do_revoke_token(&mut self, id: &str) -> Result<RevokeAnswer> {
        let Some(token) = self.read.find_token(id)? else { return Ok(RevokeAnswer::Unknown) };
        self.run("DELETE FROM page_session WHERE token_id = ?1", [id])?;
        if token.state(self.now) != TokenState::Valid {
            return Ok(RevokeAnswer::AlreadyDead);
        }
        self.run("UPDATE token SET revoked_at = ?2 WHERE id = ?1", params![id, self.now.as_millis()])?;
        Ok(RevokeAnswer::Revoked)
    }

    /// Notes that a token was used.
    pub fn touch_token(&mut self, id: &str) -> Result<(), StoreDown> {
        let sql = "UPDATE token SET last_used_at = ?2 WHERE id = ?1";
        let written = self.run(sql, params![id, self.now.as_millis()]);
        self.or_down(written.map(|_| ()))
    }

    /// Adds a login link.
    pub fn put_login_link(&mut self, link: &LoginLinkRow) -> Result<(), StoreDown> {
        let answer = self.do_put_login_link(link);
        self.or_down(answer)
    }

    fn do_put_login_link(&mut self, link: &LoginLinkRow) -> Result<()> {
        let since = (self.now - LOGIN_LINK_LIFE).as_millis();
        self.run("DELETE FROM login_link WHERE created_at <= ?1", [since])?;
        self.run(
            "DELETE FROM login_link WHERE hash IN
             (SELECT hash FROM login_link ORDER BY created_at DESC LIMIT -1 OFFSET ?1)",
            [limit(LOGIN_LINKS_MAX - 1)],
        )?;
        self.run(
            "INSERT INTO login_link (hash, role, created_by, created_at) VALUES (?1, ?2, ?3, ?4)",
            params![link.hash.0, link.role.as_str(), link.created_by, self.now.as_millis()],
        )?;
        Ok(())
    }

    /// Removes a login link and returns it, if it can still be used.
    pub fn take_login_link(&mut self, hash: SecretHash) -> Result<Option<LoginLinkRow>, StoreDown> {
        let since = (self.now - LOGIN_LINK_LIFE).as_millis();
        let sql =
            "DELETE FROM login_link WHERE hash = ?1 AND ?2 < created_at RETURNING hash, role, created_by";
        let taken = self.read.one(sql, params![hash.0, since], |row| {
            let role = role_of(row.get_ref(1)?.as_str()?);
            Ok(LoginLinkRow { hash: SecretHash(row.get(0)?), role, created_by: row.get(2)? })
        });
        self.or_down(taken.optional())
    }

    /// Adds a page session that begins now.
    pub fn put_page_session(&mut self, session: &PageSessionRow) -> Result<(), StoreDown> {
        let answer = self.do_put_page_session(session);
        self.or_down(answer)
    }

    fn do_put_page_session(&mut self, session: &PageSessionRow) -> Result<()> {
        let now = self.now.as_millis();
        let (idle, old) =
            ((self.now - PAGE_SESSION_IDLE).as_millis(), (self.now - PAGE_SESSION_LIFE).as_millis());
        self.run("DELETE FROM page_session WHERE seen_at <= ?1 OR created_at <= ?2", [idle, old])?;
        self.run(
            "DELETE FROM page_session WHERE hash IN
             (SELECT hash FROM page_session ORDER BY seen_at DESC LIMIT -1 OFFSET ?1)",
            [limit(PAGE_SESSIONS_MAX - 1)],
        )?;
        self.run(
            "INSERT INTO page_session (hash, role, opened_by, token_id, created_at, seen_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
            params![session.hash.0, session.role.as_str(), session.opened_by, session.token_id, now],
        )?;
        Ok(())
    }

    /// Notes that a page session was used.
    pub fn touch_page_session(&mut self, hash: SecretHash) -> Result<(), StoreDown> {
        let sql = "UPDATE page_session SET seen_at = ?2 WHERE hash = ?1";
        let written = self.run(sql, params![hash.0, self.now.as_millis()]);
        self.or_down(written.map(|_| ()))
    }

    /// Ends a page session.
    pub fn end_page_session(&mut self, hash: SecretHash) -> Result<(), StoreDown> {
        let written = self.run("DELETE FROM page_session WHERE hash = ?1", [hash.0]);
        self.or_down(written.map(|_| ()))
    }

    /// Keeps a key of run tokens unless there is one, and returns the one that is kept.
    pub fn keep_run_key(&mut self, proposed: &str) -> Result<String, StoreDown> {
        let put = "INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
        let get = "SELECT value FROM setting WHERE name = ?1";
        let kept = self
            .run(put, params![RUN_KEY_SETTING, proposed])
            .and_then(|_| self.read.one(get, [RUN_KEY_SETTING], |row| row.get(0)));
        self.or_down(kept)
    }
}

macro_rules! token_sql {
    ($rest:literal) => {
        concat!(
            "SELECT id, hash, label, role, pools, created_at, created_by, expires_at, revoked_at, last_used_at FROM token ",
            $rest
        )
    };
}

impl ReadTx<'_> {
    /// All tokens, the newest first.
    pub fn tokens(&self) -> Result<Vec<TokenRow>, StoreDown> {
        let sql = token_sql!("ORDER BY created_at DESC, id");
        self.many(sql, [], token_row).map_err(|error| self.down(&error))
    }

    /// One token.
    pub fn token(&self, id: &str) -> Result<Option<TokenRow>, StoreDown> {
        self.find_token(id).map_err(|error| self.down(&error))
    }

    fn find_token(&self, id: &str) -> Result<Option<TokenRow>> {
        self.one(token_sql!("WHERE id = ?1"), [id], token_row).optional()
    }

    /// One page session.
    pub fn page_session(&self, hash: SecretHash) -> Result<Option<PageSessionRow>, StoreDown> {
        let sql =
            "SELECT hash, role, opened_by, token_id, created_at, seen_at FROM page_session WHERE hash = ?1";
        let session = |row: &Row<'_>| {
            Ok(PageSessionRow {
                hash: SecretHash(row.get(0)?),
                role: role_of(row.get_ref(1)?.as_str()?),
                opened_by: row.get(2)?,
                token_id: row.get(3)?,
                created_at: Timestamp::from_millis(row.get(4)?),
                seen_at: Timestamp::from_millis(row.get(5)?),
            })
        };
        self.one(sql, [hash.0], session).optional().map_err(|error| self.down(&error))
    }
}

fn token_row(row: &Row<'_>) -> Result<TokenRow> {
    let instant =
        |idx: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(idx)?.map(Timestamp::from_millis));
    Ok(TokenRow {
        id: row.get(0)?,
        hash: SecretHash(row.get(1)?),
        label: row.get(2)?,
        grant: grant_of(row.get_ref(3)?.as_str()?),
        pools: pools_from_list(row.get_ref(4)?.as_str()?),
        created_at: Timestamp::from_millis(row.get(5)?),
        created_by: row.get(6)?,
        expires_at: instant(7)?,
        revoked_at: instant(8)?,
        last_used_at: instant(9)?,
    })
}

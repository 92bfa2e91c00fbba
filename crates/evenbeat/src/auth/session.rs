//! Page sessions: opened by a login link or with a token, and found again by their cookie.

use std::net::IpAddr;
use std::sync::Arc;

use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::store::StoreDown;
use subtle::ConstantTimeEq;

use super::cache::Cached;
use super::secret::{drawn, form_token, hash_of};
use super::{Auth, AuthError, Authority};
use crate::intake::Actor;
use crate::store::access::{PageSessionRow, SecretHash};

/// A person with a page session.
#[derive(Clone, Debug)]
pub struct PageSession {
    /// Their name in the audit log.
    pub actor: Actor,
    pub role: Role,
    /// Whether it was opened with a token, and not with a login link. No token can create or revoke tokens.
    pub is_of_token: bool,
    /// What the forms of their pages must carry.
    pub form_token: String,
    hash: SecretHash,
}

impl PageSession {
    /// Whether a form carries the right token.
    pub fn accepts(&self, form_token: &str) -> bool {
        self.form_token.as_bytes().ct_eq(form_token.as_bytes()).into()
    }
}

impl Auth {
    /// Opens a session with a token, for as long as the token is valid. Returns what the cookie holds.
    pub async fn open_session_with(&self, token: &str, from: Option<IpAddr>) -> Result<String, AuthError> {
        let identity = self.bearer(token.trim(), from).await?;
        match identity.authority {
            Authority::Token { id, grant: Grant::Role(role) } => {
                Ok(self.open_session(&identity.actor, role, Some(id)).await?)
            }
            // These tokens are for programs.
            _ => Err(AuthError::Unknown),
        }
    }

    /// Opens a session, and returns what the cookie holds.
    pub(super) async fn open_session(
        &self,
        by: &Actor,
        role: Role,
        token_id: Option<String>,
    ) -> Result<String, StoreDown> {
        let cookie = drawn();
        let now = self.inner.clock.now();
        let row = PageSessionRow {
            hash: hash_of(&cookie),
            role,
            opened_by: by.0.clone(),
            token_id,
            created_at: now,
            seen_at: now,
        };
        self.audit(by, "login", "pages".to_owned(), format!("role={role}")).await?;
        self.inner.store.put_page_session(row).await?;
        Ok(cookie)
    }

    /// The session of a cookie, if it is valid.
    pub async fn session(&self, cookie: &str) -> Result<Option<PageSession>, StoreDown> {
        let now = self.inner.clock.both();
        let hash = hash_of(cookie);
        let row = match self.inner.sessions.get(hash, now.boot) {
            Cached::Fresh(row) => Some(row),
            Cached::Stale(row) => match self.look_up_session(hash).await {
                Ok(found) => found,
                Err(_) => Some(row),
            },
            Cached::Unknown => self.look_up_session(hash).await?,
        };
        let Some(row) = row.filter(|it| it.is_valid(now.wall)) else { return Ok(None) };
        if self.inner.sessions.is_touch_due(hash, now.boot) {
            let store = self.inner.store.clone();
            // In the background. If it fails, the next use tries again.
            tokio::spawn(async move { store.touch_page_session(hash).await });
        }
        let actor = Actor(row.opened_by.clone());
        let (role, is_of_token) = (row.role, row.token_id.is_some());
        Ok(Some(PageSession { actor, role, is_of_token, form_token: form_token(cookie), hash }))
    }

    /// Ends a session: here at once, on other nodes within seconds.
    pub async fn end_session(&self, session: &PageSession) -> Result<(), StoreDown> {
        self.inner.sessions.forget(session.hash);
        self.inner.store.end_page_session(session.hash).await?;
        self.audit(&session.actor, "logout", "pages".to_owned(), format!("role={}", session.role)).await
    }

    async fn look_up_session(&self, hash: SecretHash) -> Result<Option<Arc<PageSessionRow>>, StoreDown> {
        let now = self.inner.clock.both();
        let mut row = self.inner.store.page_session(hash).await?.filter(|it| it.hash == hash);
        if let Some(id) = row.as_ref().and_then(|it| it.token_id.clone())
            && !self.is_token_valid(&id, now.wall).await?
        {
            row = None;
        }
        if row.is_none() {
            self.inner.sessions.forget(hash);
        }
        Ok(row.map(|it| self.inner.sessions.put(hash, it, now.boot)))
    }
}

//! Tokens: created, listed, revoked, and recognised.

use std::net::IpAddr;
use std::sync::Arc;

use evenbeat_core::ids::Pool;
use evenbeat_core::rights::Grant;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};

use super::cache::Cached;
use super::secret::{DrawnToken, hash_of, id_of};
use super::{Auth, AuthError};
use crate::intake::Actor;
use crate::store::access::{RevokeAnswer, SecretHash, TOKENS_MAX, TokenRow};

/// Longest label of a token, in characters.
pub const LABEL_CHARS_MAX: usize = 64;

/// A request for a new token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub label: String,
    pub grant: Grant,
    /// The pools that a worker is bound to; none means all.
    pub pools: Vec<Pool>,
    pub expires_in: Option<Duration>,
}

/// Why there is no new token, or none was revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("a label has at most {LABEL_CHARS_MAX} characters and no control characters")]
    BadLabel,
    #[error("only tokens of the role `worker` are bound to pools; leave out the pools, or use that role")]
    PoolsWithoutWorker,
    #[error("there are {TOKENS_MAX} valid tokens already; revoke some with `evenbeat token revoke ID`")]
    TooMany,
    #[error("there is no token `{0}`; `evenbeat token list` shows all")]
    NoSuchToken(String),
    #[error("the token `{0}` is not valid any longer; nothing was changed")]
    AlreadyDead(String),
    #[error(transparent)]
    Down(#[from] StoreDown),
}

impl Auth {
    /// Creates a token. The text is not kept: it is shown once.
    pub async fn create_token(&self, by: &Actor, new: NewToken) -> Result<(TokenRow, String), TokenError> {
        let NewToken { label, grant, pools, expires_in } = new;
        if LABEL_CHARS_MAX < label.chars().count() || label.chars().any(char::is_control) {
            return Err(TokenError::BadLabel);
        }
        if !pools.is_empty() && grant != Grant::Worker {
            return Err(TokenError::PoolsWithoutWorker);
        }
        let drawn = DrawnToken::new();
        let created_at = self.inner.clock.now();
        let row = TokenRow {
            id: drawn.id,
            hash: drawn.hash,
            label,
            grant,
            pools,
            created_at,
            created_by: by.0.clone(),
            expires_at: expires_in.map(|it| created_at + it),
            revoked_at: None,
            last_used_at: None,
        };
        // First: an entry about a token that then was not created does less harm than a token without an entry.
        self.audit(by, "create_token", format!("token {}", row.id), described(&row)).await?;
        if !self.inner.store.put_token(row.clone()).await? {
            return Err(TokenError::TooMany);
        }
        Ok((row, drawn.text))
    }

    /// All tokens, the newest first; dead ones too while they are kept.
    pub async fn list_tokens(&self) -> Result<Vec<TokenRow>, StoreDown> {
        self.inner.store.tokens().await
    }

    /// Ends a token and the page sessions that were opened with it: here at once, on other nodes within seconds.
    pub async fn revoke_token(&self, by: &Actor, id: &str) -> Result<(), TokenError> {
        let Some(row) = self.inner.store.token(id).await? else {
            return Err(TokenError::NoSuchToken(id.to_owned()));
        };
        self.audit(by, "revoke_token", format!("token {id}"), described(&row)).await?;
        let answer = self.inner.store.revoke_token(id.to_owned()).await?;
        self.inner.tokens.forget_if(|it| it.id == id);
        self.inner.sessions.forget_if(|it| it.token_id.as_deref() == Some(id));
        match answer {
            RevokeAnswer::Revoked => Ok(()),
            RevokeAnswer::AlreadyDead => Err(TokenError::AlreadyDead(id.to_owned())),
            RevokeAnswer::Unknown => Err(TokenError::NoSuchToken(id.to_owned())),
        }
    }

    /// Whether any token is valid.
    pub async fn has_tokens(&self) -> Result<bool, StoreDown> {
        let now = self.inner.clock.now();
        let tokens = self.inner.store.tokens().await?;
        Ok(tokens.iter().any(|it| it.state(now) == crate::store::access::TokenState::Valid))
    }

    /// The token of this text, valid or not.
    pub(super) async fn token(&self, text: &str, from: Option<IpAddr>) -> Result<Arc<TokenRow>, AuthError> {
        let now = self.inner.clock.both().boot;
        let (id, hash) = (id_of(text), hash_of(text));
        let cached = self.inner.tokens.get(hash, now);
        let found = match cached {
            Cached::Fresh(row) => row,
            Cached::Stale(row) => match self.look_up(id.unwrap_or_default(), hash).await {
                Ok(found) => found,
                Err(AuthError::Down(why)) => {
                    tracing::debug!(why = why.0, "token accepted without the store");
                    row
                }
                Err(error) => return Err(error),
            },
            Cached::Unknown => {
                if from.is_some_and(|from| self.inner.attempts.are_used_up(from, now)) {
                    return Err(AuthError::TooManyAttempts);
                }
                let found = match id {
                    Some(id) => self.look_up(id, hash).await,
                    None => Err(AuthError::Unknown),
                };
                if let (Err(AuthError::Unknown), Some(from)) = (&found, from) {
                    self.inner.attempts.count(from, now);
                }
                found?
            }
        };
        if self.inner.tokens.is_touch_due(hash, now) {
            let (store, id) = (self.inner.store.clone(), found.id.clone());
            // In the background. If it fails, the next use tries again.
            tokio::spawn(async move { store.touch_token(id).await });
        }
        Ok(found)
    }

    /// Asks the store.
    async fn look_up(&self, id: &str, hash: SecretHash) -> Result<Arc<TokenRow>, AuthError> {
        let row = self.inner.store.token(id).await?.filter(|it| it.hash == hash);
        match row {
            Some(row) => Ok(self.inner.tokens.put(hash, row, self.inner.clock.both().boot)),
            None => {
                self.inner.tokens.forget(hash);
                Err(AuthError::Unknown)
            }
        }
    }

    /// Whether a token of this id is valid now, as the store says.
    pub(super) async fn is_token_valid(&self, id: &str, now: Timestamp) -> Result<bool, StoreDown> {
        let row = self.inner.store.token(id).await?;
        Ok(row.is_some_and(|it| it.state(now) == crate::store::access::TokenState::Valid))
    }
}

/// The name of a token in the audit log.
pub(super) fn actor_name(token: &TokenRow) -> String {
    if token.label.is_empty() {
        format!("token {}", token.id)
    } else {
        format!("token {} ({})", token.id, token.label)
    }
}

fn described(token: &TokenRow) -> String {
    let pools: String = token.pools.iter().flat_map(|it| [" pool=", it.as_str()]).collect();
    let expires = token.expires_at.map_or(String::new(), |at| format!(" expires={at}"));
    format!("{} role={}{pools}{expires}", actor_name(token), token.grant)
}

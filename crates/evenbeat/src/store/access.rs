//! Tokens, page sessions and login links as rows, and the key that run tokens are made from.
//!
//! No secret is stored, only its hash. Rows that are of no use any longer are removed when new ones are added.

use std::fmt;

use evenbeat_core::ids::Pool;
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use subtle::ConstantTimeEq;

use super::any::AnyStore;
use super::sqlite::ReadTx;

/// Largest number of tokens that are valid at the same time.
pub const TOKENS_MAX: usize = 1_000;

/// Largest number of page sessions. A new one replaces the one that was used longest ago.
pub const PAGE_SESSIONS_MAX: usize = 1_000;

/// Largest number of login links that wait to be used. A new one replaces the oldest.
pub const LOGIN_LINKS_MAX: usize = 100;

/// How long revoked and expired tokens are still listed.
pub const DEAD_TOKENS_KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// How long a page session lasts without being used, and at most.
pub const PAGE_SESSION_IDLE: Duration = Duration::from_hours(30 * 24);
pub const PAGE_SESSION_LIFE: Duration = Duration::from_hours(90 * 24);

/// How long a login link can be used.
pub const LOGIN_LINK_LIFE: Duration = Duration::from_secs(60);

/// The name of the setting that holds the key of run tokens, in hexadecimal digits.
pub(super) const RUN_KEY_SETTING: &str = "run_token_key";

/// The hash of a secret. Compared in constant time, and never printed.
#[derive(Clone, Copy)]
pub struct SecretHash(pub [u8; 32]);

impl PartialEq for SecretHash {
    fn eq(&self, other: &SecretHash) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for SecretHash {}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// What people call it by. Not a secret.
    pub id: String,
    pub hash: SecretHash,
    pub label: String,
    pub grant: Grant,
    /// The pools that a worker is bound to; none means all.
    pub pools: Vec<Pool>,
    pub created_at: Timestamp,
    pub created_by: String,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Whether a token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    Valid,
    Expired,
    Revoked,
}

impl TokenRow {
    /// Whether it counts at this instant.
    pub fn state(&self, now: Timestamp) -> TokenState {
        if self.revoked_at.is_some() {
            TokenState::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            TokenState::Expired
        } else {
            TokenState::Valid
        }
    }
}

/// A session of the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSessionRow {
    pub hash: SecretHash,
    pub role: Role,
    /// How the person is called in the audit.
    pub opened_by: String,
    /// The token it was opened with, if any.
    pub token_id: Option<String>,
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub seen_at: Timestamp,
}

impl PageSessionRow {
    /// Whether it counts at this instant.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.seen_at + PAGE_SESSION_IDLE && now < self.created_at + PAGE_SESSION_LIFE
    }
}

/// A login link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginLinkRow {
    pub hash: SecretHash,
    pub role: Role,
    pub created_by: String,
}

/// What came of revoking a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeAnswer {
    Revoked,
    /// It did not count any longer.
    AlreadyDead,
    Unknown,
}

impl AnyStore {
    /// Adds a token, unless there are too many. Returns whether it was added.
    pub async fn put_token(&self, token: TokenRow) -> Result<bool, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.put_token(&token)).await,
            AnyStore::Postgres(server) => server.put_token(&token).await,
        }
    }

    /// All tokens, the newest first; dead ones too while they are kept.
    pub async fn tokens(&self) -> Result<Vec<TokenRow>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.look_async(|tx: &ReadTx<'_>| ReadTx::tokens(tx)).await,
            AnyStore::Postgres(server) => server.tokens().await,
        }
    }

    /// One token.
    pub async fn token(&self, id: &str) -> Result<Option<TokenRow>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => {
                let id = id.to_owned();
                file.look_async(move |tx| tx.token(&id)).await
            }
            AnyStore::Postgres(server) => server.token(id).await,
        }
    }

    /// Revokes a token, and ends the page sessions that were opened with it.
    pub async fn revoke_token(&self, id: String) -> Result<RevokeAnswer, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.revoke_token(&id)).await,
            AnyStore::Postgres(server) => server.revoke_token(&id).await,
        }
    }

    /// Notes that a token was used.
    pub async fn touch_token(&self, id: String) -> Result<(), StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.touch_token(&id)).await,
            AnyStore::Postgres(server) => server.touch_token(&id).await,
        }
    }

    /// Adds a login link.
    pub async fn put_login_link(&self, link: LoginLinkRow) -> Result<(), StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.put_login_link(&link)).await,
            AnyStore::Postgres(server) => server.put_login_link(&link).await,
        }
    }

    /// Removes a login link and returns it, if it can still be used: so it is used only once.
    pub async fn take_login_link(&self, hash: SecretHash) -> Result<Option<LoginLinkRow>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.take_login_link(hash)).await,
            AnyStore::Postgres(server) => server.take_login_link(hash).await,
        }
    }

    /// Adds a page session that begins now.
    pub async fn put_page_session(&self, session: PageSessionRow) -> Result<(), StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.put_page_session(&session)).await,
            AnyStore::Postgres(server) => server.put_page_session(&session).await,
        }
    }

    /// One page session.
    pub async fn page_session(&self, hash: SecretHash) -> Result<Option<PageSessionRow>, StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.look_async(move |tx| tx.page_session(hash)).await,
            AnyStore::Postgres(server) => server.page_session(hash).await,
        }
    }

    /// Notes that a page session was used.
    pub async fn touch_page_session(&self, hash: SecretHash) -> Result<(), StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.touch_page_session(hash)).await,
            AnyStore::Postgres(server) => server.touch_page_session(hash).await,
        }
    }

    /// Ends a page session.
    pub async fn end_page_session(&self, hash: SecretHash) -> Result<(), StoreDown> {
        match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.end_page_session(hash)).await,
            AnyStore::Postgres(server) => server.end_page_session(hash).await,
        }
    }

    /// The key of run tokens, which all nodes share. The first node to ask sets it to `proposed`.
    pub async fn run_token_key(&self, proposed: [u8; 32]) -> Result<[u8; 32], StoreDown> {
        let text = key_to_text(proposed);
        let stored = match self {
            AnyStore::Sqlite(file) => file.ask(move |tx| tx.keep_run_key(&text)).await?,
            AnyStore::Postgres(server) => server.keep_run_key(&text).await?,
        };
        key_from_text(&stored).ok_or_else(|| {
            StoreDown(format!("the setting `{RUN_KEY_SETTING}` is not a 32-byte key; delete its row"))
        })
    }
}

fn key_to_text(key: [u8; 32]) -> String {
    blake3::Hash::from_bytes(key).to_hex().to_string()
}

fn key_from_text(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(|it| *it.as_bytes())
}

/// The names of pools as one text.
pub(super) fn pools_to_list(pools: &[Pool]) -> String {
    serde_json::to_string(&pools.iter().map(Pool::as_str).collect::<Vec<_>>()).unwrap_or_default()
}

/// Reads them back.
pub(super) fn pools_from_list(text: &str) -> Vec<Pool> {
    let names: Vec<String> = serde_json::from_str(text).unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// A role as it is stored. Anything else may look at most: a role that this version does not know must not become a
/// stronger one.
pub(super) fn role_of(text: &str) -> Role {
    Role::ALL.into_iter().find(|it| it.as_str() == text).unwrap_or(Role::Viewer)
}

/// A grant as it is stored. Anything else is good for nothing but the metrics.
pub(super) fn grant_of(text: &str) -> Grant {
    text.parse().unwrap_or(Grant::Metrics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_and_a_hash_does_not_show_itself() {
        let key = [0xa7; 32];
        assert_eq!(key_from_text(&key_to_text(key)), Some(key));
        assert_eq!(key_from_text("a7"), None);
        assert_eq!(format!("{:?}", SecretHash(key)), "SecretHash(…)");
    }

    #[test]
    fn pools_are_read_back() {
        let pools: Vec<Pool> = vec!["default".parse().unwrap(), "browser".parse().unwrap()];
        assert_eq!(pools_from_list(&pools_to_list(&pools)), pools);
        assert!(pools_from_list(&pools_to_list(&[])).is_empty());
    }
}

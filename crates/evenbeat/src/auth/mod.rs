//! Who a caller is (G5): the owner of the socket, a token, a run, or a person with a page session.
//!
//! Secrets are looked up in the store by an id or a hash. Results are cached for a few seconds, so most requests need no
//! query, and a revocation takes effect on every node within [`FRESH_FOR`]. While the store does not answer, a secret
//! that was good a moment ago stays good for at most [`GRACE`]; others are refused. What a caller may do is decided by
//! the extractors of the API and the pages.

mod attempts;
mod cache;
mod link;
mod rate;
mod secret;
mod session;
mod token;

use std::net::IpAddr;
use std::sync::Arc;

use evenbeat_core::ids::RunId;
use evenbeat_core::rights::{Grant, Need, Role};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Duration;

pub use rate::StreamPermit;
pub use session::PageSession;
pub use token::{NewToken, TokenError};

use self::attempts::Attempts;
use self::cache::Cache;
use self::rate::{RateLimits, StreamCounts};
use crate::clock::Clock;
use crate::intake::{Actor, AuditChange};
use crate::store::access::{PageSessionRow, TokenRow, TokenState};
use crate::store::any::AnyStore;
use crate::target::command::TokenKey;

/// How long a look-up counts.
pub const FRESH_FOR: Duration = Duration::from_secs(5);

/// How long a secret that was good stays good while the store does not answer.
pub const GRACE: Duration = Duration::from_secs(60);

/// How often the last use of a token or a session is written, at most.
const TOUCH_EVERY: Duration = Duration::from_mins(1);

/// Settings for authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRules {
    /// Whether every user of this machine is trusted over the loopback interface.
    pub trusts_loopback: bool,
    /// The user that the server runs as. Only it and root may use the socket.
    pub owner_uid: u32,
    /// Requests a second and token, on average; none means no limit.
    pub request_rate: Option<u32>,
}

impl AuthRules {
    /// The rules of a server that runs as this user.
    pub fn new(owner_uid: u32) -> AuthRules {
        AuthRules { trusts_loopback: false, owner_uid, request_rate: None }
    }
}

/// Identifies callers. Clones share all state.
#[derive(Clone, Debug)]
pub struct Auth {
    inner: Arc<AuthState>,
}

#[derive(Debug)]
struct AuthState {
    store: AnyStore,
    clock: Clock,
    run_key: TokenKey,
    rules: AuthRules,
    tokens: Cache<TokenRow>,
    sessions: Cache<PageSessionRow>,
    attempts: Attempts,
    rates: RateLimits,
    streams: StreamCounts,
}

/// A caller that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Their name in the audit log.
    pub actor: Actor,
    pub authority: Authority,
}

/// Where a caller's rights come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The socket of the server's own user. Everything, tokens included.
    Owner,
    /// A trusted machine: everything but tokens.
    TrustedLoopback,
    /// A token of this id.
    Token { id: String, grant: Grant },
    /// A person with a session of the pages, on a page.
    Session(Role),
    /// A run that is open. It may do nothing yet.
    Run(RunId),
}

impl Authority {
    /// Whether it covers what a route needs.
    pub fn covers(&self, need: Need) -> bool {
        match self {
            Authority::Owner | Authority::TrustedLoopback => true,
            Authority::Token { grant, .. } => grant.covers(need),
            Authority::Session(role) => Grant::Role(*role).covers(need),
            Authority::Run(_) => false,
        }
    }
}

/// Why a caller is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no token.
    #[error(
        "this needs a token: send `Authorization: Bearer TOKEN`. The user that runs the server creates one with \
         `evenbeat token create --role viewer`, and opens the pages with `evenbeat login`"
    )]
    Missing,
    /// The header is not `Bearer TOKEN`.
    #[error("the `Authorization` header is not `Bearer TOKEN`; the API takes tokens only")]
    NotBearer,
    /// There is no such token.
    #[error("the token is not valid; create another with `evenbeat token create`")]
    Unknown,
    /// It has expired.
    #[error("the token `{id}` has expired; create another with `evenbeat token create`")]
    Expired { id: String },
    /// It was revoked.
    #[error("the token `{id}` was revoked; create another with `evenbeat token create`")]
    Revoked { id: String },
    /// The run of a run token is over.
    #[error("the run `{0}` of this token is over")]
    RunIsOver(RunId),
    /// The socket belongs to another user.
    #[error("this socket is for the user that runs the server (uid {owner}) and for root, not for uid {uid}")]
    NotOwner { owner: u32, uid: u32 },
    /// Too many wrong tokens.
    #[error("too many wrong tokens from your address; try again in a minute")]
    TooManyAttempts,
    /// More requests than the limit of the token.
    #[error(
        "this token has made more than {rate} requests a second; slow down (the limit is `auth.request_rate`)"
    )]
    TooFast { rate: u32 },
    /// The store does not answer.
    #[error(transparent)]
    Down(#[from] StoreDown),
}

impl Auth {
    /// Looks callers up in a store.
    pub fn new(store: AnyStore, clock: Clock, run_key: TokenKey, rules: AuthRules) -> Auth {
        let rates = RateLimits::new(rules.request_rate);
        let inner = AuthState {
            store,
            clock,
            run_key,
            rules,
            tokens: Cache::default(),
            sessions: Cache::default(),
            attempts: Attempts::default(),
            rates,
            streams: StreamCounts::default(),
        };
        Auth { inner: Arc::new(inner) }
    }

    /// Identifies a peer on the Unix socket.
    pub fn socket_peer(&self, uid: u32) -> Result<Identity, AuthError> {
        let owner = self.inner.rules.owner_uid;
        if uid != owner && uid != 0 {
            return Err(AuthError::NotOwner { owner, uid });
        }
        Ok(Identity { actor: Actor(format!("uid {uid}")), authority: Authority::Owner })
    }

    /// Identifies a TCP peer that sent no token.
    pub fn bare_peer(&self, address: IpAddr) -> Result<Identity, AuthError> {
        if self.inner.rules.trusts_loopback && address.to_canonical().is_loopback() {
            let actor = Actor("loopback".to_owned());
            return Ok(Identity { actor, authority: Authority::TrustedLoopback });
        }
        Err(AuthError::Missing)
    }

    /// Identifies the sender of a token. `from` is the sender's address, if there is one: wrong tokens are counted per
    /// address.
    pub async fn bearer(&self, token: &str, from: Option<IpAddr>) -> Result<Identity, AuthError> {
        if let Some((run, fence)) = self.inner.run_key.verify(token) {
            let row = self.inner.store.run(run).await?;
            let is_open = row.is_some_and(|it| it.fence == fence && it.ended.is_none());
            let identity = Identity { actor: Actor(format!("run {run}")), authority: Authority::Run(run) };
            return if is_open { Ok(identity) } else { Err(AuthError::RunIsOver(run)) };
        }
        let known = self.token(token, from).await?;
        match known.state(self.inner.clock.now()) {
            TokenState::Valid => {}
            TokenState::Expired => return Err(AuthError::Expired { id: known.id.clone() }),
            TokenState::Revoked => return Err(AuthError::Revoked { id: known.id.clone() }),
        }
        if let Some(rate) = self.inner.rates.exceeded(&known.id, self.inner.clock.both().boot) {
            return Err(AuthError::TooFast { rate });
        }
        let actor = Actor(token::actor_name(&known));
        Ok(Identity { actor, authority: Authority::Token { id: known.id.clone(), grant: known.grant } })
    }

    /// Reserves one more stream for a caller until the permit is dropped. None if the caller has too many.
    pub fn stream(&self, identity: &Identity) -> Option<StreamPermit> {
        self.inner.streams.enter(&identity.actor.0)
    }

    async fn audit(
        &self,
        actor: &Actor,
        action: &'static str,
        subject: String,
        detail: String,
    ) -> Result<(), StoreDown> {
        let change = AuditChange { action, subject, detail, ..AuditChange::default() };
        self.inner.store.append_audit(change.by(actor)).await
    }
}

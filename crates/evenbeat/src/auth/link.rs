//! Login links: they open a page session once, within a minute.

use std::net::IpAddr;

use evenbeat_core::rights::Role;
use evenbeat_core::store::StoreDown;

use super::secret::{drawn_code, hash_of};
use super::{Auth, AuthError};
use crate::intake::Actor;
use crate::store::access::LoginLinkRow;

impl Auth {
    /// Creates a login link for a role, and returns its code.
    pub async fn create_login_link(&self, by: &Actor, role: Role) -> Result<String, StoreDown> {
        let code = drawn_code();
        self.audit(by, "create_login_link", "pages".to_owned(), format!("role={role}")).await?;
        let row = LoginLinkRow { hash: hash_of(&code), role, created_by: by.0.clone() };
        self.inner.store.put_login_link(row).await?;
        Ok(code)
    }

    /// Uses a link: opens a session and returns what its cookie holds. None if the link was used or is too old.
    pub async fn use_login_link(
        &self,
        code: &str,
        from: Option<IpAddr>,
    ) -> Result<Option<String>, AuthError> {
        let now = self.inner.clock.both().boot;
        if from.is_some_and(|from| self.inner.attempts.are_used_up(from, now)) {
            return Err(AuthError::TooManyAttempts);
        }
        let Some(link) = self.inner.store.take_login_link(hash_of(code)).await? else {
            if let Some(from) = from {
                self.inner.attempts.count(from, now);
            }
            return Ok(None);
        };
        let actor = Actor(format!("{} (page)", link.created_by));
        Ok(Some(self.open_session(&actor, link.role, None).await?))
    }
}

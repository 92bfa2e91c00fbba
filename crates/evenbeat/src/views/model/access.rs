//! Tokens and login links (G5).

use evenbeat_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{GrantWord, RoleWord, TokenStateWord};
use super::{Instant, Length, Text};
use crate::store::access::{TokenRow, TokenState};

/// What a new token is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// What it may do. Workers may only ask for work and report, and `metrics` only reads the metrics.
    #[schema(value_type = GrantWord)]
    pub role: String,
    /// What it is for, in a few words.
    #[serde(default)]
    pub label: String,
    /// The pools that a worker is bound to; all by default.
    #[serde(default)]
    pub pools: Vec<String>,
    /// How long it is valid, such as `90d`; for ever by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Length>,
}

/// A token that was just created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CreatedToken)]
pub struct TokenAnswer {
    /// The token itself. It is not kept and cannot be shown again.
    pub token: String,
    #[serde(flatten)]
    pub details: TokenView,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    /// What to call it by. The token itself contains it.
    pub id: String,
    /// What it is for.
    pub label: String,
    /// What it may do.
    #[schema(value_type = GrantWord)]
    pub role: Text,
    /// The pools that a worker is bound to; empty for all.
    pub pools: Vec<String>,
    /// Whether it counts.
    #[schema(value_type = TokenStateWord)]
    pub state: Text,
    /// When it was created.
    pub created_at: Instant,
    /// Who created it.
    pub created_by: String,
    /// When it ends; absent if never.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_at: Option<Instant>,
    /// When it was revoked; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revoked_at: Option<Instant>,
    /// When it was last used, to the minute; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_used_at: Option<Instant>,
}

impl TokenView {
    /// A token as it is at this instant.
    pub fn of(row: &TokenRow, now: Timestamp) -> TokenView {
        TokenView {
            id: row.id.clone(),
            label: row.label.clone(),
            role: row.grant.as_str().into(),
            pools: row.pools.iter().map(ToString::to_string).collect(),
            state: match row.state(now) {
                TokenState::Valid => "valid".into(),
                TokenState::Expired => "expired".into(),
                TokenState::Revoked => "revoked".into(),
            },
            created_at: row.created_at.into(),
            created_by: row.created_by.clone(),
            expires_at: row.expires_at.map(Instant),
            revoked_at: row.revoked_at.map(Instant),
            last_used_at: row.last_used_at.map(Instant),
        }
    }
}

/// What a login link is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoginLinkRequest {
    /// The role of the session; `admin` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RoleWord>)]
    pub role: Option<String>,
}

/// A login link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LoginLink)]
pub struct LoginLinkAnswer {
    /// The address to open in a browser. It works once.
    pub url: String,
    /// The role of the session that it opens.
    #[schema(value_type = RoleWord)]
    pub role: Text,
    /// How long it works.
    pub valid_for: Length,
}

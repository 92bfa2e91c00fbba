//! Tokens: create, list, revoke (G5). Only for the owner of the socket.

use axum::Json;
use axum::extract::State;
use evenbeat_core::nearest::shortened;
use evenbeat_core::rights::Grant;
use evenbeat_core::time::Duration;

use crate::api::answer::{Created, NoContent};
use crate::api::caller::SocketOwner;
use crate::api::extract::{Body, TokenPath, UrlQuery};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::auth::{NewToken, TokenError};
use crate::views::model::{FieldError, Page, TokenAnswer, TokenRequest, TokenView};

pub(in crate::api) async fn list(
    _owner: SocketOwner,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<Page<TokenView>>, Problem> {
    let now = api.app.intake.now();
    let items = api.auth.list_tokens().await?.iter().map(|it| TokenView::of(it, now)).collect();
    Ok(Json(Page { items, next: None }))
}

pub(in crate::api) async fn create(
    owner: SocketOwner,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<TokenRequest>,
) -> Result<Created<TokenAnswer>, Problem> {
    let (row, token) = api.auth.create_token(&owner.actor, new_token(request)?).await?;
    let details = TokenView::of(&row, api.app.intake.now());
    Ok(Created(TokenAnswer { token, details }))
}

pub(in crate::api) async fn revoke(
    owner: SocketOwner,
    State(api): State<Api>,
    TokenPath(id): TokenPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<NoContent, Problem> {
    api.auth.revoke_token(&owner.actor, &id).await?;
    Ok(NoContent)
}

/// Reads a request, and reports every field that is wrong.
fn new_token(request: TokenRequest) -> Result<NewToken, Problem> {
    let mut errors = Vec::new();
    let mut wrong =
        |pointer: &str, detail: String| errors.push(FieldError { pointer: pointer.to_owned(), detail });
    let grant = request.role.parse::<Grant>();
    if let Err(error) = grant {
        wrong("/role", format!("`{}` is not a role; {error}", shortened(&request.role)));
    }
    let mut pools = Vec::new();
    for (idx, name) in request.pools.iter().enumerate() {
        match name.parse() {
            Ok(pool) => pools.push(pool),
            Err(error) => wrong(&format!("/pools/{idx}"), format!("{error}")),
        }
    }
    let expires_in = request.expires_in.map(|it| it.0);
    if expires_in.is_some_and(|it| it <= Duration::ZERO) {
        wrong("/expires_in", "a token must be valid for some time".to_owned());
    }
    let (Ok(grant), true) = (grant, errors.is_empty()) else {
        let detail = errors.iter().map(|it| it.detail.clone()).collect::<Vec<_>>().join("; ");
        return Err(Problem::new(Code::InvalidBody, detail).with(errors));
    };
    Ok(NewToken { label: request.label, grant, pools, expires_in })
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Problem {
        let code = match &error {
            TokenError::BadLabel | TokenError::PoolsWithoutWorker => Code::InvalidToken,
            TokenError::TooMany => Code::TooManyTokens,
            TokenError::NoSuchToken(_) => Code::NoSuchToken,
            TokenError::AlreadyDead(_) => Code::TokenIsDead,
            TokenError::Down(down) => return down.clone().into(),
        };
        Problem::new(code, error.to_string())
    }
}

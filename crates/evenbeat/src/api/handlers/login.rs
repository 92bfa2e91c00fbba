//! Login links: they open the pages in a browser (G5). Only for the owner of the socket.

use axum::extract::State;
use evenbeat_core::rights::{Grant, Role};

use crate::api::answer::Created;
use crate::api::caller::SocketOwner;
use crate::api::extract::{Body, UrlQuery};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::store::access::LOGIN_LINK_LIFE;
use crate::views::model::{FieldError, LoginLinkAnswer, LoginLinkRequest};

pub(in crate::api) async fn create_link(
    owner: SocketOwner,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<LoginLinkRequest>,
) -> Result<Created<LoginLinkAnswer>, Problem> {
    let role = match request.role.as_deref().map(str::parse::<Grant>) {
        None => Role::Admin,
        Some(Ok(Grant::Role(role))) => role,
        Some(_) => {
            let detail = "people have the roles `viewer`, `operator`, `editor` or `admin`";
            let errors = vec![FieldError { pointer: "/role".to_owned(), detail: detail.to_owned() }];
            return Err(Problem::new(Code::InvalidBody, detail).with(errors));
        }
    };
    let Some(url) = &api.options.pages_url else {
        let detail = "this server has no pages: it serves its socket alone (`listen = \"none\"`)";
        return Err(Problem::new(Code::NoPages, detail));
    };
    let code = api.auth.create_login_link(&owner.actor, role).await?;
    let answer = LoginLinkAnswer {
        url: format!("{url}/login?code={code}"),
        role: role.as_str().into(),
        valid_for: LOGIN_LINK_LIFE.into(),
    };
    Ok(Created(answer))
}

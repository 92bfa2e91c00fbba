//! Sites, tenants and pools (G3).

use axum::Json;
use axum::extract::State;

use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{SitePath, TenantPath, UrlQuery};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::views::model::{PoolView, SharedList, SiteView, TenantView};
use crate::views::sharing as views;

pub(in crate::api) async fn sites(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<SharedList<SiteView>>, Problem> {
    Ok(Json(views::sites(&api.app).await?))
}

pub(in crate::api) async fn site(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    SitePath(site): SitePath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<SiteView>, Problem> {
    let unknown = Problem::new(Code::NoSuchSite, format!("there is no site `{site}`"));
    views::site(&api.app, site).await?.map(Json).ok_or(unknown)
}

pub(in crate::api) async fn tenants(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<SharedList<TenantView>>, Problem> {
    Ok(Json(views::tenants(&api.app).await?))
}

pub(in crate::api) async fn tenant(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    TenantPath(tenant): TenantPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<TenantView>, Problem> {
    let unknown = Problem::new(Code::NoSuchTenant, format!("there is no tenant `{tenant}`"));
    views::tenant(&api.app, tenant).await?.map(Json).ok_or(unknown)
}

pub(in crate::api) async fn pools(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<SharedList<PoolView>>, Problem> {
    Ok(Json(views::pools(&api.app).await?))
}

//! Sites, tenants and pools: their limits, and how much of them is used.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::engine::{CounterLoad, PoolLoad};
use evenbeat_core::ids::{JobKey, Pool, Site, Tenant};
use evenbeat_core::store::{CounterKey, CounterLimit, SessionKind};

use super::ViewError;
use super::model::{
    Instant, Length, PoolHere, PoolNode, PoolView, SharedLimitView, SharedList, SiteView, TenantView,
};
use crate::app::App;
use crate::store::query::{CounterUse, JobFilter, SharedKind};

/// Most sites, tenants or pools of one list.
const NAMES_MAX: usize = 1_000;

/// Sites that have limits or jobs.
pub(crate) async fn sites(app: &App) -> Result<SharedList<SiteView>, ViewError> {
    let limits = site_limits(app).await?;
    let (names, is_complete) = names(app, SharedKind::Site, limits.keys().map(Site::as_str)).await?;
    let items = site_views(app, &limits, names).await?;
    Ok(SharedList { items, is_complete })
}

/// One site; none if it has neither limits nor jobs.
pub(crate) async fn site(app: &App, site: Site) -> Result<Option<SiteView>, ViewError> {
    let limits = site_limits(app).await?;
    let views = site_views(app, &limits, vec![site.to_string()]).await?;
    let is_limited = limits.contains_key(&site);
    let filter = JobFilter { site: Some(site), ..JobFilter::default() };
    let Some(mut view) = views.into_iter().next() else { return Ok(None) };
    let n_jobs = count(app, filter, &mut view.shared).await?;
    Ok((is_limited || 0 < n_jobs).then_some(view))
}

/// Tenants that have limits or jobs.
pub(crate) async fn tenants(app: &App) -> Result<SharedList<TenantView>, ViewError> {
    let limits = tenant_limits(app).await?;
    let (names, is_complete) = names(app, SharedKind::Tenant, limits.own.keys().map(Tenant::as_str)).await?;
    let items = tenant_views(app, &limits, names).await?;
    Ok(SharedList { items, is_complete })
}

/// One tenant; none if it has neither limits nor jobs.
pub(crate) async fn tenant(app: &App, tenant: Tenant) -> Result<Option<TenantView>, ViewError> {
    let limits = tenant_limits(app).await?;
    let views = tenant_views(app, &limits, vec![tenant.to_string()]).await?;
    let is_limited = limits.own.contains_key(&tenant);
    let filter = JobFilter { tenant: Some(tenant), ..JobFilter::default() };
    let Some(mut view) = views.into_iter().next() else { return Ok(None) };
    let n_jobs = count(app, filter, &mut view.shared).await?;
    Ok((is_limited || 0 < n_jobs).then_some(view))
}

/// Pools that nodes carry or jobs name.
pub(crate) async fn pools(app: &App) -> Result<SharedList<PoolView>, ViewError> {
    let sessions = app.store.sessions().await?;
    let living: Vec<_> =
        sessions.iter().filter(|it| !it.is_dead && it.spec.kind == SessionKind::Node).collect();
    let carried: BTreeSet<&str> =
        living.iter().flat_map(|it| it.spec.pools.keys()).map(Pool::as_str).collect();
    let (names, is_complete) = names(app, SharedKind::Pool, carried.into_iter()).await?;
    let open = app.store.open_runs_by(SharedKind::Pool).await?;
    let here = app.node.ask(|engine, _| engine.pool_loads()).await.ok_or(ViewError::NodeGone)?;
    let pool = |name: String| {
        let nodes: Vec<PoolNode> = living
            .iter()
            .filter_map(|it| {
                let (_, capacity) = it.spec.pools.iter().find(|(pool, _)| pool.as_str() == name)?;
                Some(PoolNode {
                    node: it.spec.node.to_string(),
                    instance: it.spec.name.clone(),
                    capacity: *capacity,
                    state: if it.is_draining { "draining" } else { "living" }.into(),
                })
            })
            .collect();
        PoolView {
            capacity: nodes.iter().map(|it| u64::from(it.capacity)).sum(),
            open_runs: open.get(&name).copied().unwrap_or(0),
            here: here.iter().find(|it| it.pool.as_str() == name).map(pool_here),
            pool: name,
            nodes,
        }
    };
    Ok(SharedList { items: names.into_iter().map(pool).collect(), is_complete })
}

fn pool_here(load: &PoolLoad) -> PoolHere {
    let PoolLoad { capacity, reserved, in_use, n_ready, .. } = *load;
    PoolHere { capacity, reserved, in_use, ready: n_ready as u64 }
}

/// Names that jobs use and others that have limits, sorted; and whether these are all.
async fn names(
    app: &App,
    kind: SharedKind,
    others: impl Iterator<Item = &str>,
) -> Result<(Vec<String>, bool), ViewError> {
    let used = app.store.shared_names(kind, NAMES_MAX + 1).await?;
    let is_complete = used.len() <= NAMES_MAX;
    let names: BTreeSet<String> = used.into_iter().take(NAMES_MAX).chain(others.map(str::to_owned)).collect();
    Ok((names.into_iter().collect(), is_complete))
}

async fn site_limits(app: &App) -> Result<BTreeMap<Site, CounterLimit>, ViewError> {
    app.node.ask(|engine, _| engine.settings().sites.clone()).await.ok_or(ViewError::NodeGone)
}

async fn site_views(
    app: &App,
    limits: &BTreeMap<Site, CounterLimit>,
    names: Vec<String>,
) -> Result<Vec<SiteView>, ViewError> {
    let limit_of = |name: &str| {
        let site: Option<Site> = name.parse().ok();
        site.and_then(|site| limits.get(&site)).copied().unwrap_or_default()
    };
    let counter_of = |name: &str| name.parse().ok().map(CounterKey::Site);
    let shared = shared(app, SharedKind::Site, &names, limit_of, counter_of).await?;
    let view = |(site, shared)| SiteView { site, shared };
    Ok(names.into_iter().zip(shared).map(view).collect())
}

/// The limits of tenants, with and without a plan of their own.
#[derive(Debug)]
struct TenantLimits {
    own: BTreeMap<Tenant, CounterLimit>,
    others: CounterLimit,
}

async fn tenant_limits(app: &App) -> Result<TenantLimits, ViewError> {
    let limits = app.node.ask(|engine, _| {
        let settings = engine.settings();
        TenantLimits { own: settings.tenants.clone(), others: settings.other_tenants }
    });
    limits.await.ok_or(ViewError::NodeGone)
}

async fn tenant_views(
    app: &App,
    limits: &TenantLimits,
    names: Vec<String>,
) -> Result<Vec<TenantView>, ViewError> {
    let limit_of = |name: &str| {
        let tenant: Option<Tenant> = name.parse().ok();
        tenant.and_then(|tenant| limits.own.get(&tenant)).copied().unwrap_or(limits.others)
    };
    let counter_of = |name: &str| name.parse().ok().map(CounterKey::Tenant);
    let shared = shared(app, SharedKind::Tenant, &names, limit_of, counter_of).await?;
    let policy = app.intake.policy();
    let view = |(name, shared): (String, SharedLimitView)| {
        let quota = name.parse().ok().and_then(|tenant: Tenant| policy.tenants.get(&tenant));
        let quota = quota.unwrap_or(&policy.other_tenants);
        TenantView {
            tenant: name,
            plan: Some(quota.plan.clone()).filter(|plan| !plan.is_empty()),
            max_run_time: quota.max_run_time.map(Length),
            shared,
        }
    };
    Ok(names.into_iter().zip(shared).map(view).collect())
}

/// How limits are used, in the order of the names.
async fn shared(
    app: &App,
    kind: SharedKind,
    names: &[String],
    limit_of: impl Fn(&str) -> CounterLimit,
    counter_of: impl Fn(&str) -> Option<CounterKey>,
) -> Result<Vec<SharedLimitView>, ViewError> {
    let open = app.store.open_runs_by(kind).await?;
    let limited: Vec<String> = names.iter().filter(|name| !limit_of(name).is_none()).cloned().collect();
    let counters: Vec<CounterKey> = limited.iter().filter_map(|name| counter_of(name)).collect();
    let uses = app.store.counter_uses(kind, limited).await?;
    let loads = app.node.ask(move |engine, _| -> BTreeMap<String, CounterLoad> {
        counters.iter().map(|it| (it.key().to_owned(), engine.counter_load(it))).collect()
    });
    let loads = loads.await.ok_or(ViewError::NodeGone)?;
    let now = app.intake.now();
    let view = |name: &String| {
        let (limit, used) = (limit_of(name), uses.get(name).copied());
        let CounterUse { last_start_at, starts_last_hour } = used.unwrap_or_default();
        let load = loads.get(name).copied().unwrap_or_default();
        SharedLimitView {
            limits: (&limit).into(),
            open_runs: open.get(name).copied().unwrap_or(0),
            last_start_at: last_start_at.map(Instant),
            starts_last_hour: (!limit.is_none()).then_some(starts_last_hour),
            waiting_here: load.n_waiting as u64,
            full_until: load.refused_until.filter(|at| now < *at).map(Instant),
            ..SharedLimitView::default()
        }
    };
    Ok(names.iter().map(view).collect())
}

/// The first jobs that wait for each of some sites or tenants, as this node sees it.
pub(crate) async fn waiting_jobs(
    app: &App,
    counters: Vec<CounterKey>,
    most: usize,
) -> Result<BTreeMap<String, Vec<JobKey>>, ViewError> {
    let waiting = app.node.ask(move |engine, _| {
        counters.iter().map(|it| (it.key().to_owned(), engine.jobs_waiting_for(it, most))).collect()
    });
    waiting.await.ok_or(ViewError::NodeGone)
}

/// Counts the jobs of one site or tenant, and says so in its view.
async fn count(app: &App, filter: JobFilter, view: &mut SharedLimitView) -> Result<u64, ViewError> {
    let count = app.store.count_jobs(filter).await?;
    view.jobs = Some(count.n);
    view.jobs_is_exact = Some(!count.is_more);
    Ok(count.n)
}

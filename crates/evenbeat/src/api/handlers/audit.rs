//! Who changed what (S17). For operators: they have to know who paused a job, and the entries name people.

use std::ops::RangeInclusive;

use axum::Json;
use axum::extract::State;
use evenbeat_core::ids::JobKey;

use crate::api::caller::{Caller, Operator};
use crate::api::extract::UrlQuery;
use crate::api::params::{Params, Query};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::store::query::AuditFilter;
use crate::views::model::{AuditChain, AuditView, Page};

/// Numbers of entries and links.
const NUMBERS: RangeInclusive<u64> = 0..=i64::MAX.unsigned_abs();

/// Which entries.
#[derive(Debug)]
pub(in crate::api) struct AuditQuery {
    filter: AuditFilter,
    /// Page size.
    limit: usize,
    /// Before this one.
    before: Option<u64>,
}

impl Query for AuditQuery {
    fn read(params: &mut Params) -> AuditQuery {
        let job: Option<JobKey> = params.parsed("job", "Only changes of this job.");
        let subject = params.text("subject", "Only changes of this thing, such as `node web-1`.");
        if job.is_some() && subject.is_some() {
            params.fault("subject", "`job` is the subject; give one of them".to_owned());
        }
        AuditQuery {
            filter: AuditFilter {
                actor: params.text("actor", "Only changes by this token, user or `system`."),
                action: params.text("action", "Only changes of this kind, such as `pause`."),
                subject: job.map(|key| key.to_string()).or(subject),
                actor_kind: None,
                text: None,
                since: params.parsed("since", "Only changes at this instant or later."),
                until: params.parsed("until", "Only changes before this instant."),
            },
            limit: params.limit(),
            before: params.number(
                "before",
                NUMBERS,
                "Continues before this entry: the `next` of the page before.",
            ),
        }
    }
}

pub(in crate::api) async fn list(
    _caller: Caller<Operator>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<AuditQuery>,
) -> Result<Json<Page<AuditView>>, Problem> {
    let page = api.app.store.list_audit(query.filter, query.before, query.limit).await?;
    let items = page.rows.into_iter().map(Into::into).collect();
    Ok(Json(Page { items, next: page.next.map(|no| no.to_string()) }))
}

/// Which part of the chain.
#[derive(Debug)]
pub(in crate::api) struct ChainQuery {
    /// After this link.
    after: u64,
    /// Page size.
    limit: usize,
}

impl Query for ChainQuery {
    fn read(params: &mut Params) -> ChainQuery {
        let after = params.number_or(
            "after",
            NUMBERS,
            0,
            "Continues after this link: the `next` of the page before.",
        );
        ChainQuery { after, limit: params.limit() }
    }
}

pub(in crate::api) async fn chain(
    _caller: Caller<Operator>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<ChainQuery>,
) -> Result<Json<AuditChain>, Problem> {
    let page = api.app.store.audit_chain(query.after, query.limit).await?;
    Ok(Json(AuditChain::of(page, query.limit)))
}

//! The whole fleet at once: declared, compared, exported (G3).

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::spec::written;
use evenbeat_core::value::Table;
use evenbeat_core::zone::Zones;

use super::definition;
use crate::api::caller::{Caller, Editor, Viewer};
use crate::api::extract::{Asked, Body, Nothing, Params, Query};
use crate::api::model::{
    AppliedJob, ApplyAnswer, ApplyCounts, ApplyRequest, DefinitionDoubt, FieldError, JobDefinition, Page,
    field_changes,
};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::intake::{Applied, ApplyOptions, Change};
use crate::store::query::JobFilter;

pub(in crate::api) async fn apply(
    caller: Caller<Editor>,
    State(api): State<Api>,
    Asked(Nothing): Asked<Nothing>,
    Body(request): Body<ApplyRequest>,
) -> Result<Json<ApplyAnswer>, Problem> {
    let now = api.app.intake.now().await;
    let ApplyRequest { jobs, prune, dry_run } = request;
    let read = tokio::task::spawn_blocking(move || read_all(jobs, now));
    let (jobs, warnings) = match read.await {
        Ok(read) => read?,
        Err(fault) => std::panic::resume_unwind(fault.into_panic()),
    };
    let mut applied = api.app.intake.apply(&caller.actor, jobs, ApplyOptions { prune, dry_run }).await?;
    applied.sort_by(|one, other| one.key.cmp(&other.key));
    let mut counts = ApplyCounts::default();
    for it in &applied {
        *match it.change {
            Change::Created => &mut counts.created,
            Change::Changed => &mut counts.changed,
            Change::Unchanged => &mut counts.unchanged,
            Change::Removed => &mut counts.removed,
        } += 1;
    }
    let changes = applied.iter().map(shown).collect();
    Ok(Json(ApplyAnswer { dry_run, counts, changes, warnings }))
}

fn read_all(
    definitions: Vec<JobDefinition>,
    now: evenbeat_core::time::Timestamp,
) -> Result<(Vec<Job>, Vec<DefinitionDoubt>), Problem> {
    let (mut jobs, mut warnings, mut errors) =
        (Vec::with_capacity(definitions.len()), Vec::new(), Vec::new());
    let mut zones = Zones::new();
    let mut first_of: BTreeMap<JobKey, usize> = BTreeMap::new();
    for (idx, one) in definitions.into_iter().enumerate() {
        match definition::read(one, &format!("/jobs/{idx}"), now, &mut zones) {
            Ok(read) => {
                if let Some(first) = first_of.get(&read.job.key) {
                    let key = &read.job.key;
                    let detail = format!("`{key}` is declared twice, first at /jobs/{first}; leave one out");
                    errors.push(FieldError { pointer: format!("/jobs/{idx}/name"), detail });
                }
                first_of.entry(read.job.key.clone()).or_insert(idx);
                warnings.extend(read.warnings);
                jobs.push(read.job);
            }
            Err(faults) => errors.extend(faults),
        }
    }
    if errors.is_empty() { Ok((jobs, warnings)) } else { Err(definition::invalid(errors)) }
}

fn shown(it: &Applied) -> AppliedJob {
    let table = |job: &Option<std::sync::Arc<Job>>| job.as_ref().map_or_else(Table::new, |job| written(job));
    let fields = match it.change {
        Change::Unchanged => Vec::new(),
        Change::Created | Change::Changed | Change::Removed => {
            field_changes(&table(&it.before), &table(&it.after))
        }
    };
    AppliedJob { job: it.key.to_string(), change: it.change.as_str().into(), fields }
}

/// Which part of the fleet.
#[derive(Debug)]
pub(in crate::api) struct ExportQuery {
    /// At most so many.
    limit: usize,
    /// After this key.
    after: Option<JobKey>,
}

impl Query for ExportQuery {
    fn read(params: &mut Params) -> ExportQuery {
        ExportQuery { limit: params.limit(), after: params.parsed("after") }
    }
}

pub(in crate::api) async fn export(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    Asked(query): Asked<ExportQuery>,
) -> Result<Json<Page<JobDefinition>>, Problem> {
    let page = api.app.store.list_jobs(JobFilter::default(), query.after, query.limit).await?;
    let items = page.rows.iter().map(|row| JobDefinition::of(&row.job)).collect();
    Ok(Json(Page { items, next: page.next.map(|key| key.to_string()) }))
}

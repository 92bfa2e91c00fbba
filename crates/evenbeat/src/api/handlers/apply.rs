//! The whole fleet at once: declared, compared, exported (G3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::State;
use axum::{Extension, Json};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::spec::written;
use evenbeat_core::time::Timestamp;
use evenbeat_core::value::Table;
use evenbeat_core::zone::Zones;

use super::definition;
use crate::api::caller::{Caller, Editor, Peer, Viewer};
use crate::api::extract::{BodyText, UrlQuery};
use crate::api::fields;
use crate::api::json::{self, Stopping};
use crate::api::params::{NoParams, Params, Query};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::intake::{ApplyOptions, ApplyResult, JobChange};
use crate::store::query::JobFilter;
use crate::views::model::{
    AppliedJob, ApplyAnswer, ApplyCounts, ApplyRequest, DefinitionDoubt, FieldError, JobDefinition, Page,
    field_changes,
};

/// How many faults of a fleet are told; then it is not read any further.
const FAULTS_MAX: usize = 100;

/// How many jobs can be declared at once.
const JOBS_MAX: usize = 100_000;

pub(in crate::api) async fn apply(
    caller: Caller<Editor>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Extension(peer): Extension<Peer>,
    body: BodyText<ApplyRequest>,
) -> Result<Json<ApplyAnswer>, Problem> {
    let now = api.app.intake.now();
    let turn = api.fleet_turn(peer).await?;
    let given_up = CancelOnDrop::default();
    let is_given_up = Arc::clone(&given_up.0);
    let read = tokio::task::spawn_blocking(move || {
        // Held until the work is over, even if the client is gone.
        let _turn = turn;
        read_fleet(&body.bytes, now, &is_given_up)
    });
    let FleetRequest { jobs, mut warnings, prune, dry_run } = match read.await {
        Ok(read) => read?,
        Err(fault) => std::panic::resume_unwind(fault.into_panic()),
    };
    drop(given_up);
    warnings.extend(definition::doubts_around(&api.app, &jobs, |idx| format!("/jobs/{idx}")).await);
    let mut applied = api
        .app
        .intake
        .apply(&caller.actor, jobs, ApplyOptions { prune, dry_run, ..ApplyOptions::default() })
        .await?;
    applied.sort_by(|one, other| one.key.cmp(&other.key));
    let mut counts = ApplyCounts::default();
    for it in &applied {
        *match it.change {
            JobChange::Created => &mut counts.created,
            JobChange::Changed => &mut counts.changed,
            JobChange::Unchanged => &mut counts.unchanged,
            JobChange::Removed => &mut counts.removed,
        } += 1;
    }
    let changes = applied.iter().map(shown).collect();
    Ok(Json(ApplyAnswer { dry_run, counts, changes, warnings }))
}

/// Signals on drop that the answer is no longer wanted: the client left, or it took too long.
#[derive(Debug, Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A fleet as it was declared.
#[derive(Debug)]
struct FleetRequest {
    jobs: Vec<Job>,
    warnings: Vec<DefinitionDoubt>,
    prune: bool,
    dry_run: bool,
}

/// A fleet while it is read, job by job, so that its text never becomes one large tree.
#[derive(Debug)]
struct FleetReader {
    now: Timestamp,
    zones: Zones,
    jobs: Vec<Job>,
    warnings: Vec<DefinitionDoubt>,
    faults: Vec<FieldError>,
    first_of: BTreeMap<JobKey, usize>,
    /// Why it is not read any further.
    stopped: Option<FieldError>,
}

fn read_fleet(text: &[u8], now: Timestamp, is_given_up: &AtomicBool) -> Result<FleetRequest, Problem> {
    let mut fleet = FleetReader {
        now,
        zones: Zones::new(),
        jobs: Vec::new(),
        warnings: Vec::new(),
        faults: Vec::new(),
        first_of: BTreeMap::new(),
        stopped: None,
    };
    let rest = json::read_each(text, "jobs", &mut |idx, item| {
        if is_given_up.load(Ordering::Relaxed) {
            return Err(Stopping);
        }
        fleet.take(idx, item)
    });
    if let Some(why) = fleet.stopped {
        fleet.faults.push(why);
        return Err(definition::invalid(fleet.faults));
    }
    let ApplyRequest { prune, dry_run, jobs: _ } = fields::read(rest?)?;
    if !fleet.faults.is_empty() {
        return Err(definition::invalid(fleet.faults));
    }
    Ok(FleetRequest { jobs: fleet.jobs, warnings: fleet.warnings, prune, dry_run })
}

impl FleetReader {
    fn take(&mut self, idx: usize, item: serde_json::Value) -> Result<(), Stopping> {
        let place = format!("/jobs/{idx}");
        if idx == JOBS_MAX {
            let detail = format!("there are more than {JOBS_MAX} jobs; send them in parts");
            self.stopped = Some(FieldError { pointer: place, detail });
            return Err(Stopping);
        }
        let object = match item {
            serde_json::Value::Object(object) => object,
            other => {
                let detail = format!("a job must be an object, not {}", fields::kind_of(&other));
                return self.note([FieldError { pointer: place, detail }]);
            }
        };
        match definition::read(JobDefinition(object), &place, self.now, &mut self.zones) {
            Ok(read) => {
                let key = read.job.key.clone();
                let first = *self.first_of.entry(key.clone()).or_insert(idx);
                self.warnings.extend(read.warnings);
                self.jobs.push(read.job);
                if first == idx {
                    return Ok(());
                }
                let detail = format!("`{key}` is declared twice, first at /jobs/{first}; leave one out");
                self.note([FieldError { pointer: format!("{place}/name"), detail }])
            }
            Err(faults) => self.note(faults),
        }
    }

    /// Notes faults, as many as are told.
    fn note(&mut self, faults: impl IntoIterator<Item = FieldError>) -> Result<(), Stopping> {
        self.faults.extend(faults.into_iter().take(FAULTS_MAX - self.faults.len()));
        if self.faults.len() < FAULTS_MAX {
            return Ok(());
        }
        let detail = format!("only the first {FAULTS_MAX} errors are listed; correct them and try again");
        self.stopped = Some(FieldError { pointer: "/jobs".to_owned(), detail });
        Err(Stopping)
    }
}

fn shown(it: &ApplyResult) -> AppliedJob {
    let table = |job: &Option<Arc<Job>>| job.as_ref().map_or_else(Table::new, |job| written(job));
    let fields = match it.change {
        JobChange::Unchanged => Vec::new(),
        JobChange::Created | JobChange::Changed | JobChange::Removed => {
            field_changes(&table(&it.before), &table(&it.after))
        }
    };
    AppliedJob { job: it.key.to_string(), change: it.change.as_str().into(), fields }
}

/// Which part of the fleet.
#[derive(Debug)]
pub(in crate::api) struct ExportQuery {
    /// Page size.
    limit: usize,
    /// After this key.
    after: Option<JobKey>,
}

impl Query for ExportQuery {
    fn read(params: &mut Params) -> ExportQuery {
        ExportQuery { limit: params.limit(), after: params.after_key() }
    }
}

pub(in crate::api) async fn export(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<ExportQuery>,
) -> Result<Json<Page<JobDefinition>>, Problem> {
    let page = api.app.store.list_jobs(JobFilter::default(), query.after, query.limit).await?;
    let items = page.rows.iter().map(|row| JobDefinition::of(&row.job)).collect();
    Ok(Json(Page { items, next: page.next.map(|key| key.to_string()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(n_jobs: usize) -> String {
        let jobs: Vec<String> =
            (0..n_jobs).map(|no| format!(r#"{{"name":"job{no}","manual":true,"command":["x"]}}"#)).collect();
        format!(r#"{{"dry_run":true,"jobs":[{}]}}"#, jobs.join(","))
    }

    fn read(text: &str, is_given_up: bool) -> Result<FleetRequest, Problem> {
        read_fleet(text.as_bytes(), Timestamp::from_millis(0), &AtomicBool::new(is_given_up))
    }

    #[test]
    fn nothing_more_is_read_when_nobody_waits_for_it() {
        let read = |is_given_up| read(&fleet(3), is_given_up).map(|it| (it.jobs.len(), it.dry_run));
        assert_eq!(read(false).unwrap(), (3, true));
        assert!(read(true).is_err());
    }

    #[test]
    fn the_first_faults_are_told_and_the_rest_is_not_read() {
        let faults = |text: &str| read(text, false).unwrap_err().body().errors;
        let all = faults(&format!(r#"{{"jobs":[{}{{}}]}}"#, "{},".repeat(5_000)));
        assert_eq!(all.len(), FAULTS_MAX + 1);
        let last = all.last().unwrap();
        assert_eq!(last.detail, "only the first 100 errors are listed; correct them and try again");
        let few = faults(
            r#"{"jobs":[{"name":"a","manual":true,"command":["x"]},7,{"name":"a","manual":true,"command":["x"]}]}"#,
        );
        let few: Vec<String> = few.iter().map(|it| format!("{} {}", it.pointer, it.detail)).collect();
        assert_eq!(
            few,
            [
                "/jobs/1 a job must be an object, not a number",
                "/jobs/2/name `a` is declared twice, first at /jobs/0; leave one out"
            ]
        );
    }
}

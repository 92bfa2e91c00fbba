//! Everything that is shown of one job, as of one moment.

use evenbeat_core::alert::{AlertSubject, Mute};
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::job::PausedBy;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;

use super::explanation::explanation;
use super::model::{ExplanationView, JobAttainmentView, JobView, OccurrenceView, Page, RunView};
use super::runs::RunSelection;
use super::{ViewError, attainment, jobs, runs, upcoming};
use crate::alerts::MUTES_MAX;
use crate::app::App;
use crate::store::query::{AuditFilter, AuditRow, RunQuery};

/// Most runs of the history that are looked at.
pub(crate) const RUNS_SHOWN: usize = 60;

/// Most starts ahead that are looked at.
pub(crate) const STARTS_SHOWN: usize = 150;

/// Most audit entries of a job that are looked through for who changed it.
const AUDIT_SHOWN: usize = 50;

/// Most keys that are offered in the place of one that is not there.
const NEAR_MAX: usize = 5;

/// One job.
#[derive(Debug)]
pub(crate) struct JobDetail {
    pub(crate) row: JobRow,
    pub(crate) now: Timestamp,
    pub(crate) view: JobView,
    pub(crate) explanation: ExplanationView,
    /// The next starts, and after which instant they go on.
    pub(crate) upcoming: Page<OccurrenceView>,
    /// The latest runs, the latest first.
    pub(crate) runs: Page<RunView>,
    pub(crate) attainment: JobAttainmentView,
    /// Who created or edited it last, if that is among its latest audit entries.
    pub(crate) changed: Option<AuditMark>,
    /// Who paused it, if a person did.
    pub(crate) paused: Option<AuditMark>,
    /// The mutes that cover it now.
    pub(crate) mutes: Vec<Mute>,
}

/// Who did something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditMark {
    pub(crate) actor: String,
    pub(crate) at: Timestamp,
}

impl From<&AuditRow> for AuditMark {
    fn from(row: &AuditRow) -> AuditMark {
        AuditMark { actor: row.entry.actor.clone(), at: row.at }
    }
}

impl JobDetail {
    /// Everything about a job that is there.
    pub(crate) async fn of(app: &App, row: JobRow) -> Result<JobDetail, ViewError> {
        let now = app.intake.now();
        let key = row.job.key.clone();
        let (mut view, explanation, upcoming, runs, attainment, audit, mutes) = tokio::try_join!(
            async { Ok::<_, ViewError>(jobs::view(app, &row, now).await) },
            explanation(app, &row, None),
            upcoming::of_job(app, &row, None, STARTS_SHOWN),
            runs_of(app, &key, None, RUNS_SHOWN),
            attainment::of_job(app, &row),
            async { Ok(app.store.list_audit(of_subject(&key), None, AUDIT_SHOWN).await?) },
            async { Ok(app.store.mutes(MUTES_MAX).await?) },
        )?;
        view.say_last_run(jobs::last_run(app, &row).await?);
        let latest = |actions: &[&str]| {
            audit.rows.iter().find(|it| actions.contains(&it.entry.action.as_str())).map(AuditMark::from)
        };
        let is_paused_by_person = row.state.pause.as_ref().is_some_and(|it| it.by == PausedBy::Operator);
        let paused = latest(&["pause"]).filter(|_| is_paused_by_person);
        let changed = latest(&["create", "edit"]);
        let subject = AlertSubject::Job(key);
        let covers = |mute: &Mute| mute.is_active(now) && mute.covers(&subject, Some(&row.job));
        let mutes = mutes.into_iter().filter(covers).collect();
        Ok(JobDetail { row, now, view, explanation, upcoming, runs, attainment, changed, paused, mutes })
    }

    pub(crate) fn key(&self) -> &JobKey {
        &self.row.job.key
    }
}

fn of_subject(key: &JobKey) -> AuditFilter {
    AuditFilter { subject: Some(key.to_string()), ..AuditFilter::default() }
}

/// Who created or edited a job last, if that is among its latest audit entries.
pub(crate) async fn last_change(app: &App, key: &JobKey) -> Result<Option<AuditMark>, ViewError> {
    let audit = app.store.list_audit(of_subject(key), None, AUDIT_SHOWN).await?;
    let is_change = |it: &&AuditRow| ["create", "edit"].contains(&it.entry.action.as_str());
    Ok(audit.rows.iter().find(is_change).map(AuditMark::from))
}

/// Runs of a job before a run, the latest first, open ones included.
pub(crate) async fn runs_of(
    app: &App,
    key: &JobKey,
    before: Option<RunId>,
    limit: usize,
) -> Result<Page<RunView>, ViewError> {
    let query = RunQuery { key: Some(key.clone()), ..RunQuery::default() };
    runs::list(app, RunSelection { query, open: None }, before, limit).await
}

/// Keys of jobs that look like one that is not there, as far as they are quickly found.
pub(crate) async fn near_keys(app: &App, text: &str) -> Vec<JobKey> {
    let letters: Vec<char> = text.chars().take(64).collect();
    // A part of the key that was not mistyped finds the jobs that share it.
    let part =
        |from: usize, to: usize| -> String { letters.get(from..to).unwrap_or_default().iter().collect() };
    let (n, half) = (letters.len(), letters.len() / 2);
    let name = text.split('@').next().unwrap_or_default().to_owned();
    let mut near: Vec<JobKey> = Vec::new();
    for text in [name, part(0, half), part(half, n)] {
        if text.chars().count() < 3 || NEAR_MAX <= near.len() {
            continue;
        }
        let found = app.fleet.find_keys(text, None, None, NEAR_MAX).await.unwrap_or_default();
        near.extend(found.into_iter().filter(|key| !near.contains(key)).collect::<Vec<_>>());
    }
    near.truncate(NEAR_MAX);
    near
}

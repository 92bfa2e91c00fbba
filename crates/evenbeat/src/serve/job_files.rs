//! The job files that a process was given: applied when it starts, and again when it is asked to read them again (K5).

use std::collections::BTreeSet;
use std::path::PathBuf;

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::spec::written;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

use super::{ServeError, open};
use crate::app::App;
use crate::intake::{Actor, ApplyOptions, ApplyResult, IntakeError, JobChange};
use crate::jobfile::{Diagnostics, load};

/// How many faults of invalid files are logged, one line each.
const FAULTS_MAX: usize = 20;

/// Job files, and what they declared when they were last applied.
#[derive(Debug, Default)]
pub(super) struct JobFiles {
    paths: Vec<PathBuf>,
    declared: BTreeSet<JobKey>,
}

impl JobFiles {
    pub(super) fn new(paths: &[PathBuf]) -> JobFiles {
        JobFiles { paths: paths.to_vec(), declared: BTreeSet::new() }
    }

    /// Looks for job files there from the next reload on.
    pub(super) fn look_in(&mut self, paths: &[PathBuf]) {
        self.paths = paths.to_vec();
    }

    /// Applies what they declared when the process started, before anybody can say otherwise.
    pub(super) async fn apply(&mut self, app: &App, jobs: Vec<Job>) -> Result<(), ServeError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let applied = self.applied(app, jobs).await?;
        tracing::info!(jobs = applied.len(), "job files applied");
        Ok(())
    }

    /// Reads them again and applies what has changed. Files that cannot be used change nothing.
    pub(super) async fn reload(&mut self, app: &App) {
        tracing::info!(paths = self.paths.len(), "reloading job files");
        let (paths, now) = (self.paths.clone(), app.clock.now());
        let read = tokio::task::spawn_blocking(move || read(&paths, now)).await;
        let jobs = match read.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic())) {
            Ok(jobs) => jobs,
            Err(unusable) => return unusable.log(),
        };
        let before = std::mem::take(&mut self.declared);
        match self.applied(app, jobs).await {
            Ok(applied) => log(&applied, before.difference(&self.declared)),
            Err(IntakeError::Down(down)) => {
                self.declared = before;
                tracing::error!(why = down.0, "reloading job files failed; send SIGHUP again");
            }
            Err(error) => {
                self.declared = before;
                tracing::error!(%error, "job files not reloaded; nothing changed");
            }
        }
    }

    async fn applied(&mut self, app: &App, jobs: Vec<Job>) -> Result<Vec<ApplyResult>, IntakeError> {
        let declared = jobs.iter().map(|job| job.key.clone()).collect();
        // Jobs are placed around those that are there.
        app.fleet.read().await;
        let system = Actor("system".to_owned());
        let applied = app.intake.apply(&system, jobs, ApplyOptions::default()).await?;
        self.declared = declared;
        Ok(applied)
    }
}

/// Why job files cannot be used.
enum JobFilesError {
    File(ServeError),
    Faults(Box<Diagnostics>),
}

fn read(paths: &[PathBuf], now: Timestamp) -> Result<Vec<Job>, JobFilesError> {
    let texts = open::texts(paths).map_err(JobFilesError::File)?;
    let loaded =
        load(&texts, now, &mut Zones::new()).map_err(|faults| JobFilesError::Faults(Box::new(faults)))?;
    Ok(loaded.files.into_iter().flat_map(|it| it.jobs).map(|it| it.job).collect())
}

impl JobFilesError {
    fn log(self) {
        const SAID: &str = "job files not reloaded; nothing changed";
        match self {
            JobFilesError::File(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, source, "{SAID}");
            }
            JobFilesError::Faults(faults) => {
                for fault in faults.iter().take(FAULTS_MAX) {
                    let file = faults.source_of(fault).map(|it| it.name.as_str());
                    let line = faults.positions_of(fault).map(|(from, _)| from.line);
                    tracing::error!(file, line, error = fault.message, "job file invalid");
                }
                tracing::error!(faults = faults.len(), "{SAID}");
            }
        }
    }
}

/// Says what became of each job that changed, and of those that are no longer in any file.
fn log<'a>(applied: &[ApplyResult], undeclared: impl Iterator<Item = &'a JobKey>) {
    let count = |change| applied.iter().filter(|it| it.change == change).count();
    for it in applied {
        let job = &it.key;
        match it.change {
            JobChange::Created => tracing::info!(%job, "job created"),
            JobChange::Changed => tracing::info!(%job, fields = changed_fields(it), "job changed"),
            JobChange::Removed => tracing::info!(%job, "job removed"),
            JobChange::Unchanged => {}
        }
    }
    for job in undeclared {
        tracing::warn!(%job, "job no longer in any job file; it stays until it is deleted");
    }
    let (created, changed, unchanged) =
        (count(JobChange::Created), count(JobChange::Changed), count(JobChange::Unchanged));
    tracing::info!(created, changed, unchanged, "job files reloaded");
}

/// The names of the fields that are not what they were.
fn changed_fields(it: &ApplyResult) -> String {
    let table = |job: &Option<std::sync::Arc<Job>>| job.as_ref().map(|job| written(job)).unwrap_or_default();
    let (before, after) = (table(&it.before), table(&it.after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    changed.map(String::as_str).collect::<Vec<_>>().join(",")
}

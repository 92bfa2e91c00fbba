//! `evenbeat job`: the jobs of a server.

mod add;
mod backfill;
mod edit;
mod filter;
mod list;
mod many;
mod set;
mod show;

use clap::{Args, Subcommand};
use evenbeat_core::ids::JobKey;
use serde_json::{Map, Value as Json};

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, relative};
use super::remote::{CommandResult, RemoteContext};
use super::when::When;
use crate::views::model::{BulkVerb, JobView, PauseRequest, TriggerAnswer, TriggerRequest};
use many::JobTarget;

/// Arguments of `evenbeat job`.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    action: JobAction,
}

#[derive(Debug, Subcommand)]
enum JobAction {
    /// List jobs, sorted by key.
    List(list::JobListArgs),
    /// Show the details of a job.
    Show {
        /// Job key.
        key: JobKey,
    },
    /// Show how much of the time a job was fresh.
    Stats {
        /// Job key.
        key: JobKey,
    },
    /// Add a job that runs a command, as in `evenbeat job add shop --every 6h -- scrapy crawl shop`.
    Add(Box<add::AddArgs>),
    /// Change some fields of a job, as in `evenbeat job set shop every=8h cost=2`.
    Set(set::SetArgs),
    /// Edit the definition of a job in your editor.
    Edit(edit::EditArgs),
    /// Pause a job, or all jobs that match filters. Runs in progress are allowed to finish.
    Pause {
        #[command(flatten)]
        target: Box<many::TargetArgs>,
        /// Reason to show to other people.
        #[arg(long)]
        reason: Option<String>,
        /// Resume automatically at this time: `2h` (from now), `tomorrow`, `2026-11-17`, or an instant.
        #[arg(long, value_name = "WHEN")]
        until: Option<When>,
    },
    /// Resume paused jobs and choose new times for them.
    Resume {
        #[command(flatten)]
        target: Box<many::TargetArgs>,
    },
    /// Run a job, or all jobs that match filters, now.
    Trigger {
        #[command(flatten)]
        target: Box<many::TargetArgs>,
        /// Parameters for this run, as a JSON object; they override the job's own.
        #[arg(long, value_name = "JSON")]
        params: Option<String>,
        /// Idempotency key: repeating the request with the same key starts no second run.
        #[arg(long, value_name = "TEXT")]
        idempotency_key: Option<String>,
        /// Print the run's output until it ends, and exit with its exit code.
        #[arg(short, long)]
        follow: bool,
    },
    /// Request runs for past occurrences. They start behind live work, the oldest first.
    Backfill(backfill::BackfillArgs),
    /// Delete a job, or all jobs that match filters. Runs in progress are allowed to finish.
    Delete {
        #[command(flatten)]
        target: Box<many::TargetArgs>,
    },
}

pub(crate) fn run(args: JobArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match args.action {
        JobAction::List(args) => list::run(&args, remote),
        JobAction::Show { key } => show::run(&key, remote),
        JobAction::Stats { key } => super::attainment::of_job(&key, remote),
        JobAction::Add(args) => add::run(&args, remote),
        JobAction::Set(args) => set::run(&args, remote),
        JobAction::Edit(args) => edit::run(&args, remote),
        JobAction::Backfill(args) => backfill::run(&args, remote),
        JobAction::Pause { target, reason, until } => {
            let pause = PauseRequest { reason, until: until.map(|it| it.ahead(&remote.clock).into()) };
            match target.target()? {
                JobTarget::One(key) => self::pause(&key, &pause, remote),
                JobTarget::Many(filter, consent) => {
                    many::run(BulkVerb::Pause, &pause, &filter, consent, remote)
                }
            }
        }
        JobAction::Resume { target } => match target.target()? {
            JobTarget::One(key) => {
                let request = ApiRequest::post(&["jobs", key.as_str(), "resume"]);
                remote.send_and_print::<JobView>(request, tell_next)?;
                Ok(Exit::Ok)
            }
            JobTarget::Many(filter, consent) => {
                many::run(BulkVerb::Resume, &PauseRequest::default(), &filter, consent, remote)
            }
        },
        JobAction::Trigger { target, params, idempotency_key, follow } => match target.target()? {
            JobTarget::One(key) => trigger(&key, params, idempotency_key, follow, remote),
            JobTarget::Many(..) if params.is_some() || idempotency_key.is_some() || follow => {
                let why = "--params, --idempotency-key and --follow are for one job; name it";
                Err(CommandError::Usage(why.to_owned()))
            }
            JobTarget::Many(filter, consent) => {
                many::run(BulkVerb::Trigger, &PauseRequest::default(), &filter, consent, remote)
            }
        },
        JobAction::Delete { target } => match target.target()? {
            JobTarget::One(key) => delete(&key, remote),
            JobTarget::Many(filter, consent) => {
                many::run(BulkVerb::Delete, &PauseRequest::default(), &filter, consent, remote)
            }
        },
    }
}

fn pause(key: &JobKey, pause: &PauseRequest, remote: &mut RemoteContext<'_>) -> CommandResult {
    let request = ApiRequest::post(&["jobs", key.as_str(), "pause"]).json(pause);
    remote.send_and_print::<JobView>(request, |job, remote| {
        let until = job.pause_until.map_or(String::new(), |at| format!(" until {}", remote.clock.at(at.0)));
        writeln!(remote.out, "{BOLD}{}{BOLD:#} paused{until}", job.key)?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

fn trigger(
    key: &JobKey,
    params: Option<String>,
    idempotency_key: Option<String>,
    follow: bool,
    remote: &mut RemoteContext<'_>,
) -> CommandResult {
    let params = params.map(|text| read_params(&text)).transpose()?;
    let request = ApiRequest::post(&["jobs", key.as_str(), "trigger"])
        .header("idempotency-key", idempotency_key)
        .json(&TriggerRequest { params });
    if follow {
        let triggered: TriggerAnswer = remote.send(request)?.read()?;
        writeln!(remote.err, "requested run {} of {}", triggered.id, triggered.job)?;
        return super::run::follow_request(&triggered.id, remote);
    }
    remote.send_and_print::<TriggerAnswer>(request, |it, remote| {
        writeln!(remote.out, "requested run {} of {BOLD}{}{BOLD:#}", it.id, it.job)?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

fn delete(key: &JobKey, remote: &mut RemoteContext<'_>) -> CommandResult {
    remote.send(ApiRequest::delete(&["jobs", key.as_str()]))?;
    if remote.json {
        super::format::json(remote.out, &serde_json::json!({ "job": key.as_str(), "deleted": true }))?;
    } else {
        writeln!(remote.out, "{BOLD}{key}{BOLD:#} deleted")?;
    }
    Ok(Exit::Ok)
}

fn read_params(text: &str) -> Result<Map<String, Json>, CommandError> {
    serde_json::from_str(text)
        .map_err(|error| CommandError::Usage(format!("--params is not a JSON object: {error}")))
}

/// Prints when a job runs next.
fn tell_next(job: &JobView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    match job.next_run_at {
        Some(at) => {
            writeln!(
                remote.out,
                "{BOLD}{}{BOLD:#} runs next at {} ({})",
                job.key,
                remote.clock.at(at.0),
                relative(at.0, remote.now)
            )?;
        }
        None => writeln!(remote.out, "{BOLD}{}{BOLD:#} is {}; no run is due", job.key, job.status)?,
    }
    Ok(())
}

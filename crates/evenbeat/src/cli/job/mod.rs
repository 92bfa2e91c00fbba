//! `evenbeat job`: the jobs of a server.

mod add;
mod list;
mod show;

use clap::{Args, Subcommand};
use evenbeat_core::ids::JobKey;
use serde_json::{Map, Value as Json};

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, relative};
use super::remote::{CommandResult, RemoteContext};
use crate::views::model::{JobView, PauseRequest, TriggerAnswer, TriggerRequest};

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
    /// Add a job that runs a command, as in `evenbeat job add shop --every 6h -- scrapy crawl shop`.
    Add(Box<add::AddArgs>),
    /// Pause a job. Runs in progress are allowed to finish.
    Pause {
        /// Job key.
        key: JobKey,
        /// Reason to show to other people.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a paused job and choose a new time for it.
    Resume {
        /// Job key.
        key: JobKey,
    },
    /// Run a job now.
    Trigger {
        /// Job key.
        key: JobKey,
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
    /// Delete a job. Runs in progress are allowed to finish.
    Delete {
        /// Job key.
        key: JobKey,
    },
}

pub(crate) fn run(args: JobArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match args.action {
        JobAction::List(args) => list::run(&args, remote),
        JobAction::Show { key } => show::run(&key, remote),
        JobAction::Add(args) => add::run(&args, remote),
        JobAction::Pause { key, reason } => {
            let request = ApiRequest::post(&["jobs", key.as_str(), "pause"]).json(&PauseRequest { reason });
            remote.send_and_print::<JobView>(request, |job, remote| {
                writeln!(remote.out, "{BOLD}{}{BOLD:#} paused", job.key)?;
                Ok(())
            })?;
            Ok(Exit::Ok)
        }
        JobAction::Resume { key } => {
            let request = ApiRequest::post(&["jobs", key.as_str(), "resume"]);
            remote.send_and_print::<JobView>(request, tell_next)?;
            Ok(Exit::Ok)
        }
        JobAction::Trigger { key, params, idempotency_key, follow } => {
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
        JobAction::Delete { key } => {
            remote.send(ApiRequest::delete(&["jobs", key.as_str()]))?;
            if remote.json {
                super::format::json(
                    remote.out,
                    &serde_json::json!({ "job": key.as_str(), "deleted": true }),
                )?;
            } else {
                writeln!(remote.out, "{BOLD}{key}{BOLD:#} deleted")?;
            }
            Ok(Exit::Ok)
        }
    }
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

//! `evenbeat job`: the jobs of a server.

mod add;
mod list;
mod show;

use clap::{Args, Subcommand};
use evenbeat_core::ids::JobKey;
use serde_json::{Map, Value as Json};

use super::Exit;
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, relative};
use crate::views::model::{JobView, PauseRequest, TriggerAnswer, TriggerRequest};

/// Arguments of `evenbeat job`.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List jobs, sorted by key.
    List(list::ListArgs),
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

pub(crate) fn run(args: JobArgs, desk: &mut Desk<'_>) -> Done {
    match args.action {
        Action::List(args) => list::run(&args, desk),
        Action::Show { key } => show::run(&key, desk),
        Action::Add(args) => add::run(&args, desk),
        Action::Pause { key, reason } => {
            let ask = Ask::post(&["jobs", key.as_str(), "pause"]).json(&PauseRequest { reason });
            desk.ask_and_show::<JobView>(ask, |job, desk| {
                writeln!(desk.out, "{BOLD}{}{BOLD:#} paused", job.key)?;
                Ok(())
            })?;
            Ok(Exit::Ok)
        }
        Action::Resume { key } => {
            let ask = Ask::post(&["jobs", key.as_str(), "resume"]);
            desk.ask_and_show::<JobView>(ask, tell_next)?;
            Ok(Exit::Ok)
        }
        Action::Trigger { key, params, idempotency_key, follow } => {
            let params = params.map(|text| read_params(&text)).transpose()?;
            let ask = Ask::post(&["jobs", key.as_str(), "trigger"])
                .header("idempotency-key", idempotency_key)
                .json(&TriggerRequest { params });
            if follow {
                let triggered: TriggerAnswer = desk.ask(ask)?.read()?;
                writeln!(desk.err, "requested run {} of {}", triggered.id, triggered.job)?;
                return super::run::follow_request(&triggered.id, desk);
            }
            desk.ask_and_show::<TriggerAnswer>(ask, |it, desk| {
                writeln!(desk.out, "requested run {} of {BOLD}{}{BOLD:#}", it.id, it.job)?;
                Ok(())
            })?;
            Ok(Exit::Ok)
        }
        Action::Delete { key } => {
            desk.ask(Ask::delete(&["jobs", key.as_str()]))?;
            if desk.json {
                super::show::json(desk.out, &serde_json::json!({ "job": key.as_str(), "deleted": true }))?;
            } else {
                writeln!(desk.out, "{BOLD}{key}{BOLD:#} deleted")?;
            }
            Ok(Exit::Ok)
        }
    }
}

fn read_params(text: &str) -> Result<Map<String, Json>, Trouble> {
    serde_json::from_str(text)
        .map_err(|error| Trouble::Usage(format!("--params is not a JSON object: {error}")))
}

/// Prints when a job runs next.
fn tell_next(job: &JobView, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    match job.next_run_at {
        Some(at) => {
            writeln!(
                desk.out,
                "{BOLD}{}{BOLD:#} runs next at {} ({})",
                job.key,
                desk.clock.at(at.0),
                relative(at.0, desk.now)
            )?;
        }
        None => writeln!(desk.out, "{BOLD}{}{BOLD:#} is {}; no run is due", job.key, job.status)?,
    }
    Ok(())
}

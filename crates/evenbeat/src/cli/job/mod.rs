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
use crate::api::model::{JobView, PauseRequest, TriggerRequest, Triggered};

/// What is done with jobs.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List jobs, by key.
    List(list::ListArgs),
    /// Show everything about a job.
    Show {
        /// Its key.
        key: JobKey,
    },
    /// Add a job that runs a command: `evenbeat job add shop --every 6h -- scrapy crawl shop`.
    Add(Box<add::AddArgs>),
    /// Pause a job. Runs in progress may finish.
    Pause {
        /// Its key.
        key: JobKey,
        /// Why, for other people to read.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Resume a paused job, with a newly chosen time.
    Resume {
        /// Its key.
        key: JobKey,
    },
    /// Run a job now.
    Trigger {
        /// Its key.
        key: JobKey,
        /// Handed to the run, over the job's own: a JSON object.
        #[arg(long, value_name = "JSON")]
        params: Option<String>,
        /// A text of your choice: asked again with the same one, nothing more is run.
        #[arg(long, value_name = "TEXT")]
        idempotency_key: Option<String>,
        /// Print what the run writes until it is over, and end with its exit code.
        #[arg(short, long)]
        follow: bool,
    },
    /// Delete a job. Runs in progress may finish.
    Delete {
        /// Its key.
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
                writeln!(desk.out, "{BOLD}{}{BOLD:#} is paused", job.key)?;
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
                let triggered: Triggered = desk.ask(ask)?.read()?;
                writeln!(desk.err, "run {} of {} requested", triggered.id, triggered.job)?;
                return super::run::follow_request(&triggered.id, desk);
            }
            desk.ask_and_show::<Triggered>(ask, |it, desk| {
                writeln!(desk.out, "run {} of {BOLD}{}{BOLD:#} requested", it.id, it.job)?;
                Ok(())
            })?;
            Ok(Exit::Ok)
        }
        Action::Delete { key } => {
            desk.ask(Ask::delete(&["jobs", key.as_str()]))?;
            if desk.json {
                super::show::json(desk.out, &serde_json::json!({ "job": key.as_str(), "deleted": true }))?;
            } else {
                writeln!(desk.out, "{BOLD}{key}{BOLD:#} is deleted")?;
            }
            Ok(Exit::Ok)
        }
    }
}

fn read_params(text: &str) -> Result<Map<String, Json>, Trouble> {
    serde_json::from_str(text)
        .map_err(|error| Trouble::Usage(format!("--params is not a JSON object: {error}")))
}

/// When a job runs next.
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

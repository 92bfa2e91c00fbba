//! `evenbeat job pause --site shop.example`: one action on all jobs that match a filter.

use clap::Args;
use evenbeat_core::ids::JobKey;

use super::super::chart::counted;
use super::super::client::{ApiRequest, CommandError};
use super::super::confirm::{Consent, confirmed};
use super::super::format::{self, NOTICE};
use super::super::remote::{CommandResult, RemoteContext};
use super::super::{Exit, chart};
use super::filter::FilterArgs;
use crate::printable;
use crate::views::model::{BulkAnswer, BulkRequest, BulkVerb, PauseRequest};

/// The job or jobs of an action: one key, or a filter.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Job key. Leave it out to act on all jobs that match the filters.
    key: Option<JobKey>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Act on all jobs of the server.
    #[arg(long, help_heading = "Filters")]
    all: bool,
    /// Only count the jobs that match, and show some.
    #[arg(long, help_heading = "Filters")]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long, help_heading = "Filters")]
    yes: bool,
}

/// What is acted on.
pub(super) enum JobTarget {
    One(JobKey),
    Many(FilterArgs, Consent),
}

impl TargetArgs {
    /// What is acted on, or what is wrong with the arguments.
    pub(super) fn target(self) -> Result<JobTarget, CommandError> {
        let usage = |text: &str| Err(CommandError::Usage(text.to_owned()));
        let TargetArgs { key, filter, all, dry_run, yes } = self;
        match key {
            Some(_) if all || !filter.is_empty() => usage("name a job, or give filters, not both"),
            Some(_) if dry_run => {
                usage("--dry-run counts the jobs that match filters; leave it out for one job")
            }
            Some(key) => Ok(JobTarget::One(key)),
            None if filter.is_empty() && !all => {
                usage("name a job, or give a filter such as `--site shop.example`, or `--all` for all jobs")
            }
            None if !filter.is_empty() && all => {
                usage("--all means all jobs; leave it out, or leave out the filters")
            }
            None => Ok(JobTarget::Many(filter, Consent::of(dry_run, yes))),
        }
    }
}

pub(super) fn run(
    verb: BulkVerb,
    pause: &PauseRequest,
    filter: &FilterArgs,
    consent: Consent,
    remote: &mut RemoteContext<'_>,
) -> CommandResult {
    let request = |dry_run: bool, expect: Option<u64>, after: Option<String>| {
        let (filter, PauseRequest { reason, until }) = (filter.to_filter(), pause.clone());
        let body = BulkRequest { action: verb, filter, dry_run, expect, reason, until, after };
        ApiRequest::post(&["bulk"]).json(&body)
    };
    let found: BulkAnswer = remote.send(request(true, None, None))?.read()?;
    let n = found.matched.unwrap_or(0);
    if consent == Consent::Preview && remote.json {
        format::json(remote.out, &serde_json::to_value(&found).unwrap_or_default())?;
        return Ok(Exit::Ok);
    }
    if !remote.json {
        print_matches(&found, n, remote)?;
    }
    if n == 0 && !remote.json || consent == Consent::Preview {
        return Ok(Exit::Ok);
    }
    let mut question = verb.as_str().to_owned();
    question.get_mut(..1).map(str::make_ascii_uppercase);
    if !confirmed(consent, &format!("{question} {}?", counted(n, "job")), remote)? {
        return Ok(Exit::Ok);
    }
    let mut total: BulkAnswer = remote.send(request(false, Some(n), None))?.read()?;
    while let Some(after) = total.next.take() {
        let part: BulkAnswer = remote.send(request(false, Some(n), Some(after)))?.read()?;
        total.done += part.done;
        total.unchanged += part.unchanged;
        total.failed += part.failed;
        total.failures.extend(part.failures);
        total.next = part.next;
    }
    if remote.json {
        format::json(remote.out, &serde_json::to_value(&total).unwrap_or_default())?;
    } else {
        print_done(verb, &total, remote)?;
    }
    Ok(if total.failed == 0 { Exit::Ok } else { Exit::Failed })
}

fn print_matches(found: &BulkAnswer, n: u64, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if n == 0 {
        writeln!(remote.out, "no jobs match")?;
        return Ok(());
    }
    let more = if chart::to_u64(found.sample.len()) < n { ", …" } else { "" };
    let verb = if n == 1 { "matches" } else { "match" };
    writeln!(remote.out, "{} {verb}: {}{more}", counted(n, "job"), found.sample.join(", "))?;
    Ok(())
}

fn print_done(
    verb: BulkVerb,
    total: &BulkAnswer,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
    let done = match verb {
        BulkVerb::Pause => "paused",
        BulkVerb::Resume => "resumed",
        BulkVerb::Trigger => "triggered",
        BulkVerb::Delete => "deleted",
    };
    let unchanged = match verb {
        BulkVerb::Pause => "already paused",
        BulkVerb::Resume => "not paused",
        BulkVerb::Trigger | BulkVerb::Delete => "unchanged",
    };
    let parts: Vec<String> = [(total.done, done), (total.unchanged, unchanged), (total.failed, "failed")]
        .into_iter()
        .filter(|(n, word)| 0 < *n || *word == done)
        .map(|(n, word)| format!("{} {word}", chart::thousands(n)))
        .collect();
    writeln!(remote.out, "{}", parts.join(", "))?;
    for failure in &total.failures {
        writeln!(remote.err, "{NOTICE}failed{NOTICE:#}: {}", printable::line(&failure.detail))?;
    }
    let n_more = total.failed.saturating_sub(chart::to_u64(total.failures.len()));
    if 0 < n_more {
        writeln!(remote.err, "… and {n_more} more")?;
    }
    Ok(())
}

//! `evenbeat job backfill`: runs for past occurrences.

use clap::Args;
use evenbeat_core::ids::JobKey;

use super::super::Exit;
use super::super::chart::{counted, to_u64};
use super::super::client::{ApiRequest, CommandError};
use super::super::confirm::{Consent, confirmed};
use super::super::format::{self, BOLD, NOTICE};
use super::super::remote::{CommandResult, RemoteContext};
use super::super::table::{Cell, Fit, words};
use super::super::when::When;
use crate::views::model::{BackfillAnswer, BackfillRequest};

/// Arguments of `evenbeat job backfill`.
#[derive(Debug, Args)]
pub(crate) struct BackfillArgs {
    /// Job key.
    key: JobKey,
    /// Start of the range: `7d` (ago), `yesterday`, `2026-11-10`, or an instant.
    #[arg(long, value_name = "WHEN")]
    from: When,
    /// End of the range (exclusive) [default: now].
    #[arg(long, value_name = "WHEN")]
    to: Option<When>,
    /// At most this many runs, the oldest occurrences first. Up to 100 runs of a job can wait.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    max: Option<u32>,
    /// Only show the occurrences.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(args: &BackfillArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let from = args.from.before(&remote.clock).into();
    let to = args.to.map(|to| to.before(&remote.clock).into());
    let request = |dry_run: bool| {
        let body = BackfillRequest { from, to, max: args.max, dry_run };
        ApiRequest::post(&["jobs", args.key.as_str(), "backfill"]).json(&body)
    };
    let consent = Consent::of(args.dry_run, args.yes);
    let answer = remote.send(request(true))?;
    let plan: BackfillAnswer = answer.read()?;
    if consent == Consent::Preview && remote.json {
        format::json(remote.out, &answer.read()?)?;
        return Ok(Exit::Ok);
    }
    if !remote.json {
        print(&plan, remote)?;
    }
    if plan.runs.is_empty() && !remote.json || consent == Consent::Preview {
        return Ok(Exit::Ok);
    }
    let n = to_u64(plan.runs.len());
    if !confirmed(consent, &format!("Request {} of {}?", counted(n, "run"), plan.job), remote)? {
        return Ok(Exit::Ok);
    }
    remote.send_and_print::<BackfillAnswer>(request(false), |done, remote| {
        let runs = counted(to_u64(done.runs.len()), "run");
        writeln!(remote.out, "requested {runs} of {BOLD}{}{BOLD:#}; they start behind live work", done.job)?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

fn print(plan: &BackfillAnswer, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let mut note = String::new();
    if 0 < plan.already_waiting {
        note = format!(", {} of them already waiting", plan.already_waiting);
    }
    let found = counted(plan.occurrences, "occurrence");
    writeln!(remote.out, "{BOLD}{}{BOLD:#} has {found} in this range{note}", plan.job)?;
    let rows: Vec<Vec<Cell>> =
        plan.runs.iter().map(|run| vec![Cell::plain(remote.clock.day_at(run.occurrence.0))]).collect();
    if !rows.is_empty() {
        let lines = words(&[("RUN FOR", Fit::Whole)], &rows, remote.table_width);
        remote.lines(&lines)?;
    }
    if let Some(next) = plan.next_from {
        let at = remote.clock.at(next.0);
        writeln!(remote.out, "{NOTICE}later occurrences are left out, from {at} on (raise --max){NOTICE:#}")?;
    }
    Ok(())
}

//! `evenbeat audit`: who changed what, and whether the record of it is whole.

use clap::{Args, Subcommand};
use evenbeat_core::ids::JobKey;
use serde_json::Value as Json;

use super::Exit;
use super::chart::{counted, plural, to_u64};
use super::client::{ApiRequest, CommandError};
use super::format::{self, BOLD, DIM, NOTICE};
use super::period::PeriodArgs;
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use crate::printable;
use crate::store::audit_chain::ChainLink;
use crate::views::model::{AuditChain, AuditView, ChainedEntry, Page};

/// Arguments of `evenbeat audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    action: AuditAction,
}

#[derive(Debug, Subcommand)]
enum AuditAction {
    /// List who changed what, the latest first.
    List(AuditListArgs),
    /// Check that no entry was changed or removed since it was written. Exits with 1 if one was.
    Verify {
        /// A head that an earlier check printed, as `NO:HASH`: it must still be part of the chain.
        #[arg(long, value_name = "HEAD")]
        head: Option<String>,
    },
}

#[derive(Debug, Args)]
struct AuditListArgs {
    /// Only changes of this job.
    #[arg(long, value_name = "KEY")]
    job: Option<JobKey>,
    /// Only changes by this token, user or `system`.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only this kind of change, such as `pause`.
    #[arg(long, value_name = "WORD")]
    action: Option<String>,
    #[command(flatten)]
    period: PeriodArgs,
}

pub(crate) fn run(args: &AuditArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match &args.action {
        AuditAction::List(args) => {
            let request = ApiRequest::get(&["audit"])
                .with("job", args.job.as_ref())
                .with("actor", args.actor.as_ref())
                .with("action", args.action.as_ref());
            let request = args.period.narrow(request, &remote.clock);
            remote.fetch_all_and_print::<AuditView>(&request, "before", args.period.most(), table)?;
            Ok(Exit::Ok)
        }
        AuditAction::Verify { head } => verify(head.as_deref(), remote),
    }
}

fn table(page: &Page<AuditView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no entries")?;
        return Ok(());
    }
    let row = |it: &AuditView| {
        vec![
            Cell::plain(remote.clock.at(it.at.0)),
            Cell::plain(&it.actor),
            Cell::plain(&it.action),
            Cell::plain(&it.subject),
            Cell::styled(change(it), DIM),
        ]
    };
    let rows: Vec<Vec<Cell>> = page.items.iter().map(row).collect();
    let columns = [
        ("AT", Fit::Whole),
        ("WHO", Fit::Shorten(8)),
        ("WHAT", Fit::Whole),
        ("SUBJECT", Fit::Shorten(12)),
        ("CHANGE", Fit::Shorten(20)),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)?;
    if page.next.is_some() {
        let shown = plural(to_u64(page.items.len()), "entry", "entries");
        writeln!(remote.out, "{NOTICE}{shown} shown; there are more (raise --limit){NOTICE:#}")?;
    }
    Ok(())
}

/// What changed, in one line: `every "6h" → "8h"`.
fn change(it: &AuditView) -> String {
    if !it.detail.is_empty() {
        return printable::line(&it.detail).into_owned();
    }
    let mut parts = Vec::new();
    let empty = serde_json::Map::new();
    let fields = |value: &'_ Option<Json>| value.as_ref().and_then(Json::as_object).cloned();
    match (fields(&it.before), fields(&it.after)) {
        (Some(before), Some(after)) => {
            for (name, was) in &before {
                let is = after.get(name).unwrap_or(&Json::Null);
                parts.push(format!("{name} {was} → {is}"));
            }
        }
        (None, Some(after)) if it.action != "create" => {
            parts.extend(after.iter().map(|(name, value)| format!("{name} {value}")));
        }
        (before, after) => {
            let n_fields = before.or(after).unwrap_or(empty).len();
            if 0 < n_fields {
                parts.push(counted(to_u64(n_fields), "field"));
            }
        }
    }
    printable::line(&parts.join(", ")).into_owned()
}

/// How far a check came.
struct Check {
    last: ChainLink,
    n_checked: u64,
    /// The first link that was looked at.
    from: u64,
    n_unchained: u64,
    /// What is wrong.
    fault: Option<String>,
}

fn verify(head: Option<&str>, remote: &mut RemoteContext<'_>) -> CommandResult {
    let head = head.map(read_head).transpose().map_err(CommandError::Usage)?;
    let mut check: Option<Check> = None;
    let mut found_head = None;
    loop {
        let after = check.as_ref().map_or(0, |it| it.last.no);
        let request =
            ApiRequest::get(&["audit", "chain"]).with("after", Some(after)).with("limit", Some(500));
        let page: AuditChain = remote.send(request)?.read()?;
        let anchor = ChainLink::parse(page.anchor.no, &page.anchor.hash).unwrap_or_default();
        let check = check.get_or_insert_with(|| Check {
            last: anchor,
            n_checked: 0,
            from: anchor.no + 1,
            n_unchained: 0,
            fault: None,
        });
        // Old entries were trimmed while we were looking at them.
        if check.last.no < anchor.no {
            check.last = anchor;
        }
        for entry in &page.items {
            if let Some(fault) = next(check, entry, remote) {
                check.fault = Some(fault);
                break;
            }
            if head.is_some_and(|head| head.no == check.last.no) {
                found_head = Some(check.last);
            }
        }
        check.n_unchained = page.unchained;
        if page.next.is_none() || check.fault.is_some() {
            break;
        }
    }
    let Some(mut check) = check else { return Ok(Exit::Failed) };
    if let (Some(head), None) = (head, &check.fault) {
        check.fault = match found_head {
            Some(found) if found == head => None,
            Some(_) => {
                Some(format!("entry {} is not the one of that head: the chain was written again", head.no))
            }
            None if head.no < check.from => {
                writeln!(remote.err, "{NOTICE}warning{NOTICE:#}: entry {} has been trimmed since", head.no)?;
                None
            }
            None => {
                Some(format!("entry {} of that head is missing: the end of the chain was removed", head.no))
            }
        };
    }
    print_check(&check, remote)?;
    Ok(if check.fault.is_none() { Exit::Ok } else { Exit::Failed })
}

/// Takes the next entry. Returns what is wrong with it.
fn next(check: &mut Check, entry: &ChainedEntry, remote: &RemoteContext<'_>) -> Option<String> {
    let shown = || {
        let at = remote.clock.at(entry.at.0);
        format!("entry {} ({at}, {} {} by {})", entry.chain.no, entry.action, entry.subject, entry.actor)
    };
    if entry.chain.no != check.last.no + 1 {
        return Some(format!("entries are missing before {}, from {} on", shown(), check.last.no + 1));
    }
    let link = entry.link_after(&check.last);
    if entry.link() != Some(link) {
        return Some(format!("{} does not match its hash: it was changed after it was written", shown()));
    }
    check.last = link;
    check.n_checked += 1;
    None
}

fn print_check(check: &Check, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let Check { last, n_checked, from, n_unchained, fault } = check;
    let head = format!("{}:{}", last.no, last.hex());
    if remote.json {
        let document = serde_json::json!({
            "is_whole": fault.is_none(), "checked": n_checked, "from": from, "head": head, "unchained": n_unchained,
            "fault": fault,
        });
        format::json(remote.out, &document)?;
        return Ok(());
    }
    let n = plural(*n_checked, "entry", "entries");
    match fault {
        None => writeln!(remote.out, "{n} checked: the audit log is whole")?,
        Some(fault) => {
            writeln!(remote.out, "{n} checked: {BOLD}the audit log was changed{BOLD:#}")?;
            writeln!(remote.out, "  {}", printable::line(fault))?;
        }
    }
    writeln!(remote.out, "  {:18}{head}", "head")?;
    if 0 < *n_unchained {
        writeln!(remote.out, "  {:18}{n_unchained}, checked in half a minute", "not chained yet")?;
    }
    Ok(())
}

fn read_head(text: &str) -> Result<ChainLink, String> {
    let link = text.split_once(':').and_then(|(no, hash)| ChainLink::parse(no.parse().ok()?, hash));
    link.ok_or_else(|| {
        format!("--head `{}` is not a head; write `NO:HASH` as printed", printable::line(text))
    })
}

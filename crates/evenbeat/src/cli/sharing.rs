//! `evenbeat site`, `tenant` and `pool`: what jobs share.

use clap::{Args, Subcommand};

use super::Exit;
use super::chart::{counted, thousands};
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, NOTICE, relative};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use crate::views::model::{Instant, LimitView, PoolView, SharedLimitView, SharedList, SiteView, TenantView};

/// Arguments of `evenbeat site`.
#[derive(Debug, Args)]
pub(crate) struct SiteArgs {
    #[command(subcommand)]
    action: SiteAction,
}

#[derive(Debug, Subcommand)]
enum SiteAction {
    /// List sites with their limits and how much of them is used.
    List,
    /// Show one site.
    Show {
        /// Site name.
        name: String,
    },
}

/// Arguments of `evenbeat tenant`.
#[derive(Debug, Args)]
pub(crate) struct TenantArgs {
    #[command(subcommand)]
    action: TenantAction,
}

#[derive(Debug, Subcommand)]
enum TenantAction {
    /// List tenants with their plans, limits and how much of them is used.
    List,
    /// Show one tenant.
    Show {
        /// Tenant name.
        name: String,
    },
}

/// Arguments of `evenbeat pool`.
#[derive(Debug, Args)]
pub(crate) struct PoolArgs {
    #[command(subcommand)]
    action: PoolAction,
}

#[derive(Debug, Subcommand)]
enum PoolAction {
    /// List pools with their capacity and the nodes that carry them.
    List,
}

pub(crate) fn sites(args: &SiteArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match &args.action {
        SiteAction::List => {
            remote.send_and_print(ApiRequest::get(&["sites"]), |list: &SharedList<SiteView>, remote| {
                let rows: Vec<_> =
                    list.items.iter().map(|it| limit_row(&it.site, None, &it.shared, remote)).collect();
                table("SITE", None, &rows, list.is_complete, remote)
            })?;
        }
        SiteAction::Show { name } => {
            remote.send_and_print(ApiRequest::get(&["sites", name]), |it: &SiteView, remote| {
                writeln!(remote.out, "{BOLD}{}{BOLD:#}", it.site)?;
                facts(&it.shared, remote)
            })?;
        }
    }
    Ok(Exit::Ok)
}

pub(crate) fn tenants(args: &TenantArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match &args.action {
        TenantAction::List => {
            remote.send_and_print(
                ApiRequest::get(&["tenants"]),
                |list: &SharedList<TenantView>, remote| {
                    let row = |it: &TenantView| {
                        limit_row(&it.tenant, Some(it.plan.as_deref().unwrap_or("-")), &it.shared, remote)
                    };
                    let rows: Vec<_> = list.items.iter().map(row).collect();
                    table("TENANT", Some("PLAN"), &rows, list.is_complete, remote)
                },
            )?;
        }
        TenantAction::Show { name } => {
            remote.send_and_print(ApiRequest::get(&["tenants", name]), |it: &TenantView, remote| {
                writeln!(remote.out, "{BOLD}{}{BOLD:#}", it.tenant)?;
                if let Some(plan) = &it.plan {
                    writeln!(remote.out, "  {:18}{plan}", "plan")?;
                }
                if let Some(length) = it.max_run_time {
                    writeln!(remote.out, "  {:18}{length}", "max run time")?;
                }
                facts(&it.shared, remote)
            })?;
        }
    }
    Ok(Exit::Ok)
}

pub(crate) fn pools(args: &PoolArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let PoolAction::List = args.action;
    remote.send_and_print(ApiRequest::get(&["pools"]), |list: &SharedList<PoolView>, remote| {
        let here = |it: &PoolView| {
            it.here.as_ref().map_or(("-".to_owned(), "-".to_owned()), |here| {
                (format!("{}/{}", here.in_use, here.capacity), here.ready.to_string())
            })
        };
        let row = |it: &PoolView| {
            let nodes: Vec<String> =
                it.nodes.iter().map(|node| format!("{}={}", node.node, node.capacity)).collect();
            let (used, ready) = here(it);
            vec![
                Cell::plain(&it.pool),
                Cell::plain(it.capacity.to_string()),
                Cell::plain(it.open_runs.to_string()),
                Cell::plain(used),
                Cell::plain(ready),
                Cell::styled(if nodes.is_empty() { "no node".to_owned() } else { nodes.join(" ") }, DIM),
            ]
        };
        let rows: Vec<Vec<Cell>> = list.items.iter().map(row).collect();
        let columns = [
            ("POOL", Fit::Shorten(12)),
            ("CAPACITY", Fit::Whole),
            ("RUNS", Fit::Whole),
            ("USED HERE", Fit::Drop),
            ("READY HERE", Fit::Drop),
            ("NODES", Fit::Shorten(20)),
        ];
        let lines = words(&columns, &rows, remote.table_width);
        remote.lines(&lines)
    })?;
    Ok(Exit::Ok)
}

/// The limits in a few words: `2 at once, 30s apart, 100/h`.
fn limits(limits: &LimitView) -> String {
    let LimitView { max_concurrent, min_gap, max_per_hour } = limits;
    let parts: Vec<String> = [
        max_concurrent.map(|n| format!("{n} at once")),
        min_gap.map(|gap| format!("{gap} apart")),
        max_per_hour.map(|n| format!("{n}/h")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn limit_row(name: &str, plan: Option<&str>, it: &SharedLimitView, remote: &RemoteContext<'_>) -> Vec<Cell> {
    let when = |at: Option<Instant>| at.map_or("-".to_owned(), |at| relative(at.0, remote.now));
    let mut row = vec![Cell::plain(name)];
    row.extend(plan.map(Cell::plain));
    row.extend([
        Cell::plain(limits(&it.limits)),
        Cell::plain(it.open_runs.to_string()),
        Cell::plain(it.starts_last_hour.map_or("-".to_owned(), |n| n.to_string())),
        Cell::plain(it.waiting_here.to_string()),
        Cell::plain(when(it.last_start_at)),
        Cell::plain(when(it.full_until)),
    ]);
    row
}

fn table(
    name: &'static str,
    plan: Option<&'static str>,
    rows: &[Vec<Cell>],
    is_complete: bool,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
    if rows.is_empty() {
        writeln!(remote.out, "no {}s", name.to_lowercase())?;
        return Ok(());
    }
    let mut columns = vec![(name, Fit::Shorten(16))];
    columns.extend(plan.map(|plan| (plan, Fit::Drop)));
    columns.extend([
        ("LIMITS", Fit::Shorten(16)),
        ("RUNS", Fit::Whole),
        ("LAST HOUR", Fit::Drop),
        ("WAITING HERE", Fit::Drop),
        ("LAST START", Fit::Drop),
        ("FULL UNTIL", Fit::Drop),
    ]);
    let n_rows = rows.len();
    let lines = words(&columns, rows, remote.table_width);
    remote.lines(&lines)?;
    if !is_complete {
        writeln!(remote.out, "{NOTICE}the first {n_rows} are shown; look up others by name{NOTICE:#}")?;
    }
    Ok(())
}

fn facts(it: &SharedLimitView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let jobs = it.jobs.map(|n| {
        let more = if it.jobs_is_exact == Some(false) { "+" } else { "" };
        format!("{}{more}", thousands(n))
    });
    let at = |at: Option<Instant>| at.map(|at| remote.clock.at_and_distance(at.0));
    let facts = [
        ("jobs", jobs),
        ("limits", Some(limits(&it.limits))),
        ("open runs", Some(it.open_runs.to_string())),
        ("last start", at(it.last_start_at)),
        ("last hour", it.starts_last_hour.map(|n| counted(n, "start"))),
        ("waiting here", Some(counted(it.waiting_here, "job"))),
        ("full until", at(it.full_until)),
    ];
    for (what, value) in facts {
        if let Some(value) = value {
            writeln!(remote.out, "  {what:18}{value}")?;
        }
    }
    Ok(())
}

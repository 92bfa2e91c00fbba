//! `evenbeat node`: the nodes of a cluster.

use clap::{Args, Subcommand};

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use crate::views::model::{DrainAnswer, DrainRequest, NodeDetails, NodeView, Page};

/// Arguments of `evenbeat node`.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    action: NodeAction,
}

#[derive(Debug, Subcommand)]
enum NodeAction {
    /// List nodes and workers.
    List {
        /// Include dead nodes.
        #[arg(long)]
        dead: bool,
    },
    /// Show a node and its processes.
    Show {
        /// Node name.
        name: String,
    },
    /// Drain a node: it finishes its runs and takes no new ones.
    Drain {
        /// Node name.
        name: String,
        /// Let the node take new runs again.
        #[arg(long)]
        undo: bool,
    },
}

pub(crate) fn run(args: &NodeArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match &args.action {
        NodeAction::List { dead } => {
            remote.send_and_print(ApiRequest::get(&["nodes"]).with("dead", dead.then_some(true)), table)?;
        }
        NodeAction::Show { name } => {
            remote.send_and_print(ApiRequest::get(&["nodes", name]), details)?;
        }
        NodeAction::Drain { name, undo } => {
            let request = ApiRequest::post(&["nodes", name, "drain"]).json(&DrainRequest { draining: !undo });
            remote.send_and_print(request, |it: &DrainAnswer, remote| {
                let does = if it.draining { "takes no new runs" } else { "takes new runs" };
                writeln!(remote.out, "node {BOLD}{}{BOLD:#} {does}", it.node)?;
                Ok(())
            })?;
        }
    }
    Ok(Exit::Ok)
}

fn table(page: &Page<NodeView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no nodes")?;
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|it| {
            let pools: Vec<String> = it.pools.iter().map(|(pool, units)| format!("{pool}={units}")).collect();
            vec![
                Cell::plain(&it.node),
                Cell::plain(&it.instance),
                Cell::plain(&*it.state),
                Cell::plain(it.open_runs.to_string()),
                Cell::plain(pools.join(" ")),
                Cell::plain(&*it.kind),
                Cell::plain(&it.zone_data),
                Cell::styled(&it.session, DIM),
            ]
        })
        .collect();
    let columns = [
        ("NODE", Fit::Shorten(12)),
        ("INSTANCE", Fit::Drop),
        ("STATE", Fit::Whole),
        ("RUNS", Fit::Drop),
        ("POOLS", Fit::Drop),
        ("KIND", Fit::Drop),
        ("TZDATA", Fit::Drop),
        ("SESSION", Fit::Drop),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)
}

fn details(node: &NodeDetails, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    writeln!(remote.out, "{BOLD}{}{BOLD:#}  {}", node.node, node.state)?;
    writeln!(remote.out, "  {:18}{}", "open runs", node.open_runs)?;
    if let Some(at) = node.last_seen_at {
        writeln!(remote.out, "  {:18}{}", "last seen", remote.clock.at_and_distance(at.0))?;
    }
    let row = |it: &NodeView| {
        let pools: Vec<String> = it.pools.iter().map(|(pool, units)| format!("{pool}={units}")).collect();
        vec![
            Cell::plain(&it.instance),
            Cell::plain(&*it.state),
            Cell::plain(it.open_runs.to_string()),
            Cell::plain(pools.join(" ")),
            Cell::plain(it.last_seen_at.map_or("-".to_owned(), |at| remote.clock.at(at.0))),
            Cell::plain(&it.zone_data),
            Cell::styled(&it.session, DIM),
        ]
    };
    let rows: Vec<Vec<Cell>> = node.sessions.iter().map(row).collect();
    let columns = [
        ("INSTANCE", Fit::Shorten(12)),
        ("STATE", Fit::Whole),
        ("RUNS", Fit::Drop),
        ("POOLS", Fit::Drop),
        ("LAST SEEN", Fit::Whole),
        ("TZDATA", Fit::Drop),
        ("SESSION", Fit::Whole),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)
}

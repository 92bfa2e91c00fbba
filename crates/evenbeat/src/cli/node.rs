//! `evenbeat node`: the nodes of a cluster.

use clap::{Args, Subcommand};

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use crate::views::model::{DrainAnswer, DrainRequest, NodeView, Page};

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

//! `evenbeat node`: the nodes of a cluster.

use clap::{Args, Subcommand};

use super::Exit;
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, DIM};
use super::table::{Cell, Fit, words};
use crate::views::model::{DrainAnswer, DrainRequest, NodeView, Page};

/// Arguments of `evenbeat node`.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
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

pub(crate) fn run(args: &NodeArgs, desk: &mut Desk<'_>) -> Done {
    match &args.action {
        Action::List { dead } => {
            desk.ask_and_show(Ask::get(&["nodes"]).with("dead", dead.then_some(true)), table)?;
        }
        Action::Drain { name, undo } => {
            let ask = Ask::post(&["nodes", name, "drain"]).json(&DrainRequest { draining: !undo });
            desk.ask_and_show(ask, |it: &DrainAnswer, desk| {
                let does = if it.draining { "takes no new runs" } else { "takes new runs" };
                writeln!(desk.out, "node {BOLD}{}{BOLD:#} {does}", it.node)?;
                Ok(())
            })?;
        }
    }
    Ok(Exit::Ok)
}

fn table(page: &Page<NodeView>, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    if page.items.is_empty() {
        writeln!(desk.out, "no nodes")?;
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
    let lines = words(&columns, &rows, desk.table_width);
    desk.lines(&lines)
}

//! `evenbeat token`: the tokens of a server.

use clap::{Args, Subcommand};
use evenbeat_core::ids::Pool;
use evenbeat_core::rights::Grant;
use evenbeat_core::time::Duration;

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use crate::views::model::{Instant, Length, Page, TokenAnswer, TokenRequest, TokenView};

/// Arguments of `evenbeat token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    action: TokenAction,
}

#[derive(Debug, Subcommand)]
enum TokenAction {
    /// Create a token and print it. It is shown only once.
    Create {
        /// What it may do: `viewer`, `operator`, `editor` or `admin`; `worker` (ask for work and report) or `metrics` (read
        /// the metrics), which may do nothing else.
        #[arg(long, value_name = "ROLE")]
        role: Grant,
        /// What it is for, in a few words.
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// How long it is valid, such as `90d` [default: until it is revoked].
        #[arg(long, value_name = "DURATION")]
        expires: Option<Duration>,
        /// Pool that a worker is bound to; may be repeated [default: all pools].
        #[arg(long = "pool", value_name = "POOL")]
        pools: Vec<Pool>,
    },
    /// List tokens, without their secrets.
    List,
    /// Revoke a token. Every node refuses it within seconds.
    Revoke {
        /// Id of the token, as shown by `token list`; a token contains its id.
        id: String,
    },
}

pub(crate) fn run(args: TokenArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match args.action {
        TokenAction::Create { role, label, expires, pools } => {
            let body = TokenRequest {
                role: role.as_str().to_owned(),
                label,
                pools: pools.iter().map(ToString::to_string).collect(),
                expires_in: expires.map(Length),
            };
            let request = ApiRequest::post(&["tokens"]).json(&body);
            remote.send_and_print(request, |it: &TokenAnswer, remote| {
                // The token alone on standard output, so that it can be piped into a file.
                writeln!(remote.out, "{}", it.token)?;
                let until = it.details.expires_at.map_or("until it is revoked".to_owned(), |at| {
                    format!("until {}", remote.clock.at(at.0))
                });
                writeln!(
                    remote.err,
                    "token {BOLD}{}{BOLD:#} with the role {} is valid {until}; keep it now, it is not shown again",
                    it.details.id, it.details.role
                )?;
                Ok(())
            })?;
        }
        TokenAction::List => {
            remote.send_and_print(ApiRequest::get(&["tokens"]), table)?;
        }
        TokenAction::Revoke { id } => {
            remote.send(ApiRequest::delete(&["tokens", &id]))?;
            if !remote.json {
                writeln!(remote.out, "token {BOLD}{id}{BOLD:#} is revoked")?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn table(page: &Page<TokenView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no tokens; create one with `evenbeat token create --role ROLE`")?;
        return Ok(());
    }
    let when = |at: Option<Instant>, never: &str| at.map_or(never.to_owned(), |at| remote.clock.at(at.0));
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|it| {
            let role = if it.pools.is_empty() {
                it.role.to_string()
            } else {
                format!("{} ({})", it.role, it.pools.join(", "))
            };
            let style = if it.state == "valid" { anstyle::Style::new() } else { DIM };
            vec![
                Cell::styled(&it.id, style),
                Cell::styled(&it.label, style),
                Cell::styled(role, style),
                Cell::styled(&*it.state, style),
                Cell::styled(when(it.expires_at, "never"), style),
                Cell::styled(when(it.last_used_at, "never"), style),
                Cell::styled(when(Some(it.created_at), ""), style),
                Cell::styled(&it.created_by, style),
            ]
        })
        .collect();
    let columns = [
        ("ID", Fit::Whole),
        ("LABEL", Fit::Shorten(8)),
        ("ROLE", Fit::Whole),
        ("STATE", Fit::Whole),
        ("EXPIRES", Fit::Drop),
        ("LAST USED", Fit::Drop),
        ("CREATED", Fit::Drop),
        ("BY", Fit::Drop),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)
}

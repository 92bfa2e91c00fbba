//! `evenbeat alert`: incidents, the messages about them, and mutes.

use clap::{Args, Subcommand};

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, style_of_word};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use super::when::When;
use crate::views::model::{
    AlertTestAnswer, AlertTestRequest, DeliveryView, IncidentView, MuteRequest, MuteView, Page,
};

/// Arguments of `evenbeat alert`.
#[derive(Debug, Args)]
pub(crate) struct AlertArgs {
    #[command(subcommand)]
    action: AlertAction,
}

#[derive(Debug, Subcommand)]
enum AlertAction {
    /// List incidents: open ones first, then those that are over.
    List {
        /// Only open ones.
        #[arg(long)]
        open: bool,
        /// Show at most this many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// List messages: what was sent, when, and what the receiver said.
    Deliveries {
        /// Show at most this many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Send a test message to a channel and show what its receiver says. Exits with 1 if it is not accepted.
    Test {
        /// Name of the channel.
        channel: String,
    },
    /// Send no alerts about some jobs for a while. They are still watched.
    Mute(MuteArgs),
    /// List mutes.
    Mutes,
    /// End a mute.
    Unmute {
        /// Id of the mute, as `alert mutes` shows it.
        id: String,
    },
}

#[derive(Debug, Args)]
struct MuteArgs {
    #[command(flatten)]
    scope: MuteScopeArgs,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// For how long: `20m`, `4h`.
    #[arg(long = "for", value_name = "LENGTH", required_unless_present = "until", conflicts_with = "until")]
    length: Option<evenbeat_core::time::Duration>,
    /// Until when: `tomorrow`, `2026-11-17 06:00`, or an instant.
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
    /// From when on, for planned maintenance [default: now].
    #[arg(long, value_name = "WHEN")]
    from: Option<When>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct MuteScopeArgs {
    /// Mute jobs with this key; `*` stands for any text.
    #[arg(long, value_name = "KEY")]
    job: Option<String>,
    /// Mute jobs with this label.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Option<String>,
    /// Mute jobs of this site.
    #[arg(long, value_name = "SITE")]
    site: Option<String>,
    /// Mute jobs of this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Mute everything, also alerts about the scheduler itself.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &AlertArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match &args.action {
        AlertAction::List { open, limit } => {
            let request = ApiRequest::get(&["alerts"]).with("open", open.then_some(true));
            remote.fetch_all_and_print(&request, "after", *limit, incidents)?;
        }
        AlertAction::Deliveries { limit } => {
            let request = ApiRequest::get(&["alerts", "deliveries"]);
            remote.fetch_all_and_print(&request, "before", *limit, deliveries)?;
        }
        AlertAction::Test { channel } => {
            let body = AlertTestRequest { channel: channel.clone() };
            let request = ApiRequest::post(&["alerts", "test"]).json(&body);
            let answer = remote.send_and_print(request, |it: &AlertTestAnswer, remote| {
                let verdict = if it.is_accepted { "accepted" } else { "not accepted" };
                let said = crate::printable::line(&it.answer);
                writeln!(remote.out, "{BOLD}{}{BOLD:#} {verdict}: {said}", it.channel)?;
                Ok(())
            })?;
            if !answer.is_accepted {
                return Ok(Exit::Failed);
            }
        }
        AlertAction::Mute(args) => mute(args, remote)?,
        AlertAction::Mutes => {
            remote.send_and_print(ApiRequest::get(&["mutes"]), mutes)?;
        }
        AlertAction::Unmute { id } => {
            remote.send(ApiRequest::delete(&["mutes", id]))?;
            if !remote.json {
                writeln!(remote.out, "mute {BOLD}{id}{BOLD:#} is over")?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn mute(args: &MuteArgs, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let MuteScopeArgs { job, label, site, tenant, all: _ } = &args.scope;
    let named = [("jobs", job), ("label", label), ("site", site), ("tenant", tenant)];
    let (scope, value) = named
        .into_iter()
        .find_map(|(scope, value)| Some((scope, value.clone()?)))
        .map_or(("fleet", None), |(scope, value)| (scope, Some(value)));
    let starts_at = args.from.map(|it| it.ahead(&remote.clock));
    let from = starts_at.unwrap_or(remote.now);
    let ends_at = match (args.length, args.until) {
        (Some(length), _) => from + length,
        (None, Some(until)) => until.ahead(&remote.clock),
        (None, None) => return Err(CommandError::Usage("a mute needs `--for` or `--until`".to_owned())),
    };
    let request = MuteRequest {
        scope: scope.into(),
        value,
        starts_at: starts_at.map(Into::into),
        ends_at: ends_at.into(),
        reason: args.reason.clone(),
    };
    remote.send_and_print(ApiRequest::post(&["mutes"]).json(&request), |it: &MuteView, remote| {
        let what = shown_scope(it);
        let until = remote.clock.at_and_distance(it.ends_at.0);
        let from =
            if it.is_active { String::new() } else { format!("from {} ", remote.clock.at(it.starts_at.0)) };
        writeln!(remote.out, "muted {BOLD}{what}{BOLD:#} {from}until {until}")?;
        writeln!(remote.out, "{DIM}end it with `evenbeat alert unmute {}`{DIM:#}", it.id)?;
        Ok(())
    })?;
    Ok(())
}

fn shown_scope(it: &MuteView) -> String {
    let value = it.value.as_deref().map(crate::printable::line);
    value.map_or_else(|| it.scope.to_string(), |value| format!("{} {value}", it.scope))
}

fn incidents(page: &Page<IncidentView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no incidents")?;
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|it| {
            let state = match (it.is_open, it.is_flapping, &it.end) {
                (true, true, _) => "flapping",
                (true, false, _) => "open",
                (false, _, Some(end)) => end,
                (false, _, None) => "over",
            };
            let channels: Vec<&str> = it.told.iter().map(|it| it.channel.as_str()).collect();
            let over = it.closed_at.map(|at| remote.clock.at(at.0)).unwrap_or_default();
            vec![
                Cell::plain(state),
                Cell::styled(&*it.condition, style_of_word(&it.condition)),
                Cell::plain(crate::printable::line(&it.subject)),
                Cell::plain(&*it.reason),
                Cell::plain(remote.clock.at(it.opened_at.0)),
                Cell::plain(over),
                Cell::styled(channels.join(" "), DIM),
            ]
        })
        .collect();
    let columns = [
        ("STATE", Fit::Whole),
        ("CONDITION", Fit::Drop),
        ("SUBJECT", Fit::Shorten(16)),
        ("REASON", Fit::Whole),
        ("OPENED", Fit::Drop),
        ("OVER", Fit::Drop),
        ("TOLD", Fit::Drop),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)
}

fn deliveries(page: &Page<DeliveryView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no messages")?;
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|it| {
            vec![
                Cell::plain(remote.clock.at(it.created_at.0)),
                Cell::plain(&it.channel),
                Cell::plain(&*it.state),
                Cell::plain(it.attempts.to_string()),
                Cell::plain(crate::printable::line(&it.subject)),
                Cell::styled(crate::printable::line(it.answer.as_deref().unwrap_or_default()), DIM),
            ]
        })
        .collect();
    let columns = [
        ("CREATED", Fit::Whole),
        ("CHANNEL", Fit::Shorten(8)),
        ("STATE", Fit::Whole),
        ("TRIES", Fit::Drop),
        ("SUBJECT", Fit::Shorten(20)),
        ("ANSWER", Fit::Shorten(16)),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)
}

fn mutes(page: &Page<MuteView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no mutes")?;
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|it| {
            let state = match it.is_active {
                true => "active",
                false if remote.now < it.starts_at.0 => "planned",
                false => "over",
            };
            vec![
                Cell::plain(state),
                Cell::plain(shown_scope(it)),
                Cell::plain(remote.clock.at(it.starts_at.0)),
                Cell::plain(remote.clock.at(it.ends_at.0)),
                Cell::plain(crate::printable::line(&it.reason)),
                Cell::plain(crate::printable::line(&it.actor)),
                Cell::styled(&it.id, DIM),
            ]
        })
        .collect();
    let columns = [
        ("STATE", Fit::Whole),
        ("MUTED", Fit::Shorten(16)),
        ("FROM", Fit::Drop),
        ("UNTIL", Fit::Whole),
        ("REASON", Fit::Drop),
        ("BY", Fit::Drop),
        ("ID", Fit::Whole),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)
}

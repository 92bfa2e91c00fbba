//! What the commands that talk to a server share: where it is, how they ask, how they end.

use std::env;
use std::io::{self, Write};

use clap::Args;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::{Zone, ZoneError};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::client::{Answer, Ask, Client, Place, Trouble};
use super::show::Clock;
use super::{Exit, show};
use crate::api::model::Page;
use crate::cli::terminal;
use crate::printable;

/// Which server, and how its answer is shown.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// The server: `http://HOST:PORT` or `unix:PATH`. By default the socket of your own server if there is one, else
    /// `http://127.0.0.1:8060`.
    #[arg(
        long,
        global = true,
        env = "EVENBEAT_SERVER",
        value_name = "PLACE",
        help_heading = "Server and output"
    )]
    pub(crate) server: Option<String>,
    /// Print the server's answer as one JSON document instead of text.
    #[arg(long, global = true, help_heading = "Server and output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) times: TimeArgs,
}

/// How people read times.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TimeArgs {
    /// Show times in this zone instead of the local one (`TZ`, else that of the machine).
    #[arg(
        long,
        global = true,
        value_name = "ZONE",
        conflicts_with = "utc",
        help_heading = "Server and output"
    )]
    pub(crate) tz: Option<String>,
    /// Show times in UTC.
    #[arg(long, global = true, help_heading = "Server and output")]
    pub(crate) utc: bool,
}

impl TimeArgs {
    /// The zone in which times are shown.
    pub(crate) fn zone(&self) -> Result<Zone, ZoneError> {
        match (&self.tz, self.utc) {
            (_, true) => Ok(Zone::utc()),
            (Some(name), false) => Zone::named(name),
            (None, false) => Ok(terminal::local_zone()),
        }
    }

    /// The same where a program reads on: UTC unless a zone was asked for.
    pub(crate) fn zone_for_machines(&self) -> Result<Zone, ZoneError> {
        if self.tz.is_some() { self.zone() } else { Ok(Zone::utc()) }
    }
}

/// All that a command works with.
pub(crate) struct Desk<'a> {
    client: Client,
    pub(crate) json: bool,
    pub(crate) now: Timestamp,
    /// For times that people read.
    pub(crate) clock: Clock,
    /// For charts and sentences.
    pub(crate) width: usize,
    /// For tables, which are whole in a pipe.
    pub(crate) table_width: usize,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) err: &'a mut dyn Write,
}

/// How a command ended.
pub(crate) type Done = Result<Exit, Trouble>;

/// Runs a command that talks to a server; what goes wrong is told.
pub(crate) fn at_desk(
    args: &ServerArgs,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
    command: impl FnOnce(&mut Desk<'_>) -> Done,
) -> io::Result<Exit> {
    let done = desk(args, now, out, err).and_then(|mut desk| command(&mut desk));
    match done {
        Ok(exit) => Ok(exit),
        Err(Trouble::Output(error)) => Err(error),
        Err(trouble) => {
            writeln!(err, "error: {}", printable::lines(&trouble.to_string()))?;
            Ok(trouble.exit())
        }
    }
}

fn desk<'a>(
    args: &ServerArgs,
    now: Timestamp,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
) -> Result<Desk<'a>, Trouble> {
    let place = match &args.server {
        Some(said) => said.parse().map_err(|error| Trouble::Usage(format!("--server: {error}")))?,
        None => Place::usual(|name| env::var_os(name)),
    };
    let client = Client::new(place).map_err(|error| Trouble::Bad(format!("cannot ask anybody: {error}")))?;
    let zone = args.times.zone().map_err(|error| Trouble::Usage(format!("--tz: {error}")))?;
    Ok(Desk {
        client,
        json: args.json,
        now,
        clock: Clock { zone, now },
        width: terminal::width().into(),
        table_width: terminal::table_width(),
        out,
        err,
    })
}

impl Desk<'_> {
    /// The server that is asked.
    pub(crate) fn place(&self) -> &Place {
        self.client.place()
    }

    /// Asks the server.
    pub(crate) fn ask(&self, ask: Ask) -> Result<Answer, Trouble> {
        self.client.ask(ask)
    }

    /// Asks, and shows the answer: as it came, or by what `show` makes of it.
    pub(crate) fn ask_and_show<T: DeserializeOwned>(
        &mut self,
        ask: Ask,
        show: impl FnOnce(&T, &mut Desk<'_>) -> Result<(), Trouble>,
    ) -> Result<T, Trouble> {
        let answer = self.client.ask(ask)?;
        let read = answer.read()?;
        if self.json {
            show::json(self.out, &answer.read::<Json>()?)?;
        } else {
            show(&read, self)?;
        }
        Ok(read)
    }

    /// Asks page by page, until there are so many items or no more; `next` goes back as the parameter `cursor`.
    /// The last cursor tells whether there are more.
    pub(crate) fn ask_all<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        cursor: &str,
        most: usize,
    ) -> Result<Page<T>, Trouble> {
        let mut all = Page { items: Vec::new(), next: None };
        loop {
            let wanted = (most - all.items.len()).min(PAGE_MAX);
            let ask = ask.clone().with("limit", Some(wanted)).with(cursor, all.next.as_ref());
            let page: Page<T> = self.client.ask(ask)?.read()?;
            all.items.extend(page.items);
            all.next = page.next;
            if all.next.is_none() || most <= all.items.len() {
                return Ok(all);
            }
        }
    }

    /// The same as one document, or by what `show` makes of it.
    pub(crate) fn ask_all_and_show<T: DeserializeOwned>(
        &mut self,
        ask: &Ask,
        cursor: &str,
        most: usize,
        show: impl FnOnce(&Page<T>, &mut Desk<'_>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        if self.json {
            let all: Page<Json> = self.ask_all(ask, cursor, most)?;
            let document = serde_json::json!({ "items": all.items, "next": all.next });
            show::json(self.out, &document)?;
            return Ok(());
        }
        let all = self.ask_all(ask, cursor, most)?;
        show(&all, self)
    }

    /// Lines of text.
    pub(crate) fn lines(&mut self, lines: &[String]) -> Result<(), Trouble> {
        for line in lines {
            writeln!(self.out, "{}", super::chart::trimmed(line))?;
        }
        Ok(())
    }

    /// Lets a moment pass.
    pub(crate) fn rest(&self, length: std::time::Duration) {
        self.client.rest(length);
    }
}

/// So many items a server gives at once.
const PAGE_MAX: usize = 500;

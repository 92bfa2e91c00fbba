//! What all commands that talk to a server share: its address, the requests, the exit codes.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::{Zone, ZoneError};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::cli::client::{ApiRequest, ApiResponse, Client, CommandError, Credentials, ServerAddress};
use crate::cli::format::{self, LocalClock};
use crate::cli::{Exit, chart, contexts, terminal};
use crate::printable;
use crate::views::model::Page;

/// Which server to ask, and how to show its answer.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// Server address: `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH` [default: the socket of your own server if it
    /// exists, otherwise `http://127.0.0.1:8060`].
    #[arg(
        long,
        global = true,
        env = "EVENBEAT_SERVER",
        value_name = "ADDRESS",
        help_heading = "Server options"
    )]
    pub(crate) server: Option<String>,
    /// File with the token to show [default: the variable `EVENBEAT_TOKEN`, except for a socket].
    #[arg(long, global = true, value_name = "FILE", help_heading = "Server options")]
    pub(crate) token_file: Option<PathBuf>,
    /// File of certificates to trust besides those of the machine, in PEM format.
    #[arg(long, global = true, env = "EVENBEAT_CA", value_name = "FILE", help_heading = "Server options")]
    pub(crate) ca: Option<PathBuf>,
    /// Context: a server that was named with `evenbeat context add` [default: `EVENBEAT_CONTEXT`, or the one in use].
    #[arg(long, global = true, value_name = "NAME", help_heading = "Server options")]
    pub(crate) context: Option<String>,
    /// Print the server's answer as JSON instead of text.
    #[arg(long, global = true, help_heading = "Server options")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) times: TimeArgs,
}

/// The zone in which times are shown.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TimeArgs {
    /// Show times in this zone [default: `TZ`, or the machine's zone].
    #[arg(long, global = true, value_name = "ZONE", conflicts_with = "utc", help_heading = "Server options")]
    pub(crate) tz: Option<String>,
    /// Show times in UTC.
    #[arg(long, global = true, help_heading = "Server options")]
    pub(crate) utc: bool,
}

impl TimeArgs {
    /// The zone for text output.
    pub(crate) fn zone(&self) -> Result<Zone, ZoneError> {
        match (&self.tz, self.utc) {
            (_, true) => Ok(Zone::utc()),
            (Some(name), false) => Zone::named(name),
            (None, false) => Ok(terminal::local_zone()),
        }
    }

    /// The zone for JSON output: UTC unless `--tz` names another.
    pub(crate) fn zone_for_machines(&self) -> Result<Zone, ZoneError> {
        if self.tz.is_some() { self.zone() } else { Ok(Zone::utc()) }
    }
}

/// Everything a command needs: the connection, the streams and the clock.
pub(crate) struct RemoteContext<'a> {
    client: Rc<Client>,
    pub(crate) json: bool,
    pub(crate) now: Timestamp,
    /// For times in text output.
    pub(crate) clock: LocalClock,
    /// Width of charts and sentences.
    pub(crate) width: usize,
    /// Width of tables. Nothing is cut where output goes to a pipe.
    pub(crate) table_width: usize,
    pub(crate) out: &'a mut dyn Write,
    pub(crate) err: &'a mut dyn Write,
}

/// The result of a command.
pub(crate) type CommandResult = Result<Exit, CommandError>;

/// Runs a command that talks to a server, and reports its error.
pub(crate) fn with_server(
    args: &ServerArgs,
    now: Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
    command: impl FnOnce(&mut RemoteContext<'_>) -> CommandResult,
) -> io::Result<Exit> {
    let result = with_context(args)
        .and_then(|args| context(&args, now, out, err))
        .and_then(|mut remote| command(&mut remote));
    match result {
        Ok(exit) => Ok(exit),
        Err(CommandError::Output(error)) => Err(error),
        Err(error) => {
            writeln!(err, "error: {}", printable::lines(&error.to_string()))?;
            Ok(error.exit())
        }
    }
}

/// The same arguments with what a context says, where they say nothing themselves.
fn with_context(args: &ServerArgs) -> Result<ServerArgs, CommandError> {
    let variable = |name: &str| env::var_os(name);
    let from_variable = variable("EVENBEAT_SERVER").and_then(|it| it.into_string().ok());
    let is_said = args.server.is_some() && args.server != from_variable;
    if is_said && args.context.is_some() {
        return Err(CommandError::Usage("give `--server` or `--context`, not both".to_owned()));
    }
    // The more explicit wins: a flag before a variable, and a variable before the context in use.
    if args.context.is_none() && args.server.is_some() {
        return Ok(args.clone());
    }
    match contexts::chosen(args.context.as_deref(), variable).map_err(CommandError::Usage)? {
        Some(named) => Ok(ServerArgs {
            server: Some(named.server),
            token_file: args.token_file.clone().or(named.token_file),
            ca: args.ca.clone().or(named.ca),
            ..args.clone()
        }),
        None => Ok(args.clone()),
    }
}

fn context<'a>(
    args: &ServerArgs,
    now: Timestamp,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
) -> Result<RemoteContext<'a>, CommandError> {
    let address = match &args.server {
        Some(address) => {
            address.parse().map_err(|error| CommandError::Usage(format!("--server: {error}")))?
        }
        None => ServerAddress::usual(|name| env::var_os(name)),
    };
    let credentials = Credentials { token: token(args, &address)?, ca: args.ca.clone() };
    let client = Client::new(address, credentials)
        .map_err(|error| CommandError::Bad(format!("cannot create an HTTP client: {error}")))?;
    let zone = args.times.zone().map_err(|error| CommandError::Usage(format!("--tz: {error}")))?;
    Ok(RemoteContext {
        client: Rc::new(client),
        json: args.json,
        now,
        clock: LocalClock { zone, now },
        width: terminal::width().into(),
        table_width: terminal::table_width(),
        out,
        err,
    })
}

/// The token to show. There is no flag for the token itself: other users can read the arguments of a process. The socket
/// knows its owner, so the variable does not count there: a run that talks to its own server has one of its own.
fn token(args: &ServerArgs, address: &ServerAddress) -> Result<Option<String>, CommandError> {
    let text = match (&args.token_file, address) {
        (Some(path), _) => std::fs::read_to_string(path)
            .map(Some)
            .map_err(|error| CommandError::Usage(format!("--token-file: {}: {error}", path.display())))?,
        (None, ServerAddress::Unix(_)) => None,
        (None, ServerAddress::Tcp { .. }) => env::var("EVENBEAT_TOKEN").ok(),
    };
    let token = text.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    match token {
        Some(token) if token.bytes().any(|it| !it.is_ascii_graphic()) => {
            let from = if args.token_file.is_some() { "--token-file" } else { "EVENBEAT_TOKEN" };
            Err(CommandError::Usage(format!("{from} does not hold a token")))
        }
        token => Ok(token),
    }
}

impl RemoteContext<'_> {
    /// The address of the server.
    pub(crate) fn address(&self) -> &ServerAddress {
        self.client.address()
    }

    /// Sends a request to the server.
    pub(crate) fn send(&self, request: ApiRequest) -> Result<ApiResponse, CommandError> {
        self.client.send(request)
    }

    /// Sends a request and prints the answer: with `--json` as received, otherwise with `print`.
    pub(crate) fn send_and_print<T: DeserializeOwned>(
        &mut self,
        request: ApiRequest,
        print: impl FnOnce(&T, &mut RemoteContext<'_>) -> Result<(), CommandError>,
    ) -> Result<T, CommandError> {
        let answer = self.client.send(request)?;
        let read = answer.read()?;
        if self.json {
            format::json(self.out, &answer.read::<Json>()?)?;
        } else {
            print(&read, self)?;
        }
        Ok(read)
    }

    /// Fetches pages until there are `most` items or no more. `next` of one page becomes the parameter `cursor` of the
    /// next request. The last cursor tells whether there are more items.
    pub(crate) fn fetch_all<T: DeserializeOwned>(
        &self,
        request: &ApiRequest,
        cursor: &str,
        most: usize,
    ) -> Result<Page<T>, CommandError> {
        let mut all = Page { items: Vec::new(), next: None };
        loop {
            let limit = (most - all.items.len()).min(PAGE_MAX);
            let request = request.clone().with("limit", Some(limit)).with(cursor, all.next.as_ref());
            let page: Page<T> = self.client.send(request)?.read()?;
            all.items.extend(page.items);
            all.next = page.next;
            if all.next.is_none() || most <= all.items.len() {
                return Ok(all);
            }
        }
    }

    /// Fetches all pages and prints them: with `--json` as one document, otherwise with `print`.
    pub(crate) fn fetch_all_and_print<T: DeserializeOwned>(
        &mut self,
        request: &ApiRequest,
        cursor: &str,
        most: usize,
        print: impl FnOnce(&Page<T>, &mut RemoteContext<'_>) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        if self.json {
            let all: Page<Json> = self.fetch_all(request, cursor, most)?;
            let document = serde_json::json!({ "items": all.items, "next": all.next });
            format::json(self.out, &document)?;
            return Ok(());
        }
        let all = self.fetch_all(request, cursor, most)?;
        print(&all, self)
    }

    /// Prints lines of text.
    pub(crate) fn lines(&mut self, lines: &[String]) -> Result<(), CommandError> {
        for line in lines {
            writeln!(self.out, "{}", chart::trimmed(line))?;
        }
        Ok(())
    }

    /// Sends a request whose answer goes on, and handles each part of it as it comes.
    pub(crate) fn follow(
        &mut self,
        request: ApiRequest,
        mut handle: impl FnMut(&[u8], &mut RemoteContext<'_>) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut answer = self.client.open(request)?;
        while let Some(part) = self.client.next_part(&mut answer)? {
            handle(&part, self)?;
        }
        Ok(())
    }

    /// What time it is, for distances.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
        self.clock.now = now;
    }

    /// Runs a command that writes into a buffer.
    pub(crate) fn show_in(
        &mut self,
        frame: &mut Vec<u8>,
        command: impl FnOnce(&mut RemoteContext<'_>) -> CommandResult,
    ) -> CommandResult {
        let mut remote = RemoteContext {
            client: Rc::clone(&self.client),
            json: self.json,
            now: self.now,
            clock: self.clock.clone(),
            width: terminal::width().into(),
            table_width: terminal::table_width(),
            out: frame,
            err: &mut *self.err,
        };
        command(&mut remote)
    }

    /// Waits before the next request.
    pub(crate) fn rest(&self, length: std::time::Duration) {
        self.client.rest(length);
    }
}

/// Largest page size the server accepts.
const PAGE_MAX: usize = 500;

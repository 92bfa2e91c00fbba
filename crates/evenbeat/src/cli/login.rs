//! `evenbeat login`: opens the pages of a server in a browser.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration as Length;

use clap::Args;
use evenbeat_core::rights::{Grant, Role};

use super::Exit;
use super::client::{ApiRequest, CommandError};
use super::format;
use super::remote::{CommandResult, RemoteContext};
use crate::mint::secret;
use crate::views::model::{LoginLinkAnswer, LoginLinkRequest};

/// How long the browser gets to read the file with the link.
const READ_WITHIN: Length = Length::from_secs(5);

/// Arguments of `evenbeat login`.
#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// Role of the session: `viewer`, `operator`, `editor` or `admin`.
    #[arg(long, value_name = "ROLE", default_value = "admin", value_parser = role)]
    role: Role,
    /// Print the link instead of opening a browser. It works once, for a minute.
    #[arg(long)]
    print: bool,
}

fn role(text: &str) -> Result<Role, String> {
    match text.parse::<Grant>() {
        Ok(Grant::Role(role)) => Ok(role),
        _ => Err("people have the roles `viewer`, `operator`, `editor` or `admin`".to_owned()),
    }
}

pub(crate) fn run(args: &LoginArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    let body = LoginLinkRequest { role: Some(args.role.as_str().to_owned()) };
    let answer = remote.send(ApiRequest::post(&["login-links"]).json(&body))?;
    let link: LoginLinkAnswer = answer.read()?;
    if remote.json {
        format::json(remote.out, &answer.read::<serde_json::Value>()?)?;
        return Ok(Exit::Ok);
    }
    if args.print {
        writeln!(remote.out, "{}", link.url)?;
        return Ok(Exit::Ok);
    }
    let file = LinkFile::write(&link.url).map_err(|error| {
        CommandError::Bad(format!("cannot write the file that the browser opens: {error}"))
    })?;
    let opened = open(&file.path);
    let advice = "run `evenbeat login --print` and open the link yourself";
    match opened {
        Ok(true) => {
            let role = args.role;
            writeln!(
                remote.out,
                "opening the pages in your browser, with the role {role}; if nothing opens, {advice}"
            )?;
            remote.out.flush()?;
            // The browser has to read the file before it goes.
            remote.rest(READ_WITHIN);
            Ok(Exit::Ok)
        }
        Ok(false) => Err(CommandError::Bad(format!("`xdg-open` could not open a browser; {advice}"))),
        Err(error) => Err(CommandError::Bad(format!("`xdg-open` cannot be started ({error}); {advice}"))),
    }
}

/// Opens a file with the user's browser.
fn open(file: &Path) -> io::Result<bool> {
    let mut command = Command::new("xdg-open");
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(|it| it.success())
}

/// A page that leads to the link. The browser is started with the name of this file and not with the link, because every
/// user of the machine can read the arguments of a process. Removed on drop.
struct LinkFile {
    path: PathBuf,
}

impl LinkFile {
    fn write(url: &str) -> io::Result<LinkFile> {
        let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let name = blake3::Hash::from_bytes(secret()).to_hex();
        let path = folder.join(format!("evenbeat-login-{}.html", name.get(..16).unwrap_or_default()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let own = LinkFile { path };
        // A URL of the server's own: digits, letters and punctuation that HTML leaves alone.
        let page = [
            "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url=",
            url,
            "\"><title>Evenbeat</title>",
        ];
        file.write_all(page.concat().as_bytes())?;
        Ok(own)
    }
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

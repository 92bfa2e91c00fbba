//! Typing a command.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::live_cli::mask::masked;
use crate::support::served::Served;

/// The binary, without anything of the surroundings.
pub(crate) fn evenbeat(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("evenbeat"));
    command.args(args).env_clear().env("COLUMNS", "100").env("TZ", "UTC");
    command
}

/// Standard output, standard error and the exit code, in one text.
pub(crate) fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let separator = if output.stderr.is_empty() { "" } else { "--- stderr\n" };
    let (out, err, code) = (text(&output.stdout), text(&output.stderr), output.status.code().unwrap());
    format!("{out}{separator}{err}--- exit {code}\n")
}

impl Served {
    /// A command for this server.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = evenbeat(args);
        command.env("EVENBEAT_SERVER", self.url()).env("EVENBEAT_TOKEN", &self.admin);
        command.current_dir(self.folder.path());
        command
    }

    /// What it says, as it is.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        shown(&self.command(args).output().unwrap())
    }

    /// What it says, without what is another each time.
    pub(crate) fn typed(&self, args: &[&str]) -> String {
        let text = self.said(args).replace(&self.address.to_string(), "ADDRESS");
        masked(&text.replace(&self.folder.path().display().to_string(), "FOLDER"))
    }

    /// The same with something to read.
    pub(crate) fn typed_with(&self, stdin: &str, args: &[&str]) -> String {
        let mut command = self.command(args);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that wants to read nothing may be gone already.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        masked(&shown(&child.wait_with_output().unwrap()))
    }

    /// A file beside the server.
    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }
}

/// A job file with this many jobs.
pub(crate) fn manual_jobs(n: usize) -> String {
    let job = |it: usize| {
        ["[[job]]\nname = \"j", &it.to_string(), "\"\nmanual = true\ncommand = [\"true\"]\n"].concat()
    };
    (0..n).map(job).collect()
}

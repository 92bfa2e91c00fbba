//! Asks before something is done.

use std::io::{self, BufRead, IsTerminal};

use super::client::CommandError;
use super::remote::RemoteContext;

/// Whether a change is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Ask.
    Ask,
    /// It was given on the command line.
    Given,
    /// Only show what would be done.
    Preview,
}

impl Consent {
    pub(crate) fn of(is_preview: bool, is_given: bool) -> Consent {
        match (is_preview, is_given) {
            (true, _) => Consent::Preview,
            (false, true) => Consent::Given,
            (false, false) => Consent::Ask,
        }
    }
}

/// Whether someone sits in front of this: a question shows, and an answer can be typed.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, if that is needed.
pub(crate) fn confirmed(
    consent: Consent,
    question: &str,
    remote: &mut RemoteContext<'_>,
) -> Result<bool, CommandError> {
    match consent {
        Consent::Given => return Ok(true),
        Consent::Preview => return Ok(false),
        Consent::Ask if !can_ask() => {
            return Err(CommandError::Usage(
                "nothing was changed: there is no terminal to ask for confirmation; add `--yes`".to_owned(),
            ));
        }
        Consent::Ask => {}
    }
    let answer = asked(&format!("{question} [y/N] "), remote)?;
    let is_wanted = ["y", "yes"].contains(&answer.as_str());
    if !is_wanted {
        writeln!(remote.err, "nothing was changed")?;
    }
    Ok(is_wanted)
}

/// Asks, and returns what was typed, in lower case.
pub(crate) fn asked(question: &str, remote: &mut RemoteContext<'_>) -> Result<String, CommandError> {
    write!(remote.err, "{question}")?;
    remote.err.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_lowercase())
}

//! `evenbeat completions` and `evenbeat man`, generated from the command definitions.

use std::io::{self, Write};

use clap_complete::Shell;

use super::{Exit, exit};

/// Prints the completion script for a shell.
pub(crate) fn completions(shell: Shell, mut command: clap::Command, out: &mut dyn Write) -> io::Result<Exit> {
    // Generate into memory first: the generator panics if its output is closed early.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "evenbeat", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Ok)
}

/// Prints the manual page of a command, or of evenbeat itself.
pub(crate) fn man(
    path: &[String],
    mut command: clap::Command,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    command.build();
    let mut found = &command;
    for name in path {
        let Some(below) = found.find_subcommand(name) else {
            writeln!(err, "error: no such command: `{}`", path.join(" "))?;
            return Ok(Exit::NotFound);
        };
        found = below;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).render(&mut page)?;
    page.extend(exit::manual_section(found.get_name() == "probe").into_bytes());
    out.write_all(&page)?;
    Ok(Exit::Ok)
}

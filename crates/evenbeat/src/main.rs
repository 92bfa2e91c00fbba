//! `evenbeat`: the scheduler for fleets of recurring jobs.

use std::process::ExitCode;

fn main() -> ExitCode {
    evenbeat::cli::main().into()
}

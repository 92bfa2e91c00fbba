//! `evenbeat`: the scheduler for fleets of recurring jobs.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else is looked at: there is one such process beside every run, and it stays small.
    if std::env::args_os().nth(1).is_some_and(|word| word == "shim") {
        return evenbeat::shim_main();
    }
    evenbeat::main().into()
}

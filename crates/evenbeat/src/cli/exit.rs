//! The exit codes. Help, manual pages and docs/reference/exit-codes.md are generated from this table.

use std::fmt::Write as _;
use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command succeeded.
    Ok,
    /// The result is negative, or the command failed.
    Failed,
    /// The command line is invalid, or a file that it names cannot be read.
    Usage,
    /// A named job, run, node or command does not exist.
    NotFound,
    /// The request conflicts with the current state.
    Conflict,
    /// Permission denied.
    NotAllowed,
    /// No server could be reached.
    NoServer,
    /// A code for monitoring systems.
    Probe(ProbeExit),
    /// The exit code of the run that was followed.
    OfRun(u8),
}

/// How `evenbeat probe` ends: the codes that monitoring systems expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeExit {
    /// All jobs are ok.
    Ok,
    /// A job has a warning.
    Warning,
    /// A job is in error.
    Critical,
    /// The state could not be determined.
    Unknown,
}

/// The description of an exit code.
struct ExitMeaning {
    code: u8,
    /// A few words, for `--help`.
    short: &'static str,
    /// A sentence, for the manual and the reference.
    long: &'static str,
}

impl Exit {
    /// The codes of every command except `probe`, in order.
    const ALL: [Exit; 7] = [
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::NotFound,
        Exit::Conflict,
        Exit::NotAllowed,
        Exit::NoServer,
    ];

    /// The codes of `probe`, in order.
    const PROBES: [Exit; 4] = [
        Exit::Probe(ProbeExit::Ok),
        Exit::Probe(ProbeExit::Warning),
        Exit::Probe(ProbeExit::Critical),
        Exit::Probe(ProbeExit::Unknown),
    ];

    pub fn code(self) -> u8 {
        match self {
            Exit::OfRun(code) => code,
            _ => self.meaning().code,
        }
    }

    fn meaning(self) -> ExitMeaning {
        let of = |code, short, long| ExitMeaning { code, short, long };
        match self {
            Exit::Ok => of(0, "success", "success"),
            Exit::Failed => of(
                1,
                "failure",
                "the result is negative (a file or the configuration is invalid, a job is in `error`, something differs, a \
                 target cannot be reached), or the command failed (a node cannot serve, a store cannot be used, a server \
                 refuses the request)",
            ),
            Exit::Usage => of(
                2,
                "usage error or unreadable file",
                "the command line is invalid, a file that it names cannot be read, or the output cannot be written",
            ),
            Exit::NotFound => of(3, "not found", "not found: there is no such job, run, node or command"),
            Exit::Conflict => of(
                4,
                "conflict",
                "conflict with the current state: the job was changed in the meantime, it is paused or running, or the run \
                 has ended",
            ),
            Exit::NotAllowed => of(5, "permission denied", "permission denied"),
            Exit::NoServer => of(6, "no server", "no server could be reached"),
            Exit::OfRun(code) => of(code, "the run's own", "the exit code of the run"),
            Exit::Probe(ProbeExit::Ok) => of(0, "ok", "all jobs are ok"),
            Exit::Probe(ProbeExit::Warning) => {
                of(1, "warning", "at least one job has a warning, and no job is in error")
            }
            Exit::Probe(ProbeExit::Critical) => of(2, "critical", "at least one job is in error"),
            Exit::Probe(ProbeExit::Unknown) => {
                of(3, "unknown", "the state is unknown: no server answers, or the command line is invalid")
            }
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// All exit codes in a line or two.
pub(super) fn summary() -> String {
    let all: Vec<String> =
        Exit::ALL.map(Exit::meaning).iter().map(|it| format!("{} {}", it.code, it.short)).collect();
    format!("Exit codes: {}.", all.join(", "))
}

/// The exit codes as a section of a manual page, in roff.
pub(super) fn manual_section(is_probe: bool) -> String {
    let mut text = ".SH \"EXIT STATUS\"\n".to_owned();
    for it in if is_probe { Exit::PROBES.as_slice() } else { &Exit::ALL }.iter().map(|it| it.meaning()) {
        let long = it.long.replace('\\', "\\e").replace('-', "\\-").replace('`', "");
        let _ = write!(text, ".TP\n\\fB{}\\fR\n{long}.\n", it.code);
    }
    text.push_str(".PP\nThe reference is docs/reference/exit\\-codes.md.\n");
    text
}

const INTRODUCTION: &str = "# Exit codes

Every command exits with one of these codes. On failure it says on standard error what is wrong and what to do about it.

| Exit code | Meaning |
|---|---|
";

const PROBE: &str = "
`evenbeat probe` exits with the codes that monitoring systems expect:

| Exit code | Meaning |
|---|---|
";

const CLOSING: &str = "
A closed pipe (`evenbeat next FILE | head`) is not an error. A process that was terminated by a signal has no exit code of
its own; shells report 128 plus the signal number. Code 101 means a bug in Evenbeat.

## By command

| Command | Code |
|---|---|
| `status`, `condition` | 1 if any job is in `error` |
| `diff` | 1 if anything differs |
| `check`, `config --check`, `analyze`, `next` | 1 if the file is invalid |
| `simulate --target` | 1 if no capacity reaches the target |
| `db check` | 1 if it finds a problem |
| `serve`, `demo` | 0 when stopped; 1 if it cannot serve because of its data directory, port, socket, store or disk, or \
because of a job file that it should apply |
| `job trigger --follow` | the exit code of the run, or 1 if it failed without one |
| `rebalance` | 2 if there is no terminal to ask for confirmation: add `--yes` or `--preview` |

A service manager does not need to restart a service that exited with 2: it fails again until the command line is changed.

## Exit codes of runs

The exit code of a job's command is stored with its run and is unrelated to these tables: 0 is success, anything else is a
failure. Evenbeat stores 127 if the program was not found, and 126 if it could not be started. A run that was stopped from
outside has no exit code.
";

/// The text of docs/reference/exit-codes.md.
pub fn exit_codes() -> String {
    let mut text = String::new();
    for (before, all) in [(INTRODUCTION, Exit::ALL.as_slice()), (PROBE, &Exit::PROBES)] {
        text.push_str(before);
        for it in all.iter().map(|it| it.meaning()) {
            let _ = writeln!(text, "| {} | {} |", it.code, it.long);
        }
    }
    text.push_str(CLOSING);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_means_two_things() {
        for all in [Exit::ALL.as_slice(), &Exit::PROBES] {
            let codes: Vec<u8> = all.iter().map(|it| it.code()).collect();
            assert_eq!(codes, (0..).take(all.len()).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn a_manual_page_says_what_the_table_says() {
        let page = manual_section(false);
        assert_eq!(page.matches(".TP").count(), Exit::ALL.len());
        assert!(page.contains(".TP\n\\fB6\\fR\nno server could be reached.\n"), "{page}");
        assert_eq!(manual_section(true).matches(".TP").count(), Exit::PROBES.len());
        assert_eq!(
            summary().matches(", ").count(),
            Exit::ALL.len() - 1,
            "a short text must not contain a comma"
        );
    }
}

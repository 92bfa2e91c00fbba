//! How a command ends, for scripts: the one table of exit codes, from which help, manual and reference are made.

use std::fmt::Write as _;
use std::process::ExitCode;

/// How a command ends. docs/reference/exit-codes.md is made from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and all is well.
    Ok,
    /// Done, and the answer is bad; or it could not be done.
    Failed,
    /// The command line itself is wrong, or a file that it names cannot be read.
    Usage,
    /// What was named does not exist.
    NotFound,
    /// It cannot be done to things as they are.
    Conflict,
    /// Whoever asks may not.
    NotAllowed,
    /// No server answers.
    NoServer,
    /// What a monitoring system understands.
    Probe(Probe),
    /// As the run that was followed.
    OfRun(u8),
}

/// How `evenbeat probe` ends: the codes of monitoring systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// All jobs are well.
    Ok,
    /// A job has a warning.
    Warning,
    /// A job is in error.
    Critical,
    /// Nobody can tell.
    Unknown,
}

/// What there is to say about an exit code.
struct Meaning {
    code: u8,
    /// In a word or two.
    short: &'static str,
    /// In a sentence.
    long: &'static str,
}

impl Exit {
    /// Of every command but `probe`, by code.
    const ALL: [Exit; 7] = [
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::NotFound,
        Exit::Conflict,
        Exit::NotAllowed,
        Exit::NoServer,
    ];

    /// Of `probe`, by code.
    const PROBES: [Exit; 4] = [
        Exit::Probe(Probe::Ok),
        Exit::Probe(Probe::Warning),
        Exit::Probe(Probe::Critical),
        Exit::Probe(Probe::Unknown),
    ];

    /// Its number.
    pub fn code(self) -> u8 {
        match self {
            Exit::OfRun(code) => code,
            _ => self.meaning().code,
        }
    }

    fn meaning(self) -> Meaning {
        let of = |code, short, long| Meaning { code, short, long };
        match self {
            Exit::Ok => of(0, "well", "it was done, and all is well"),
            Exit::Failed => of(
                1,
                "bad or not done",
                "the answer is bad (a file or the configuration is not valid, a job is in `error`, something differs, a \
                 target is out of reach), or it could not be done (a node cannot serve, a store cannot be used, a server \
                 says no)",
            ),
            Exit::Usage => of(
                2,
                "wrong usage or unreadable file",
                "the command line is wrong, a file that it names cannot be read, or the output cannot be written",
            ),
            Exit::NotFound => {
                of(3, "not found", "what was named is not there: a job, a run, a node, a command")
            }
            Exit::Conflict => of(
                4,
                "conflict",
                "it cannot be done to things as they are: someone else was quicker, a job is paused or running, a run is \
                 over",
            ),
            Exit::NotAllowed => of(5, "not allowed", "whoever asks may not"),
            Exit::NoServer => of(6, "no server", "no server answers"),
            Exit::OfRun(code) => of(code, "the run's own", "what the run ended with"),
            Exit::Probe(Probe::Ok) => of(0, "ok", "all jobs are well"),
            Exit::Probe(Probe::Warning) => of(1, "warning", "a job has a warning, and none is in error"),
            Exit::Probe(Probe::Critical) => of(2, "critical", "a job is in error"),
            Exit::Probe(Probe::Unknown) => {
                of(3, "unknown", "nobody can tell: no server answers, or the command line is wrong")
            }
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// All of them in a line or two.
pub(super) fn summary() -> String {
    let all: Vec<String> =
        Exit::ALL.map(Exit::meaning).iter().map(|it| format!("{} {}", it.code, it.short)).collect();
    format!("Exit codes: {}.", all.join(", "))
}

/// The section of a manual page, in its own language.
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

Every command ends with one of these, and says on standard error what is wrong and what to do about it.

| Exit code | Means |
|---|---|
";

const PROBE: &str = "
`evenbeat probe` ends as monitoring systems expect:

| Exit code | Means |
|---|---|
";

const CLOSING: &str = "
A closed pipe (`evenbeat next FILE | head`) is no fault. A process that was ended by a signal has no code of its own; shells
show 128 and the number of the signal. 101 is a bug of Evenbeat's.

## Which command, when

| Command | Code |
|---|---|
| `status`, `condition` | 1 if any job is in `error` |
| `diff` | 1 if anything differs |
| `check`, `config --check`, `analyze`, `next` | 1 if the file is not valid |
| `simulate --target` | 1 if no capacity reaches the target |
| `db check` | 1 if something is found |
| `serve`, `demo` | 0 when asked to stop; 1 if it cannot serve: its data directory, port or socket, its store or disk, or job files \
that it is to apply |
| `job trigger --follow` | the exit code of the run, 1 if it failed without one |
| `rebalance` | 2 if nobody can be asked, for there is no terminal: add `--yes` or `--preview` |

A service that is restarted by its manager need not be after 2: nothing changes until somebody changes the command line.

## Exit codes of runs

What a job's command ends with is kept with its run and is no business of these tables: 0 is success, anything else a
failure. Evenbeat itself puts 127 there if the program was not found, and 126 if it could not be started; a run that was
ended from outside has none.
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
        assert!(page.contains(".TP\n\\fB6\\fR\nno server answers.\n"), "{page}");
        assert_eq!(manual_section(true).matches(".TP").count(), Exit::PROBES.len());
        assert_eq!(
            summary().matches(", ").count(),
            Exit::ALL.len() - 1,
            "one of them has a comma of its own"
        );
    }
}

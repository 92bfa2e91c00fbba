//! Reads a whole crontab: all valid entries, and all invalid lines.

use std::ops::Range;

use evenbeat_core::job::{CommandTarget, Job, Target};
use evenbeat_core::nearest::shortened;
use evenbeat_core::schedule::cron::{CronError, CronExpr};
use evenbeat_core::schedule::{Cron, Schedule};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::{Zone, Zones};

use super::CrontabForm;
use super::entry::{CrontabLine, command_text, has_input, is_pinned};
use super::key::Keys;
use super::words::{Piece, lines};
use crate::jobfile::{Diagnostic, Diagnostics, FILE_BYTES_MAX, Severity, SourceText};

/// An expression must have an occurrence within this many years, as in a job file.
const YEARS_MAX: u8 = 8;

/// A parsed crontab.
#[derive(Clone, Debug, PartialEq)]
pub struct Crontab {
    /// Whether there is a user before each command.
    pub form: CrontabForm,
    /// Its entries, in order.
    pub entries: Vec<CrontabEntry>,
    /// Entries that never start by the clock.
    pub left_out: Vec<SkippedEntry>,
    /// Lines that cron would not understand either. As in cron, the other lines are still used.
    pub bad_lines: Option<Diagnostics>,
    /// Whether the file sets a zone for any entry.
    pub names_zone: bool,
    /// The variables it sets besides the zone, in order. Each is for the lines below it.
    pub variables: Vec<CrontabVariable>,
}

/// A line `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrontabVariable {
    pub name: String,
    pub value: String,
    /// Line number.
    pub line: usize,
}

/// One entry of a crontab.
#[derive(Clone, Debug, PartialEq)]
pub struct CrontabEntry {
    /// The job of the entry.
    pub job: Job,
    /// The user it runs as, in the system form.
    pub user: Option<String>,
    /// Line number.
    pub line: usize,
    /// Whether a comment `# pin` keeps its time as written.
    pub is_pinned: bool,
    /// Whether cron passes the rest of the line, after a `%`, to the command as its standard input.
    pub has_input: bool,
}

/// An entry that never starts by the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedEntry {
    pub why: SkipReason,
    /// The command.
    pub command: String,
    /// Line number.
    pub line: usize,
}

/// Why an entry never starts by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// `@reboot`.
    Reboot,
    /// Its date does not exist, as in `0 0 31 2 *`, which is a common way to disable a line.
    NoSuchDate,
}

impl SkipReason {
    /// A stable code.
    pub fn code(self) -> &'static str {
        match self {
            SkipReason::Reboot => "reboot",
            SkipReason::NoSuchDate => "no_such_date",
        }
    }
}

/// Reads a crontab in the given form, or detects the form. Invalid lines do not affect the others. Fails only if no line
/// is valid.
pub fn read(
    source: &SourceText,
    form: Option<CrontabForm>,
    now: Timestamp,
    zones: &mut Zones,
) -> Result<Crontab, Diagnostics> {
    let mut errors = CrontabErrors(Vec::new());
    if FILE_BYTES_MAX < source.text.len() {
        let n = source.text.len();
        let message = format!("the file has {n} bytes, more than the {FILE_BYTES_MAX} allowed");
        errors.push(None, message, None, Some("split it into several files"));
        return Err(Diagnostics::new(std::slice::from_ref(source), errors.0));
    }
    let form = form.unwrap_or_else(|| CrontabForm::of(lines(&source.text).map(CrontabLine::of)));
    let mut reader = CrontabReader { now, zones, zone: Zone::utc(), keys: Keys::default(), errors };
    let mut crontab = Crontab {
        form,
        entries: Vec::new(),
        left_out: Vec::new(),
        bad_lines: None,
        names_zone: false,
        variables: Vec::new(),
    };
    for (idx, line) in lines(&source.text).enumerate() {
        match CrontabLine::of(line) {
            CrontabLine::Nothing => {}
            CrontabLine::Assignment { name, value } => {
                if matches!(name, "CRON_TZ" | "TZ") {
                    reader.set_zone(value);
                    crontab.names_zone = true;
                } else {
                    let (name, value) = (name.to_owned(), value.text.to_owned());
                    crontab.variables.push(CrontabVariable { name, value, line: idx + 1 });
                }
            }
            CrontabLine::Entry { schedule, rest } => reader.entry(schedule, rest, idx + 1, &mut crontab),
            CrontabLine::TooShort { line, n_words } => reader.errors.too_short(line, n_words, form),
        }
    }
    if !reader.errors.0.is_empty() {
        let bad_lines = Diagnostics::new(std::slice::from_ref(source), reader.errors.0);
        if crontab.entries.is_empty() && crontab.left_out.is_empty() {
            return Err(bad_lines);
        }
        crontab.bad_lines = Some(bad_lines);
    }
    Ok(crontab)
}

/// Whether a text that is not a job file is most likely a crontab.
pub fn looks_like_crontab(text: &str) -> bool {
    let (mut n_entries, mut n_others) = (0_u32, 0_u32);
    for line in lines(text) {
        match CrontabLine::of(line) {
            CrontabLine::Entry { schedule, .. } if CronExpr::parse(schedule.text).is_ok() => n_entries += 1,
            CrontabLine::Entry { .. } | CrontabLine::TooShort { .. } => n_others += 1,
            CrontabLine::Nothing | CrontabLine::Assignment { .. } => {}
        }
    }
    n_others < n_entries
}

struct CrontabReader<'z> {
    now: Timestamp,
    zones: &'z mut Zones,
    /// The zone of the lines that follow.
    zone: Zone,
    keys: Keys,
    errors: CrontabErrors,
}

impl CrontabReader<'_> {
    fn set_zone(&mut self, value: Piece<'_>) {
        // C libraries accept `TZ=:Europe/Berlin` for a file. An empty value is UTC.
        let n_colon = usize::from(value.text.starts_with(':'));
        let name = value.split_at(n_colon).1;
        if name.text.is_empty() {
            self.zone = Zone::utc();
            return;
        }
        match self.zones.get(name.text) {
            Ok(zone) => self.zone = zone,
            Err(error) => self.errors.push(Some(name.span()), error.to_string(), None, None),
        }
    }

    fn entry(&mut self, schedule: Piece<'_>, rest: Piece<'_>, line: usize, crontab: &mut Crontab) {
        let (user, command) = match crontab.form {
            CrontabForm::User => (None, rest),
            CrontabForm::System => {
                let (user, command) = rest.first_word();
                (Some(user.text.to_owned()).filter(|it| !it.is_empty()), command)
            }
        };
        let text = command_text(command.text);
        let mut is_good = true;
        if text.is_empty() {
            self.errors.no_command(schedule, rest, crontab.form);
            is_good = false;
        } else if command.first_word().0.text == "*" || command.first_word().0.text == "?" {
            self.errors.seconds(command.first_word().0);
            is_good = false;
        }
        if schedule.text.eq_ignore_ascii_case("@reboot") {
            if is_good {
                crontab.left_out.push(SkippedEntry { why: SkipReason::Reboot, command: text, line });
            }
            return;
        }
        let Some(expr) = self.expr(schedule).filter(|_| is_good) else { return };
        if !self.has_date(&expr) {
            crontab.left_out.push(SkippedEntry { why: SkipReason::NoSuchDate, command: text, line });
            return;
        }
        let Some(key) = self.keys.next(&text, line) else { return };
        let is_pinned = is_pinned(&text);
        let target = CommandTarget { argv: vec![text], shell: true, ..CommandTarget::default() };
        let cron = Schedule::Cron(Cron::new(expr, None));
        let mut job = Job::new(key, Target::Command(target), cron);
        job.zone = self.zone.clone();
        let has_input = has_input(command.text);
        crontab.entries.push(CrontabEntry { job, user, line, is_pinned, has_input });
    }

    fn expr(&mut self, schedule: Piece<'_>) -> Option<CronExpr> {
        match CronExpr::parse(schedule.text) {
            Ok(expr) => Some(expr),
            Err(error) => {
                let Range { start, end } = error.span();
                let span = schedule.start + start..schedule.start + end;
                match &error {
                    CronError::EveryNotCron { .. } => self.errors.push(
                        Some(span),
                        "cron does not know `@every`".to_owned(),
                        None,
                        Some("write fields such as `*/15 * * * *`, or use a job file with `every = \"15m\"`"),
                    ),
                    error => self.errors.push(Some(span), error.to_string(), None, None),
                }
                None
            }
        }
    }

    /// Whether its date comes within [`YEARS_MAX`].
    fn has_date(&self, expr: &CronExpr) -> bool {
        let plan = expr.plan().unwrap_or_else(|| expr.provisional(0).0);
        let latest = self.now + Duration::from_days(366 * i64::from(YEARS_MAX));
        plan.next_after(&self.zone, self.now).is_some_and(|next| next <= latest)
    }
}

struct CrontabErrors(Vec<Diagnostic>);

impl CrontabErrors {
    fn push(
        &mut self,
        span: Option<Range<usize>>,
        message: String,
        label: Option<&'static str>,
        help: Option<&str>,
    ) {
        self.0.push(Diagnostic {
            severity: Severity::Error,
            file_idx: 0,
            span,
            message,
            label: label.map(str::to_owned),
            help: help.map(str::to_owned),
            field: None,
            note: None,
        });
    }

    fn too_short(&mut self, line: Piece<'_>, n_words: usize, form: CrontabForm) {
        let words = if n_words == 1 { "word" } else { "words" };
        let message = format!("the line has {n_words} {words}, too few for five fields and a command");
        self.push(Some(line.span()), message, None, Some(usage(form)));
    }

    fn no_command(&mut self, schedule: Piece<'_>, rest: Piece<'_>, form: CrontabForm) {
        let (span, message) = if rest.text.is_empty() || form == CrontabForm::User {
            (schedule.span(), format!("there is no command after `{}`", shortened(schedule.text)))
        } else {
            let user = rest.first_word().0;
            (user.span(), format!("there is no command after the user `{}`", shortened(user.text)))
        };
        self.push(Some(span), message, Some("expected a command after this"), Some(usage(form)));
    }

    fn seconds(&mut self, word: Piece<'_>) {
        let message = format!("`{}` would be run as the command; a crontab has no seconds field", word.text);
        self.push(Some(word.span()), message, Some("the sixth word"), Some("remove the first field"));
    }
}

fn usage(form: CrontabForm) -> &'static str {
    match form {
        CrontabForm::User => {
            "write minute, hour, day, month, weekday and a command, as in `30 4 * * * backup.sh`"
        }
        CrontabForm::System => {
            "write minute, hour, day, month, weekday, user and a command, as in `30 4 * * * root backup.sh`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crontab(text: &str) -> Crontab {
        let source = SourceText { name: "crontab".to_owned(), text: text.to_owned() };
        let now = "2026-02-04T10:00:00Z".parse().unwrap();
        read(&source, None, now, &mut Zones::new())
            .unwrap_or_else(|errors| panic!("{}", errors.render(false)))
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let crontab = crontab(text);
        let entries = crontab.entries.iter().map(|CrontabEntry { job, user, line, is_pinned, has_input }| {
            let Target::Command(CommandTarget { argv, shell: true, .. }) = &job.target else {
                panic!("{:?}", job.target)
            };
            let user = user.as_ref().map_or(String::new(), |user| format!("{user}: "));
            let pin = if *is_pinned { " (pinned)" } else { "" };
            let input = if *has_input { " < input" } else { "" };
            let (zone, command) = (job.zone.name(), argv.join("+"));
            format!("{line} {} | {} in {zone}{pin} | {user}{command}{input}", job.key, job.schedule)
        });
        let left_out =
            crontab.left_out.iter().map(|it| format!("{} {} | {}", it.line, it.why.code(), it.command));
        let bad = crontab.bad_lines.iter().flat_map(|it| it.iter().map(|it| format!("bad: {}", it.message)));
        assert_eq!(entries.chain(left_out).chain(bad).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn entries_become_jobs_for_the_shell() {
        check("", &[]);
        check(
            "\u{feff}# Nightly.\r\nMAILTO=ops\r\n\r\n0  3 * * *\tbackup.sh --all %in\r\n@reboot a b\r\n",
            &["4 backup.sh | cron 0 3 * * * in UTC | backup.sh --all < input", "5 reboot | a b"],
        );
        check(
            "0 1 * * * a\nCRON_TZ=Europe/Berlin\n0 2 * * * a\nTZ=\n@weekly date +\\%F",
            &[
                "1 a | cron 0 1 * * * in UTC | a",
                "3 a-2 | cron 0 2 * * * in Europe/Berlin | a",
                "5 date | cron @weekly in UTC | date +%F",
            ],
        );
        check(
            "17 * * * * root cd / && run-parts /etc/cron.hourly\n@daily shop /srv/tidy",
            &[
                "1 run-parts | cron 17 * * * * in UTC | root: cd / && run-parts /etc/cron.hourly",
                "2 tidy | cron @daily in UTC | shop: /srv/tidy",
            ],
        );
    }

    #[test]
    fn a_bad_line_does_not_spoil_the_others() {
        check(
            "60 * * * * bad.sh\n0 0 31 2 * off.sh\n\"MAILTO\"=\"ops\"\n30 9 * * Mon-Fri open.sh # pin\n0 3 * *",
            &[
                "4 open.sh | cron 30 9 * * Mon-Fri in UTC (pinned) | open.sh # pin",
                "2 no_such_date | off.sh",
                "bad: `60` is out of range for the minute field (0 to 59)",
                "bad: the line has 4 words, too few for five fields and a command",
            ],
        );
        // A file without any valid line is not a crontab.
        let source = SourceText { name: "crontab".to_owned(), text: "hello\nworld\n".to_owned() };
        read(&source, None, Timestamp::UNIX_EPOCH, &mut Zones::new()).unwrap_err();
    }

    #[test]
    fn a_crontab_is_told_from_a_job_file() {
        assert!(looks_like_crontab("MAILTO=ops\n0 3 * * * backup.sh\n@daily tidy.sh\n60 * * * * bad.sh\n"));
        assert!(!looks_like_crontab("[[job]]\nname = \"a\"\ncommand = [\"true\"]\nevery = \"6h\"\n"));
        assert!(!looks_like_crontab("some words that are neither\n"));
        assert!(!looks_like_crontab(""));
    }

    #[test]
    fn a_crontab_has_a_largest_size() {
        let exactly = "#".repeat(FILE_BYTES_MAX);
        assert_eq!(crontab(&exactly).entries, []);
        let source = SourceText { name: "crontab".to_owned(), text: exactly + "#" };
        let errors = read(&source, None, Timestamp::UNIX_EPOCH, &mut Zones::new()).unwrap_err();
        let messages: Vec<&str> = errors.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(messages, ["the file has 1048577 bytes, more than the 1048576 allowed"]);
    }
}

//! Classifies a line of a crontab.

use super::words::Piece;

/// Number of schedule fields. A crontab has no seconds.
const N_FIELDS: usize = 5;

/// One line, split into its parts but not parsed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrontabLine<'a> {
    /// Blank, or a comment.
    Nothing,
    /// `NAME=value`.
    Assignment { name: &'a str, value: Piece<'a> },
    /// A schedule and the rest of the line: a command, perhaps a user before it.
    Entry { schedule: Piece<'a>, rest: Piece<'a> },
    /// Fewer words than a schedule needs.
    TooShort { line: Piece<'a>, n_words: usize },
}

impl<'a> CrontabLine<'a> {
    pub(super) fn of(line: Piece<'a>) -> CrontabLine<'a> {
        let line = line.trimmed();
        if line.text.is_empty() || line.text.starts_with('#') {
            return CrontabLine::Nothing;
        }
        if let Some((name, value)) = assignment(line) {
            return CrontabLine::Assignment { name, value };
        }
        if line.text.starts_with('@') {
            let (schedule, rest) = line.first_word();
            return CrontabLine::Entry { schedule, rest };
        }
        let (words, rest) = line.words(N_FIELDS);
        match words.as_slice() {
            [first, .., last] if words.len() == N_FIELDS => {
                let schedule = line.split_at(last.span().end - first.start).0;
                CrontabLine::Entry { schedule, rest }
            }
            _ => CrontabLine::TooShort { line, n_words: words.len() },
        }
    }
}

/// Parses `NAME=value`, in which both sides may be quoted. A schedule never starts like this.
fn assignment(line: Piece<'_>) -> Option<(&str, Piece<'_>)> {
    let (before, after) = line.split_at(line.text.find('=')?);
    let name = unquoted(before.trimmed()).text;
    let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && name.bytes().next().is_some_and(|it| !it.is_ascii_digit());
    is_name.then_some((name, unquoted(after.split_at(1).1.trimmed())))
}

/// Removes matching quotes around a text.
fn unquoted(text: Piece<'_>) -> Piece<'_> {
    let is_quoted = ['"', '\'']
        .into_iter()
        .any(|quote| 2 <= text.text.len() && text.text.starts_with(quote) && text.text.ends_with(quote));
    if is_quoted { text.split_at(text.text.len() - 1).0.split_at(1).1 } else { text }
}

/// Whether a command ends with the comment `# pin`, which keeps its time as written.
pub(super) fn is_pinned(command: &str) -> bool {
    command.rsplit_once('#').is_some_and(|(before, comment)| {
        comment.trim_ascii() == "pin" && before.ends_with(|it: char| it.is_ascii_whitespace())
    })
}

/// The part that cron passes to the shell: up to the first `%`, with each `\%` as a `%`.
pub(super) fn command_text(raw: &str) -> String {
    let mut command = String::new();
    let mut letters = raw.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => break,
            '\\' if letters.peek() == Some(&'%') => command.extend(letters.next()),
            _ => command.push(letter),
        }
    }
    command.trim_ascii_end().to_owned()
}

/// Whether cron passes the rest of the line to the command as its standard input.
pub(super) fn has_input(raw: &str) -> bool {
    let mut letters = raw.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '%' => return true,
            '\\' if letters.peek() == Some(&'%') => drop(letters.next()),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match CrontabLine::of(Piece { text, start: 0 }) {
            CrontabLine::Nothing => "nothing".to_owned(),
            CrontabLine::Assignment { name, value } => format!("{name} := {}", value.text),
            CrontabLine::Entry { schedule, rest } => format!("{} | {}", schedule.text, rest.text),
            CrontabLine::TooShort { n_words, .. } => format!("too short: {n_words}"),
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn a_line_is_one_of_four_things() {
        check("", "nothing");
        check(" \t ", "nothing");
        check("  # 0 3 * * * old", "nothing");
        check("MAILTO=ops@example.org", "MAILTO := ops@example.org");
        check("CRON_TZ = \"Europe/Berlin\"", "CRON_TZ := Europe/Berlin");
        check("SHELL='/bin/sh'", "SHELL := /bin/sh");
        check("\"QUOTED\"=\"x\"", "QUOTED := x");
        check("'PATH' = /bin", "PATH := /bin");
        check("\"HALF=x", "too short: 1");
        check("EMPTY=", "EMPTY := ");
        check("QUOTE=\"", "QUOTE := \"");
        check("0 3 * * * backup.sh", "0 3 * * * | backup.sh");
        check("  0\t3  * * *\t backup.sh  --full ", "0\t3  * * * | backup.sh  --full");
        check("@daily backup.sh", "@daily | backup.sh");
        check("@daily", "@daily | ");
        check("0 3 * * *", "0 3 * * * | ");
        check("0 3 * *", "too short: 4");
        check("H H * * * A=b x", "H H * * * | A=b x");
        check("0 3 * * * A=b x", "0 3 * * * | A=b x");
        check("9=x", "too short: 1");
        check("=x", "too short: 1");
        check("é=x", "too short: 1");
    }

    #[test]
    fn a_comment_pins_a_line() {
        for (command, expected) in [
            ("open.sh # pin", true),
            ("open.sh  #pin ", true),
            ("open.sh # pinned", false),
            ("open.sh#pin", false),
            ("open.sh", false),
        ] {
            assert_eq!(is_pinned(command), expected, "{command}");
        }
    }

    #[test]
    fn a_percent_sign_ends_a_command() {
        let check = |raw: &str, expected: &str| assert_eq!(command_text(raw), expected, "{raw}");
        check("mail -s hello root%Hi%there", "mail -s hello root");
        check("date +\\%F > /tmp/today", "date +%F > /tmp/today");
        check("a \\\\ b", "a \\\\ b");
        check("a %", "a");
        check("%x", "");
    }
}
